"""Functionals of the transforms, compared with stored results of torchvision and with itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import votive
from tests.vision import functional_cases as cases
from tests.vision.make_functional import GOLDEN, thinned
from tests.vision.reference import to_votive, torchvision
from votive.vision import tv_tensors
from votive.vision.transforms import functional as F

STORED = dict(np.load(GOLDEN))
TABLES = {**cases.GEOMETRY, **cases.IMAGES, **cases.COLOUR}


def compare(ours: Any, expected: Any, case: str) -> None:
    """Bytes and labels exactly, floats to 1e-5."""
    assert tuple(ours.shape) == expected.shape
    got = ours.detach().numpy()
    assert got.dtype == expected.dtype
    if got.dtype == np.uint8:
        np.testing.assert_array_equal(got, expected, case)
    else:
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5, err_msg=case)


@pytest.mark.parametrize("kind", ["uint8", "float32"])
@pytest.mark.parametrize("case", TABLES)
def test_images_become_what_torchvision_makes_of_them(case: str, kind: str) -> None:
    name, args, options = cases.scaled(TABLES[case], kind)
    ours = getattr(F, name)(votive.from_numpy(cases.image(kind)), *args, **options)
    compare(thinned(ours, f"{case}/{kind}"), STORED[f"{case}/{kind}"], case)


@pytest.mark.parametrize("case", cases.GEOMETRY)
def test_masks_and_boxes_follow_as_in_torchvision(case: str) -> None:
    name, args, options = cases.GEOMETRY[case]
    mask = getattr(F, name)(tv_tensors.Mask(cases.mask()), *args, **options)
    assert isinstance(mask, tv_tensors.Mask)
    compare(mask, STORED[f"{case}/mask"], case)
    boxes = tv_tensors.BoundingBoxes(cases.boxes(), format="XYXY", canvas_size=(24, 31))
    out = getattr(F, name)(boxes, *args, **options)
    assert isinstance(out, tv_tensors.BoundingBoxes)
    assert list(out.canvas_size) == STORED[f"{case}/canvas"].tolist()
    np.testing.assert_allclose(out.numpy(), STORED[f"{case}/boxes"], rtol=1e-5, atol=1e-4)


@pytest.mark.parity
def test_the_stored_results_are_torchvisions() -> None:
    torchvision()
    from tests.vision.make_functional import results

    fresh = results()
    assert sorted(fresh) == sorted(STORED)
    for key, value in fresh.items():
        if value.dtype == np.uint8:
            np.testing.assert_array_equal(value, STORED[key], key)
        else:
            np.testing.assert_allclose(value, STORED[key], rtol=1e-5, atol=1e-5, err_msg=key)


@pytest.mark.parity
@pytest.mark.parametrize("case", TABLES)
@pytest.mark.parametrize("kind", ["uint8", "float64", "batch"])
def test_other_types_and_leading_dimensions_agree_with_torchvision(case: str, kind: str) -> None:
    torchvision()
    import torch
    from torchvision.transforms.v2 import functional as reference

    dtype = "float32" if kind == "batch" else kind
    shape = {"batch": (2, 1, 3, 24, 31), "uint8": (2, 3, 24, 31)}.get(kind, (3, 24, 31))
    array = cases.image(dtype, shape, seed=5)
    name, args, options = cases.scaled(TABLES[case], dtype)
    expected = getattr(reference, name)(torch.from_numpy(array), *args, **options)
    compare(getattr(F, name)(votive.from_numpy(array), *args, **options), expected.numpy(), case)


@pytest.mark.parity
@pytest.mark.parametrize("mode", ["RGB", "L"])
@pytest.mark.parametrize("case", TABLES)
def test_pil_images_agree_with_torchvision(case: str, mode: str) -> None:
    torchvision()
    PIL = pytest.importorskip("PIL.Image")
    from torchvision.transforms.v2 import functional as reference

    array = cases.image()
    image = PIL.fromarray(np.moveaxis(array, 0, -1) if mode == "RGB" else array[0])
    name, args, options = cases.scaled(TABLES[case], "uint8")
    if options.pop("antialias", True) is False or (name == "permute_channels" and mode == "L"):
        pytest.skip("PIL images are always antialiased, and grey ones have one channel")
    expected = getattr(reference, name)(image, *args, **options)
    ours = getattr(F, name)(image, *args, **options)
    assert ours.mode == expected.mode
    np.testing.assert_array_equal(np.asarray(ours), np.asarray(expected))


@pytest.mark.parity
@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
@pytest.mark.parametrize("fill", [None, 0.3, [0.1, 0.2, 0.9]])
def test_elastic_agrees_with_torchvision(mode: str, fill: Any) -> None:
    torchvision()
    import torch
    from torchvision import tv_tensors as reference_tensors
    from torchvision.transforms.v2 import functional as reference

    array = cases.image("float32")
    shift = votive.from_numpy(cases.DISPLACEMENT)
    theirs = torch.from_numpy(cases.DISPLACEMENT)
    expected = reference.elastic(torch.from_numpy(array), theirs, mode, fill)
    compare(F.elastic(votive.from_numpy(array), shift, mode, fill), expected.numpy(), mode)
    options = {"format": "CXCYWH", "canvas_size": (24, 31)}
    for form in (np.float32, np.int64):
        boxes = cases.boxes().astype(form)
        expected = reference.elastic(reference_tensors.BoundingBoxes(boxes, **options), theirs)
        out = F.elastic(tv_tensors.BoundingBoxes(boxes, **options), shift)
        np.testing.assert_allclose(out.numpy(), expected.numpy(), rtol=1e-5, atol=1e-4)
    expected = reference.elastic(reference_tensors.Mask(cases.mask()), theirs)
    np.testing.assert_array_equal(F.elastic(tv_tensors.Mask(cases.mask()), shift), expected)


@pytest.mark.parity
@pytest.mark.parametrize("format", ["XYXY", "XYWH", "CXCYWH"])
@pytest.mark.parametrize("dtype", [np.float32, np.int64])
@pytest.mark.parametrize("clamping", [None, "soft"])
@pytest.mark.parametrize("case", cases.GEOMETRY)
def test_boxes_of_every_format_follow(case: str, format: str, dtype: Any, clamping: Any) -> None:
    torchvision()
    from torchvision import tv_tensors as reference_tensors
    from torchvision.transforms.v2 import functional as reference

    options = {"format": format, "canvas_size": (24, 31), "clamping_mode": clamping}
    name, args, more = cases.GEOMETRY[case]
    array = cases.boxes().astype(dtype)
    expected = getattr(reference, name)(reference_tensors.BoundingBoxes(array, **options), *args, **more)
    out = getattr(F, name)(tv_tensors.BoundingBoxes(array, **options), *args, **more)
    assert out.canvas_size == tuple(expected.canvas_size)
    assert (out.format.name, out.clamping_mode) == (format, clamping)
    np.testing.assert_allclose(out.numpy(), expected.numpy(), rtol=1e-5, atol=1e-4)


TYPES = ["uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"]


@pytest.mark.parity
@pytest.mark.parametrize("old", TYPES)
@pytest.mark.parametrize("new", TYPES)
def test_types_convert_with_scale_as_in_torchvision(old: str, new: str) -> None:
    torchvision()
    import torch
    from torchvision.transforms.v2 import functional as reference

    rng = np.random.default_rng(0)
    if old.startswith("f"):
        array = np.concatenate(([0, 1], rng.random(50))).astype(old)
    else:
        high = np.iinfo(old).max
        array = np.concatenate(([0, high], rng.integers(0, high, 50))).astype(old)
    array = array.reshape(1, 4, 13)
    try:
        expected = reference.to_dtype(torch.from_numpy(array), getattr(torch, new), scale=True)
    except RuntimeError:
        with pytest.raises(RuntimeError, match="safely"):
            F.to_dtype(votive.from_numpy(array), getattr(votive, new), scale=True)
        return
    ours = F.to_dtype(votive.from_numpy(array), getattr(votive, new), scale=True).numpy()
    assert ours.dtype == expected.numpy().dtype
    # Half products may round the last bit otherwise.
    bits = 1e-3 if "float16" in (old, new) else 1e-6
    np.testing.assert_allclose(ours.astype(np.float64), expected.numpy().astype(np.float64), rtol=bits)


def test_images_keep_their_class_and_what_is_unknown_is_refused() -> None:
    image = tv_tensors.Image(cases.image())
    video = tv_tensors.Video(np.stack([cases.image()] * 2))
    for out, kind in ((F.hflip(image), "Image"), (F.resize(video, 12), "Video")):
        assert type(out).__name__ == kind
    assert all(isinstance(c, tv_tensors.Image) for c in F.five_crop(image, 5))
    with pytest.raises(TypeError, match="horizontal_flip: takes a tensor image"):
        F.hflip("a picture")
    with pytest.raises(TypeError, match="adjust_hue"):
        F.adjust_hue(tv_tensors.Mask(cases.mask()), 0.1)


@pytest.mark.parametrize("case", [c for c in TABLES if c not in ("posterize", "equalize")])
def test_functionals_are_differentiable(case: str) -> None:
    name, args, options = TABLES[case]
    # Away from 0 and 1, where values are cut off, and no two alike: derivatives jump there.
    inside = 0.05 + 0.9 * cases.image("float64", (3, 24, 31), seed=9)
    inside += np.random.default_rng(2).uniform(0, 0.01, inside.shape)
    x = votive.from_numpy(inside).requires_grad_()
    weight = votive.from_numpy(np.random.default_rng(1).normal(size=x.shape))
    y = getattr(F, name)(x, *args, **options)
    votive.manual_seed(0)
    mix = votive.randn(tuple(y.shape), dtype=votive.float64)
    (y * mix).sum().backward()
    # Along a random direction, by central differences.
    with votive.no_grad():
        far = 1e-7 * weight
        ends = [(getattr(F, name)(x + s * far, *args, **options) * mix).sum() for s in (1, -1)]
    numeric = (ends[0] - ends[1]).item() / 2e-7
    assert (x.grad * weight).sum().item() == pytest.approx(numeric, rel=1e-4, abs=1e-4)


def test_empty_batches_pass_through() -> None:
    x = votive.zeros(0, 3, 24, 31)
    for case, (name, args, options) in TABLES.items():
        y = getattr(F, name)(x, *args, **options)
        assert y.shape[0] == 0, case
        assert y.shape[1:] == STORED[f"{case}/uint8"].shape, case


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: F.resize(x, [3, 4, 5]), ValueError, "1 or 2 elements"),
        (lambda x: F.resize(x, 5, max_size=4), ValueError, "max_size = 4 must be greater"),
        (lambda x: F.resize(x, [5, 6], max_size=9), ValueError, "max_size"),
        (lambda x: F.resize(x, None), ValueError, "max_size must be an int"),
        (lambda x: F.resize(x, 5, "sharp"), ValueError, "interpolation must be one of"),
        (lambda x: F.resize(x, 5, "box"), NotImplementedError, "PIL images only"),
        (lambda x: F.resize(x, 5, "lanczos", antialias=False), ValueError, "antialias=True"),
        (lambda x: F.pad(x, [1, 2, 3]), ValueError, "1, 2 or 4"),
        (lambda x: F.pad(x, "wide"), TypeError, "padding must be"),
        (lambda x: F.pad(x, 1, padding_mode="wrap"), ValueError, "padding_mode must be"),
        (lambda x: F.pad(x, 1, fill=[1, 2]), ValueError, "2 fill values for 3 channels"),
        (lambda x: F.pad(x, 1, [1, 2, 3], "edge"), ValueError, "no fill per channel"),
        (lambda x: F.five_crop(x, 50), ValueError, "larger than the image"),
        (lambda x: F.affine(x, 1, [1], 1.0, 0), ValueError, "two elements"),
        (lambda x: F.affine(x, 1, [1, 1], 0.0, 0), ValueError, "positive"),
        (lambda x: F.affine(x, "1", [1, 1], 1.0, 0), TypeError, "angle must be a number"),
        (lambda x: F.rotate(x, 10.0, "bicubic"), ValueError, "'nearest' or 'bilinear'"),
        (lambda x: F.rotate(x, 10.0, fill=[1, 2]), ValueError, "2 values for 3 channels"),
        (lambda x: F.perspective(x, None, None), ValueError, "coefficients"),
        (lambda x: F.perspective(x, None, None, coefficients=[1]), ValueError, "8 coefficients"),
        (lambda x: F.elastic(x, votive.zeros(1, 2, 2, 2)), ValueError, "shape"),
        (lambda x: F.adjust_hue(x, 0.6), ValueError, "-0.5, 0.5"),
        (lambda x: F.adjust_contrast(x, -1), ValueError, "not be negative"),
        (lambda x: F.adjust_brightness(x[:2], 1), TypeError, "1 or 3 channels"),
        (lambda x: F.posterize(x, 9), TypeError, "0..8"),
        (lambda x: F.solarize(x, 2.0), TypeError, "at most 1"),
        (lambda x: F.gaussian_blur(x, 4), ValueError, "odd"),
        (lambda x: F.gaussian_blur(x, 3, 0.0), ValueError, "positive"),
        (lambda x: F.normalize(x, [0.0], [0.0]), ValueError, "std must not contain 0"),
        (lambda x: F.normalize((x * 255).to(votive.uint8), [0.0], [1.0]), TypeError, "floats"),
        (lambda x: F.rgb_to_grayscale(x, 2), ValueError, "1 or 3"),
        (lambda x: F.permute_channels(x, [0, 0, 1]), ValueError, "is not a permutation"),
        (lambda x: F.to_pil_image(x[None]), ValueError, "C, H, W"),
        (lambda x: F.pil_to_tensor(x), TypeError, "needs a PIL image"),
        (lambda x: F.to_tensor(x), TypeError, "PIL image or an array"),
        (lambda x: F.convert_bounding_box_format(x, "XYXY"), TypeError, "new_format is missing"),
        (lambda x: F.clamp_bounding_boxes(x), ValueError, "format, canvas_size"),
    ],
)
def test_wrong_arguments_are_told(call: Any, error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        call(votive.from_numpy(cases.image("float32")))


@pytest.mark.parity
@pytest.mark.parametrize("mode", ["RGB", "L", "RGBA", "LA", "1", "I", "F", "CMYK", "I;16", "P"])
def test_pil_images_become_tensors_as_in_torchvision(mode: str) -> None:
    torchvision()
    PIL = pytest.importorskip("PIL.Image")
    from torchvision.transforms import functional as old
    from torchvision.transforms.v2 import functional as reference

    image = PIL.fromarray(np.moveaxis(cases.image(), 0, -1))
    image = image.convert("I").convert(mode) if mode == "I;16" else image.convert(mode)
    pairs = [
        (F.pil_to_tensor(image), reference.pil_to_tensor(image)),
        (F.to_tensor(image), old.to_tensor(image)),
        (F.to_image(image), reference.to_image(image)),
    ]
    for ours, expected in pairs:
        assert tuple(ours.shape) == tuple(expected.shape)
        np.testing.assert_array_equal(ours.numpy(), expected.numpy())


@pytest.mark.parity
@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@pytest.mark.parametrize("kind", ["uint8", "float32", "float64"])
def test_tensors_become_pil_images_as_in_torchvision(channels: int, kind: str) -> None:
    torchvision()
    pytest.importorskip("PIL.Image")
    import torch
    from torchvision.transforms.v2 import functional as reference

    array = cases.image(kind, (channels, 5, 7))
    expected = reference.to_pil_image(torch.from_numpy(array))
    for ours in (F.to_pil_image(votive.from_numpy(array)), F.to_pil_image(np.moveaxis(array, 0, -1))):
        assert ours.mode == expected.mode
        np.testing.assert_array_equal(np.asarray(ours), np.asarray(expected))
    if kind == "uint8":
        assert votive.equal(F.pil_to_tensor(ours), to_votive(torch.from_numpy(array)))
