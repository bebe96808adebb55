"""Bytes of files, and Pillow when it is there."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import numpy as np

from ...core import dtype as dt
from ...serialization.atomic import replacing
from ...surface.interchange import from_numpy
from ...tensor import Tensor


def pillow() -> ModuleType:
    """Pillow's Image module, or an error that says how to get it."""
    try:
        from PIL import Image
    except ImportError:
        raise ImportError("votive.vision reads and writes images with Pillow: pip install 'votive[vision]'.") from None
    return Image


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
    with replacing(filename) as f:
        f.write(raw_bytes("write_file", data))


def raw_bytes(op: str, data: object) -> bytes:
    """The bytes that a one-dimensional uint8 tensor holds."""
    if isinstance(data, (bytes, bytearray, memoryview)):
        return bytes(data)
    if not isinstance(data, Tensor) or data.dtype is not dt.uint8 or data.ndim != 1:
        given = f"{data.dtype} {tuple(data.shape)}" if isinstance(data, Tensor) else type(data)
        raise ValueError(f"{op}: needs bytes as a one-dimensional uint8 tensor, got {given}.")
    return data.numpy(force=True).tobytes()
