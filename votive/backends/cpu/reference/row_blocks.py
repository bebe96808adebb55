"""Rows of blocks on NumPy: written block by block, and decoded before attention."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....core.blocks import IQ4_VALUES, block_dtype
from ...base import kernel
from ...common.blocks.bits import pack
from ...common.blocks.encode_plain import ENCODE, inverse, records
from ..arrays import Array
from .attention import attention
from .quantized import _wide, decoded

_LEVELS = np.array(IQ4_VALUES, np.float64)
_BETWEEN = (0.5 * (_LEVELS[:-1] + _LEVELS[1:])).astype(np.float32)


def _iq4_nl(x: Array) -> Array:
    """Codes by the scale of the largest number, then the scale with the smallest error, weighed by squares."""
    d = np.take_along_axis(x, np.abs(x).argmax(axis=1)[:, None], axis=1) / np.float32(IQ4_VALUES[0])
    q = np.searchsorted(_BETWEEN, x * inverse(d))
    v, wide = _LEVELS[q], x.astype(np.float64)
    # One after the other, as kernels add: sums in another order may round to another scale.
    qx, qq = (np.cumsum(wide * wide * v * other, axis=1)[:, -1:] for other in (wide, v))
    with np.errstate(invalid="ignore", divide="ignore"):
        d = np.where(qq > 0, (qx / qq).astype(np.float32), d)
    return records("iq4_nl", d=d[:, 0], qs=pack(q, 4, 16))


def _absmax8(name: str, x: Array) -> Array:
    top = np.abs(x).max(axis=1, keepdims=True)
    by = np.float32(127) / top
    codes = np.clip(np.rint(x * np.where(np.isfinite(by), by, np.float32(0))), -127, 127)
    return records(name, d=top[:, 0], qs=codes.astype(np.int8).view(np.uint8))


def _fp8(name: str, x: Array) -> Array:
    import ml_dtypes

    d = np.abs(x).max(axis=1, keepdims=True) / np.float32(448)
    codes = np.clip(x * inverse(d), -448, 448).astype(ml_dtypes.float8_e4m3fn)
    return records(name, d=d[:, 0], qs=codes.view(np.uint8))


_GROUPED: dict[str, Callable[[str, Array], Array]] = {"absmax8": _absmax8, "fp8": _fp8}


@kernel("_block_encode", widen=False)
def block_encode(x: Array, format: block_dtype) -> Array:
    if not x.size:
        return np.empty((*x.shape[:-1], format.row_bytes(x.shape[-1])), np.uint8)
    blocks = np.ascontiguousarray(x).astype(np.float32).reshape(-1, format.block_size)
    whole = np.asarray(np.isfinite(blocks).all(axis=1))
    blocks = np.where(whole[:, None], blocks, np.float32(0))
    with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
        grouped = _GROUPED.get(format.name.partition("_")[0])
        if grouped is not None:
            made = grouped(format.name, blocks)
        else:
            made = _iq4_nl(blocks) if format.name == "iq4_nl" else ENCODE[format.name](blocks)
    for field in ("d", "m"):
        if field in (format.np.names or ()):
            np.putmask(made[field], ~whole, np.nan)
    out: Array = made.view(np.uint8).reshape(*x.shape[:-1], format.row_bytes(x.shape[-1]))
    return out


@kernel("_block_attention", widen=False)
def block_attention(
    q: Array,
    k: Array,
    v: Array,
    mask: Array | None,
    key_format: block_dtype | None,
    value_format: block_dtype | None,
    is_causal: bool,
    scale: float,
) -> tuple[Any, ...]:
    wide = _wide(q)
    keys, values = (
        x.astype(wide.np) if format is None else decoded(x, format, wide)
        for x, format in ((k, key_format), (v, value_format))
    )
    seen = mask if mask is None or mask.dtype == np.bool_ else mask.astype(wide.np)
    out, lse = attention(q.astype(wide.np), keys, values, seen, 0, 0, 0, 0.0, is_causal, scale)
    return out.astype(q.dtype), lse
