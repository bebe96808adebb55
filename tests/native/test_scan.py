"""Native running sums, products and extremes agree with the reference."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import votive as vt

from .compare import agree, layouts, needs_native, served_by_native

pytestmark = needs_native

SHAPES = [
    (),
    (1,),
    (15,),
    (16,),
    (17,),
    (100,),
    (0,),
    (3, 0),
    (0, 3),
    (5, 7),
    (40, 300),
    (300, 40),
    (3, 4, 5),
    (3, 1, 50),
    (2, 66_000),
    (200_003,),
    (20_000, 3),
]
TYPES = [vt.float32, vt.float64, vt.float16, vt.bfloat16, vt.int8, vt.int16, vt.int32, vt.int64, vt.uint8, vt.bool]


def values(shape: tuple[int, ...], dtype: Any = vt.float32) -> Any:
    rng = np.random.default_rng(len(shape))
    if dtype is vt.bool:
        return vt.tensor(rng.random(shape) < 0.5)
    if not dtype.is_floating_point:
        return vt.tensor(rng.integers(0, 100, shape)).to(dtype)
    return vt.tensor(rng.standard_normal(shape)).to(dtype)


def check(fn: Any, x: Any, *args: Any, **options: Any) -> Any:
    return agree(lambda t: fn(t, *args, **options), x)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_scans_along_every_dim(shape: tuple[int, ...]) -> None:
    for x, dim in itertools.product(layouts(values(shape)), range(-1, len(shape))):
        check(vt.cumsum, x, dim)
        check(vt.cumprod, 1 + 0.01 * x, dim)
        check(vt.logcumsumexp, x, dim)
        check(vt.cummax, x, dim)
        check(vt.cummin, x, dim)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_scans_of_every_type(dtype: Any) -> None:
    for x, dim in itertools.product(layouts(values((30, 70), dtype)), (0, 1)):
        check(vt.cumsum, x, dim)
        check(vt.cumsum, x, dim, dtype=vt.float64)
        check(vt.cummax, x, dim)
        check(vt.cummin, x, dim)
        if dtype.is_floating_point:
            check(vt.cumprod, 1 + 0.01 * x, dim)
            check(vt.logcumsumexp, x, dim)
        else:
            check(vt.cumprod, x, dim)
            check(vt.cumsum, x, dim, dtype=vt.int16)


def test_nan_and_infinity_run_on() -> None:
    x = values((100,))
    x[30], x[60] = math.inf, math.nan
    y = values((100,))
    y[0], y[1], y[50] = -math.inf, -math.inf, math.inf
    z = vt.full((5,), -math.inf)
    for t in (x, y, z, vt.stack([x, y], 1)):
        for fn in (vt.cumsum, vt.cumprod, vt.logcumsumexp, vt.cummax, vt.cummin):
            check(fn, t, 0)
    check(vt.cummax, vt.tensor([1.0, 1.0, 0.0, 1.0, 2.0, 2.0]), 0)


def test_gradients_run_through_native_recurrences() -> None:
    x = values((5, 40), vt.float64)

    def gradient(t: Any, fn: Any) -> Any:
        t = t.detach().requires_grad_()
        fn(t, 1).sum().backward()
        return t.grad

    for fn in (vt.cumprod, vt.logcumsumexp, vt.cumsum):
        check(gradient, x, fn)
    y = x.detach().requires_grad_()
    assert served_by_native("_recurrence", lambda: vt.cumprod(y, 1).sum().backward())


def test_a_long_running_sum_keeps_its_digits() -> None:
    x = vt.full((2_000_000,), 0.1)
    exact = np.arange(1, 2_000_001) * float(x[0])
    np.testing.assert_allclose(vt.cumsum(x, 0).numpy(), exact, rtol=2e-7)


@pytest.mark.parametrize("op", ["cumsum", "cumprod", "logcumsumexp", "_cummax", "_cummin"])
def test_native_rows_serve(op: str) -> None:
    x = vt.ones(4, 5)
    assert served_by_native(op, lambda: getattr(vt, op.lstrip("_"))(x, 1))


def test_running_logsumexp_stays_infinite() -> None:
    inf = float("inf")
    for values in ([inf, -inf], [-inf, inf, 2.0, -inf, inf], [-inf, -inf, 1.0]):
        got = vt.tensor(values).logcumsumexp(0).numpy()
        np.testing.assert_array_equal(got, np.logaddexp.accumulate(np.array(values)))
