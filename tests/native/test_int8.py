"""Native products of bytes against exact sums and the NumPy reference, by every kind of instruction."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest

import votive
from votive.backends.base import switch
from votive.backends.cpu.native import int8 as rows
from votive.backends.cpu.native.loader import module
from votive.ops.int8 import packed
from votive.ops.registry import F

pytestmark = pytest.mark.skipif(module is None, reason="there are no native kernels here")
WAYS = {"best": 0, "plain": 1, "words": 2}


@pytest.fixture(params=list(WAYS))
def way(request: pytest.FixtureRequest) -> Iterator[str]:
    """Plans made from here on use these instructions."""
    before, rows.WAY[0] = rows.WAY[0], WAYS[request.param]
    for on in (False, True):  # forget the plans that were made
        switch("native", on)
    yield request.param
    rows.WAY[0] = before
    for on in (False, True):
        switch("native", on)


def layer(n: int, k: int, zeros: bool) -> tuple[votive.Tensor, ...]:
    w = votive.randint(-128, 128, (n, k), dtype=votive.int8)
    zero = votive.randint(-5, 6, (n,), dtype=votive.int32) if zeros else None
    return w, packed(w), w.sum(1, dtype=votive.int32), votive.rand(n) + 0.1, zero, votive.randn(n)


@pytest.mark.parametrize("zeros", [False, True])
def test_linear_sums_are_exact_and_codes_within_one(way: str, zeros: bool) -> None:
    votive.manual_seed(0)
    for k, n, m in itertools.product((1, 10, 64), (1, 17, 130), (1, 5, 13)):
        w, panels, sums, scales, zero, bias = layer(n, k, zeros)
        for kind, z, relu in ((votive.uint8, 7, False), (votive.int8, -3, True)):
            low = -128 if kind is votive.int8 else 0
            x = votive.randint(low, low + 256, (m, k), dtype=kind)
            parts = (panels, sums, scales, zero, bias, 0.1, z)
            wide = w.double() - (0 if zero is None else zero[:, None])
            exact = ((x.double() - z) * 0.1) @ (wide * scales[:, None]).T + bias
            exact = exact.relu() if relu else exact
            y = F._int8_linear(x, *parts, 1.0, 0, relu, votive.float32)
            assert float((y - exact).abs().max()) <= 1e-5 * max(1.0, float(exact.abs().max()))
            step = float(exact.abs().max()) / 100 + 1e-3
            codes = F._int8_linear(x, *parts, step, 3, relu, votive.uint8)
            want = ((exact / step).round() + 3).clamp(0, 255)
            assert float((codes.double() - want).abs().max()) <= 1


CONVOLUTIONS = [
    ((2, 4, 1, 1, 9), (6, 4, 1, 1, 3), (1, 1, 2), (0, 0, 1), (1, 1, 1), 1),
    ((2, 4, 1, 7, 6), (6, 2, 1, 3, 3), (1, 1, 1), (0, 1, 2), (1, 2, 1), 2),
    ((1, 3, 5, 6, 7), (20, 1, 2, 3, 2), (2, 1, 3), (1, 1, 1), (1, 1, 2), 3),
    ((3, 64, 1, 10, 10), (70, 64, 1, 3, 3), (1, 1, 1), (0, 1, 1), (1, 1, 1), 1),
]


@pytest.mark.parametrize(("shape", "weight", "stride", "padding", "dilation", "groups"), CONVOLUTIONS)
@pytest.mark.parametrize("kind", [votive.uint8, votive.int8])
def test_convolutions_are_those_of_numbers(way, shape, weight, stride, padding, dilation, groups, kind) -> None:  # type: ignore[no-untyped-def]
    votive.manual_seed(1)
    groups = 3 if weight[0] == 20 else groups
    n = 21 if groups == 3 else weight[0]
    w = votive.randint(-128, 128, (n, *weight[1:]), dtype=votive.int8)
    low = -128 if kind is votive.int8 else 0
    x = votive.randint(low, low + 256, shape, dtype=kind)
    flat = w.movedim(1, -1).reshape(n, -1)
    each = n // groups
    panels = F.cat([packed(flat[g * each : (g + 1) * each]) for g in range(groups)])
    parts = (panels, flat.sum(1, dtype=votive.int32), votive.rand(n) + 0.1, None, votive.randn(n))
    sizes = (weight[2:], stride, padding, dilation, groups)
    y = F._int8_conv(x, *parts, 0.1, 9, 1.0, 0, *sizes, False, votive.float32)
    numbers = (x.double() - 9) * 0.1
    scaled = w.double() * parts[2].double().reshape(-1, 1, 1, 1, 1)
    exact = votive.nn.functional.conv3d(numbers, scaled, parts[4].double(), stride, padding, dilation, groups)
    assert y.shape == exact.shape
    assert float((y - exact).abs().max()) <= 1e-5 * float(exact.abs().max())
    switch("native", False)
    try:
        reference = F._int8_conv(x, *parts, 0.1, 9, 50.0, 3, *sizes, True, votive.uint8)
    finally:
        switch("native", True)
    codes = F._int8_conv(x, *parts, 0.1, 9, 50.0, 3, *sizes, True, votive.uint8)
    assert int((codes.int() - reference.int()).abs().max()) <= 1
    assert int(codes.min()) >= 3


def test_dynamic_layers_choose_the_scale_of_the_reference() -> None:
    votive.manual_seed(2)
    _, panels, sums, scales, _, bias = layer(33, 40, False)
    for factor in (1.0, 1e-6, 0.0):
        x = votive.randn(2, 3, 40) * factor
        y = F._int8_linear_dynamic(x, panels, sums, scales, None, bias, 255, False)
        switch("native", False)
        try:
            want = F._int8_linear_dynamic(x, panels, sums, scales, None, bias, 255, False)
        finally:
            switch("native", True)
        np.testing.assert_allclose(y.numpy(), want.numpy(), rtol=1e-5, atol=1e-5)
    assert F._int8_linear_dynamic(votive.empty(0, 40), panels, sums, scales, None, None, 255, False).shape == (0, 33)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_dynamic_layers_refuse_what_has_no_scale(value: float) -> None:
    _, panels, sums, scales, _, _ = layer(4, 8, False)
    x = votive.ones(2, 8)
    x[1, 3] = value
    with pytest.raises(ValueError, match="finite numbers"):
        F._int8_linear_dynamic(x, panels, sums, scales, None, None, 127, False)


def test_weights_that_do_not_fit_are_refused() -> None:
    _, panels, sums, scales, _, _ = layer(4, 8, False)
    with pytest.raises(votive.core.errors.ShapeError, match="does not fit"):
        F._int8_linear_dynamic(votive.ones(2, 9), panels, sums, scales, None, None, 127, False)
    with pytest.raises(votive.core.errors.DtypeError, match="uint8 or int8"):
        F._int8_linear(votive.ones(2, 8), panels, sums, scales, None, None, 0.1, 0, 1.0, 0, False, votive.float32)
