"""Transforms as objects: what they draw, what they change, and that torchvision does the same."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import votive
from tests.vision import functional_cases as cases
from tests.vision.reference import to_torch, torchvision
from votive.vision import transforms as T
from votive.vision import tv_tensors
from votive.vision.transforms import functional as F

# Name and arguments. What these draw is given to torchvision's transform of the same name.
RANDOM: dict[str, tuple[str, tuple[Any, ...], dict[str, Any]]] = {
    "crop": ("RandomCrop", ((12, 14),), {"padding": [2, 3]}),
    "crop_padded": ("RandomCrop", ((30, 14),), {"pad_if_needed": True, "fill": 7}),
    "crop_edge": ("RandomCrop", (20,), {"padding": 4, "padding_mode": "reflect"}),
    "resized_crop": ("RandomResizedCrop", ((9, 11),), {}),
    "resized_crop_wide": ("RandomResizedCrop", (8,), {"ratio": (9.0, 10.0), "scale": (0.9, 1.0)}),
    "hflip": ("RandomHorizontalFlip", (), {"p": 1.0}),
    "vflip": ("RandomVerticalFlip", (), {"p": 1.0}),
    "rotation": ("RandomRotation", (40,), {"fill": 3}),
    "rotation_expand": ("RandomRotation", ((-10, 60),), {"expand": True}),
    "affine": ("RandomAffine", (20, (0.1, 0.2), (0.7, 1.3), (-5, 5, -3, 3)), {}),
    "affine_plain": ("RandomAffine", (0,), {"shear": 10, "interpolation": "bilinear"}),
    "perspective": ("RandomPerspective", (), {"p": 1.0, "interpolation": 0}),
    "elastic": ("ElasticTransform", (), {"alpha": 40.0, "sigma": 2.0}),
    "jitter": ("ColorJitter", (0.4, (0.3, 1.8), 0.7, 0.2), {}),
    "distort": ("RandomPhotometricDistort", (), {"p": 1.0}),
    "channels": ("RandomChannelPermutation", (), {}),
    "grey": ("RandomGrayscale", (), {"p": 1.0}),
    "erasing": ("RandomErasing", (), {"p": 1.0, "value": [1, 2, 3]}),
    "blur": ("GaussianBlur", ((5, 3),), {}),
    "equalize": ("RandomEqualize", (), {"p": 1.0}),
    "invert": ("RandomInvert", (), {"p": 1.0}),
    "posterize": ("RandomPosterize", (3,), {"p": 1.0}),
    "solarize": ("RandomSolarize", (100,), {"p": 1.0}),
    "autocontrast": ("RandomAutocontrast", (), {"p": 1.0}),
    "sharpness": ("RandomAdjustSharpness", (2.0,), {"p": 1.0}),
    "zoom_out": ("RandomZoomOut", (), {"p": 1.0, "fill": 5}),
    "scale_jitter": ("ScaleJitter", ((20, 22),), {"scale_range": (0.8, 1.2)}),
    "shortest": ("RandomShortestSize", ([10, 12, 14],), {"max_size": 16}),
    "random_resize": ("RandomResize", (9, 15), {}),
    "resize": ("Resize", (12,), {"max_size": 14}),
    "center": ("CenterCrop", ((10, 40),), {}),
    "pad": ("Pad", ([1, 2, 3, 4],), {"fill": 9}),
    "grayscale": ("Grayscale", (3,), {}),
}
# What torchvision does otherwise: erasing warns about boxes and masks; grey leaves videos as they
# are; the canvas of boxes that are rotated with `expand` may differ from the image's by one.
NO_VIDEO, NO_BOXES = ("grey", "grayscale"), ("erasing", "rotation_expand")


def _for_torch(params: dict[str, Any]) -> dict[str, Any]:
    import torch

    out = {}
    for k, v in params.items():
        if isinstance(v, votive.Tensor):
            out[k] = to_torch(v)
        elif k in ("fn_idx", "permutation", "channel_permutation") and v is not None:
            out[k] = torch.tensor(v)
        else:
            out[k] = v
    return out


@pytest.mark.parity
@pytest.mark.parametrize("case", RANDOM)
def test_what_a_transform_drew_gives_in_torchvision_the_same(case: str) -> None:
    torchvision()
    import torch
    from torchvision import tv_tensors as reference_tensors
    from torchvision.transforms import v2

    name, args, options = RANDOM[case]
    ours, theirs = getattr(T, name)(*args, **options), getattr(v2, name)(*args, **options)
    kinds: list[tuple[Any, Any]] = [
        (tv_tensors.Image(cases.image()), reference_tensors.Image(cases.image())),
        (votive.from_numpy(cases.image("float32")), torch.from_numpy(cases.image("float32"))),
    ]
    videos = np.stack([cases.image()] * 2)
    if case not in NO_VIDEO:
        kinds.append((tv_tensors.Video(videos), reference_tensors.Video(videos)))
    if case != "erasing":
        kinds.append((tv_tensors.Mask(cases.mask()), reference_tensors.Mask(cases.mask())))
    if case not in NO_BOXES and options.get("padding_mode", "constant") == "constant":
        canvas = {"format": "XYWH", "canvas_size": (24, 31)}
        boxes = cases.boxes() * np.float32([1, 1, 0.4, 0.4])
        kinds.append((tv_tensors.BoundingBoxes(boxes, **canvas), reference_tensors.BoundingBoxes(boxes, **canvas)))
    votive.manual_seed(3)
    for _ in range(3):
        params = ours.make_params([kinds[0][0]])
        for mine, yours in kinds:
            if case == "solarize" and mine.dtype is votive.float32:
                continue  # its threshold is for bytes
            got = ours.transform(mine, params)
            expected = theirs.transform(yours, _for_torch(params))
            assert tuple(got.shape) == tuple(expected.shape)
            assert type(got).__name__ == type(expected).__name__
            if got.dtype is votive.uint8:
                np.testing.assert_array_equal(got.numpy(), expected.numpy())
            else:
                np.testing.assert_allclose(got.numpy(), expected.numpy(), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("case", RANDOM)
def test_a_seed_makes_a_transform_repeat_itself(case: str) -> None:
    name, args, options = RANDOM[case]
    transform = getattr(T, name)(*args, **options)
    image = votive.from_numpy(cases.image())
    votive.manual_seed(5)
    first = transform(image)
    votive.manual_seed(5)
    assert votive.equal(transform(image), first)
    again = pickle.loads(pickle.dumps(transform))
    votive.manual_seed(5)
    assert votive.equal(again(image), first)
    assert type(transform).__name__ in repr(transform)


VARIED = [
    "crop",
    "resized_crop",
    "rotation",
    "affine",
    "perspective",
    "elastic",
    "jitter",
    "distort",
    "erasing",
    "blur",
    "zoom_out",
    "random_resize",
]


@pytest.mark.parametrize("case", VARIED)
def test_random_transforms_draw_anew_each_time(case: str) -> None:
    name, args, options = RANDOM[case]
    transform = getattr(T, name)(*args, **options)
    image = votive.from_numpy(cases.image())
    votive.manual_seed(0)
    results = [transform(image) for _ in range(6)]
    shapes = {tuple(r.shape) for r in results}
    assert len(shapes) > 1 or any(not votive.equal(results[0], r) for r in results[1:])


@pytest.mark.parametrize("p", [0.0, 0.3, 1.0])
def test_a_probability_is_how_often_it_happens(p: float) -> None:
    votive.manual_seed(0)
    flip = T.RandomHorizontalFlip(p)
    image = votive.tensor([[[1, 2]]])
    happened = sum(flip(image)[0, 0, 0].item() == 2 for _ in range(400)) / 400
    assert happened == pytest.approx(p, abs=0 if p in (0, 1) else 0.08)


def test_places_are_uniform() -> None:
    votive.manual_seed(0)
    crop = T.RandomCrop(2)
    corner = [crop.make_params([votive.zeros(1, 5, 4)]) for _ in range(600)]
    tops = np.bincount([c["top"] for c in corner], minlength=4)
    lefts = np.bincount([c["left"] for c in corner], minlength=3)
    assert (abs(tops - 150) < 45).all()
    assert (abs(lefts - 200) < 50).all()
    areas = [T.RandomResizedCrop(4).make_params([votive.zeros(1, 100, 100)]) for _ in range(300)]
    share = np.array([a["height"] * a["width"] for a in areas]) / 1e4
    assert 0.07 < share.min() < 0.2
    assert 0.8 < share.max() <= 1
    assert share.mean() == pytest.approx(0.53, abs=0.06)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: T.RandomHorizontalFlip(1.5), ValueError, r"p must be in \[0, 1\]"),
        (lambda: T.Resize([1, 2, 3]), ValueError, "one or two ints"),
        (lambda: T.Resize(None), ValueError, "max_size must be an int"),
        (lambda: T.CenterCrop("wide"), ValueError, "size must be"),
        (lambda: T.Pad([1, 2, 3]), ValueError, "1, 2 or 4"),
        (lambda: T.Pad(1, padding_mode="wrap"), ValueError, "padding_mode"),
        (lambda: T.Pad(1, fill="red"), TypeError, "fill must be"),
        (lambda: T.RandomCrop(50)(votive.zeros(3, 8, 8)), ValueError, "pad_if_needed"),
        (lambda: T.RandomResizedCrop(4, scale=0.5), TypeError, "scale must be a sequence"),
        (lambda: T.RandomRotation(-5), ValueError, "must not be negative"),
        (lambda: T.RandomRotation([1, 2, 3]), ValueError, "elements"),
        (lambda: T.RandomAffine(5, translate=(2, 0)), ValueError, "between 0 and 1"),
        (lambda: T.RandomAffine(5, scale=(0, 1)), ValueError, "positive"),
        (lambda: T.RandomPerspective(2.0), ValueError, "distortion_scale"),
        (lambda: T.ColorJitter(brightness=-1), ValueError, "must not be negative"),
        (lambda: T.ColorJitter(hue=0.6), ValueError, r"\[-0.5, 0.5\]"),
        (lambda: T.ColorJitter(contrast="high"), TypeError, "number or"),
        (lambda: T.GaussianBlur(4), ValueError, "odd"),
        (lambda: T.GaussianBlur(3, 0), ValueError, "0 < min"),
        (lambda: T.RandomErasing(value="blue"), ValueError, "'random'"),
        (lambda: T.RandomErasing(scale=(0.5, 2)), ValueError, r"\[0, 1\]"),
        (lambda: T.RandomErasing(1.0, value=[1, 2])(votive.zeros(3, 8, 8)), ValueError, "2 values"),
        (lambda: T.RandomZoomOut(side_range=(0.5, 2)), ValueError, "side_range"),
        (lambda: T.JPEG(0), ValueError, "1..100"),
        (lambda: T.ToDtype("float32"), ValueError, "dtype must be"),
        (lambda: T.MixUp()(votive.zeros(1, 3, 4, 4), votive.tensor([0])), ValueError, "num_cl"),
        (lambda: T.CutMix(num_classes=2)(votive.ones(4), votive.tensor([0])), ValueError, "batch"),
        (lambda: T.MixUp(num_classes=2)({"x": votive.zeros(1, 3, 4, 4)}), ValueError, "label"),
        (lambda: T.AutoAugment("imagenet"), ValueError, "AutoAugmentPolicy"),
        (lambda: T.RandAugment(magnitude=40), ValueError, "0..30"),
        (lambda: T.AugMix(severity=11), ValueError, "1..10"),
        (lambda: T.RandomIoUCrop()(votive.zeros(3, 8, 8)), TypeError, "BoundingBoxes"),
        (lambda: T.FiveCrop(2)(tv_tensors.Mask(cases.mask())), TypeError, "does not take"),
        (lambda: T.RandomChoice([T.Identity()], p=[1, 2]), ValueError, "2 weights for 1"),
        (lambda: T.LinearTransformation(votive.zeros(2, 3), votive.zeros(2)), ValueError, "square"),
        (lambda: T.RandomCrop(2)("no image"), TypeError, "nothing with"),
        (
            lambda: T.RandomCrop(2)(tv_tensors.Image(votive.zeros(1, 4, 4)), tv_tensors.Mask(votive.zeros(5, 5))),
            ValueError,
            "differ",
        ),
    ],
)
def test_wrong_arguments_are_told(make: Any, error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        make()


def test_the_transforms_have_torchvisions_second_name_too() -> None:
    from votive.vision.transforms import v2

    assert v2.Resize is T.Resize
    assert v2.functional.resize is F.resize
    assert set(F.__all__) <= set(dir(v2.functional))
    assert set(T.__all__) <= set(dir(v2))


def test_parameters_can_be_drawn_without_a_transform() -> None:
    """As with torchvision's first transforms: draw once, apply to an image and to its mask."""
    votive.manual_seed(0)
    image = votive.from_numpy(cases.image())
    top, left, height, width = T.RandomCrop.get_params(image, (10, 12))
    assert F.crop(image, top, left, height, width).shape == (3, 10, 12)
    top, left, height, width = T.RandomResizedCrop.get_params(image, (0.1, 0.5), (0.9, 1.1))
    assert 0 <= top <= 24 - height
    assert 0 <= left <= 31 - width
    assert -10 <= T.RandomRotation.get_params([-10, 10]) <= 10
    angle, moved, scale, shear = T.RandomAffine.get_params([5, 6], (0.1, 0.2), (0.5, 0.6), [1, 2], [31, 24])
    assert 5 <= angle <= 6
    assert abs(moved[0]) <= 3
    assert abs(moved[1]) <= 5
    assert 0.5 <= scale <= 0.6
    assert 1 <= shear[0] <= 2
    assert shear[1] == 0
    start, end = T.RandomPerspective.get_params(31, 24, 0.5)
    assert F.perspective(image, start, end).shape == image.shape
    order, b, c, s, h = T.ColorJitter.get_params((0.5, 1.5), None, (1, 2), (-0.1, 0.1))
    assert sorted(order.tolist()) == [0, 1, 2, 3]
    assert 0.5 <= b <= 1.5
    assert c is None
    assert 1 <= s <= 2
    assert abs(h) <= 0.1
    i, j, h, w, v = T.RandomErasing.get_params(image, (0.1, 0.2), (0.5, 2.0), [7])
    assert (F.erase(image, i, j, h, w, v)[:, i : i + h, j : j + w] == 7).all()
    assert T.RandomErasing.get_params(image, (0.1, 0.2), (0.5, 2.0))[4].ndim == 3
    assert 1 <= T.GaussianBlur.get_params(1, 2) <= 2
    shift = T.ElasticTransform.get_params([40.0, 40.0], [2.0, 2.0], [24, 31])
    assert F.elastic(image, shift).shape == image.shape
    assert F.get_image_size(image) == [31, 24]
    assert F.get_image_num_channels(image) == 3
