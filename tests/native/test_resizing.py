"""Native interpolation, padding and folding agree with the reference, gradients included."""

from __future__ import annotations

from typing import Any

import pytest

import votive
from votive.core import dtype as dt
from votive.nn import functional as F

from .compare import agree, memory_orders, needs_native, served_by_native
from .test_pooling import check

pytestmark = needs_native

FLOATS = [dt.float32, dt.float64, dt.float16, dt.bfloat16]

RESIZES = [
    ((2, 3, 10), {"size": 17, "mode": "linear"}),
    ((2, 3, 33), {"size": 7, "mode": "linear", "align_corners": True}),
    ((2, 3, 9), {"scale_factor": 2.3, "mode": "nearest"}),
    ((2, 3, 9, 10), {"scale_factor": 2, "mode": "nearest"}),
    ((2, 3, 9, 10), {"size": (4, 21), "mode": "nearest-exact"}),
    ((2, 17, 9, 10), {"scale_factor": 2, "mode": "bilinear"}),
    ((2, 17, 30, 31), {"size": (7, 40), "mode": "bilinear", "align_corners": True}),
    ((1, 3, 8, 8), {"size": (8, 13), "mode": "bilinear"}),
    ((2, 5, 9, 10), {"scale_factor": (1.7, 0.6), "mode": "bicubic"}),
    ((2, 5, 29, 20), {"size": (10, 7), "mode": "bilinear", "antialias": True}),
    ((2, 5, 29, 20), {"size": (10, 31), "mode": "bicubic", "antialias": True}),
    ((2, 3, 4, 5, 6), {"scale_factor": 2, "mode": "trilinear"}),
    ((2, 3, 4, 5, 6), {"size": (3, 7, 9), "mode": "nearest"}),
    ((1, 1, 1, 1), {"size": (5, 5), "mode": "bilinear"}),
    ((8, 32, 28, 28), {"scale_factor": 2, "mode": "bilinear"}),
]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("case", RESIZES, ids=str)
def test_interpolation_agrees(case: Any, dtype: Any) -> None:
    shape, options = case
    votive.manual_seed(4)
    check(lambda x: F.interpolate(x, **options), votive.randn(*shape).to(dtype))


def test_nearest_takes_bytes() -> None:
    x = votive.randint(0, 255, (1, 3, 5, 5)).to(dt.uint8)
    agree(lambda x: F.interpolate(x, scale_factor=2), x)
    agree(lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), x)


PADS = [
    ((2, 3, 10), (2, 3)),
    ((3, 20), (5, 0)),
    ((2, 3, 9, 11), (1, 2, 3, 4)),
    ((2, 17, 9, 11), (3, 3, 3, 3)),
    ((3, 9, 11), (-1, 2, 3, -2)),
    ((2, 3, 4, 5, 6), (1, 2, 3, 1, 2, 0)),
]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular", "constant"])
@pytest.mark.parametrize("case", PADS, ids=str)
def test_padding_agrees(case: Any, mode: str, dtype: Any) -> None:
    shape, amounts = case
    votive.manual_seed(5)
    check(lambda x: F.pad(x, amounts, mode), votive.randn(*shape).to(dtype))


@pytest.mark.parametrize("dtype", [dt.bool_, dt.int8, dt.int32, dt.int64, dt.uint8, dt.complex64], ids=str)
def test_padding_of_other_types(dtype: Any) -> None:
    x = votive.randint(0, 2, (2, 3, 7)).to(dtype)
    for a in memory_orders(x):
        agree(lambda x: F.pad(x, (1, 2), "circular"), a)
        agree(lambda x: F.pad(x, (1, 2), "constant", 1), a)
        if dtype is not dt.bool_:
            agree(lambda x: F.pad(x, (1, 2), "reflect"), a)


def test_constants_are_converted() -> None:
    x = votive.arange(6).view(2, 3)
    agree(lambda x: F.pad(x, (1, -1, 0, 2), value=-3), x)
    agree(lambda x: F.pad(x, (1, 1), value=2.5), x.float())
    agree(lambda x: F.pad(x, (1, 1), value=float("inf")), x.float())
    agree(lambda x: F.pad(x, (-2, -1)), x)
    agree(lambda x: F.pad(x, (1, 1)), votive.zeros(0, 3))


FOLDS = [
    ((2, 3, 9, 10), {"kernel_size": 3}),
    ((2, 3, 9, 10), {"kernel_size": (2, 3), "padding": (1, 2), "stride": 2, "dilation": 2}),
    ((1, 5, 16, 16), {"kernel_size": 4, "stride": 4}),
    ((4, 16, 30, 30), {"kernel_size": 3, "padding": 1}),
]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("case", FOLDS, ids=str)
def test_folds_agree(case: Any, dtype: Any) -> None:
    shape, options = case
    votive.manual_seed(6)
    x = votive.randn(*shape).to(dtype)
    check(lambda x: F.unfold(x, **options), x)
    columns = F.unfold(x, **options)
    check(lambda c: F.fold(c, tuple(shape[2:]), **options), columns)


def test_native_rows_serve() -> None:
    x = votive.randn(2, 3, 8, 8)
    assert served_by_native("_resample", lambda: F.interpolate(x, scale_factor=2))
    assert served_by_native("_resample", lambda: F.interpolate(x, scale_factor=2, mode="bilinear"))
    assert served_by_native("_pad", lambda: F.pad(x, (1, 1, 1, 1), "reflect"))
    assert served_by_native("constant_pad_nd", lambda: F.pad(x, (1, 1)))
    assert served_by_native("_unfold", lambda: F.unfold(x, 3))
