"""Native searches and counts agree with the reference."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import votive as vt

from .compare import agree, layouts, needs_native, served_by_native

pytestmark = needs_native


def values(shape: tuple[int, ...], dtype: Any = vt.float32, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    if not dtype.is_floating_point:
        return vt.tensor(rng.integers(0, 100, shape)).to(dtype)
    return vt.tensor(rng.standard_normal(shape)).to(dtype)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 8, 100, 1000])
@pytest.mark.parametrize("right", [False, True])
def test_searches_in_one_row(n: int, right: bool) -> None:
    bounds = values((n,)).sort().values
    for shape in [(), (0,), (1,), (17,), (30, 70), (5000,)]:
        for x in layouts(values(shape, seed=1)):
            agree(lambda b, v: vt.searchsorted(b, v, right=right), bounds, x)
            agree(lambda b, v: vt.bucketize(v, b, right=right, out_int32=True), bounds, x)
    if n:
        agree(lambda b: vt.searchsorted(b, b, right=right), bounds)
        odd = vt.tensor([math.nan, math.inf, -math.inf, 0.0, -0.0])
        agree(lambda b, v: vt.searchsorted(b, v, right=right), bounds, odd)


def test_searches_in_rows_and_types() -> None:
    types = [vt.float32, vt.float64, vt.float16, vt.bfloat16, vt.int32, vt.int64, vt.uint8]
    for a, b in itertools.product(types, repeat=2):
        bounds = values((4, 3, 20), a).sort().values
        for rows, x in itertools.product(layouts(bounds), layouts(values((4, 3, 9), b, 1))):
            agree(lambda s, v: vt.searchsorted(s, v), rows, x)
    order = values((50,)).sort()
    agree(lambda s, v: vt.searchsorted(s, v, sorter=order.indices), values((50,)), values((9,), seed=1))


def test_counts() -> None:
    for dtype in (vt.int64, vt.int32, vt.uint8):
        for n in (0, 1, 100, 100_000):
            x = values((n,), dtype)
            for t in layouts(x):
                agree(vt.bincount, t)
                agree(lambda v: vt.bincount(v, minlength=300), t)
                agree(lambda v, w: vt.bincount(v, w), t, values((n,)))
                agree(lambda v, w: vt.bincount(v, w), t, values((n,), vt.float64))
    with pytest.raises(RuntimeError, match="negative"):
        vt.bincount(vt.tensor([1, -1]))


def test_histograms() -> None:
    for dtype in (vt.float32, vt.float64, vt.bfloat16):
        for shape in [(0,), (1,), (100,), (30, 40), (100_000,)]:
            for x in layouts(values(shape, dtype)):
                agree(lambda v: vt.histc(v, 10, -1, 1), x)
                agree(lambda v: vt.histc(v, 7), x)
    x = values((100,))
    x[3] = math.nan
    agree(lambda v: vt.histc(v, 10, -2, 2), x)


def test_native_rows_serve() -> None:
    x = vt.ones(4)
    assert served_by_native("_searchsorted", lambda: vt.searchsorted(x, x))
    assert served_by_native("_histc", lambda: vt.histc(x, 3, 0, 2))
    assert served_by_native("_bincount", lambda: vt.bincount(vt.tensor([1, 2])))
