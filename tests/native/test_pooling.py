"""Native pools agree with the reference: values, positions, gradients, layouts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import votive
from votive.core import dtype as dt
from votive.nn import functional as F

from .compare import agree, memory_orders, needs_native, reference_only, same, served_by_native

pytestmark = needs_native

FLOATS = [dt.float32, dt.float64, dt.float16, dt.bfloat16]
MAX = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}
AVG = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}
ADAPTIVE_AVG = {1: F.adaptive_avg_pool1d, 2: F.adaptive_avg_pool2d, 3: F.adaptive_avg_pool3d}
ADAPTIVE_MAX = {1: F.adaptive_max_pool1d, 2: F.adaptive_max_pool2d, 3: F.adaptive_max_pool3d}


def with_gradient(fn: Any) -> Any:
    """fn's results followed by the gradient of its first."""

    def run(x: Any) -> Any:
        x = x.detach().requires_grad_()
        out = fn(x)
        first = out[0] if isinstance(out, tuple) else out
        weight = votive.arange(1, first.numel() + 1).reshape(first.shape).to(first.dtype) % 7
        (first * weight).sum().backward()
        rest = [out] if not isinstance(out, tuple) else list(out)
        return [t.detach() for t in rest] + [x.grad]

    return run


def check(fn: Any, x: Any) -> None:
    loose = x.dtype in dt.HALF
    for a in memory_orders(x):
        agree(with_gradient(fn), a, **({"rtol": 3e-2, "atol": 1e-2} if loose else {"atol": 1e-5}))


# shape, kernel, stride, padding, dilation, ceil_mode
WINDOWS = [
    ((2, 3, 10), 2, None, 0, 1, False),
    ((3, 33), 3, 1, 1, 1, False),
    ((2, 3, 50), 3, 2, 1, 2, True),
    ((2, 3, 9, 11), 2, 2, 0, 1, False),
    ((2, 20, 13, 14), 3, 2, 1, 1, False),
    ((3, 17, 40), (3, 2), (1, 3), (1, 0), (2, 1), True),
    ((1, 33, 7, 7), 7, 7, 0, 1, False),
    ((2, 3, 5, 6, 7), 2, 2, 0, 1, False),
    ((1, 17, 6, 6, 9), 3, 2, 1, 1, True),
    ((4, 16, 56, 56), 3, 2, 1, 1, False),
]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("case", WINDOWS, ids=str)
def test_max_pools_agree(case: Any, dtype: Any) -> None:
    shape, kernel, stride, padding, dilation, ceil = case
    votive.manual_seed(1)
    n = len(shape) - 2 if len(shape) > 3 or shape == (2, 3, 10) or shape == (2, 3, 50) else 1
    n = 2 if shape == (3, 17, 40) else n
    # Few different values, so that ties are many.
    x = (votive.randn(*shape) * 3).round().to(dtype)
    check(lambda x: MAX[n](x, kernel, stride, padding, dilation, ceil, True), x)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("case", WINDOWS, ids=str)
def test_mean_pools_agree(case: Any, dtype: Any) -> None:
    shape, kernel, stride, padding, _, ceil = case
    votive.manual_seed(2)
    n = len(shape) - 2 if len(shape) > 3 or shape == (2, 3, 10) or shape == (2, 3, 50) else 1
    n = 2 if shape == (3, 17, 40) else n
    x = votive.randn(*shape).to(dtype)
    for include in (True, False):
        check(lambda x, i=include: AVG[n](x, kernel, stride, padding, ceil, i), x)
    if n > 1:
        check(lambda x: AVG[n](x, kernel, stride, padding, ceil, True, 5), x)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize(
    ("shape", "size"),
    [
        ((2, 3, 10), 4),
        ((3, 20), 1),
        ((2, 5, 7, 7), 1),
        ((2, 17, 10, 11), (3, 5)),
        ((2, 5, 4, 4), (7, 3)),
        ((1, 2, 5, 6, 7), (2, 3, 4)),
        ((3, 100, 30, 30), 1),
    ],
)
def test_adaptive_pools_agree(shape: Any, size: Any, dtype: Any) -> None:
    votive.manual_seed(3)
    n = max(len(shape) - 2, 1)
    x = votive.randn(*shape).to(dtype)
    check(lambda x: ADAPTIVE_AVG[n](x, size), x)
    check(lambda x: ADAPTIVE_MAX[n](x, size, True), x)


