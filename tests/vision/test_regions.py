"""Regions of feature maps, and the pyramid they come from."""

from __future__ import annotations

import math
from collections import OrderedDict
from typing import Any

import numpy as np
import pytest

import votive
from tests.vision.reference import to_torch, to_votive, torchvision
from votive.vision import ops


def sample(plane: Any, y: float, x: float) -> float:
    """Bilinear, with the border's value up to one element outside and 0 beyond."""
    height, width = plane.shape
    if y < -1 or y > height or x < -1 or x > width:
        return 0.0
    y, x = max(y, 0.0), max(x, 0.0)
    y0, x0 = min(int(y), height - 1), min(int(x), width - 1)
    y1, x1 = min(y0 + 1, height - 1), min(x0 + 1, width - 1)
    fy = 0.0 if y0 == height - 1 else y - y0
    fx = 0.0 if x0 == width - 1 else x - x0
    top = plane[y0, x0] * (1 - fx) + plane[y0, x1] * fx
    return top * (1 - fy) + (plane[y1, x0] * (1 - fx) + plane[y1, x1] * fx) * fy


def slow_align(x: Any, rois: Any, size: Any, scale: float, ratio: int, aligned: bool) -> Any:
    """Mask R-CNN's definition, one sample at a time."""
    out = np.zeros((len(rois), x.shape[1], *size))
    for k, (image, *box) in enumerate(rois):
        left, top, right, bottom = (v * scale - (0.5 if aligned else 0) for v in box)
        wide, high = right - left, bottom - top
        if not aligned:
            wide, high = max(wide, 1.0), max(high, 1.0)
        bin_h, bin_w = high / size[0], wide / size[1]
        gh = ratio if ratio > 0 else math.ceil(bin_h)
        gw = ratio if ratio > 0 else math.ceil(bin_w)
        for c in range(x.shape[1]):
            for i in range(size[0]):
                for j in range(size[1]):
                    total = sum(
                        sample(
                            x[int(image), c],
                            top + i * bin_h + (a + 0.5) * bin_h / gh,
                            left + j * bin_w + (b + 0.5) * bin_w / gw,
                        )
                        for a in range(gh)
                        for b in range(gw)
                    )
                    out[k, c, i, j] = total / max(gh * gw, 1)
    return out


def slow_pool(x: Any, rois: Any, size: Any, scale: float) -> Any:
    """Fast R-CNN's definition, one bin at a time."""
    out = np.zeros((len(rois), x.shape[1], *size))
    away = lambda v: math.floor(abs(v) + 0.5) * (1 if v >= 0 else -1)
    for k, (image, *box) in enumerate(rois):
        left, top, right, bottom = (away(v * scale) for v in box)
        bin_h = max(bottom - top + 1, 1) / size[0]
        bin_w = max(right - left + 1, 1) / size[1]
        for i in range(size[0]):
            for j in range(size[1]):
                a, b = math.floor(i * bin_h) + top, math.ceil((i + 1) * bin_h) + top
                c, d = math.floor(j * bin_w) + left, math.ceil((j + 1) * bin_w) + left
                a, b = (min(max(v, 0), x.shape[2]) for v in (a, b))
                c, d = (min(max(v, 0), x.shape[3]) for v in (c, d))
                if b > a and d > c:
                    out[k, :, i, j] = x[int(image), :, a:b, c:d].max((1, 2))
    return out


