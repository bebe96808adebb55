"""Resampling by a filter for each phase, natively."""

from __future__ import annotations

from typing import Any

from ....core import dtype as dt
from .rows import OUT, native

_FLOATS = (dt.float32, dt.float64, *dt.HALF)


def _accepts(x: Any, other: Any) -> bool:
    return x.dtype in _FLOATS and other.dtype is x.dtype


@native("_polyphase", "polyphase", accepts=_accepts, optional=True)
def polyphase(x: Any, kernel: Any, orig: int, offset: int, length: int) -> Any:
    return x, kernel, OUT, orig, offset


@native("_polyphase_transposed", "polyphase_transposed", accepts=_accepts, optional=True)
def polyphase_transposed(g: Any, kernel: Any, orig: int, offset: int, length: int) -> Any:
    return g, kernel, OUT, orig, offset


@native("_polyphase_products", "polyphase_products", accepts=_accepts, optional=True)
def polyphase_products(g: Any, x: Any, orig: int, offset: int, new: int, taps: int) -> Any:
    return g, x, OUT, orig, offset
