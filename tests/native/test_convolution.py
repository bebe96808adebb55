"""Native convolution agrees with the reference in every direction, dtype and layout."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import votive
from votive.core import dtype as dt
from votive.nn import functional as F
from votive.ops.registry import OPS

from .compare import agree, memory_orders, needs_native, reference_only, same, served_by_native

pytestmark = needs_native

run = votive.ops.registry.F


# (N, C, sizes), output channels, kernel, stride, padding, dilation, groups
CASES = [
    ((1, 1, 5), 1, (1,), (1,), (0,), (1,), 1),
    ((2, 3, 17), 5, (3,), (1,), (1,), (1,), 1),
    ((2, 4, 50), 6, (4,), (3,), (2,), (2,), 2),
    ((1, 80, 100), 40, (3,), (2,), (1,), (1,), 1),
    ((2, 3, 11, 13), 8, (3, 3), (1, 1), (1, 1), (1, 1), 1),
    ((3, 16, 14, 14), 20, (3, 3), (1, 1), (1, 1), (1, 1), 1),
    ((1, 64, 7, 7), 33, (3, 3), (1, 1), (1, 1), (1, 1), 1),
    ((2, 3, 32, 31), 16, (7, 7), (2, 2), (3, 3), (1, 1), 1),
    ((2, 8, 15, 16), 16, (1, 1), (2, 2), (0, 0), (1, 1), 1),
    ((2, 8, 9, 10), 16, (1, 1), (1, 1), (0, 0), (1, 1), 1),
    ((2, 8, 9, 10), 12, (1, 1), (1, 1), (0, 0), (1, 1), 4),
    ((2, 8, 9, 10), 8, (3, 3), (1, 1), (1, 1), (1, 1), 8),
    ((2, 8, 21, 40), 16, (3, 5), (2, 1), (1, 3), (1, 2), 8),
    ((2, 6, 12, 19), 9, (2, 3), (3, 4), (0, 5), (2, 1), 3),
    ((1, 2, 70, 70), 3, (3, 3), (1, 1), (0, 0), (3, 2), 1),
    ((1, 5, 6, 6), 7, (6, 6), (1, 1), (0, 0), (1, 1), 1),
    ((2, 3, 6, 7, 8), 4, (3, 2, 3), (1, 2, 1), (1, 0, 2), (1, 1, 2), 1),
    ((1, 4, 5, 6, 9), 4, (3, 3, 3), (2, 2, 2), (1, 1, 1), (1, 1, 1), 4),
    ((64, 1, 28, 28), 16, (3, 3), (1, 1), (0, 0), (1, 1), 1),
]


def _made(case: Any, dtype: Any) -> tuple[Any, ...]:
    shape, out, kernel, *geometry = case
    votive.manual_seed(0)
    x = votive.randn(*shape).to(dtype)
    weight = votive.randn(out, shape[1] // geometry[-1], *kernel).to(dtype)
    bias = votive.randn(out).to(dtype)
    return x, weight, bias, geometry


def _near(fn: Any, *args: Any) -> None:
    """Sums of products with random signs: the error goes with the size of the terms."""
    half = args[0].dtype in dt.HALF
    agree(fn, *args, **({"rtol": 2e-2, "atol": 2e-2} if half else {"rtol": 1e-4, "atol": 2e-4}))


@pytest.mark.parametrize("dtype", [dt.float32, dt.float64, dt.float16, dt.bfloat16], ids=str)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_convolution_and_its_transposes_agree(case: Any, dtype: Any) -> None:
    x, weight, bias, geometry = _made(case, dtype)
    for b in (None, bias):
        _near(lambda x, w, b=b: run._convolution(x, w, b, *geometry), x, weight)
    g = votive.randn(*run._convolution(x, weight, None, *geometry).shape).to(dtype)
    size, kernel = tuple(x.shape)[2:], tuple(weight.shape)[2:]
    over = votive.randn(x.shape[1]).to(dtype)
    for b in (None, over):
        _near(lambda g, w, b=b: run._convolution_transpose(g, w, b, size, *geometry), g, weight)
    wider = tuple(s + 1 for s in size)
    _near(lambda g, w: run._convolution_transpose(g, w, None, wider, *geometry), g, weight)
    _near(lambda x, g: run._convolution_weight(x, g, kernel, *geometry), x, g)


@pytest.mark.parametrize("case", [CASES[i] for i in (1, 2, 4, 7, 8, 9, 11, 13, 16)], ids=str)
def test_layouts_agree(case: Any) -> None:
    x, weight, bias, geometry = _made(case, dt.float32)
    g = votive.randn(*run._convolution(x, weight, None, *geometry).shape)
    size, kernel = tuple(x.shape)[2:], tuple(weight.shape)[2:]
    for a, w in itertools.product(memory_orders(x), memory_orders(weight)):
        _near(lambda x, w: run._convolution(x, w, bias, *geometry), a, w)
    for a, w in itertools.product(memory_orders(g), memory_orders(weight)):
        _near(lambda g, w: run._convolution_transpose(g, w, None, size, *geometry), a, w)
    for a, b in itertools.product(memory_orders(x), memory_orders(g)):
        _near(lambda x, g: run._convolution_weight(x, g, kernel, *geometry), a, b)


@pytest.mark.parametrize("padding", [0, 1, 2, 3])
@pytest.mark.parametrize("size", [(4, 4), (5, 9), (14, 14), (23, 40)], ids=str)
def test_fast_products_of_three_by_three_kernels_are_exact_enough(size: Any, padding: int) -> None:
    votive.manual_seed(7)
    x, weight = votive.randn(3, 24, *size), votive.randn(40, 24, 3, 3)
    bias = votive.randn(40)
    geometry = ((1, 1), (padding, padding), (1, 1), 1)
    wide = [t.to(dt.float64) for t in (x, weight, bias)]
    y = run._convolution(*wide, *geometry)
    g = votive.randn(*y.shape)
    back = g.to(dt.float64)
    pairs = [
        (run._convolution(x, weight, bias, *geometry), y),
        (
            run._convolution_transpose(g, weight, None, size, *geometry),
            run._convolution_transpose(back, wide[1], None, size, *geometry),
        ),
        (run._convolution_weight(x, g, (3, 3), *geometry), run._convolution_weight(wide[0], back, (3, 3), *geometry)),
    ]
    for ours, exact in pairs:
        error = (ours.to(dt.float64) - exact).abs().max().item()
        assert error <= 2e-6 * exact.abs().max().item()


def test_many_channels_are_taken_in_parts() -> None:
    votive.manual_seed(8)
    x, weight, bias = votive.randn(2, 20, 9, 9), votive.randn(300, 20, 3, 3), votive.randn(300)
    _near(lambda x, w: F.conv2d(x, w, bias, padding=1), x, weight)
    g = votive.randn(2, 20, 9, 9)
    weight = votive.randn(20, 300, 3, 3)
    _near(lambda g, w: F.conv_transpose2d(g, w, bias, padding=1), g, weight)
    x, g = votive.randn(2, 100, 9, 9), votive.randn(2, 200, 9, 9)
    _near(lambda x, g: run._convolution_weight(x, g, (3, 3), (1, 1), (1, 1), (1, 1), 1), x, g)


def test_an_expanded_input_is_read() -> None:
    x = votive.randn(1, 1, 9, 9).expand(2, 4, 9, 9)
    _near(lambda x, w: F.conv2d(x, w, padding=1), x, votive.randn(6, 4, 3, 3))


def test_gradients_through_the_public_functions_agree() -> None:
    x = votive.randn(2, 4, 10, 10)
    weight = votive.randn(4, 3, 3, 3)

    def grads(x: Any, weight: Any) -> Any:
        x, weight = x.clone().requires_grad_(), weight.clone().requires_grad_()
        y = F.conv_transpose2d(x, weight, stride=2, padding=1, output_padding=1)
        (y * y).sum().backward()
        return y, x.grad, weight.grad

    ours = grads(x, weight)
    with reference_only():
        theirs = grads(x, weight)
    same(ours, theirs, rtol=1e-4, atol=1e-3)


def test_empty_batches_and_channels() -> None:
    for shape in ((0, 3, 8, 8), (2, 0, 8, 8)):
        agree(lambda x, w: F.conv2d(x, w), votive.randn(*shape), votive.randn(4, shape[1], 3, 3))


def test_native_rows_serve() -> None:
    x, w = votive.randn(2, 3, 8, 8), votive.randn(4, 3, 3, 3)
    assert served_by_native("_convolution", lambda: F.conv2d(x, w))
    assert served_by_native("_convolution_transpose", lambda: F.conv_transpose2d(F.conv2d(x, w), w))
    assert "_convolution_weight" in OPS
