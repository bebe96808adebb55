"""Numbers stored in blocks: how the bytes of each format become float32, in NumPy. The reference of every kernel."""

from __future__ import annotations

from . import groups as groups  # enters its formats into the table
from .decode import DECODE, decode_into

__all__ = ["DECODE", "decode_into"]
