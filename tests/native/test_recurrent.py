"""Recurrent networks on native kernels agree with the reference, forward and backward."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import votive
from tests.ops.test_recurrent import arguments
from votive.core import dtype as dt
from votive.ops.registry import F

from .compare import needs_native, reference_only, served_by_native

pytestmark = needs_native

TOLERANCE = {dt.float32: 3e-5, dt.float64: 1e-10, dt.float16: 1e-2, dt.bfloat16: 6e-2}


def drawn(seed: int) -> dict[str, Any]:
    """A network of random sizes, often not divisible by any vector."""
    rng = np.random.default_rng(seed)
    mode = ("lstm", "gru", "tanh", "relu")[seed % 4]
    hidden = int(rng.choice([1, 3, 8, 17, 33, 50, 70]))
    case: dict[str, Any] = {
        "mode": mode,
        "layers": int(rng.integers(1, 4)),
        "bidirectional": bool(rng.random() < 0.5),
        "biases": bool(rng.random() < 0.7),
        "hidden": hidden,
        "features": int(rng.choice([1, 5, 16, 40])),
        "steps": int(rng.choice([1, 2, 3, 9])),
        "batch": int(rng.choice([1, 2, 3, 5, 7, 13, 30])),
    }
    if mode == "lstm" and hidden > 2 and rng.random() < 0.5:
        case["out"] = hidden // 2
    if rng.random() < 0.4:
        case["sizes"] = tuple(sorted((int(n) for n in rng.integers(1, case["batch"] + 1, case["steps"])), reverse=True))
    return case


def run(x: Any, h: Any, c: Any, weights: Any, how: Any, seeds: Any) -> list[Any]:
    """Results and gradients, as arrays."""
    leaves = [t.detach().requires_grad_() for t in (x, h, c, *weights) if t is not None]
    it = iter(leaves)
    x, h, c = (None if t is None else next(it) for t in (x, h, c))
    made = F._recurrent(x, h, c, list(it), *how, True)[: 3 if how[0] == "lstm" else 2]
    if seeds is not None:
        pairs = [(y, s.expand(y.shape)) for y, s in zip(made, seeds, strict=False) if s is not None]
        made = [*made, *votive.autograd.grad([y for y, _ in pairs], leaves, [s for _, s in pairs], allow_unused=True)]
    return [None if t is None else t.detach().to(votive.float64).numpy() for t in made]


def close(got: list[Any], want: list[Any], tolerance: float) -> None:
    for a, b in zip(got, want, strict=True):
        if b is None:
            assert a is None
            continue
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * max(1.0, float(np.abs(b).max(initial=0))))


@pytest.mark.parametrize("seed", range(96))
def test_networks_of_random_sizes_agree(seed: int) -> None:
    case = drawn(seed)
    dtype = (dt.float32, dt.float64, dt.float16, dt.bfloat16)[seed // 4 % 4]
    x, h, c, weights, how = arguments(case, seed % 3 > 0, dtype, grad=False)
    scale = 1 / max(1, case["hidden"]) ** 0.5
    weights = [w * scale for w in weights]
    seeds = [votive.tensor(0.5, dtype=dtype), votive.tensor(-0.25, dtype=dtype), votive.tensor(0.75, dtype=dtype)]
    seeds[seed % 5 : seed % 5 + 1] = [None] if seed % 5 < 2 else []
    for op in ("_recurrent", "_recurrent_backward"):
        assert served_by_native(op, lambda: run(x, h, c, weights, how, seeds))
    got = run(x, h, c, weights, how, seeds)
    with reference_only():
        want = run(x, h, c, weights, how, seeds)
    close(got, want, TOLERANCE[dtype])


@pytest.mark.parametrize("mode", ["lstm", "gru", "tanh"])
def test_any_layout_of_input_states_and_weights_serves(mode: str) -> None:
    x, h, c, weights, how = arguments({"mode": mode, "hidden": 20, "features": 6, "layers": 2}, True, dt.float32, False)
    seeds = [votive.tensor(1.0)] * 3
    want = run(x, h, c, weights, how, seeds)

    def strided(t: Any) -> Any:
        return None if t is None else votive.stack([t, t], -1)[..., 0]

    def transposed(t: Any) -> Any:
        return None if t is None else t.transpose(0, 1).contiguous().transpose(0, 1) if t.ndim > 1 else t

    for form in (strided, transposed):
        got = run(form(x), form(h), form(c), [form(w) for w in weights], how, seeds)
        close(got, want, 1e-6)


@pytest.mark.parametrize("mode", ["lstm", "gru", "relu"])
def test_threads_change_nothing_but_rounding(mode: str) -> None:
    for case in ({"batch": 9, "steps": 30, "hidden": 64}, {"batch": 1, "steps": 5, "hidden": 300}):
        for both in (False, True):
            x, h, c, weights, how = arguments(
                {"mode": mode, "features": 32, "bidirectional": both, **case}, True, dt.float32, False
            )
            weights = [w * 0.1 for w in weights]
            results = []
            before = votive.get_num_threads()
            for threads in (1, 2, 4):
                votive.set_num_threads(threads)
                results.append(run(x, h, c, weights, how, [votive.tensor(1.0)] * 3))
            votive.set_num_threads(before)
            for got in results[1:]:
                close(got, results[0], 2e-5)


def test_without_a_graph_the_numbers_are_the_same() -> None:
    for mode in ("lstm", "gru", "tanh"):
        x, h, c, weights, how = arguments({"mode": mode, "layers": 3, "hidden": 20}, True, dt.float32, False)
        kept = F._recurrent(x, h, c, weights, *how, True)
        bare = F._recurrent(x, h, c, weights, *how, False)
        assert all(votive.equal(a, b) for a, b in zip(kept[:3], bare[:3], strict=True))
        assert bare[3].shape == (0,)


def test_numbers_that_are_not_finite_reach_the_results() -> None:
    for mode in ("lstm", "gru", "tanh", "relu"):
        x, h, c, weights, how = arguments({"mode": mode, "hidden": 5}, True, dt.float32, False)
        x[1, 2, 0] = float("nan")
        out = F._recurrent(x, h, c, weights, *how, False)[0]
        assert out[1:, 2].isnan().all()
        assert out[0].isfinite().all()
        assert out[:, 0].isfinite().all()
