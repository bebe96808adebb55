"""Kernels that copy small planes and half types as pixels agree with the reference, gradients included."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import votive

from .compare import TOLERANCE, agree, needs_native

pytestmark = needs_native

F = votive.nn.functional
DTYPES = [votive.float32, votive.float64, votive.float16, votive.bfloat16]
# Planes of a few results, one result, a single row; channels around vectors.
SHAPES = [(2, 8, 5, 5), (1, 17, 3, 4), (3, 40, 2, 3), (2, 33, 7, 2), (1, 9, 1, 6), (2, 16, 9, 15)]


def pictures(shape: tuple[int, ...], dtype: Any) -> list[Any]:
    """The same pictures dense, channels last, and with rows and columns exchanged in memory."""
    x = votive.tensor(np.random.default_rng(0).standard_normal(shape)).to(dtype)
    last = x.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)
    return [x, last, x.mT.contiguous().mT]


def with_gradient(fn: Any) -> Any:
    def both(x: Any) -> Any:
        x = x.detach().requires_grad_()
        y = fn(x)
        first = y[0] if isinstance(y, tuple) else y
        (first * votive.arange(first.numel(), dtype=first.dtype).reshape(first.shape).sin()).sum().backward()
        return (*y, x.grad) if isinstance(y, tuple) else (y, x.grad)

    return both


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_pools_and_resizing_of_small_pictures_agree(shape: tuple[int, ...], dtype: Any) -> None:
    near = {"rtol": TOLERANCE[dtype], "atol": TOLERANCE[dtype]}
    h, w = shape[2:]
    kernel = (min(2, h), min(3, w))
    work = [
        lambda x: F.max_pool2d(x, kernel, 2, padding=(0, kernel[1] // 2), return_indices=True),
        lambda x: F.max_pool2d(x, kernel, 1),
        lambda x: F.avg_pool2d(x, kernel, 2),
        lambda x: F.avg_pool2d(x, kernel, 1, padding=(kernel[0] // 2, 1), count_include_pad=False),
        lambda x: F.adaptive_max_pool2d(x, (1, 2), return_indices=True),
        lambda x: F.adaptive_avg_pool2d(x, 1),
        lambda x: F.adaptive_avg_pool2d(x, (2, 3)),
        lambda x: F.interpolate(x, size=(4, 7), mode="bilinear"),
        lambda x: F.interpolate(x, size=(3, 2), mode="bicubic", align_corners=True),
    ]
    for fn in work:
        for x in pictures(shape, dtype):
            agree(with_gradient(fn), x, **near)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_depthwise_convolutions_of_small_pictures_agree(shape: tuple[int, ...], dtype: Any) -> None:
    near = {"rtol": 4 * TOLERANCE[dtype], "atol": 8 * TOLERANCE[dtype]}
    c = shape[1]
    weight = votive.tensor(np.random.default_rng(1).standard_normal((c, 1, 3, 3))).to(dtype)
    bias = votive.arange(c, dtype=votive.float32).to(dtype) / c
    for stride, dilation in ((1, 1), (2, 1), (1, 2)):
        for x in pictures(shape, dtype):
            agree(
                with_gradient(lambda x, s=stride, d=dilation: F.conv2d(x, weight, bias, s, d, d, groups=c)), x, **near
            )
            agree(with_gradient(lambda x, s=stride: F.conv_transpose2d(x, weight, bias, s, 1, groups=c)), x, **near)


def test_the_first_of_equal_values_is_found_and_nan_wins() -> None:
    x = votive.zeros(2, 16, 4, 4)
    x[:, 3, 1, 2] = float("nan")
    for last in (x, x.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2), x.to(votive.bfloat16)):
        values, places = agree(lambda v: F.max_pool2d(v, 2, 2, return_indices=True), last)
        assert places[0, 0].flatten().tolist() == [0, 2, 8, 10]
        assert values[:, 3, 0, 1].isnan().all()
        agree(lambda v: F.adaptive_max_pool2d(v, 2, return_indices=True), last)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(40, 3), (17, 1, 2), (9, 5, 1, 3), (100, 7), (5, 2)], ids=str)
def test_norms_of_few_channels_agree(shape: tuple[int, ...], dtype: Any) -> None:
    near = {"rtol": 4 * TOLERANCE[dtype], "atol": 4 * TOLERANCE[dtype]}
    x = votive.tensor(np.random.default_rng(2).standard_normal(shape)).to(dtype)
    weight, bias = votive.arange(shape[1]).to(dtype) + 1, votive.arange(shape[1]).to(dtype)
    given = votive.zeros(shape[1], dtype=dtype), votive.ones(shape[1], dtype=dtype) * 2
    for form in (x, x.transpose(0, -1).contiguous().transpose(0, -1), x[::2]):
        agree(with_gradient(lambda v: F.batch_norm(v, None, None, weight, bias, True)), form, **near)
        agree(with_gradient(lambda v: F.batch_norm(v, *given, weight, bias, False)), form, **near)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(300, 1), (17, 5), (3, 100, 8), (2, 9, 1, 3), (64, 2)], ids=str)
def test_norms_of_short_rows_agree(shape: tuple[int, ...], dtype: Any) -> None:
    near = {"rtol": 4 * TOLERANCE[dtype], "atol": 4 * TOLERANCE[dtype]}
    x = votive.tensor(np.random.default_rng(3).standard_normal(shape) + 2).to(dtype)
    n = shape[-1]
    weight, bias = votive.arange(n).to(dtype) + 1, votive.arange(n).to(dtype)
    for form in (x, x.transpose(0, -1).contiguous().transpose(0, -1), x[::2]):
        agree(with_gradient(lambda v: F.layer_norm(v, (n,), weight, bias)), form, **near)
        agree(with_gradient(lambda v: F.rms_norm(v, (n,), weight)), form, **near)
