"""Samples under transforms: their parts move together, containers, boxes, types, PIL images, workers."""

from __future__ import annotations

import copy
import pickle
from collections import OrderedDict, namedtuple
from typing import Any

import numpy as np
import pytest

import votive
from tests.vision import functional_cases as cases
from tests.vision.reference import torchvision
from votive.vision import transforms as T
from votive.vision import tv_tensors
from votive.vision.transforms import functional as F


def sample() -> dict[str, Any]:
    """A detection sample with everything in it."""
    return {
        "image": tv_tensors.Image(cases.image()),
        "target": OrderedDict(
            boxes=tv_tensors.BoundingBoxes(cases.boxes(), format="XYXY", canvas_size=(24, 31)),
            masks=tv_tensors.Mask(np.stack([cases.mask()] * 4)),
            labels=votive.tensor([1, 2, 3, 4]),
        ),
        "name": "a picture",
        "extra": (1, [votive.zeros(2)]),
    }


def test_all_parts_of_a_sample_move_together_and_the_rest_stays() -> None:
    votive.manual_seed(1)
    before = sample()
    after = T.Compose([T.RandomRotation(30, expand=True), T.RandomCrop(16), T.Resize((8, 9))])(before)
    assert list(after) == list(before)
    assert isinstance(after["target"], OrderedDict)
    assert after["image"].shape == (3, 8, 9)
    assert after["target"]["masks"].shape == (4, 8, 9)
    assert after["target"]["boxes"].canvas_size == (8, 9)
    for key in ("image", "boxes", "masks"):
        got = after[key] if key == "image" else after["target"][key]
        was = before[key] if key == "image" else before["target"][key]
        assert type(got) is type(was)
    assert after["target"]["labels"] is before["target"]["labels"]
    assert after["name"] == "a picture"
    assert isinstance(after["extra"], tuple)
    assert after["extra"][1][0] is before["extra"][1][0]


def test_the_canvas_of_boxes_stays_the_size_of_the_image() -> None:
    boxes = tv_tensors.BoundingBoxes(cases.boxes(), format="XYXY", canvas_size=(24, 31))
    image = votive.from_numpy(cases.image())
    for angle in range(0, 360, 7):
        for centre in (None, [3.0, 4.5]):
            size = F.rotate(image, angle, expand=True, center=centre).shape[-2:]
            assert F.rotate(boxes, angle, expand=True, center=centre).canvas_size == tuple(size)


def test_a_mask_and_an_image_of_it_move_alike() -> None:
    """The same picture as image and as mask, through nearest modes, stays the same picture."""
    votive.manual_seed(2)
    labels = cases.mask()
    for transform in (
        T.RandomAffine(30, (0.2, 0.2), (0.8, 1.2), 10),
        T.RandomPerspective(p=1, interpolation=0),
        T.RandomResizedCrop(9, interpolation=0),
        T.ElasticTransform(40.0, 2.0, interpolation=0),
    ):
        image, mask = transform(tv_tensors.Image(labels), tv_tensors.Mask(labels))
        assert votive.equal(image[0], mask.as_tensor())


def test_plain_tensors_beside_an_image_are_left_and_the_first_of_several_is_the_image() -> None:
    flip = T.RandomHorizontalFlip(1.0)
    x, y = votive.tensor([[[1, 2]]]), votive.tensor([[[3, 4]]])
    assert [t.tolist() for t in flip(x, y)] == [[[[2, 1]]], [[[3, 4]]]]
    image, plain = flip(tv_tensors.Image(x), y)
    assert image.tolist() == [[[2, 1]]]
    assert plain is y
    Pair = namedtuple("Pair", "a b")
    assert flip(Pair(x, "label"))._fields == ("a", "b")


