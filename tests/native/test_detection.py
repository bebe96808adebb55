"""Suppression, maxima of regions and resized bytes: native kernels equal the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import votive
from tests.native.compare import needs_native, reference_only
from votive.backends.base import TABLE
from votive.nn import functional as NF
from votive.ops.registry import F

pytestmark = needs_native


def both(call: Any) -> tuple[Any, Any]:
    with reference_only():
        expected = call()
    return call(), expected


@pytest.mark.parametrize(
    ("op", "kernel"),
    [
        ("_survivors", "survivors"),
        ("_region_argmax", "region_argmax"),
        ("_region_sums", "region_sums"),
        ("_region_sums_transpose", "region_sums_transpose"),
        ("_resample", "resample_bytes"),
    ],
)
def test_the_kernels_are_there(op: str, kernel: str) -> None:
    assert kernel in {row.kernel for row in TABLE[op, "cpu"]}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("threshold", [0.0, 0.3, 0.5, 0.7, 1.0])
@pytest.mark.parametrize("groups", [1, 4])
def test_the_same_boxes_survive(dtype: Any, threshold: float, groups: int) -> None:
    rng = np.random.default_rng(0)
    for whole in (False, True):  # whole numbers make overlaps that equal the threshold
        corner, side = rng.uniform(0, 30, (400, 2)), rng.uniform(1, 20, (400, 2))
        boxes = np.concatenate((corner, corner + side), 1)
        boxes = votive.from_numpy((np.round(boxes) if whole else boxes).astype(dtype))
        group = votive.from_numpy(rng.integers(0, groups, 400))
        ours, expected = both(lambda b=boxes, g=group: F._survivors(b, g, threshold))
        assert votive.equal(ours, expected)
        assert 0 < expected.sum() <= 400
        wide = votive.zeros(400, 8, dtype=boxes.dtype)
        wide[:, ::2] = boxes
        assert votive.equal(F._survivors(wide[:, ::2], group, threshold), expected)


def test_no_box_and_boxes_without_area_survive() -> None:
    none = F._survivors(votive.zeros(0, 4), votive.zeros(0).long(), 0.5)
    assert none.tolist() == []
    flat = lambda: F._survivors(votive.zeros(3, 4), votive.zeros(3).long(), 0.0)
    ours, expected = both(flat)
    assert ours.tolist() == expected.tolist() == [True] * 3


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_same_elements_are_the_largest(dtype: Any) -> None:
    rng = np.random.default_rng(1)
    x = votive.from_numpy(rng.integers(0, 9, (2, 3, 8, 7)).astype(dtype))  # with ties
    image = votive.tensor([0, 1, 1, 0])
    top, left = votive.from_numpy(rng.integers(0, 6, (4, 2))), votive.zeros(4, 3).long()
    bottom, right = top + votive.tensor([3, 0]), left + votive.tensor([0, 4, 7])
    for y in (x, x.transpose(2, 3).contiguous().transpose(2, 3), -x):
        call = lambda y=y: F._region_argmax(y, image, top, bottom, left, right)
        ours, expected = both(call)
        assert votive.equal(ours, expected)
        assert (expected == -1).any()
        assert (expected >= 0).any()


MODES = [("bilinear", False), ("bilinear", True), ("bicubic", False), ("bicubic", True)]


@pytest.mark.parametrize(("mode", "smooth"), [*MODES, ("lanczos", True)])
@pytest.mark.parametrize("size", [(5, 7), (40, 3), (13, 50), (17, 9), (1, 1), (17, 23)])
def test_bytes_are_resized_to_the_same_bytes(mode: str, smooth: bool, size: Any) -> None:
    rng = np.random.default_rng(2)
    x = votive.from_numpy(rng.integers(0, 256, (2, 3, 17, 23)).astype(np.uint8))
    x[0] = (x[0] > 127).to(votive.uint8) * 255  # what overshoots
    last = x.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)
    for y in (x, last, x[:, :, ::2, 1::2], x[:0]):
        resize = lambda y=y: NF.interpolate(y, size=size, mode=mode, align_corners=False, antialias=smooth)
        ours, expected = both(resize)
        assert ours.stride() == expected.stride()
        assert votive.equal(ours, expected)


@pytest.mark.parametrize("dtype", [votive.float32, votive.float64])
def test_sums_of_regions_and_their_transpose_are_the_same(dtype: Any) -> None:
    votive.manual_seed(0)
    x = votive.randn(2, 5, 9, 8, dtype=dtype)
    image = votive.tensor([1, 0, 1, 1])
    by_row, by_column = votive.randn(4, 3, 9, dtype=dtype), votive.randn(4, 2, 8, dtype=dtype)
    by_row[:, :, :4], by_column[0], by_column[1:, 0, 5:] = 0, 0, 0  # with gaps, and nothing at all
    last = x.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)
    near = 1e-5 if dtype is votive.float32 else 1e-12
    for y in (x, last, x[:, ::2]):
        ours, expected = both(lambda y=y: F._region_sums(y, image, by_row, by_column))
        assert votive.allclose(ours, expected, atol=near)
        g = votive.randn(tuple(ours.shape), dtype=dtype)
        for h in (g, g.transpose(2, 3).contiguous().transpose(2, 3)):
            call = lambda h=h: F._region_sums_transpose(h, image, by_row, by_column, 2)
            back, wanted = both(call)
            assert votive.allclose(back, wanted, atol=near)
        # <A x, g> = <x, A^T g>
        assert votive.allclose((ours * g).sum(), (y * back).sum(), atol=1e-3, rtol=1e-4)
    none = F._region_sums(x, image[:0], by_row[:0], by_column[:0])
    assert none.shape == (0, 5, 3, 2)
    assert F._region_sums_transpose(none, image[:0], by_row[:0], by_column[:0], 2).abs().sum() == 0
