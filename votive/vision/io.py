"""Image files and frames as tensors, read and written by Pillow. Knows bytes, no transform.

Formats: whatever the installed Pillow reads (JPEG, PNG, WebP, GIF, BMP, TIFF, AVIF …). Videos are
folders of frames or animated GIF, WebP and PNG files; containers such as MP4 are not decoded.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np

from ..core import dtype as dt
from ..interchange import from_numpy
from ..ops.registry import F
from ..tensor import Tensor

__all__ = [
    "ImageReadMode",
    "decode_gif",
    "decode_image",
    "decode_jpeg",
    "decode_png",
    "decode_webp",
    "encode_jpeg",
    "encode_png",
    "read_file",
    "read_frames",
    "read_image",
    "write_file",
    "write_frames",
    "write_jpeg",
    "write_png",
]
_CONTAINERS = (".mp4", ".mkv", ".webm", ".avi", ".mov", ".m4v", ".mpg", ".mpeg", ".ogv", ".flv")
_SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".tif", ".tiff", ".ppm", ".pgm", ".gif")


class ImageReadMode(Enum):
    """Which channels an image is read with; UNCHANGED takes those of the file.

    >>> votive.vision.io.ImageReadMode.RGB.name
    'RGB'
    """

    UNCHANGED = 0
    GRAY = 1
    GRAY_ALPHA = 2
    RGB = 3
    RGB_ALPHA = 4


_MODES = {"GRAY": "L", "GRAY_ALPHA": "LA", "RGB": "RGB", "RGB_ALPHA": "RGBA"}


def pillow() -> Any:
    """Pillow's Image module, or an error that says how to get it."""
    try:
        from PIL import Image
    except ImportError:
        raise ImportError(
            "votive.vision reads and writes images with Pillow: pip install 'votive[vision]'."
        ) from None
    return Image


def _mode(op: str, mode: Any) -> ImageReadMode:
    if isinstance(mode, ImageReadMode):
        return mode
    name = str(mode).upper()
    name = {"RGBA": "RGB_ALPHA"}.get(name, name)
    if name not in ImageReadMode.__members__:
        raise ValueError(
            f"{op}: mode must be one of {list(ImageReadMode.__members__)}, got {mode!r}."
        )
    return ImageReadMode[name]


# --- bytes ---------------------------------------------------------------------------------------


def read_file(path: str | Path) -> Tensor:
    """The bytes of a file as a uint8 tensor.

    >>> import tempfile, os
    >>> name = os.path.join(tempfile.mkdtemp(), "a")
    >>> votive.vision.io.write_file(name, votive.tensor([1, 2], dtype=votive.uint8))
    >>> votive.vision.io.read_file(name)
    tensor([1, 2], dtype=votive.uint8)
    """
    return from_numpy(np.frombuffer(Path(path).read_bytes(), np.uint8).copy())


def write_file(filename: str | Path, data: Tensor) -> None:
    """Write a one-dimensional uint8 tensor as bytes; see `read_file`.

    >>> import tempfile, os
    >>> name = os.path.join(tempfile.mkdtemp(), "a")
    >>> votive.vision.io.write_file(name, votive.tensor([104, 105], dtype=votive.uint8))
    >>> os.path.getsize(name)
    2
    """
    Path(filename).write_bytes(_bytes("write_file", data))


def _bytes(op: str, data: Any) -> bytes:
    if isinstance(data, (bytes, bytearray, memoryview)):
        return bytes(data)
    if not isinstance(data, Tensor) or data.dtype is not dt.uint8 or data.ndim != 1:
        given = f"{data.dtype} {tuple(data.shape)}" if isinstance(data, Tensor) else type(data)
        raise ValueError(f"{op}: needs bytes as a one-dimensional uint8 tensor, got {given}.")
    return data.numpy(force=True).tobytes()


# --- reading -------------------------------------------------------------------------------------


def _opened(op: str, data: bytes, formats: Sequence[str] | None = None) -> Any:
    Image = pillow()
    try:
        return Image.open(io.BytesIO(data), formats=formats)
    except (Image.UnidentifiedImageError, OSError, SyntaxError, ValueError) as e:
        kinds = "an image that Pillow knows" if formats is None else f"a {'/'.join(formats)} image"
        raise RuntimeError(f"{op}: these {len(data):,} bytes are not {kinds} ({e}).") from None


