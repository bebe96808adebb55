"""Ranks, selections and counts of long lines, and short lines of any strides, agree with the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import votive
from votive.ops.registry import OPS

from .device import EMULATED, LAYOUTS, cpu_fallbacks, placed

KINDS = ["float32", "float64", "bfloat16", "int64", "int32", "uint8"]
SHAPES = [(1, 300), (3, 77)] if EMULATED else [(1, 300_001), (3, 40_003)]


@pytest.fixture(autouse=True)
def long_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the emulated GPU lines of a hundred are long."""
    if EMULATED:
        from votive.backends.cuda.kernels import search
        from votive.backends.cuda.kernels.sort import long_rank, select, sorts

        sizes = {"RANKED": 10, "LARGEST": 3}
        for module in (sorts, select):
            for name, value in sizes.items():
                monkeypatch.setattr(module, name, value)
        monkeypatch.setattr(long_rank, "BLOCK", 64)
        monkeypatch.setattr(search, "TALLIED", 64)
    for name in ("_topk", "_kthvalue", "_sample", "_median", "_bincount", "_histc"):
        OPS[name].forget()


def drawn(shape: tuple[int, ...], kind: str, nan: bool = False) -> Any:
    a = np.random.default_rng(3).standard_normal(shape) * 20
    x = votive.from_numpy(np.abs(a) if kind == "uint8" else a).to(getattr(votive, kind))
    if nan:
        x[0, 5] = x[-1, 9] = float("nan")
    return x


def equal(ours: Any, theirs: Any) -> None:
    np.testing.assert_array_equal(ours.cpu().double().numpy(), theirs.cpu().double().numpy())


@pytest.mark.parametrize("kind", KINDS)
def test_the_element_of_a_rank_in_long_lines(kind: str) -> None:
    for shape in SHAPES:
        for nan in (False, True) if kind.startswith(("float", "bfloat")) else (False,):
            x = drawn(shape, kind, nan)
            y = x.to("cuda")
            with cpu_fallbacks() as left:
                for k in (1, 20, shape[1]):
                    values, places = y.kthvalue(k, 1)
                    want = x.sort(1, stable=True)
                    equal(values, want.values[:, k - 1])
                    equal(places, want.indices[:, k - 1])
                equal(y.median(1).values, x.median(1).values)
                equal(y.median(), x.median())
                if x.is_floating_point():
                    equal(y.nanmedian(1).values, x.nanmedian(1).values)
            assert not left


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_many_of_long_lines(kind: str) -> None:
    for shape in SHAPES:
        x = drawn(shape, kind, kind.startswith(("float", "bfloat")))
        k = shape[1] // 5
        for largest in (True, False):
            want = x.sort(1, descending=largest, stable=True)
            with cpu_fallbacks() as left:
                got = x.to("cuda").topk(k, 1, largest=largest)
            equal(got.values, want.values[:, :k])
            equal(got.indices, want.indices[:, :k])
            assert not left


@pytest.mark.parametrize("how", LAYOUTS)
def test_short_lines_of_any_strides_are_sorted_where_they_lie(how: str) -> None:
    for shape in [(1, 52), (20, 3), (5, 9, 3), (2, 3, 4, 5)]:
        a = np.random.default_rng(4).integers(-9, 9, shape).astype(np.float32)
        x, y = placed(a, how, "cpu"), placed(a, how, "cuda")
        for dim in range(len(shape)):
            want, got = (t.sort(dim, descending=bool(dim), stable=True) for t in (x, y))
            equal(got.values, want.values)
            equal(got.indices, want.indices)


@pytest.mark.parametrize("bins", [1, 2, 91, 700])
def test_counts_in_few_and_many_bins(bins: int) -> None:
    rng = np.random.default_rng(5)
    for n in (1, 900):
        a = rng.integers(0, bins, n)
        for step in (1, 2):
            x = votive.from_numpy(np.repeat(a, step)).to("cuda")[::step]
            np.testing.assert_array_equal(votive.bincount(x).cpu().numpy(), np.bincount(a))
        f = votive.from_numpy(rng.standard_normal(n).astype(np.float32))
        equal(votive.histc(f.to("cuda"), bins, -2, 2), votive.histc(f, bins, -2, 2))
