"""Numbers to blocks, in pieces of bounded size on several threads. Knows arrays and formats, not files."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from ....core import blocks
from .bits import Array
from .encode_k import ENCODE_K
from .encode_plain import ENCODE

# Elements at a time: fitting has many temporaries per block.
_ENCODE = 1 << 17
ENCODABLE = [*ENCODE, *ENCODE_K]
FITTED = frozenset(ENCODE_K)  # those that importance has an effect on


def encode(x: Array, format: blocks.block_dtype, *, importance: Array | None = None, threads: int = 1) -> Array:
    """Bytes of blocks for rows of numbers: (..., n) gives (..., bytes of a row).

    Simple formats are rounded exactly as ggml's reference does; the K formats are fitted (smallest weighted square
    error found by a search over scales). `importance` weighs the errors of the n columns for them, as the mean
    squares of what the columns are multiplied with; (matrices, n) weighs each matrix of (matrices, rows, n) by its own.
    Pieces are shared by so many `threads`.

    >>> from votive.backends.common.blocks.encode import encode
    >>> encode(np.ones((2, 64), np.float32), votive.q4_0).shape
    (2, 36)
    """
    name, size = format.name.upper(), format.block_size
    if format.name not in ENCODABLE:
        raise ValueError(f"quantize: votive writes no {name}; it writes {', '.join(ENCODABLE).upper()}.")
    if x.ndim == 0 or x.shape[-1] % size:
        raise ValueError(f"quantize: rows must be a multiple of {size} long for {name}, got shape {x.shape}.")
    if importance is not None and np.ndim(importance) == 2 and x.ndim == 3 and len(importance) == len(x):
        each = [encode(part, format, importance=w, threads=threads) for part, w in zip(x, importance)]
        return np.stack(each) if each else np.empty((0, x.shape[1], format.row_bytes(x.shape[2])), np.uint8)
    columns = None if importance is None else _columns(importance, format, x.shape[-1])
    flat = x.reshape(-1, size)
    out = np.empty(len(flat), format.np)
    step = _ENCODE // size

    def piece(i: int) -> None:
        part = np.asarray(flat[i : i + step], np.float32)
        weights = None if columns is None else columns[np.arange(i, i + len(part)) % len(columns)]
        out[i : i + step] = _encoded(part, format, weights)

    _each(piece, range(0, len(flat), step), threads)
    return out.view(np.uint8).reshape(*x.shape[:-1], -1)


def _columns(importance: Array, format: blocks.block_dtype, n: int) -> Array:
    """The weights of a row as blocks of it."""
    if format.name not in ENCODE_K:
        fitted = ", ".join(ENCODE_K).upper()
        raise ValueError(
            f"quantize: {format.name.upper()} is rounded, not fitted, so importance has no effect; it weighs {fitted}."
        )
    w = np.asarray(importance, np.float32)
    if w.shape != (n,):
        raise ValueError(f"quantize: importance has one number for each of the {n} columns, got shape {w.shape}.")
    if not (np.isfinite(w) & (w >= 0)).all():
        raise ValueError("quantize: importance holds negative numbers, nan or inf; give mean squares.")
    return w.reshape(-1, format.block_size)


def _each(piece: Callable[[int], None], starts: range, threads: int) -> None:
    """Call `piece` for all starts, on several threads: NumPy lets go of the interpreter."""
    threads = min(threads, len(starts))
    if threads < 2:
        for i in starts:
            piece(i)
        return
    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(piece, starts):  # raises what a piece raised
            pass


def _encoded(x: Array, format: blocks.block_dtype, importance: Array | None) -> Array:
    name = format.name.upper()
    if not np.isfinite(x).all():
        raise ValueError(f"quantize: the data holds nan or inf, for which {name} has no code.")
    with np.errstate(over="ignore", under="ignore"):
        fitted = ENCODE_K.get(format.name)
        records = fitted(x, importance) if fitted is not None else ENCODE[format.name](x)
    for field in ("d", "m", "dmin"):
        if field in (format.np.names or ()) and not np.isfinite(records[field]).all():
            raise ValueError(
                f"quantize: numbers up to {np.abs(x).max():.3g} are too large for the half-"
                f"precision scales of {name}; keep the tensor as F32."
            )
    return records
