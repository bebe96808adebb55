"""The list of operators that are computed on the CPU is exact, and leaving the GPU is told once."""

from __future__ import annotations

import warnings

import pytest

import votive
from votive.backends.base import BACKENDS, TABLE

from .cpu_fallbacks import SOMETIMES, WITHOUT_KERNEL


def test_the_list_of_operators_without_kernels_is_exact() -> None:
    assert BACKENDS["cuda"]
    without = {
        op
        for (op, device), rows in TABLE.items()
        if device == "cuda" and all(row.label == "cpu_fallback" for row in rows)
    }
    assert without - WITHOUT_KERNEL == set(), "without a kernel, and not in tests/cuda/cpu_fallbacks.py"
    assert WITHOUT_KERNEL - without == set(), "has a kernel: take it out of tests/cuda/cpu_fallbacks.py"
    assert not WITHOUT_KERNEL & set(SOMETIMES)


def test_leaving_the_gpu_is_told_once_and_names_the_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    from votive.backends.cuda import cpu_fallback

    monkeypatch.setattr(cpu_fallback, "_warned", set())
    x = votive.ones(3, 3, device="cuda") + votive.eye(3, device="cuda")
    with pytest.warns(cpu_fallback.CpuFallbackWarning, match="eig"):
        first = votive.linalg.eigvals(x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        second = votive.linalg.eigvals(x)
    assert first.device.type == second.device.type == "cuda"
    assert first.abs().max().item() == pytest.approx(4.0)


def test_an_index_out_of_range_is_told_when_the_host_waits() -> None:
    x = votive.arange(6.0, device="cuda")
    picked = votive.index_select(x, 0, votive.tensor([1, 9], device="cuda"))
    with pytest.raises(IndexError, match="index_select"):
        picked.cpu()
    # Told once; what follows is not disturbed.
    assert x.sum().item() == 15.0


def test_errors_of_kernels_that_are_too_many_to_tell_apart_keep_their_kind() -> None:
    from votive.backends.cuda.runtime import faults

    some = faults._Faults()
    places = [some.place(IndexError, f"size {k}") for k in range(2000)]
    other = some.place(RuntimeError, "another")
    assert len(set(places)) == len({*places, other}) - 1 < 1024
    for place, kind, text in (
        (places[3], IndexError, "size 3"),
        (places[1500], IndexError, "out of range"),
        (other, RuntimeError, "out of range"),
    ):
        some.words[(place - some.address) // 4] = 1
        with pytest.raises(kind, match=text):
            some.check()
        some.check()  # told once


def test_errors_of_kernels_are_told_at_once_where_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    from votive.backends.cuda import runtime as rt

    x, where = votive.arange(7.0, device="cuda"), votive.tensor([1, 9], device="cuda")
    graph = votive.cuda.CUDAGraph()
    monkeypatch.setattr(rt, "SYNC", True)
    with pytest.raises(IndexError, match="index_select"):
        votive.index_select(x, 0, where)
    with votive.cuda.graph(graph):  # what is recorded is not waited for
        y = x + 1
    graph.replay()
    assert y.sum().item() == 28.0
