"""Numbers stored in blocks: how the bytes of each format become float32, in NumPy. The reference of every kernel."""

from __future__ import annotations

from .decode import DECODE, decode_into

__all__ = ["DECODE", "decode_into"]
