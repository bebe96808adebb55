"""Image files and frames: what is written is read again, and what is broken is told."""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import votive
from tests.vision import functional_cases as cases

PIL = pytest.importorskip("PIL.Image")

from votive.vision import io as files  # noqa: E402
from votive.vision import utils  # noqa: E402


def encoded(image: Any, format: str, **options: Any) -> Any:
    """A PIL image as the bytes of a file."""
    file = io.BytesIO()
    image.save(file, format=format, **options)
    return votive.from_numpy(np.frombuffer(file.getvalue(), np.uint8).copy())


def picture(mode: str = "RGB") -> Any:
    return PIL.fromarray(np.moveaxis(cases.image(), 0, -1)).convert(mode)


def chw(image: Any) -> Any:
    array = np.asarray(image)
    return votive.from_numpy(np.moveaxis(np.atleast_3d(array), -1, 0).copy())


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("level", [0, 6, 9])
def test_png_gives_back_what_was_written(channels: int, level: int, tmp_path: Path) -> None:
    image = votive.from_numpy(cases.image(shape=(channels, 9, 11)))
    assert votive.equal(files.decode_png(files.encode_png(image, level)), image)
    files.write_png(image, tmp_path / "a.png", level)
    assert votive.equal(files.read_image(tmp_path / "a.png"), image)
    assert votive.equal(files.decode_image(str(tmp_path / "a.png")), image)
    assert votive.equal(files.decode_image(files.read_file(tmp_path / "a.png")), image)


@pytest.mark.parametrize("channels", [1, 3])
def test_jpeg_comes_close_and_is_what_pillow_makes(channels: int, tmp_path: Path) -> None:
    y, x = np.mgrid[:16, :24]
    smooth = np.stack([(x * 8 + y * (3 + c)) % 200 for c in range(channels)]).astype(np.uint8)
    smooth = np.sort(smooth, -1)
    image = votive.from_numpy(smooth)
    for quality, far in ((95, 12), (30, 60)):
        data = files.encode_jpeg(image, quality)
        back = files.decode_jpeg(data)
        assert back.shape == image.shape
        assert (back.int() - image.int()).abs().max() < far
    assert len(files.encode_jpeg(image, 95)) > len(files.encode_jpeg(image, 30))
    files.write_jpeg(image, tmp_path / "a.jpg", 90)
    pillow = np.asarray(PIL.open(tmp_path / "a.jpg"))
    assert votive.equal(files.read_image(tmp_path / "a.jpg"), chw(pillow))
    both = files.decode_jpeg(files.encode_jpeg([image, image]))
    assert len(both) == 2


@pytest.mark.parametrize("mode", ["RGB", "L", "RGBA", "LA", "P", "1"])
def test_modes_say_which_channels_come(mode: str) -> None:
    data = encoded(picture(mode), "PNG")
    own = {"RGB": 3, "L": 1, "RGBA": 4, "LA": 2, "P": 3, "1": 1}[mode]
    assert files.decode_image(data).shape == (own, 24, 31)
    for wanted, channels in (("GRAY", 1), ("GRAY_ALPHA", 2), ("RGB", 3), ("RGB_ALPHA", 4)):
        for name in (wanted, wanted.lower(), files.ImageReadMode[wanted]):
            image = files.decode_png(data, name)
            assert image.shape == (channels, 24, 31)
            assert image.dtype is votive.uint8
    assert votive.equal(files.decode_png(data, "RGBA"), files.decode_png(data, "RGB_ALPHA"))
    converted = picture(mode).convert("RGB")
    assert votive.equal(files.decode_image(data, "RGB"), chw(converted))


def test_sixteen_bits_and_transparent_palettes_are_kept() -> None:
    deep = PIL.fromarray((np.arange(12, dtype=np.uint16) * 5000).reshape(3, 4))
    image = files.decode_png(encoded(deep, "PNG"))
    assert image.dtype is votive.uint16
    assert image[0, 2, 3].item() == 55000
    palette = picture().quantize(8)
    data = encoded(palette, "PNG", transparency=0)
    assert files.decode_png(data).shape == (4, 24, 31)


def test_grey_jpeg_is_the_luma_of_the_file() -> None:
    data = encoded(picture(), "JPEG", quality=90)
    opened = PIL.open(io.BytesIO(data.numpy().tobytes()))
    opened.draft("L", opened.size)
    assert votive.equal(files.decode_jpeg(data, "GRAY"), chw(opened))