def _values(op: str, image: Any, mode: ImageReadMode, turn: bool) -> Tensor:
    """(C, H, W) of an opened image."""
    from .transforms.functional.conversion import pil_to_tensor

    try:
        if mode is ImageReadMode.GRAY and image.format == "JPEG":
            image.draft("L", image.size)  # luma is what the file holds
        image.load()
        if turn:
            from PIL import ImageOps

            image = ImageOps.exif_transpose(image)
    except (OSError, SyntaxError, ValueError, IndexError) as e:
        raise RuntimeError(f"{op}: the image is damaged ({e}).") from None
    if mode is not ImageReadMode.UNCHANGED:
        image = image.convert(_MODES[mode.name])
    elif image.mode in ("P", "PA"):
        alpha = image.mode == "PA" or "transparency" in image.info
        image = image.convert("RGBA" if alpha else "RGB")
    elif image.mode == "1":
        image = image.convert("L")
    return pil_to_tensor(image)  # type: ignore[no-any-return]


def decode_image(
    input: Any, mode: Any = ImageReadMode.UNCHANGED, apply_exif_orientation: bool = False
) -> Tensor:
    """An image (C, H, W) from encoded bytes (a uint8 tensor) or from a file's name.

    An animated GIF gives all of its frames, (T, 3, H, W); other files give the first one.

    >>> data = votive.vision.io.encode_png(votive.zeros(3, 2, 4, dtype=votive.uint8))
    >>> votive.vision.io.decode_image(data).shape
    votive.Size([3, 2, 4])
    """
    op = "decode_image"
    data = Path(input).read_bytes() if isinstance(input, (str, Path)) else _bytes(op, input)
    wanted = _mode(op, mode)
    image = _opened(op, data)
    if image.format == "GIF":
        return _all_frames(op, image, ImageReadMode.RGB if wanted.value == 0 else wanted)
    return _values(op, image, wanted, apply_exif_orientation)


def read_image(
    path: str | Path, mode: Any = ImageReadMode.UNCHANGED, apply_exif_orientation: bool = False
) -> Tensor:
    """An image file as a tensor (C, H, W).

    >>> import tempfile, os
    >>> name = os.path.join(tempfile.mkdtemp(), "a.png")
    >>> votive.vision.io.write_png(votive.ones(1, 2, 2, dtype=votive.uint8), name)
    >>> votive.vision.io.read_image(name, mode="RGB").shape
    votive.Size([3, 2, 2])
    """
    return decode_image(Path(path), mode, apply_exif_orientation)


def _decoder(op: str, formats: Sequence[str], input: Any, mode: Any, turn: bool) -> Any:
    return _values(op, _opened(op, _bytes(op, input), formats), _mode(op, mode), turn)


def decode_png(
    input: Tensor, mode: Any = ImageReadMode.UNCHANGED, apply_exif_orientation: bool = False
) -> Tensor:
    """A PNG image (C, H, W) from its bytes.

    >>> data = votive.vision.io.encode_png(votive.full((1, 1, 1), 7, dtype=votive.uint8))
    >>> votive.vision.io.decode_png(data)
    tensor([[[7]]], dtype=votive.uint8)
    """
    return _decoder("decode_png", ("PNG",), input, mode, apply_exif_orientation)  # type: ignore[no-any-return]


def decode_jpeg(
    input: Any,
    mode: Any = ImageReadMode.UNCHANGED,
    device: Any = "cpu",
    apply_exif_orientation: bool = False,
) -> Any:
    """A JPEG image (C, H, W) from its bytes, or a list of them from a list.

    >>> data = votive.vision.io.encode_jpeg(votive.zeros(3, 8, 8, dtype=votive.uint8))
    >>> votive.vision.io.decode_jpeg(data).shape
    votive.Size([3, 8, 8])
    """
    if isinstance(input, (list, tuple)):
        if not input:
            raise ValueError("decode_jpeg: the list is empty.")
        return [decode_jpeg(i, mode, device, apply_exif_orientation) for i in input]
    image = _decoder("decode_jpeg", ("JPEG",), input, mode, apply_exif_orientation)
    return image.to(device)


def decode_webp(input: Tensor, mode: Any = ImageReadMode.UNCHANGED) -> Tensor:
    """A WebP image (C, H, W) from its bytes; of an animation the first frame.

    >>> import io, PIL.Image
    >>> file = io.BytesIO()
    >>> PIL.Image.new("RGB", (4, 2)).save(file, "WEBP")
    >>> data = np.frombuffer(file.getvalue(), np.uint8).copy()
    >>> votive.vision.io.decode_webp(votive.from_numpy(data)).shape
    votive.Size([3, 2, 4])
    """
    return _decoder("decode_webp", ("WEBP",), input, mode, False)  # type: ignore[no-any-return]


