"""Points follow the pixels under them, as torchvision's do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import votive
from tests.vision import functional_cases as cases
from tests.vision.reference import torchvision
from votive.vision import transforms as T
from votive.vision import tv_tensors
from votive.vision.transforms import functional as F

POINTS = np.array([[[2.0, 3.0], [30.0, 23.0]], [[10.5, 20.25], [0.0, 0.0]]], np.float32)


def points(array: Any = POINTS) -> Any:
    return tv_tensors.KeyPoints(array, canvas_size=(24, 31))


@pytest.mark.parity
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
@pytest.mark.parametrize("case", cases.GEOMETRY)
def test_points_move_as_in_torchvision(case: str, dtype: Any) -> None:
    torchvision()
    from torchvision import tv_tensors as reference_tensors
    from torchvision.transforms.v2 import functional as reference

    name, args, options = cases.GEOMETRY[case]
    if name == "perspective" and dtype is np.float64:
        pytest.skip("torchvision refuses float64 there")
    array = POINTS.astype(dtype)
    theirs = reference_tensors.KeyPoints(array, canvas_size=(24, 31))
    expected = getattr(reference, name)(theirs, *args, **options)
    out = getattr(F, name)(points(array), *args, **options)
    assert isinstance(out, tv_tensors.KeyPoints)
    assert out.canvas_size == tuple(expected.canvas_size)
    assert out.numpy().dtype == dtype
    np.testing.assert_allclose(out.numpy(), expected.numpy(), rtol=1e-5, atol=1e-4)


@pytest.mark.parity
@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_points_are_bent_clamped_and_cleaned_as_in_torchvision(dtype: Any) -> None:
    torchvision()
    import torch
    from torchvision import tv_tensors as reference_tensors
    from torchvision.transforms import v2

    array = np.random.default_rng(0).uniform(-5, 40, (12, 2)).astype(dtype)
    theirs = reference_tensors.KeyPoints(array, canvas_size=(24, 31))
    expected = v2.functional.elastic(theirs, torch.from_numpy(cases.DISPLACEMENT))
    out = F.elastic(points(array), votive.from_numpy(cases.DISPLACEMENT))
    np.testing.assert_allclose(out.numpy(), expected.numpy(), rtol=1e-5, atol=1e-4)
    clamped = T.ClampKeyPoints()(points(array))
    np.testing.assert_array_equal(clamped.numpy(), v2.ClampKeyPoints()(theirs).numpy())
    for group in (array, array.reshape(6, 2, 2)):
        sample = {"points": points(group), "labels": votive.arange(len(group))}
        other = {"points": reference_tensors.KeyPoints(group, canvas_size=(24, 31)), "labels": torch.arange(len(group))}
        got = T.SanitizeKeyPoints("default")(sample)
        want = v2.SanitizeKeyPoints("default")(other)
        assert got["labels"].tolist() == want["labels"].tolist()
        np.testing.assert_array_equal(got["points"].numpy(), want["points"].numpy())


@pytest.mark.parametrize(
    "transform",
    [
        T.RandomHorizontalFlip(1.0),
        T.RandomVerticalFlip(1.0),
        T.RandomCrop(20),
        T.Pad([1, 2]),
        T.RandomRotation((90, 90)),
        T.CenterCrop(22),
        T.RandomAffine(0, (0.2, 0.2)),
    ],
    ids=lambda t: type(t).__name__,
)
def test_a_point_stays_on_its_pixel(transform: Any) -> None:
    """Mark a pixel, move image and point together, and find the mark under the point."""
    image = votive.zeros(1, 24, 24, dtype=votive.uint8)
    image[0, 9, 14] = 255
    votive.manual_seed(1)
    # Turning about the middle maps the corners of pixels, hence the half.
    half = 0.5 if isinstance(transform, T.RandomRotation) else 0.0
    start = tv_tensors.KeyPoints([[14 + half, 9 + half]], canvas_size=(24, 24))
    moved, point = transform(tv_tensors.Image(image), start)
    x, y = (point[0] - half).round().long().tolist()
    assert tuple(moved.shape[-2:]) == point.canvas_size
    assert moved[0, y, x].item() == 255


def test_points_say_what_they_are_and_what_is_wrong() -> None:
    assert "canvas_size=(24, 31)" in repr(points())
    assert points([1.0, 2.0]).shape == (1, 2)
    assert F.get_size(points()) == [24, 31]
    empty = points(np.zeros((0, 2), np.float32))
    assert F.rotate(empty, 30, expand=True).shape == (0, 2)
    with pytest.raises(ValueError, match=r"\(\.\.\., 2\)"):
        points(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="padding_mode"):
        F.pad(points(), 1, padding_mode="edge")
    with pytest.raises(ValueError, match="canvas_size"):
        F.clamp_keypoints(points(), (2, 2))
    with pytest.raises(TypeError, match="KeyPoints"):
        F.clamp_keypoints(tv_tensors.Mask(cases.mask()))
    with pytest.raises(ValueError, match="needs one KeyPoints"):
        T.SanitizeKeyPoints()(votive.zeros(1))
