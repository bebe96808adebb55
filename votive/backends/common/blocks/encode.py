"""Numbers to blocks, in pieces of bounded size on several threads. Knows arrays and formats, not files."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from ....core import blocks
from .bits import Array
from .decode_iq import split_scale
from .encode_iq import ENCODE_IQ
from .encode_k import ENCODE_K
from .encode_levels import ENCODE_LEVELS
from .encode_plain import ENCODE

# Elements at a time: fitting has many temporaries per block.
_ENCODE = 1 << 17
_SEARCHED = {**ENCODE_K, **ENCODE_LEVELS, **ENCODE_IQ}
ENCODABLE = [*ENCODE, *_SEARCHED]
FITTED = frozenset(_SEARCHED)  # those that importance has an effect on


def encode(x: Array, format: blocks.block_dtype, *, importance: Array | None = None, threads: int = 1) -> Array:
    """Bytes of blocks for rows of numbers: (..., n) gives (..., bytes of a row).

    Simple formats are rounded exactly as ggml's reference does; the others are fitted (smallest weighted square
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
    return out.view(np.uint8).reshape(*x.shape[:-1], format.row_bytes(x.shape[-1]))


def _columns(importance: Array, format: blocks.block_dtype, n: int) -> Array:
    """The weights of a row as blocks of it."""
    if format.name not in FITTED:
        fitted = ", ".join(_SEARCHED).upper()
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
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        fitted = _SEARCHED.get(format.name)
        records = fitted(x, importance) if fitted is not None else ENCODE[format.name](x)
        # Four words share the scale of IQ1_M.
        scales = [split_scale(records["scales"])] if format.name == "iq1_m" else []
    scales += [records[field] for field in ("d", "m", "dmin", "s") if field in (format.np.names or ())]
    # A search that every scale is too small for finds none.
    lost = (
        fitted is not None
        and "dmin" not in (format.np.names or ())
        and ((np.abs(x).max(axis=1) > 1) & (scales[0].reshape(len(x), -1) == 0).all(axis=1)).any()
    )
    if lost or not all(np.isfinite(values).all() for values in scales):
        raise ValueError(
            f"quantize: numbers up to {np.abs(x).max():.3g} are too large for the half-"
            f"precision scales of {name}; keep the tensor as F32."
        )
    return records
