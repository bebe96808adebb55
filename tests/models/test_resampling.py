"""Resizing of 8-bit pictures without pillow gives pillow's bytes."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from votive.models.image_processing import ImageProcessor
from votive.models.resampling import over_white, resampled

NAMES = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic", 4: "box", 5: "hamming"}


def picture(seed: int, channels: int, height: int, width: int) -> np.ndarray:
    """Bytes by a counter, so that they are the same with every version of NumPy."""
    i = np.arange(channels * height * width, dtype=np.uint64) + np.uint64(seed * 1000)
    mixed = (i * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(56)
    return mixed.astype(np.uint8).reshape(channels, height, width)


def pillow() -> object:
    image = pytest.importorskip("PIL.Image")
    import PIL

    if int(PIL.__version__.split(".")[0]) < 13:
        pytest.skip("pillow before 13 filters width and height in another order")
    return image


@pytest.mark.parametrize("resample", sorted(NAMES), ids=NAMES.get)
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_sizes_up_and_down_give_the_bytes_of_pillow(channels: int, resample: int) -> None:
    image = pillow()
    random = np.random.default_rng(channels * 10 + resample)
    for _ in range(60):
        height, width = (int(n) for n in random.integers(1, 120, 2))
        size = tuple(int(n) for n in random.integers(1, 150, 2))
        x = random.integers(0, 256, (channels, height, width)).astype(np.uint8)
        if random.random() < 0.3:
            x = np.where(x > 128, 255, 0).astype(np.uint8)  # filters that overshoot are cut off
        y = np.ascontiguousarray(np.moveaxis(x, 0, -1))
        known = image.fromarray(y[..., 0] if channels == 1 else y)
        want = np.array(known.resize(size[::-1], resample=resample))
        want = want[None] if want.ndim == 2 else np.moveaxis(want, -1, 0)
        np.testing.assert_array_equal(resampled(x, size, resample), want, f"{x.shape} to {size}")


def test_what_shines_through_is_white_as_in_pillow() -> None:
    image = pillow()
    x = picture(3, 4, 64, 64)
    known = image.fromarray(np.ascontiguousarray(np.moveaxis(x, 0, -1)))
    ground = image.new("RGBA", known.size, (255, 255, 255, 255))
    want = np.array(image.alpha_composite(ground, known).convert("RGB"))
    np.testing.assert_array_equal(over_white(x), np.moveaxis(want, -1, 0))


# Of pillow 13's results, so that they are held where it is not installed.
GOLDEN = {
    0: "507c9783adbecb78",
    1: "554ed68ac9e0c164",
    2: "890d93c207358f7d",
    3: "f78e2289c2d49e55",
    4: "fb729b68aa7dd415",
    5: "3acdff5988b6835d",
}


@pytest.mark.parametrize("resample", sorted(NAMES), ids=NAMES.get)
def test_the_bytes_are_those_written_down(resample: int) -> None:
    found = hashlib.sha256()
    for channels, size in [(3, (40, 90)), (3, (200, 11)), (1, (1, 1)), (4, (90, 30)), (3, (30, 70))]:
        found.update(resampled(picture(7, channels, 57, 70), size, resample).tobytes())
    assert found.hexdigest()[:16] == GOLDEN[resample]


def test_other_filters_and_empty_pictures_are_refused() -> None:
    x = picture(0, 3, 4, 4)
    with pytest.raises(ValueError, match=r"resample must be 0 .* got 6"):
        resampled(x, (2, 2), 6)
    with pytest.raises(ValueError, match="height and width"):
        resampled(x, (0, 2), 2)
    with pytest.raises(ValueError, match="height and width"):
        resampled(x[:, :0], (2, 2), 2)


def test_arrays_are_prepared_without_pillow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "PIL", None)
    prepare = ImageProcessor(size={"height": 6, "width": 8}, do_convert_rgb=True)
    found = prepare(picture(1, 4, 20, 30), return_tensors="vt")["pixel_values"]
    assert tuple(found.shape) == (1, 3, 6, 8)
    with pytest.raises(ImportError, match="pip install pillow"):
        prepare(__file__)