def test_an_image_is_turned_as_its_file_says_when_asked() -> None:
    exif = PIL.Exif()
    exif[0x0112] = 6  # turn by 90 degrees
    for decode, format in ((files.decode_jpeg, "JPEG"), (files.decode_png, "PNG")):
        data = encoded(picture(), format, exif=exif)
        assert decode(data).shape == (3, 24, 31)
        assert decode(data, apply_exif_orientation=True).shape == (3, 31, 24)
    assert files.decode_image(data, apply_exif_orientation=True).shape == (3, 31, 24)


def test_webp_and_gif_are_read() -> None:
    webp = encoded(picture(), "WEBP", lossless=True)
    assert votive.equal(files.decode_webp(webp), votive.from_numpy(cases.image()))
    assert votive.equal(files.decode_image(webp), votive.from_numpy(cases.image()))
    still = encoded(picture(), "GIF")
    assert files.decode_gif(still).shape == (3, 24, 31)
    frames = [PIL.new("RGB", (5, 4), (60 * k, 0, 255 - 60 * k)) for k in range(4)]
    moving = encoded(frames[0], "GIF", save_all=True, append_images=frames[1:], duration=50)
    video = files.decode_gif(moving)
    assert video.shape == (4, 3, 4, 5)
    assert video[:, 0, 0, 0].tolist() == [0, 60, 120, 180]
    assert votive.equal(files.decode_image(moving), video)


@pytest.mark.parametrize("ending", [".gif", ".webp", ".png", ""])
def test_frames_are_written_and_read_again(ending: str, tmp_path: Path) -> None:
    plain = np.arange(6, dtype=np.uint8)[:, None, None, None] * 40
    video = votive.from_numpy(np.broadcast_to(plain, (6, 3, 8, 10)).copy())
    target = tmp_path / f"video{ending}"
    files.write_frames(target, video, fps=20)
    frames, info = files.read_frames(target)
    assert votive.equal(frames, video)
    assert info["frames"] == 6
    assert info["fps"] == (None if ending == "" else pytest.approx(20))
    some, _ = files.read_frames(target, start=1, end=5, step=2, mode="GRAY")
    assert some.shape == (2, 1, 8, 10)
    assert some[:, 0, 0, 0].tolist() == [40, 120]


def test_what_cannot_be_read_as_frames_is_told(tmp_path: Path) -> None:
    with pytest.raises(NotImplementedError, match=r"\.mp4 files are not decoded"):
        files.read_frames(tmp_path / "a.mp4")
    with pytest.raises(FileNotFoundError, match="no image files"):
        files.read_frames(tmp_path)
    files.write_png(votive.zeros(3, 2, 2, dtype=votive.uint8), tmp_path / "0.png")
    files.write_png(votive.zeros(3, 2, 3, dtype=votive.uint8), tmp_path / "1.png")
    with pytest.raises(ValueError, match="differ in size"):
        files.read_frames(tmp_path)
    with pytest.raises(ValueError, match=r"no frames in 5\.\.None of 2"):
        files.read_frames(tmp_path, start=5)
    with pytest.raises(ValueError, match="step"):
        files.read_frames(tmp_path, step=0)
    with pytest.raises(ValueError, match="UNCHANGED"):
        files.read_frames(tmp_path, mode="UNCHANGED")
    with pytest.raises(ValueError, match="must end in"):
        files.write_frames(tmp_path / "a.avi", votive.zeros(1, 3, 2, 2, dtype=votive.uint8))
    with pytest.raises(ValueError, match="uint8 frames"):
        files.write_frames(tmp_path / "a.gif", votive.zeros(1, 3, 2, 2))


DAMAGED = {
    "empty": b"",
    "text": b"this is no image at all",
    "png header": b"\x89PNG\r\n\x1a\n" + b"\0" * 20,
    "cut png": None,
    "cut jpeg": None,
}