def decode_gif(input: Tensor) -> Tensor:
    """A GIF image (3, H, W) from its bytes, or (T, 3, H, W) if it has more than one frame.

    >>> import io, PIL.Image
    >>> file = io.BytesIO()
    >>> PIL.Image.new("RGB", (4, 2)).save(file, "GIF")
    >>> data = np.frombuffer(file.getvalue(), np.uint8).copy()
    >>> votive.vision.io.decode_gif(votive.from_numpy(data)).shape
    votive.Size([3, 2, 4])
    """
    op = "decode_gif"
    return _all_frames(op, _opened(op, _bytes(op, input), ("GIF",)), ImageReadMode.RGB)


# --- writing -------------------------------------------------------------------------------------


def _encoded(op: str, input: Any, format: str, **options: Any) -> Tensor:
    from .transforms.functional.conversion import to_pil_image

    if not isinstance(input, Tensor) or input.dtype is not dt.uint8:
        given = input.dtype if isinstance(input, Tensor) else type(input).__name__
        raise RuntimeError(f"{op}: needs a uint8 tensor, got {given}.")
    if input.ndim != 3 or input.shape[0] not in (1, 3):
        raise RuntimeError(f"{op}: needs (C, H, W) with 1 or 3 channels, got {tuple(input.shape)}.")
    pillow()
    file = io.BytesIO()
    to_pil_image(input).save(file, format=format, **options)
    return from_numpy(np.frombuffer(file.getvalue(), np.uint8).copy())


def encode_png(input: Tensor, compression_level: int = 6) -> Tensor:
    """The bytes of a PNG file for a uint8 image of 1 or 3 channels; level 0 to 9.

    >>> votive.vision.io.encode_png(votive.zeros(1, 1, 1, dtype=votive.uint8))[1:4].tolist()
    [80, 78, 71]
    """
    if not 0 <= compression_level <= 9:
        raise ValueError(f"encode_png: compression_level must be 0..9, got {compression_level}.")
    return _encoded("encode_png", input, "PNG", compress_level=compression_level)


def encode_jpeg(input: Any, quality: int = 75) -> Any:
    """The bytes of a JPEG file for a uint8 image of 1 or 3 channels, or a list for a list.

    >>> votive.vision.io.encode_jpeg(votive.zeros(1, 8, 8, dtype=votive.uint8))[:2].tolist()
    [255, 216]
    """
    if not 1 <= quality <= 100:
        raise ValueError(f"encode_jpeg: quality must be 1..100, got {quality}.")
    if isinstance(input, (list, tuple)):
        if not input:
            raise ValueError("encode_jpeg: the list is empty.")
        return [encode_jpeg(i, quality) for i in input]
    return _encoded("encode_jpeg", input, "JPEG", quality=quality)


def write_png(input: Tensor, filename: str | Path, compression_level: int = 6) -> None:
    """Write a uint8 image as a PNG file.

    >>> import tempfile, os
    >>> name = os.path.join(tempfile.mkdtemp(), "a.png")
    >>> votive.vision.io.write_png(votive.ones(1, 2, 2, dtype=votive.uint8), name)
    """
    write_file(filename, encode_png(input, compression_level))


def write_jpeg(input: Tensor, filename: str | Path, quality: int = 75) -> None:
    """Write a uint8 image as a JPEG file.

    >>> import tempfile, os
    >>> name = os.path.join(tempfile.mkdtemp(), "a.jpg")
    >>> votive.vision.io.write_jpeg(votive.ones(1, 8, 8, dtype=votive.uint8), name)
    """
    write_file(filename, encode_jpeg(input, quality))


# --- frames --------------------------------------------------------------------------------------


def _frames(op: str, image: Any, mode: ImageReadMode) -> Iterator[tuple[Tensor, float]]:
    """Each frame of an opened file with its duration in seconds."""
    from PIL import ImageSequence

    from .transforms.functional.conversion import pil_to_tensor

    try:
        for frame in ImageSequence.Iterator(image):
            shown = frame.convert(_MODES[mode.name])
            yield pil_to_tensor(shown), frame.info.get("duration", 0) / 1000
    except (OSError, SyntaxError, ValueError) as e:
        raise RuntimeError(f"{op}: the file is damaged ({e}).") from None