@pytest.mark.parity
def test_compositions_of_several_inputs_agree_with_torchvision() -> None:
    torchvision()
    import torch
    from torchvision.transforms import v2

    steps = [("Resize", (18,), {}), ("CenterCrop", ((12, 14),), {}), ("Pad", (2,), {})]
    array = cases.image()
    ours = T.Compose([getattr(T, n)(*a, **k) for n, a, k in steps])
    theirs = v2.Compose([getattr(v2, n)(*a, **k) for n, a, k in steps])
    got, label = ours(votive.from_numpy(array), 7)
    expected, _ = theirs(torch.from_numpy(array), 7)
    assert label == 7
    np.testing.assert_array_equal(got.numpy(), expected.numpy())
    normal = T.Compose([T.ToDtype(votive.float32, scale=True), T.Normalize([0.5] * 3, [0.2] * 3)])
    reference = v2.Compose([v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.5] * 3, [0.2] * 3)])
    np.testing.assert_allclose(
        normal(votive.from_numpy(array)).numpy(), reference(torch.from_numpy(array)).numpy(), atol=1e-6
    )


def test_containers_apply_choose_and_order() -> None:
    votive.manual_seed(0)
    add, double = T.Lambda(lambda x: x + 1), T.Lambda(lambda x: x * 2)
    one = votive.ones(1)
    assert T.Compose([add, double])(one).item() == 4
    assert {T.RandomOrder([add, double])(one).item() for _ in range(20)} == {3.0, 4.0}
    assert {T.RandomChoice([add, double, T.Identity()])(one).item() for _ in range(30)} == {1.0, 2.0}
    assert T.RandomChoice([add, double], p=[0, 3])(votive.tensor([5.0])).item() == 10
    assert {T.RandomApply([add, double], p=0.5)(one).item() for _ in range(20)} == {1.0, 4.0}
    assert T.RandomApply([add], p=0.0)(1, 2) == (1, 2)
    assert "Lambda" in repr(T.Compose([add]))
    for kind in (T.Compose, T.RandomApply, T.RandomChoice, T.RandomOrder):
        with pytest.raises(ValueError, match="at least one"):
            kind([])
        with pytest.raises(TypeError, match="sequence"):
            kind(add)


def test_boxes_are_cropped_chosen_and_cleaned() -> None:
    votive.manual_seed(4)
    crop, clean = (T.RandomIoUCrop(), T.SanitizeBoundingBoxes(labels_getter=lambda s: s["target"]["labels"]))
    kept = set()
    for _ in range(20):
        out = crop(sample())
        height, width = out["image"].shape[-2:]
        boxes = out["target"]["boxes"]
        assert boxes.canvas_size == (height, width)
        assert out["target"]["masks"].shape == (4, height, width)
        target = clean(out)["target"]
        assert len(target["boxes"]) == len(target["labels"]) == len(target["masks"])
        assert len(target["boxes"]) >= 1
        assert ((target["boxes"][:, 2:] - target["boxes"][:, :2]) >= 1).all()
        kept.add(len(target["boxes"]))
    assert len(kept) > 1


@pytest.mark.parity
def test_cleaning_boxes_agrees_with_torchvision() -> None:
    torchvision()
    import torch
    from torchvision import tv_tensors as reference_tensors
    from torchvision.transforms import v2

    rng = np.random.default_rng(0)
    for format in ("XYXY", "XYWH", "CXCYWH"):
        array = rng.uniform(-3, 20, (40, 4)).astype(np.float32)
        options = {"format": format, "canvas_size": (24, 31)}
        for more in ({}, {"min_size": 3.0, "min_area": 20.0}):
            got = T.SanitizeBoundingBoxes(**more)(
                {"boxes": tv_tensors.BoundingBoxes(array, **options), "labels": votive.arange(40)}
            )
            expected = v2.SanitizeBoundingBoxes(**more)(
                {"boxes": reference_tensors.BoundingBoxes(array, **options), "labels": torch.arange(40)}
            )
            assert got["labels"].tolist() == expected["labels"].tolist()
            np.testing.assert_array_equal(got["boxes"].numpy(), expected["boxes"].numpy())