@pytest.mark.parametrize("kind", DAMAGED)
def test_damaged_files_are_told_and_never_crash(kind: str) -> None:
    raw = DAMAGED[kind]
    if raw is None:
        whole = encoded(picture(), "PNG" if "png" in kind else "JPEG").numpy().tobytes()
        raw = whole[: len(whole) // 3]
    data = votive.from_numpy(np.frombuffer(raw, np.uint8).copy())
    for decode in (files.decode_image, files.decode_png, files.decode_jpeg):
        with pytest.raises(RuntimeError, match=decode.__name__):
            decode(data)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: files.decode_image(x.float()), ValueError, "one-dimensional uint8"),
        (lambda x: files.decode_image([1]), ValueError, "one-dimensional uint8"),
        (lambda x: files.decode_png(files.encode_png(x), "CMYK"), ValueError, "mode must be"),
        (lambda x: files.decode_jpeg(files.encode_png(x)), RuntimeError, "not a JPEG"),
        (lambda x: files.encode_png(x.float()), RuntimeError, "uint8 tensor"),
        (lambda x: files.encode_png(x[0]), RuntimeError, "1 or 3 channels"),
        (lambda x: files.encode_png(x, 10), ValueError, "0..9"),
        (lambda x: files.encode_jpeg(x, 0), ValueError, "1..100"),
        (lambda x: files.encode_jpeg([]), ValueError, "empty"),
        (lambda x: files.decode_jpeg([]), ValueError, "empty"),
        (lambda x: files.write_file("a", x), ValueError, "one-dimensional"),
    ],
)
def test_wrong_arguments_are_told(call: Any, error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        call(votive.from_numpy(cases.image()))


# --- drawing --------------------------------------------------------------------------


@pytest.mark.parity
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"nrow": 3},
        {"padding": 0},
        {"normalize": True},
        {"pad_value": 0.7},
        {"normalize": True, "scale_each": True},
        {"normalize": True, "value_range": (0.2, 0.6)},
    ],
)
def test_grids_agree_with_torchvision(options: dict[str, Any], tmp_path: Path) -> None:
    from tests.vision.reference import to_torch, torchvision

    tv = torchvision()
    images = votive.from_numpy(np.stack([cases.image("float32", seed=s) for s in range(5)]))
    for x in (images, images[:, :1], images[0], images[0, 0], images[:1]):
        ours, expected = utils.make_grid(x, **options), tv.utils.make_grid(to_torch(x), **options)
        np.testing.assert_allclose(ours.numpy(), expected.numpy(), atol=1e-6)
    listed = utils.make_grid(list(images), **options)
    assert votive.equal(listed, utils.make_grid(images, **options))
    utils.save_image(images, tmp_path / "ours.png", **options)
    tv.utils.save_image(to_torch(images), tmp_path / "theirs.png", **options)
    a, b = (np.asarray(PIL.open(tmp_path / f"{n}.png")) for n in ("ours", "theirs"))
    np.testing.assert_array_equal(a, b)


def test_a_grid_lays_images_out_row_by_row() -> None:
    images = votive.arange(5.0).reshape(5, 1, 1, 1)
    grid = utils.make_grid(images, nrow=3, padding=1, pad_value=9.0)
    assert grid[0].tolist() == [
        [9, 9, 9, 9, 9, 9, 9],
        [9, 0, 9, 1, 9, 2, 9],
        [9, 9, 9, 9, 9, 9, 9],
        [9, 3, 9, 4, 9, 9, 9],
        [9, 9, 9, 9, 9, 9, 9],
    ]
    with pytest.raises(TypeError, match="list of tensors"):
        utils.make_grid([1, 2])
    with pytest.raises(TypeError, match="needs a tensor"):
        utils.make_grid("images")
    with pytest.raises(TypeError, match="tuple"):
        utils.make_grid(images, normalize=True, value_range=[0, 1])


BOX_OPTIONS: list[dict[str, Any]] = [
    {},
    {"colors": "red"},
    {"colors": ["red", "#00FF00", (0, 0, 255)], "width": 2},
    {"fill": True, "colors": "blue"},
    {"labels": ["a", "b", "c"]},
    {"labels": ["a", "b", "c"], "fill_labels": True, "label_colors": "white"},
    {"labels": ["a", "b", "c"], "fill_labels": True, "label_background_colors": "yellow"},
]


