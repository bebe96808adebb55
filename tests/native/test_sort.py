"""Native sorting, selection and distinct values agree with the reference, ties and NaN included."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import votive as vt

from .compare import agree, layouts, needs_native, reference_only, served_by_native

pytestmark = needs_native

SHAPES = [
    (),
    (1,),
    (2,),
    (24,),
    (25,),
    (256,),
    (257,),
    (1000,),
    (5, 7),
    (40, 300),
    (300, 40),
    (3, 1, 50),
    (70_001,),
    (2, 66_000),
]
REALS = [vt.float32, vt.float64, vt.float16, vt.bfloat16, vt.int8, vt.int16, vt.int32, vt.int64, vt.uint8]


def values(shape: tuple[int, ...], dtype: Any = vt.float32, few: bool = False) -> Any:
    rng = np.random.default_rng(len(shape))
    if dtype is vt.bool:
        return vt.tensor(rng.random(shape) < 0.5)
    if not dtype.is_floating_point:
        low, high = (0, 200) if dtype is vt.uint8 else (-100, 100)
        return vt.tensor(rng.integers(low, 5 if few else high, shape)).to(dtype)
    made = rng.integers(-3, 4, shape) * 0.5 if few else rng.standard_normal(shape)
    return vt.tensor(made).to(dtype)


def check(fn: Any, x: Any, *args: Any, **options: Any) -> Any:
    return agree(lambda t: fn(t, *args, **options), x)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_sort_along_every_dim(shape: tuple[int, ...]) -> None:
    for few, descending in itertools.product((False, True), repeat=2):
        for x in layouts(values(shape, few=few)):
            for dim in range(-1, len(shape)):
                check(vt.sort, x, dim, descending)


@pytest.mark.parametrize("dtype", [*REALS, vt.bool], ids=str)
@pytest.mark.parametrize("n", [20, 100, 700, 70_000])
def test_sort_every_type(dtype: Any, n: int) -> None:
    x = values((n,), dtype)
    check(vt.sort, x)
    check(vt.sort, x, 0, True)
    check(vt.argsort, x)
    check(vt.mode, x)
    check(vt.unique, x, return_inverse=True, return_counts=True)
    check(vt.unique_consecutive, x, return_inverse=True, return_counts=True)
    if dtype is not vt.bool:
        check(vt.median, x)
        check(vt.median, x, 0)
        check(vt.kthvalue, values((n,), vt.float64), n // 3)


@pytest.mark.parametrize("n", [10, 300, 70_000])
def test_nan_comes_last_and_zeros_are_equal(n: int) -> None:
    x = values((n,))
    x[n // 2 :: 7] = math.nan
    x[1::5] = 0.0
    x[2::5] = -0.0
    x[3], x[4] = math.inf, -math.inf
    for descending in (False, True):
        found = check(vt.sort, x, 0, descending)
        with reference_only():
            signs = vt.signbit(vt.sort(x, 0, descending).values)
        assert vt.equal(vt.signbit(found.values[~found.values.isnan()]), signs[~found[0].isnan()])
    check(vt.median, x)
    check(vt.median, x, 0)
    check(vt.nanmedian, x)
    check(vt.nanmedian, x, 0)
    check(vt.nanmedian, x * math.nan, 0)
    check(vt.mode, x)
    check(vt.unique, x, return_inverse=True, return_counts=True)
    check(lambda t: vt.topk(t, 5).values, x)


@pytest.mark.parametrize("shape", [(1,), (30,), (4, 300), (300, 4), (3, 5000), (70_000,)], ids=str)
def test_topk_values_and_places(shape: tuple[int, ...]) -> None:
    for few, largest, ordered in itertools.product((False, True), repeat=3):
        for x, dim in itertools.product(layouts(values(shape, vt.float64, few)), range(len(shape))):
            n = shape[dim]
            for k in sorted({0, 1, n // 10, n // 2, n}):
                found = vt.topk(x, k, dim, largest, ordered)
                with reference_only():
                    wanted = vt.topk(x, k, dim, largest, True)
                assert vt.equal(vt.gather(x, dim, found.indices), found.values)
                ours = found.values if ordered else vt.sort(found.values, dim, largest).values
                assert vt.equal(ours, wanted.values)
                assert found.values.stride() == wanted.values.stride()
                if not few and ordered:
                    assert vt.equal(found.indices, wanted.indices)


@pytest.mark.parametrize("dtype", REALS, ids=str)
def test_topk_every_type(dtype: Any) -> None:
    x = values((6, 3000), dtype)
    for largest in (False, True):
        found = vt.topk(x, 20, 1, largest)
        with reference_only():
            assert vt.equal(found.values, vt.topk(x, 20, 1, largest).values)


@pytest.mark.parametrize("shape", [(1,), (7,), (40, 300), (300, 40), (3, 4, 5), (5000,)], ids=str)
def test_ranks_along_every_dim(shape: tuple[int, ...]) -> None:
    for x, dim, keepdim in itertools.product(layouts(values(shape)), range(len(shape)), (False, True)):
        check(vt.median, x, dim, keepdim)
        check(vt.nanmedian, x, dim, keepdim)
        check(vt.mode, x, dim, keepdim)
        for k in sorted({1, (shape[dim] + 1) // 2, shape[dim]}):
            check(vt.kthvalue, x, k, dim, keepdim)
        check(vt.median, x)


def test_distinct_of_other_layouts_and_slices() -> None:
    x = values((30, 20), vt.int64, few=True)
    for t in layouts(x):
        check(vt.unique, t, return_inverse=True, return_counts=True)
        check(vt.unique, t, return_inverse=True, dim=0)
        check(vt.unique_consecutive, t, return_counts=True)
    check(vt.unique, vt.zeros(0), return_inverse=True, return_counts=True)


def test_empty_sorts() -> None:
    for shape in [(0,), (3, 0), (0, 3)]:
        for dim in range(len(shape)):
            check(vt.sort, vt.zeros(shape), dim)
            check(vt.topk, vt.zeros(shape), 0, dim)


@pytest.mark.parametrize("op", ["_sort", "_topk", "_kthvalue", "_sample", "_median", "_unique"])
def test_native_rows_serve(op: str) -> None:
    x = values((4, 50))
    run = {
        "_sort": lambda: vt.sort(x),
        "_topk": lambda: vt.topk(x, 3),
        "_unique": lambda: x.unique(),
        "_kthvalue": lambda: vt.kthvalue(x, 3),
        "_sample": lambda: vt.mode(x),
        "_median": lambda: x.median(),
    }
    assert served_by_native(op, run[op])
