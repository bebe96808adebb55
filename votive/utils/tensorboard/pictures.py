"""Arrays as PNG and WAV files. Knows bytes and arrays, no tensors."""

from __future__ import annotations

import io
import struct
import wave
import zlib
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def _chunk(kind: bytes, raw: bytes) -> bytes:
    return struct.pack(">I", len(raw)) + kind + raw + struct.pack(">I", zlib.crc32(kind + raw))


def png(pixels: Array) -> bytes:
    """A PNG file of bytes (height, width, channels), with 1 to 4 channels."""
    height, width, channels = pixels.shape
    kind = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    lines = np.zeros((height, 1 + width * channels), np.uint8)  # each line begins with its filter: none
    lines[:, 1:] = pixels.reshape(height, -1)
    head = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    parts = [(b"IHDR", head), (b"IDAT", zlib.compress(lines.tobytes(), 6)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, raw) for name, raw in parts)


def wav(samples: Array, rate: int) -> bytes:
    """A WAV file of one channel from numbers between -1 and 1."""
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes((np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes())
    return out.getvalue()


def arranged(image: Array, formats: str) -> Array:
    """An image, or several put into one, as (height, width, channels)."""
    if len(set(formats)) != len(formats) or len(formats) != image.ndim:
        raise ValueError(f"an array of shape {image.shape} cannot have the dimensions {formats!r}.")
    formats = formats.upper()
    if len(formats) == 4:
        return _grid(image.transpose([formats.index(c) for c in "NHWC"]))
    if len(formats) == 3:
        found = image.transpose([formats.index(c) for c in "HWC"])
        return np.repeat(found, 3, 2) if found.shape[2] == 1 else found
    found = image.transpose([formats.index(c) for c in "HW"])
    return np.stack([found] * 3, -1)


def _grid(images: Array) -> Array:
    """Images side by side, eight in a row."""
    n, height, width, channels = images.shape
    if channels == 1:
        images, channels = np.repeat(images, 3, 3), 3
    columns = min(n, 8)
    rows = -(-n // columns)
    made = np.zeros((rows * height, columns * width, channels), images.dtype)
    for i, one in enumerate(images):
        y, x = divmod(i, columns)
        made[y * height : (y + 1) * height, x * width : (x + 1) * width] = one
    return made


def as_bytes(image: Array) -> Array:
    """Bytes as they are, other numbers times 255."""
    scale = 1 if image.dtype == np.uint8 else 255
    return np.clip(image.astype(np.float32) * scale, 0, 255).astype(np.uint8)


def sprite(images: Array) -> Array:
    """Small images (n, height, width, channels) in a square of as many rows as columns."""
    n, height, width, channels = images.shape
    side = int(np.ceil(np.sqrt(n)))
    made = np.zeros((side * height, side * width, channels), images.dtype)
    for i, one in enumerate(images):
        y, x = divmod(i, side)
        made[y * height : (y + 1) * height, x * width : (x + 1) * width] = one
    return made
