"""Encoded images as tensors. Knows Pillow, no transform."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from enum import Enum
from pathlib import Path
from typing import Any

from ...core.device import DeviceLike
from ...ops.registry import F
from ...serialization.container import FileFormatError
from ...tensor import Tensor
from ..types import PILImage
from .raw import pillow, raw_bytes


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


Mode = ImageReadMode | str
Encoded = Tensor | bytes | bytearray | memoryview
PIL_MODES = {"GRAY": "L", "GRAY_ALPHA": "LA", "RGB": "RGB", "RGB_ALPHA": "RGBA"}


def read_mode(op: str, mode: Mode) -> ImageReadMode:
    """The mode of this name."""
    if isinstance(mode, ImageReadMode):
        return mode
    name = str(mode).upper()
    name = {"RGBA": "RGB_ALPHA"}.get(name, name)
    if name not in ImageReadMode.__members__:
        raise ValueError(f"{op}: mode must be one of {list(ImageReadMode.__members__)}, got {mode!r}.")
    return ImageReadMode[name]


def opened(op: str, data: bytes, formats: Sequence[str] | None = None) -> PILImage:
    """A PIL image that is not decoded yet."""
    Image = pillow()
    try:
        return Image.open(io.BytesIO(data), formats=formats)
    except Exception as e:  # decoders let out whatever a damaged header makes them raise
        kinds = "an image that Pillow knows" if formats is None else f"a {'/'.join(formats)} image"
        raise FileFormatError(f"{op}: these {len(data):,} bytes are not {kinds} ({e}).") from None


def _values(op: str, image: PILImage, mode: ImageReadMode, upright: bool) -> Tensor:
    """(C, H, W) of an opened image."""
    from ..transforms.functional.conversion import pil_to_tensor

    try:
        if mode is ImageReadMode.GRAY and image.format == "JPEG":
            image.draft("L", image.size)  # luma is what the file holds
        image.load()
        if upright:
            from PIL import ImageOps

            image = ImageOps.exif_transpose(image)
        if mode is not ImageReadMode.UNCHANGED:
            image = image.convert(PIL_MODES[mode.name])
        elif image.mode in ("P", "PA"):
            alpha = image.mode == "PA" or "transparency" in image.info
            image = image.convert("RGBA" if alpha else "RGB")
        elif image.mode == "1":
            image = image.convert("L")
    except Exception as e:  # as above
        raise FileFormatError(f"{op}: the image is damaged ({e}).") from None
    return pil_to_tensor(image)


def decode_image(
    input: Encoded | str | Path, mode: Mode = ImageReadMode.UNCHANGED, apply_exif_orientation: bool = False
) -> Tensor:
    """An image (C, H, W) from encoded bytes (a uint8 tensor) or from a file's name.

    An animated GIF gives all of its frames, (T, 3, H, W); other files give the first one.

    >>> data = votive.vision.io.encode_png(votive.zeros(3, 2, 4, dtype=votive.uint8))
    >>> votive.vision.io.decode_image(data).shape
    votive.Size([3, 2, 4])
    """
    op = "decode_image"
    data = Path(input).read_bytes() if isinstance(input, (str, Path)) else raw_bytes(op, input)
    wanted = read_mode(op, mode)
    image = opened(op, data)
    if image.format == "GIF":
        return all_frames(op, image, ImageReadMode.RGB if wanted.value == 0 else wanted)
    return _values(op, image, wanted, apply_exif_orientation)


def read_image(path: str | Path, mode: Mode = ImageReadMode.UNCHANGED, apply_exif_orientation: bool = False) -> Tensor:
    """An image file as a tensor (C, H, W).

    >>> import tempfile, os
    >>> name = os.path.join(tempfile.mkdtemp(), "a.png")
    >>> votive.vision.io.write_png(votive.ones(1, 2, 2, dtype=votive.uint8), name)
    >>> votive.vision.io.read_image(name, mode="RGB").shape
    votive.Size([3, 2, 2])
    """
    return decode_image(Path(path), mode, apply_exif_orientation)


def _decoder(op: str, formats: Sequence[str], input: object, mode: Mode, upright: bool) -> Tensor:
    return _values(op, opened(op, raw_bytes(op, input), formats), read_mode(op, mode), upright)


def decode_png(input: Tensor, mode: Mode = ImageReadMode.UNCHANGED, apply_exif_orientation: bool = False) -> Tensor:
    """A PNG image (C, H, W) from its bytes.

    >>> data = votive.vision.io.encode_png(votive.full((1, 1, 1), 7, dtype=votive.uint8))
    >>> votive.vision.io.decode_png(data)
    tensor([[[7]]], dtype=votive.uint8)
    """
    return _decoder("decode_png", ("PNG",), input, mode, apply_exif_orientation)


def decode_jpeg(
    input: Encoded | Sequence[Encoded],
    mode: Mode = ImageReadMode.UNCHANGED,
    device: DeviceLike = "cpu",
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
    return _decoder("decode_jpeg", ("JPEG",), input, mode, apply_exif_orientation).to(device)


def decode_webp(input: Tensor, mode: Mode = ImageReadMode.UNCHANGED) -> Tensor:
    """A WebP image (C, H, W) from its bytes; of an animation the first frame.

    >>> import io, PIL.Image
    >>> file = io.BytesIO()
    >>> PIL.Image.new("RGB", (4, 2)).save(file, "WEBP")
    >>> data = np.frombuffer(file.getvalue(), np.uint8).copy()
    >>> votive.vision.io.decode_webp(votive.from_numpy(data)).shape
    votive.Size([3, 2, 4])
    """
    return _decoder("decode_webp", ("WEBP",), input, mode, False)


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
    return all_frames(op, opened(op, raw_bytes(op, input), ("GIF",)), ImageReadMode.RGB)


def frames_of(op: str, image: PILImage, mode: ImageReadMode) -> Iterator[tuple[Tensor, float]]:
    """Each frame of an opened file with its duration in seconds."""
    from PIL import ImageSequence

    from ..transforms.functional.conversion import pil_to_tensor

    frames = iter(ImageSequence.Iterator(image))
    while True:
        try:
            frame = next(frames, None)
            if frame is None:
                return
            shown = frame.convert(PIL_MODES[mode.name])
        except Exception as e:  # as above
            raise FileFormatError(f"{op}: the file is damaged ({e}).") from None
        yield pil_to_tensor(shown), frame.info.get("duration", 0) / 1000


def all_frames(op: str, image: PILImage, mode: ImageReadMode) -> Tensor:
    """(T, C, H, W), or (C, H, W) of the only frame."""
    found = [frame for frame, _ in frames_of(op, image, mode)]
    if len({tuple(frame.shape) for frame in found}) != 1:
        raise FileFormatError(f"{op}: the file is damaged: its frames differ in size.")
    return found[0] if len(found) == 1 else F.stack(found)