@pytest.mark.parity
@pytest.mark.parametrize("options", BOX_OPTIONS)
@pytest.mark.parametrize("kind", ["uint8", "float32"])
def test_boxes_are_drawn_as_torchvision_draws_them(kind: str, options: dict[str, Any]) -> None:
    from tests.vision.reference import to_torch, torchvision

    tv = torchvision()
    boxes = votive.tensor([[1.0, 2, 12, 14], [5, 5, 29, 20], [15, 0, 30, 10]])
    if options == {}:
        options = {"colors": [(1, 2, 3), (200, 100, 0), (9, 255, 9)]}
    for shape in ((3, 24, 31), (1, 24, 31)):
        image = votive.from_numpy(cases.image(kind, shape))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # its palette of tensors is deprecated in Pillow
            given = {"colors": "cyan", **options}
            expected = tv.utils.draw_bounding_boxes(to_torch(image), to_torch(boxes), **given)
        ours = utils.draw_bounding_boxes(image, boxes, **given)
        np.testing.assert_allclose(ours.numpy(), expected.numpy(), atol=1e-6)


@pytest.mark.parity
@pytest.mark.parametrize("kind", ["uint8", "float32"])
def test_masks_are_drawn_as_torchvision_draws_them(kind: str) -> None:
    from tests.vision.reference import to_torch, torchvision

    tv = torchvision()
    image = votive.from_numpy(cases.image(kind))
    masks = votive.from_numpy(np.stack([cases.mask() == 1, cases.mask() >= 2, cases.mask() == 3]))
    for m in (masks, masks[0]):
        for alpha, colors in ((0.8, None), (0.3, ["red", "blue", (1, 2, 3)]), (1.0, "lime")):
            expected = tv.utils.draw_segmentation_masks(to_torch(image), to_torch(m), alpha, colors)
            ours = utils.draw_segmentation_masks(image, m, alpha, colors)
            np.testing.assert_allclose(ours.numpy(), expected.numpy(), atol=1e-5)


@pytest.mark.parity
def test_points_are_drawn_as_torchvision_draws_them() -> None:
    from tests.vision.reference import to_torch, torchvision

    tv = torchvision()
    image = votive.from_numpy(cases.image())
    points = votive.tensor([[[3, 4], [20, 10], [12, 20]], [[28, 2], [5, 18], [15, 12]]])
    seen = votive.tensor([[1, 1, 0], [1, 1, 1]]).bool()
    for options in ({}, {"connectivity": [(0, 1), (1, 2)]}, {"radius": 4, "width": 1}):
        for visible in (None, seen):
            expected = tv.utils.draw_keypoints(
                to_torch(image),
                to_torch(points),
                colors="red",
                visibility=None if visible is None else to_torch(visible),
                **options,
            )
            ours = utils.draw_keypoints(image, points, colors="red", visibility=visible, **options)
            np.testing.assert_array_equal(ours.numpy(), expected.numpy())


def test_drawing_leaves_the_image_and_tells_what_it_cannot_draw() -> None:
    image = votive.from_numpy(cases.image())
    before = image.clone()
    boxes = votive.tensor([[1, 1, 5, 5]])
    out = utils.draw_bounding_boxes(image, boxes, colors="red")
    assert votive.equal(image, before)
    assert out[:, 1, 1:6].float().mean(1).tolist() == [255, 0, 0]
    assert votive.equal(out[:, 8:], image[:, 8:])
    with pytest.warns(UserWarning, match="no boxes"):
        assert utils.draw_bounding_boxes(image, votive.zeros(0, 4)) is image
    with pytest.warns(UserWarning, match="no masks"):
        utils.draw_segmentation_masks(image, votive.zeros(0, 24, 31).bool())
    with pytest.warns(UserWarning, match="font_size"):
        utils.draw_bounding_boxes(image, boxes, ["a"], font_size=9)
    for call, words in (
        (lambda: utils.draw_bounding_boxes(image, votive.zeros(1, 8)), "rotated"),
        (lambda: utils.draw_bounding_boxes(image, votive.tensor([[5, 5, 1, 1]])), "box_convert"),
        (lambda: utils.draw_bounding_boxes(image, boxes, ["a", "b"]), "2 labels for 1"),
        (lambda: utils.draw_bounding_boxes(image, boxes, colors=[]), "0 colors"),
        (lambda: utils.draw_bounding_boxes(image[None], boxes), "one image"),
        (lambda: utils.draw_bounding_boxes(image.int(), boxes), "uint8 or float"),
        (lambda: utils.draw_segmentation_masks(image, votive.zeros(2, 2).bool()), "on an image of"),
        (lambda: utils.draw_segmentation_masks(image, votive.zeros(24, 31)), "bool"),
        (lambda: utils.draw_keypoints(image, votive.zeros(2, 2)), "N, K, 2"),
    ):
        with pytest.raises(ValueError, match=words):
            call()
