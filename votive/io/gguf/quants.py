"""Numbers to blocks and back, in pieces of bounded size. Knows arrays and types, not files."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from ...backends.common import blocks
from ...backends.common.blocks.bits import Array
from ...config import get_num_threads
from ...core import dtype as dt
from .encode import ENCODE
from .encode_k import ENCODE_K
from .types import READABLE, TensorType, tensor_type

# Elements at a time: fitting has many temporaries per block.
_ENCODE = 1 << 17
QUANTIZABLE = [*ENCODE, *ENCODE_K]


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
            f"dequantize: rows of {raw.shape[-1] if raw.ndim else 0} bytes are no whole number of "
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


def quantize(data: Array, type: str | TensorType) -> Array:
    """Bytes of blocks for rows of numbers: (..., elements) gives (..., bytes).

    Simple types are rounded exactly as ggml's reference does; the K types are fitted (smallest
    weighted square error found by a search over scales).

    >>> from votive.io.gguf import quantize
    >>> quantize(np.ones((2, 64), np.float32), "Q4_0").shape
    (2, 36)
    """
    t = tensor_type(type)
    x = np.asarray(data)
    if t.plain:
        return np.ascontiguousarray(x, dtype=t.record).view(np.uint8)
    encode = ENCODE.get(t.name) or ENCODE_K.get(t.name)
    if encode is None:
        raise ValueError(f"quantize: votive writes no {t.name}; it writes {_list(QUANTIZABLE)}.")
    if x.ndim == 0 or x.shape[-1] % t.block:
        raise ValueError(f"quantize: rows must be a multiple of {t.block} long for {t.name}, got shape {x.shape}.")
    flat = x.reshape(-1, t.block)
    out = np.empty(len(flat), t.record)
    step = _ENCODE // t.block

    def piece(i: int) -> None:
        out[i : i + step] = _encoded(np.asarray(flat[i : i + step], np.float32), t, encode)

    _each(piece, range(0, len(flat), step))
    return out.view(np.uint8).reshape(*x.shape[:-1], -1)


def _each(piece: Callable[[int], None], starts: range) -> None:
    """Call `piece` for all starts, on several threads: NumPy lets go of the interpreter."""
    threads = min(get_num_threads(), len(starts))
    if threads < 2:
        for i in starts:
            piece(i)
        return
    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(piece, starts):  # raises what a piece raised
            pass


def swap_bytes(raw: Array, t: TensorType) -> Array:
    """The same elements or blocks in the other byte order."""
    if t.dtype is None:
        raise ValueError(f"gguf: the byte order of {t.name} blocks cannot be changed.")
    flat = np.ascontiguousarray(raw).reshape(-1)
    if t.plain:
        return flat.view(f"u{t.record.itemsize}").byteswap().view(np.uint8)
    return flat.view(t.record.newbyteorder(">")).astype(t.record).view(np.uint8)


def _encoded(x: Array, t: TensorType, encode: Callable[[Array], Array]) -> Array:
    if not np.isfinite(x).all():
        raise ValueError(f"quantize: the data holds nan or inf, for which {t.name} has no code.")
    with np.errstate(over="ignore", under="ignore"):
        records = encode(x)
    for field in ("d", "m", "dmin"):
        if field in (t.record.names or ()) and not np.isfinite(records[field]).all():
            raise ValueError(
                f"quantize: numbers up to {np.abs(x).max():.3g} are too large for the half-"
                f"precision scales of {t.name}; keep the tensor as F32."
            )
    return records


def _list(names: list[str]) -> str:
    return ", ".join(names)
