"""Numbers to blocks and back, in pieces of bounded size. Knows arrays and types, not files."""

from __future__ import annotations

import numpy as np

from ...backends.common import blocks
from ...backends.common.blocks.bits import Array
from ...backends.common.blocks.encode import ENCODABLE, encode
from ...config import get_num_threads
from ...core import dtype as dt
from .types import READABLE, TensorType, tensor_type

QUANTIZABLE = [name.upper() for name in ENCODABLE]


def dequantize(data: Array, type: str | TensorType, *, dtype: dt.dtype = dt.float32) -> Array:
    """The numbers that blocks of a type stand for: bytes of rows (..., n) give (..., elements).

    Computed in float32 as ggml does, then rounded to `dtype`.

    >>> from votive.io.gguf import dequantize, quantize
    >>> dequantize(quantize(np.arange(32, dtype=np.float32), "Q8_0"), "Q8_0")[30:]
    array([30.029297, 31.00586 ], dtype=float32)
    """
    t = tensor_type(type)
    raw = np.ascontiguousarray(data).view(np.uint8)
    size = t.record.itemsize
    if raw.ndim == 0 or raw.shape[-1] % size:
        raise ValueError(
            f"dequantize: rows of {raw.shape[-1] if raw.ndim else 0} bytes are not a whole number of "
            f"{t.name} blocks, which have {size}."
        )
    out = np.empty((*raw.shape[:-1], raw.shape[-1] // size * t.block), dtype.np)
    decode_into(out.reshape(-1), raw.reshape(-1), t)
    return out


def decode_into(out: Array, raw: Array, t: TensorType, *, big: bool = False) -> None:
    """Decode flat bytes into a flat array of any float dtype; `big` for big-endian blocks."""
    if t.plain:
        out[:] = (swap_bytes(raw, t) if big else raw).view(t.record)
        return
    if t.format is None:
        raise ValueError(f"gguf: {t.name} blocks cannot be read; votive reads {_list(READABLE)}.")
    blocks.decode_into(out, raw, t.format, big=big)


def quantize(data: Array, type: str | TensorType, *, importance: Array | None = None) -> Array:
    """Bytes of blocks for rows of numbers: (..., elements) gives (..., bytes).

    Simple types are rounded exactly as ggml's reference does; the K types are fitted (smallest
    weighted square error found by a search over scales). `importance` weighs the errors of the
    columns for them, as llama.cpp's importance matrices do.

    >>> from votive.io.gguf import quantize
    >>> quantize(np.ones((2, 64), np.float32), "Q4_0").shape
    (2, 36)
    """
    t = tensor_type(type)
    x = np.asarray(data)
    if t.format is not None:
        return encode(x, t.format, importance=importance, threads=get_num_threads())
    if importance is not None:
        raise ValueError(f"quantize: {t.name} holds every number by itself, so importance has no effect.")
    return np.ascontiguousarray(x, dtype=t.record).view(np.uint8)


def swap_bytes(raw: Array, t: TensorType) -> Array:
    """The same elements or blocks in the other byte order."""
    if t.dtype is None:
        raise ValueError(f"gguf: the byte order of {t.name} blocks cannot be changed.")
    flat = np.ascontiguousarray(raw).reshape(-1)
    if t.plain:
        return flat.view(f"u{t.record.itemsize}").byteswap().view(np.uint8)
    return flat.view(t.record.newbyteorder(">")).astype(t.record).view(np.uint8)


def _list(names: list[str]) -> str:
    return ", ".join(names)
