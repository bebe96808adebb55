"""Native reductions agree with the reference on every layout, type and set of dimensions."""

from __future__ import annotations

import itertools
import math
import warnings
from typing import Any

import numpy as np
import pytest

import votive as vt

from .compare import agree, layouts, needs_native, served_by_native

pytestmark = needs_native

SHAPES = [
    (),
    (1,),
    (5,),
    (7, 5),
    (3, 4, 5),
    (2, 3, 1, 5),
    (1000,),
    (33, 1000),
    (1000, 3),
    (300, 200),
    (5000, 4),
    (40000, 3),
    (70000,),
    (3, 70000),
    (17, 1, 33, 9),
    (130, 65),
]
EMPTY = [(0,), (3, 0), (0, 3), (2, 0, 4)]
FLOATS = [vt.float32, vt.float64, vt.float16, vt.bfloat16]
INTS = [vt.int8, vt.int16, vt.int32, vt.int64, vt.uint8]


def values(shape: tuple[int, ...], dtype: Any = vt.float32, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    if dtype is vt.bool:
        return vt.tensor(rng.random(shape) < 0.7)
    if not dtype.is_floating_point:
        return vt.tensor(rng.integers(0, 100, shape)).to(dtype)
    return vt.tensor(rng.standard_normal(shape)).to(dtype)


def dims_of(shape: tuple[int, ...]) -> list[Any]:
    n = len(shape)
    return [None, *(d for k in range(1, n + 1) for d in itertools.combinations(range(n), k))]


def check(fn: Any, x: Any, *args: Any, **options: Any) -> None:
    """Native and reference agree on `fn(x, *args, **options)`."""
    agree(lambda t: fn(t, *args, **options), x)


def quiet(fn: Any) -> Any:
    def run(*args: Any, **options: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return fn(*args, **options)

    return run


@pytest.mark.parametrize("shape", SHAPES + EMPTY, ids=str)
def test_sums_of_every_set_of_dims(shape: tuple[int, ...]) -> None:
    for x, dim, keepdim in itertools.product(layouts(values(shape)), dims_of(shape), (0, 1)):
        check(vt.sum, x, dim, bool(keepdim))
        check(vt.mean, x, dim, bool(keepdim))
        every = tuple(range(len(shape))) if dim is None else dim
        check(vt.logsumexp, x, every, bool(keepdim))
        check(quiet(vt.var), x, dim, keepdim=bool(keepdim))
        check(quiet(vt.std), x, dim, correction=0, keepdim=bool(keepdim))
        check(vt.any, x, dim, bool(keepdim))
        check(vt.count_nonzero, x, dim)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_extremes_and_norms_of_every_set_of_dims(shape: tuple[int, ...]) -> None:
    for x, dim, keepdim in itertools.product(layouts(values(shape)), dims_of(shape), (0, 1)):
        check(vt.amax, x, dim or (), bool(keepdim))
        check(vt.amin, x, dim or (), bool(keepdim))
        for p in (0, 0.5, 1, 2, 3, math.inf, -math.inf):
            check(vt.linalg.vector_norm, x, p, dim, bool(keepdim))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_places_along_every_dim(shape: tuple[int, ...]) -> None:
    for x in layouts(values(shape)):
        agree(vt.argmax, x)
        agree(vt.argmin, x)
        for dim, keepdim in itertools.product(range(len(shape)), (False, True)):
            for fn in (vt.max, vt.min, vt.argmax, vt.argmin):
                check(fn, x, dim, keepdim)
            check(vt.prod, x * 0.01 + 1, dim, keepdim)


@pytest.mark.parametrize("dtype", [*FLOATS, *INTS, vt.bool], ids=str)
def test_types(dtype: Any) -> None:
    x = values((37, 129), dtype)
    for t, dim in itertools.product(layouts(x), (None, 0, 1)):
        check(vt.sum, t, dim)
        check(vt.any, t, dim)
        check(vt.all, t, dim)
        check(vt.amax, t, () if dim is None else dim)
        check(vt.amin, t, () if dim is None else dim)
        check(vt.nansum, t, dim)
        check(vt.count_nonzero, t, dim)
        check(vt.sum, t, dim, dtype=vt.float64)
        check(vt.sum, t, dim, dtype=vt.bool)
        if dtype is not vt.bool:
            check(vt.argmax, t, dim)
        if dim is not None:
            check(vt.max, t, dim)
            check(vt.prod, t, dim, dtype=vt.float64)
        if dtype.is_floating_point:
            check(vt.mean, t, dim)
            check(vt.var, t, dim)
            check(vt.norm, t, 2, dim)
        else:
            check(vt.sum, t, dim, dtype=vt.int8)


@pytest.mark.parametrize("dtype", [vt.complex64, vt.complex128], ids=str)
def test_complex_sums(dtype: Any) -> None:
    x = vt.complex(values((20, 130), vt.float64), values((20, 130), vt.float64, 1)).to(dtype)
    for t, dim in itertools.product(layouts(x), (None, 0, 1)):
        check(vt.sum, t, dim)
        check(vt.mean, t, dim)
        check(vt.any, t, dim)


@pytest.mark.parametrize("n", [1, 3, 15, 16, 17, 63, 64, 65, 2047, 2048, 2049, 4097, 100_003])
def test_nan_wins_and_the_first_of_equals_is_found(n: int) -> None:
    for at in sorted({0, n // 3, n - 1}):
        for bad in (math.nan, math.inf, -math.inf, 3.0):
            x = values((n,))
            x[at] = bad
            x[n // 2] = bad
            for fn in (vt.argmax, vt.argmin, vt.amax, vt.amin):
                agree(fn, x)
                check(fn, vt.stack([x, -x, x], 1), 0)
            check(vt.logsumexp, x, 0)
            agree(vt.nansum, x)
    agree(vt.argmax, vt.zeros(n))
    check(vt.max, vt.zeros(n, 2), 0)


def test_long_sums_are_accurate() -> None:
    x = vt.full((3_000_001,), 0.1)
    assert abs(float(x.sum()) / (3_000_001 * float(x[0])) - 1) < 1e-6
    tall = vt.full((300_001, 5), 0.1)
    assert np.allclose(tall.sum(0).numpy(), 300_001 * float(x[0]), rtol=1e-6)
    assert abs(float(vt.full((3_000_001,), 0.1).bfloat16().float().mean()) - 0.10009765) < 1e-6


def test_variance_far_from_zero_keeps_its_digits() -> None:
    rng = np.random.default_rng(0)
    near = rng.standard_normal((3000, 40))
    for shift in (0.0, 1e3, -1e4):
        x = vt.tensor((near + shift).astype(np.float32))
        exact = x.double().numpy()
        for dim in (0, 1, None):
            np.testing.assert_allclose(x.var(dim).numpy(), np.var(exact, axis=dim, ddof=1), rtol=1e-4)


@pytest.mark.parametrize("op", ["sum", "mean", "amax", "argmax", "any", "prod", "logsumexp"])
def test_native_rows_serve(op: str) -> None:
    x = vt.ones(4, 5)
    assert served_by_native(op, lambda: getattr(vt, op)(x, 1))


def test_dim_as_given_finds_its_plan_again() -> None:
    x = vt.ones(3, 4)
    assert x.sum(1).tolist() == x.sum((1,)).tolist() == x.sum([-1]).tolist() == [4.0] * 3
    with pytest.raises(TypeError):
        x.sum(1.0)
    with pytest.raises(TypeError):
        x.sum(True)
