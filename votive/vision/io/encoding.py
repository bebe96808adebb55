"""Images as the bytes of PNG and JPEG files."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...core import dtype as dt
from ...surface.interchange import from_numpy
from ...tensor import Tensor
from .raw import write_file


def _encoded(op: str, input: object, format: str, **options: Any) -> Tensor:
    from ..transforms.functional.conversion import to_pil_image

    if not isinstance(input, Tensor) or input.dtype is not dt.uint8:
        given = input.dtype if isinstance(input, Tensor) else type(input).__name__
        raise RuntimeError(f"{op}: needs a uint8 tensor, got {given}.")
    if input.ndim != 3 or input.shape[0] not in (1, 3):
        raise RuntimeError(f"{op}: needs (C, H, W) with 1 or 3 channels, got {tuple(input.shape)}.")
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


def encode_jpeg(input: Tensor | Sequence[Tensor], quality: int = 75) -> Any:
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
