"""Memory stays flat: thousands of training-like iterations leave nothing behind."""

from __future__ import annotations

import gc
import os

import votive as vt


def resident() -> int:
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_ten_thousand_training_iterations_leave_resident_memory_flat() -> None:
    if not os.path.exists("/proc/self/statm"):
        import pytest

        pytest.skip("no /proc on this system")
    vt.manual_seed(0)
    x, y = vt.randn(32, 8), vt.randn(32, 1)
    w1 = vt.randn(8, 16).requires_grad_()
    w2 = vt.randn(16, 1).requires_grad_()

    def train(n: int) -> None:
        for _ in range(n):
            loss = ((vt.tanh(x @ w1) @ w2 - y) ** 2).mean()
            loss.backward()
            with vt.no_grad():
                for p in (w1, w2):
                    p.sub_(p.grad * 0.01)
                    p.grad = None

    train(500)
    gc.collect()
    before, held = resident(), vt.cpu.memory_allocated()
    gc.disable()  # nothing may depend on the collector
    try:
        train(10_000)
    finally:
        gc.enable()
    assert vt.cpu.memory_allocated() <= held + 4096
    assert resident() - before < 4 << 20


def test_loops_over_rows_do_not_pile_up_references_to_dead_views() -> None:
    x = vt.zeros(100, 3)
    for _ in range(50):
        for i in range(100):
            x[i].sum()
    assert len(x._views or []) < 400