def features(dtype: Any = np.float64) -> tuple[Any, Any]:
    """Feature maps of two images, and regions inside, across and outside their borders."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 3, 9, 12)).astype(dtype)
    rois = [
        [0, 1.2, 2.1, 15.7, 10.4],
        [1, 0, 0, 23, 17],
        [1, -6, -5, 4, 3],
        [0, 20, 14, 40, 33],
        [0, 5.5, 5.5, 5.9, 5.8],
        [1, 60, 60, 70, 70],
        [0, 8, 8, 6, 6.5],
        [1, 2, 3, 9, 4],
    ]
    return votive.from_numpy(x), votive.tensor(np.array(rois, dtype))


@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("ratio", [-1, 1, 2, 3])
@pytest.mark.parametrize(("size", "scale"), [((2, 3), 0.5), ((4, 4), 0.25), ((1, 1), 1.0)])
def test_roi_align_is_its_definition(size: Any, scale: float, ratio: int, aligned: bool) -> None:
    x, rois = features()
    expected = slow_align(x.numpy(), rois.tolist(), size, scale, ratio, aligned)
    ours = ops.roi_align(x, rois, size, scale, ratio, aligned)
    np.testing.assert_allclose(ours.numpy(), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("size", "scale"), [((2, 3), 0.5), ((4, 4), 0.25), ((1, 1), 1.0)])
def test_roi_pool_is_its_definition(size: Any, scale: float) -> None:
    x, rois = features()
    expected = slow_pool(x.numpy(), rois.tolist(), size, scale)
    np.testing.assert_array_equal(ops.roi_pool(x, rois, size, scale).numpy(), expected)


def test_regions_are_differentiable_by_the_features() -> None:
    x, rois = features()
    x = x[:, :1].clone().requires_grad_()
    assert votive.autograd.gradcheck(lambda t: ops.roi_align(t, rois[:5], 2, 0.5, 2), (x,))
    assert votive.autograd.gradcheck(lambda t: ops.roi_pool(t, rois[:5], 2, 0.5), (x,))


def test_boxes_may_come_as_a_list_with_those_of_each_image() -> None:
    x, rois = features()
    order = votive.argsort(rois[:, 0], stable=True)
    listed = [rois[rois[:, 0] == i][:, 1:] for i in range(2)]
    for fn in (ops.roi_align, ops.roi_pool):
        assert votive.equal(fn(x, listed, (2, 2), 0.5), fn(x, rois[order], (2, 2), 0.5))
    module = ops.RoIAlign((2, 2), 0.5, 2, aligned=True)
    assert votive.equal(module(x, rois), ops.roi_align(x, rois, (2, 2), 0.5, 2, True))
    assert votive.equal(ops.RoIPool(2, 0.5)(x, rois), ops.roi_pool(x, rois, 2, 0.5))


@pytest.mark.parametrize("fn", [ops.roi_align, ops.roi_pool])
def test_no_regions_give_nothing_and_wrong_ones_are_told(fn: Any) -> None:
    x, rois = features(np.float32)
    assert fn(x, rois[:0], 2).shape == (0, 3, 2, 2)
    assert fn(x, [votive.zeros(0, 4)] * 2, 2).shape == (0, 3, 2, 2)
    assert fn(x.half(), rois.half(), 2).dtype is votive.float16
    with pytest.raises(AssertionError, match=r"must be \(K, 5\)"):
        fn(x, rois[:, 1:], 2)
    with pytest.raises(AssertionError, match=r"must be \(L, 4\)"):
        fn(x, [rois], 2)
    with pytest.raises(IndexError, match=r"images 0..1 in a batch of 1"):
        fn(x[:1], rois, 2)
    with pytest.raises(RuntimeError, match="same dtype"):
        fn(x, rois.double(), 2)
    with pytest.raises(ValueError, match=r"\(N, C, H, W\)"):
        fn(x[0], rois, 2)


@pytest.mark.parity
@pytest.mark.parametrize("ratio", [-1, 2])
@pytest.mark.parametrize("aligned", [False, True])
def test_roi_align_agrees_with_torchvisions_python_form(ratio: int, aligned: bool) -> None:
    torchvision()
    from torchvision.ops.roi_align import _roi_align

    x, rois = features()
    rois = rois[[0, 1, 7]]  # its Python form, unlike its kernel, knows no outside
    rois[:, 1:] = rois[:, 1:].clamp(1, 17)
    plain = _roi_align.__wrapped__
    expected = plain(to_torch(x), to_torch(rois), 0.5, 3, 2, ratio, aligned)
    ours = ops.roi_align(x, rois, (3, 2), 0.5, ratio, aligned)
    np.testing.assert_allclose(ours.numpy(), expected.numpy(), rtol=1e-9, atol=1e-12)


def _copy_weights(ours: Any, theirs: Any) -> None:
    ours.load_state_dict({k: to_votive(v) for k, v in theirs.state_dict().items()})


@pytest.mark.parity
@pytest.mark.parametrize("extra", [None, "LastLevelMaxPool", "LastLevelP6P7"])
def test_a_feature_pyramid_agrees_with_torchvisions(extra: str | None) -> None:
    torchvision()
    from torchvision.ops import feature_pyramid_network as reference

    args = (6, 6) if extra == "LastLevelP6P7" else ()
    theirs = reference.FeaturePyramidNetwork([4, 6, 8], 6, extra and getattr(reference, extra)(*args))
    ours = ops.FeaturePyramidNetwork([4, 6, 8], 6, extra and getattr(ops, extra)(*args))
    _copy_weights(ours, theirs)
    rng = np.random.default_rng(3)
    maps = OrderedDict(
        (f"m{i}", votive.from_numpy(rng.normal(size=(2, c, s, s + 1)).astype(np.float32)))
        for i, (c, s) in enumerate(((4, 17), (6, 9), (8, 5)))
    )
    expected = theirs(OrderedDict((k, to_torch(v)) for k, v in maps.items()))
    got = ours(maps)
    assert list(got) == list(expected)
    for k in got:
        np.testing.assert_allclose(got[k].detach().numpy(), expected[k].detach().numpy(), rtol=1e-4, atol=1e-5)


def test_a_pyramid_reads_weights_of_the_first_version_and_counts_its_maps() -> None:
    pyramid = ops.FeaturePyramidNetwork([2, 3], 4)
    old = {
        k.replace(".0.", ".", 1) if k.count(".0.") == 1 else k[: k.rindex(".0.")] + k[k.rindex(".0.") + 2 :]: v
        for k, v in pyramid.state_dict().items()
    }
    assert "inner_blocks.1.weight" in old
    ops.FeaturePyramidNetwork([2, 3], 4).load_state_dict(old)
    with pytest.raises(ValueError, match="2 feature maps are expected, got 1"):
        pyramid({"a": votive.zeros(1, 2, 4, 4)})
    with pytest.raises(TypeError, match="ExtraFPNBlock"):
        ops.FeaturePyramidNetwork([2], 4, votive.nn.ReLU())


@pytest.mark.parity
def test_regions_of_a_pyramid_come_from_the_level_torchvision_takes() -> None:
    torchvision()
    from torchvision.ops import poolers

    rng = np.random.default_rng(5)
    sizes = [4, 30, 56, 111, 112, 224, 300, 448, 500]
    b = [[10.0, 10.0, 10.0 + s, 10.0 + s] for s in sizes]
    maps = {str(i): votive.from_numpy(rng.normal(size=(1, 2, s, s))) for i, s in enumerate((128, 64, 32, 16))}
    ours = ops.MultiScaleRoIAlign(list(maps), 2, 2)
    box = votive.tensor(b, dtype=votive.float64)
    got = ours(maps, [box], [(512, 500)])
    theirs, levels = poolers._setup_scales(list(map(to_torch, maps.values())), [(512, 500)], 224, 4)
    assert ours.scales == theirs
    rois = votive.cat((votive.zeros(len(b), 1).double(), box), 1)
    for k, level in enumerate(levels([to_torch(box)]).tolist()):
        expected = ops.roi_align(maps[str(level)], rois[k : k + 1], 2, theirs[level], 2)
        assert votive.allclose(got[k : k + 1], expected)
    single = ops.MultiScaleRoIAlign(["0"], 2, 2)(maps, [box], [(512, 500)])
    assert votive.allclose(single, ops.roi_align(maps["0"], rois, 2, 0.25, 2))