def test_nan_and_infinities() -> None:
    x = votive.randn(2, 20, 9, 9)
    x[0, 3, 4, 4] = x[0, 3, 5, 5] = x[1, 0, 0, 0] = float("nan")
    x[1, 1] = -float("inf")
    x[1, 2, 3] = float("inf")
    for a in memory_orders(x):
        agree(lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True), a)
        agree(lambda x: F.adaptive_max_pool2d(x, 4, True), a)


@pytest.mark.parametrize("dtype", [dt.int8, dt.uint8, dt.int32, dt.int64], ids=str)
def test_integers(dtype: Any) -> None:
    x = votive.randint(0, 9, (2, 3, 8, 8)).to(dtype)
    agree(lambda x: F.max_pool2d(x, 3, 1, 1, return_indices=True), x)


def test_a_window_that_steps_over_its_input_and_empty_batches() -> None:
    agree(lambda x: F.max_pool1d(x, 2, 1, 1, 3, return_indices=True), votive.randn(1, 2, 2))
    agree(lambda x: F.max_pool2d(x, 2), votive.randn(0, 2, 4, 4))
    agree(lambda x: F.avg_pool2d(x, 2), votive.randn(0, 2, 4, 4))
    agree(lambda x: F.adaptive_avg_pool2d(x, 2), votive.randn(0, 2, 4, 4))


def test_second_order_agrees() -> None:
    x = votive.randn(2, 3, 6, 6)

    def second(x: Any) -> Any:
        x = x.clone().requires_grad_()
        y = (F.max_pool2d(x, 3, 2, 1) ** 3).sum() + (F.avg_pool2d(x, 2) ** 3).sum()
        (g,) = votive.autograd.grad(y, x, create_graph=True)
        (g * g).sum().backward()
        return x.grad

    ours = second(x)
    with reference_only():
        theirs = second(x)
    same(ours, theirs, atol=1e-4)


def test_native_rows_serve() -> None:
    x = votive.randn(2, 3, 8, 8)
    assert served_by_native("_max_pool", lambda: F.max_pool2d(x, 2, return_indices=True))
    assert served_by_native("_max_pool_values", lambda: F.max_pool2d(x, 2))
    assert served_by_native("_avg_pool", lambda: F.avg_pool2d(x, 2))
    assert served_by_native("_adaptive_avg_pool", lambda: F.adaptive_avg_pool2d(x, 2))
    assert served_by_native("_adaptive_max_pool", lambda: F.adaptive_max_pool2d(x, 2))


@pytest.mark.parametrize("dtype", [votive.float32, votive.float64, votive.bfloat16, votive.int64])
@pytest.mark.parametrize("geometry", [(2, 2, 0, 1), (3, 2, 1, 1), (3, 1, 1, 2)])
def test_values_without_positions_are_those_with_them(dtype: Any, geometry: Any) -> None:
    for n, shape in ((1, (2, 3, 50)), (2, (2, 17, 20, 31)), (3, (2, 3, 9, 8, 17))):
        x = (9 * votive.randn(shape)).to(dtype)
        if dtype.is_floating_point:
            x.view(-1)[5] = float("nan")
        for form in (x, x.transpose(1, -1).contiguous().transpose(1, -1)):
            alone = MAX[n](form, *geometry)
            values, _ = MAX[n](form, *geometry, return_indices=True)
            assert alone.stride() == values.stride()
            np.testing.assert_array_equal(alone.to(votive.float64).numpy(), values.to(votive.float64).numpy())


def test_the_gradient_finds_positions_that_were_not_kept() -> None:
    from votive.ops.registry import F as OPERATORS

    x = votive.randn(2, 3, 9, 8, requires_grad=True)
    y = OPERATORS._max_pool_values(x, (4, 4), (2, 2), (2, 2), (0, 0), (1, 1))
    (got,) = votive.autograd.grad((y**2).sum(), x)
    (want,) = votive.autograd.grad((F.max_pool2d(x, 2) ** 2).sum(), x)
    assert votive.equal(got, want)
