"""Boxes: formats, areas, overlaps, losses and suppression."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import votive
from tests.vision.reference import to_torch, torchvision
from votive.vision import ops


def boxes(n: int, seed: int = 0, dtype: Any = np.float32, size: float = 100.0) -> Any:
    """Random corner boxes, of all sizes."""
    rng = np.random.default_rng(seed)
    corner, side = rng.uniform(0, size, (n, 2)), rng.uniform(1, size / 2, (n, 2))
    return votive.from_numpy(np.concatenate((corner, corner + side), 1).astype(dtype))


def slow_iou(a: Any, b: Any) -> float:
    wide = max(min(a[2], b[2]) - max(a[0], b[0]), 0.0)
    high = max(min(a[3], b[3]) - max(a[1], b[1]), 0.0)
    inter = wide * high
    return inter / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - inter)


def slow_nms(b: Any, scores: Any, groups: Any, threshold: float) -> list[int]:
    """The definition: walk from the best to the worst, keep what no kept box covers."""
    b, kept = b.double().tolist(), []
    for i in sorted(range(len(b)), key=lambda i: -scores[i].item()):
        covered = any(groups[i] == groups[j] and slow_iou(b[i], b[j]) > threshold for j in kept)
        if not covered:
            kept.append(i)
    return kept


@pytest.mark.parametrize("threshold", [0.0, 0.3, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nms_keeps_what_the_definition_keeps(threshold: float, dtype: Any) -> None:
    b = boxes(150, 1, dtype, 60.0)
    scores = votive.from_numpy(np.random.default_rng(2).permutation(150).astype(dtype))
    expected = slow_nms(b, scores, [0] * 150, threshold)
    assert ops.nms(b, scores, threshold).tolist() == expected
    assert 1 < len(expected) <= 150


def test_batched_nms_suppresses_within_a_category_only() -> None:
    b, rng = boxes(200, 3, size=40.0), np.random.default_rng(4)
    scores = votive.from_numpy(rng.permutation(200).astype(np.float32))
    groups = votive.from_numpy(rng.integers(0, 5, 200))
    expected = slow_nms(b, scores, groups.tolist(), 0.4)
    assert ops.batched_nms(b, scores, groups, 0.4).tolist() == expected
    assert len(expected) > len(ops.nms(b, scores, 0.4))


def test_of_equal_scores_the_first_box_wins_and_equal_boxes_leave_one() -> None:
    b = votive.tensor([[0.0, 0, 10, 10]] * 3 + [[50.0, 50, 60, 60]])
    assert ops.nms(b, votive.ones(4), 0.5).tolist() == [0, 3]
    # Overlap equal to the threshold is not above it.
    half = votive.tensor([[0.0, 0, 2, 1], [0, 0, 1, 1]])
    assert ops.nms(half, votive.tensor([2.0, 1.0]), 0.5).tolist() == [0, 1]
    assert ops.nms(half, votive.tensor([2.0, 1.0]), 0.49).tolist() == [0]


def test_nms_takes_no_boxes_and_refuses_what_does_not_fit() -> None:
    assert ops.nms(votive.zeros(0, 4), votive.zeros(0), 0.5).tolist() == []
    assert ops.nms(votive.zeros(0, 4), votive.zeros(0), 0.5).dtype is votive.int64
    empty = ops.batched_nms(votive.zeros(0, 4), votive.zeros(0), votive.zeros(0).long(), 0.5)
    assert empty.tolist() == []
    # Boxes without area give NaN overlaps and survive.
    assert len(ops.nms(votive.zeros(3, 4), votive.ones(3), 0.5)) == 3
    with pytest.raises(ValueError, match=r"nms: boxes must have shape \(N, 4\), got \(3, 5\)"):
        ops.nms(votive.zeros(3, 5), votive.zeros(3), 0.5)
    with pytest.raises(ValueError, match="one value for each of the 3 boxes"):
        ops.nms(votive.zeros(3, 4), votive.zeros(2), 0.5)
    with pytest.raises(RuntimeError, match="same dtype"):
        ops.nms(votive.zeros(3, 4), votive.zeros(3).double(), 0.5)
    with pytest.raises(NotImplementedError, match="int64"):
        ops.nms(votive.zeros(3, 4).long(), votive.zeros(3).long(), 0.5)
    with pytest.raises(ValueError, match="a category for each of the 3 boxes"):
        ops.batched_nms(votive.zeros(3, 4), votive.zeros(3), votive.zeros(2).long(), 0.5)


def test_nms_reads_half_precision_and_strided_boxes() -> None:
    b, scores = boxes(50, 5, size=30.0), votive.from_numpy(np.arange(50, dtype=np.float32))
    wide = votive.zeros(50, 8)
    wide[:, ::2] = b
    assert ops.nms(wide[:, ::2], scores, 0.4).tolist() == ops.nms(b, scores, 0.4).tolist()
    half = ops.nms(b.half(), scores.half(), 0.4).tolist()
    assert half == ops.nms(b.half().float(), scores, 0.4).tolist()


UPRIGHT, ROTATED = ("xyxy", "xywh", "cxcywh"), ("xywhr", "cxcywhr", "xyxyxyxy")
WIDTH = {**dict.fromkeys(UPRIGHT, 4), "xywhr": 5, "cxcywhr": 5, "xyxyxyxy": 8}


@pytest.mark.parametrize("family", [UPRIGHT, ROTATED])
def test_formats_convert_there_and_back(family: tuple[str, ...]) -> None:
    start = boxes(7, 6, np.float64)
    if family is ROTATED:
        start = votive.cat((start, votive.linspace(-80, 80, 7).double()[:, None]), 1)
    for a in family:
        first = ops.box_convert(start, family[0], a)
        assert first.shape[-1] == WIDTH[a]
        for b in family:
            back = ops.box_convert(ops.box_convert(first, a, b), b, a)
            assert votive.allclose(back, first, atol=1e-9)


def test_conversions_keep_leading_dimensions_and_refuse_unknown_formats() -> None:
    b = boxes(6).reshape(1, 2, 3, 4)
    assert ops.box_convert(b, "xyxy", "cxcywh").shape == (1, 2, 3, 4)
    assert ops.box_convert(votive.zeros(0, 4), "xywh", "xyxy").shape == (0, 4)
    with pytest.raises(ValueError, match="unknown format 'xxyy'"):
        ops.box_convert(b, "xxyy", "xywh")
    with pytest.raises(NotImplementedError, match="rotated"):
        ops.box_convert(b, "xyxy", "xywhr")


@pytest.mark.parity
@pytest.mark.parametrize(("a", "b"), [(a, b) for f in (UPRIGHT, ROTATED) for a in f for b in f])
@pytest.mark.parametrize("dtype", [votive.float32, votive.int64])
def test_box_convert_agrees_with_torchvision(a: str, b: str, dtype: Any) -> None:
    tv = torchvision()
    x = (votive.from_numpy(np.random.default_rng(8).uniform(1, 90, (9, WIDTH[a])))).to(dtype)
    expected = tv.ops.box_convert(to_torch(x), a, b)
    ours = ops.box_convert(x, a, b)
    np.testing.assert_allclose(ours.numpy(), expected.numpy(), rtol=1e-5, atol=1e-4)
    assert str(ours.dtype).split(".")[1] == str(expected.dtype).split(".")[1]


PAIRWISE = ("box_iou", "generalized_box_iou", "distance_box_iou", "complete_box_iou")


@pytest.mark.parity
@pytest.mark.parametrize("name", PAIRWISE)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.float16])
def test_pairwise_overlaps_agree_with_torchvision(name: str, dtype: Any) -> None:
    tv = torchvision()
    a, b = boxes(6, 9, dtype), boxes(4, 10, dtype)
    expected = getattr(tv.ops, name)(to_torch(a), to_torch(b)).numpy()
    ours = getattr(ops, name)(a, b).numpy()
    assert ours.dtype == expected.dtype
    np.testing.assert_allclose(ours, expected, rtol=1e-5, atol=1e-6)
    batched = getattr(ops, name)(a.reshape(2, 3, 4), b.reshape(2, 2, 4)).numpy()
    np.testing.assert_allclose(batched[1], expected[3:, 2:], rtol=1e-5, atol=1e-6)


@pytest.mark.parity
@pytest.mark.parametrize("fmt", UPRIGHT)
def test_areas_and_overlaps_of_each_format_agree_with_torchvision(fmt: str) -> None:
    tv = torchvision()
    a, b = (ops.box_convert(boxes(5, s), "xyxy", fmt) for s in (1, 2))
    for name, args in (("box_area", (a,)), ("box_iou", (a, b))):
        expected = getattr(tv.ops, name)(*map(to_torch, args), fmt=fmt)
        ours = getattr(ops, name)(*args, fmt=fmt)
        np.testing.assert_allclose(ours.numpy(), expected.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parity
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("name", ["generalized", "distance", "complete"])
def test_box_losses_and_their_gradients_agree_with_torchvision(name: str, reduction: str) -> None:
    tv = torchvision()
    a, b = boxes(12, 11, np.float64, 30.0), boxes(12, 12, np.float64, 30.0)
    a.requires_grad_()
    ours = getattr(ops, f"{name}_box_iou_loss")(a, b, reduction=reduction)
    ours.sum().backward()
    x = to_torch(a).requires_grad_()
    expected = getattr(tv.ops, f"{name}_box_iou_loss")(x, to_torch(b), reduction=reduction)
    expected.sum().backward()
    np.testing.assert_allclose(ours.detach().numpy(), expected.detach().numpy(), rtol=1e-9)
    np.testing.assert_allclose(a.grad.numpy(), x.grad.numpy(), rtol=1e-7, atol=1e-12)
    assert getattr(ops, f"{name}_box_iou_loss")(a[:0], b[:0], "mean").item() == 0


@pytest.mark.parity
def test_small_things_agree_with_torchvision() -> None:
    tv = torchvision()
    b = boxes(20, 13, size=50.0) - 20
    for name, args in (("clip_boxes_to_image", ((25, 40),)), ("remove_small_boxes", (14.0,))):
        expected = getattr(tv.ops, name)(to_torch(b), *args)
        np.testing.assert_array_equal(getattr(ops, name)(b, *args).numpy(), expected.numpy())
    masks = votive.from_numpy(np.random.default_rng(1).random((6, 9, 7)) > 0.93)
    masks[2] = False
    expected = tv.ops.masks_to_boxes(to_torch(masks))
    np.testing.assert_array_equal(ops.masks_to_boxes(masks).numpy(), expected.numpy())


def test_overlaps_have_the_values_worked_out_by_hand() -> None:
    a, b = votive.tensor([[0.0, 0, 2, 2]]), votive.tensor([[1.0, 1, 3, 3]])
    # Intersection 1, union 7, hull 9; centres sqrt(2) apart, diagonal sqrt(18).
    assert ops.box_iou(a, b).item() == pytest.approx(1 / 7)
    assert ops.generalized_box_iou(a, b).item() == pytest.approx(1 / 7 - 2 / 9)
    assert ops.distance_box_iou(a, b).item() == pytest.approx(1 / 7 - 2 / 18)
    assert ops.complete_box_iou(a, b).item() == pytest.approx(1 / 7 - 2 / 18)
    assert ops.box_iou(a, votive.zeros(0, 4)).shape == (1, 0)
    assert ops.masks_to_boxes(votive.zeros(0, 3, 3)).shape == (0, 4)
    with pytest.raises(NotImplementedError, match="rotated"):
        ops.box_iou(a, b, fmt="cxcywhr")
    with pytest.raises(ValueError, match="reduction must be"):
        ops.distance_box_iou_loss(a, b, reduction="most")


def test_overlaps_are_differentiable() -> None:
    a, b = boxes(3, 14, np.float64, 10.0), boxes(2, 15, np.float64, 10.0)
    for name in PAIRWISE[:3]:
        fn = getattr(ops, name)
        assert votive.autograd.gradcheck(fn, (a.clone().requires_grad_(), b.clone()))