def _all_frames(op: str, image: Any, mode: ImageReadMode) -> Tensor:
    found = [frame for frame, _ in _frames(op, image, mode)]
    return found[0] if len(found) == 1 else F.stack(found)  # type: ignore[no-any-return]


def read_frames(
    source: str | Path,
    mode: Any = ImageReadMode.RGB,
    start: int = 0,
    end: int | None = None,
    step: int = 1,
) -> tuple[Tensor, dict[str, Any]]:
    """(T, C, H, W) frames start, start + step, … before `end`, and what is known about them.

    `source` is a folder of images of one size, taken in the order of their names, or an animated
    GIF, WebP or PNG file. The second result has "frames", how many there are in all, and "fps",
    None for a folder.

    >>> import tempfile, os
    >>> name = os.path.join(tempfile.mkdtemp(), "a.gif")
    >>> video = votive.arange(4, dtype=votive.uint8).reshape(4, 1, 1, 1).expand(4, 3, 8, 8) * 60
    >>> votive.vision.io.write_frames(name, video, fps=10)
    >>> frames, info = votive.vision.io.read_frames(name, step=2)
    >>> frames.shape, info
    (votive.Size([2, 3, 8, 8]), {'frames': 4, 'fps': 10.0})
    """
    op, path, wanted = "read_frames", Path(source), _mode("read_frames", mode)
    if wanted is ImageReadMode.UNCHANGED:
        raise ValueError(f"{op}: frames need one mode for all; UNCHANGED is none.")
    if step < 1:
        raise ValueError(f"{op}: step must be at least 1, got {step}.")
    if path.suffix.lower() in _CONTAINERS:
        raise NotImplementedError(
            f"{op}: {path.suffix} files are not decoded here; write their frames to a folder first."
        )
    if path.is_dir():
        files = sorted(p for p in path.iterdir() if p.suffix.lower() in _SUFFIXES)
        if not files:
            raise FileNotFoundError(f"{op}: no image files in the folder {path}.")
        found = [read_image(p, wanted) for p in files[start:end:step]]
        total, fps = len(files), None
    else:
        shown = list(_frames(op, _opened(op, path.read_bytes()), wanted))
        seconds = sum(duration for _, duration in shown)
        total, fps = len(shown), len(shown) / seconds if seconds else None
        found = [frame for frame, _ in shown[start:end:step]]
    sizes = {tuple(frame.shape) for frame in found}
    if len(sizes) > 1:
        raise ValueError(f"{op}: the frames differ in size, {sorted(sizes)}.")
    if not found:
        raise ValueError(f"{op}: no frames in {start}..{end} of {total}.")
    return F.stack(found), {"frames": total, "fps": fps}


def write_frames(target: str | Path, frames: Tensor, fps: float = 10.0) -> None:
    """Write (T, C, H, W) bytes as an animated .gif, .webp or .png, or into a folder of PNG files.

    Animated WebP and PNG are written without loss; GIF reduces each frame to 256 colours.

    >>> import tempfile, os
    >>> folder = os.path.join(tempfile.mkdtemp(), "frames")
    >>> votive.vision.io.write_frames(folder, votive.zeros(2, 3, 4, 4, dtype=votive.uint8))
    >>> sorted(os.listdir(folder))
    ['00000.png', '00001.png']
    """
    from .transforms.functional.conversion import to_pil_image

    op, path = "write_frames", Path(target)
    if frames.ndim != 4 or frames.dtype is not dt.uint8 or not frames.shape[0]:
        raise ValueError(
            f"{op}: needs uint8 frames (T, C, H, W), got {frames.dtype} {tuple(frames.shape)}."
        )
    if fps <= 0:
        raise ValueError(f"{op}: fps must be positive, got {fps}.")
    suffix = path.suffix.lower()
    if not suffix:
        path.mkdir(parents=True, exist_ok=True)
        for k, frame in enumerate(frames):
            write_png(frame, path / f"{k:05d}.png")
        return
    options = {".gif": {}, ".webp": {"lossless": True}, ".png": {}}
    if suffix not in options:
        raise ValueError(f"{op}: the name must end in {sorted(options)} or have no ending.")
    pillow()
    first, *rest = (to_pil_image(frame) for frame in frames)
    first.save(
        path, save_all=True, append_images=rest, duration=round(1000 / fps), loop=0,
        **options[suffix],
    )  # fmt: skip