def test_kinds_of_tensors_survive_what_should_keep_them_and_nothing_else() -> None:
    boxes = tv_tensors.BoundingBoxes([[1.0, 2, 3, 4]], format="xywh", canvas_size=(8, 9))
    for same in (
        boxes.clone(),
        boxes.detach(),
        boxes.to(votive.float64),
        copy.deepcopy(boxes),
        copy.copy(boxes),
        pickle.loads(pickle.dumps(boxes)),
        boxes.requires_grad_(False),
    ):
        assert type(same) is tv_tensors.BoundingBoxes
        assert (same.format.name, same.canvas_size) == ("XYWH", (8, 9))
    for plain in (boxes + 1, boxes[0], boxes.sum(), boxes * boxes, boxes.reshape(4)):
        assert type(plain) is votive.Tensor
    assert "canvas_size=(8, 9)" in repr(boxes)
    assert repr(tv_tensors.Mask(votive.zeros(2, 2))) == "Mask([[0., 0.],\n      [0., 0.]])"
    x = votive.ones(1, 2, 2, requires_grad=True)
    tv_tensors.Image(x).sum().backward()
    assert votive.equal(x.grad, votive.ones(1, 2, 2))
    assert tv_tensors.BoundingBoxes([], format="XYXY", canvas_size=(1, 1)).shape == (0, 4)
    with pytest.raises(NotImplementedError, match="rotated"):
        tv_tensors.BoundingBoxes([[1.0, 2, 3, 4]], format="CXCYWHR", canvas_size=(8, 9))
    with pytest.raises(ValueError, match="unknown format"):
        tv_tensors.BoundingBoxes([[1.0, 2, 3, 4]], format="YXYX", canvas_size=(8, 9))
    with pytest.raises(ValueError, match=r"\(N, 4\)"):
        tv_tensors.BoundingBoxes(votive.zeros(2, 5), format="XYXY", canvas_size=(8, 9))
    with pytest.raises(TypeError, match="has no"):
        tv_tensors.wrap(votive.zeros(1), like=boxes, color="red")


def test_types_are_converted_by_kind() -> None:
    out = T.ToDtype({tv_tensors.Image: votive.float32, tv_tensors.Mask: votive.int64, "others": None}, scale=True)(
        sample()
    )
    assert out["image"].dtype is votive.float32
    assert out["image"].max() <= 1
    assert out["target"]["masks"].dtype is votive.int64
    assert votive.equal(out["target"]["masks"], sample()["target"]["masks"].long())
    assert out["target"]["labels"].dtype is votive.int64
    only = T.ToDtype(votive.float64)(sample())
    assert only["image"].max() > 1
    assert only["target"]["masks"].dtype is votive.uint8
    with pytest.raises(ValueError, match="no dtype for BoundingBoxes"):
        T.ToDtype({tv_tensors.Image: votive.float32})(sample())


def test_pil_images_pass_through_pipelines() -> None:
    PIL = pytest.importorskip("PIL.Image")
    votive.manual_seed(0)
    image = PIL.fromarray(np.moveaxis(cases.image(), 0, -1))
    pipeline = T.Compose(
        [
            T.RandomResizedCrop(16),
            T.RandomHorizontalFlip(),
            T.ColorJitter(0.3, 0.3, 0.3, 0.1),
            T.TrivialAugmentWide(),
            T.GaussianBlur(3),
            T.RandomErasing(1.0),
            T.AugMix(),
            T.ElasticTransform(sigma=1.0),
            T.ToImage(),
            T.ToDtype(votive.float32, scale=True),
            T.Normalize([0.5] * 3, [0.5] * 3),
            T.ToPureTensor(),
        ]
    )
    out = pipeline(image)
    assert type(out) is votive.Tensor
    assert out.shape == (3, 16, 16)
    assert -1 <= out.min() < out.max() <= 1
    assert T.ToTensor()(image).max() <= 1
    assert T.PILToTensor()(image).dtype is votive.uint8
    assert T.ToPILImage()(T.PILToTensor()(image)).tobytes() == image.tobytes()
    with pytest.raises(TypeError, match="PIL images"):
        T.Normalize([0.5], [0.5])(image)


def test_transforms_work_in_the_workers_of_a_loader() -> None:
    pytest.importorskip("PIL.Image")
    from votive.vision.datasets import FakeData

    data = FakeData(12, (3, 12, 12), transform=T.Compose([T.ToTensor(), T.RandomCrop(8)]))
    for workers in (0, 2):
        loader = votive.utils.data.DataLoader(data, batch_size=4, num_workers=workers)
        batches = [images for images, _ in loader]
        assert [tuple(b.shape) for b in batches] == [(4, 3, 8, 8)] * 3
