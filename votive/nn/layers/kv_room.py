"""Memory of a growing cache with free positions behind those that are kept, so that adding some copies nothing.

Knows tensors of positions, (batch, heads, positions, anything); neither layers nor what a cache forgets.
"""

from __future__ import annotations

import votive

from ...tensor import Tensor
from .kv_storage import Pair


class Room:
    """Keys and values of a layer, in memory for twice as many."""

    def __init__(self, kept: Pair, count: int) -> None:
        have = kept[0].shape[2]
        # Twice as much as needed: on average a position is copied once.
        self.length = 2 * (have + count) + 32
        self.end = have
        key, value = (
            votive.empty((*k.shape[:2], self.length, k.shape[3]), dtype=k.dtype, device=k.device) for k in kept
        )
        self.parts: Pair = (key, value)
        for part, k in zip(self.parts, kept, strict=True):
            part[:, :, :have] = k
        self.kept = kept  # what ends where the free positions begin

    def fits(self, kept: Pair, count: int) -> bool:
        """Whether `count` positions may be written behind `kept`."""
        if self.kept is not kept or self.end + count > self.length:
            return False
        return not self.parts[0].is_inference() or votive.is_inference_mode_enabled()

    def window(self, size: int) -> Pair:
        """The last positions."""
        start = self.end - size
        key, value = self.parts
        return key[:, :, start : self.end], value[:, :, start : self.end]

    def crop(self, length: int) -> Pair:
        """Keep only the first positions of what is kept; those behind them are free again."""
        size = self.kept[0].shape[2]
        self.end -= size - length
        self.kept = self.window(length)
        return self.kept

    def reorder(self, index: Tensor) -> Pair:
        """Let the samples be those at `index`, in the same memory."""
        for k in self.kept:
            k.copy_(k.index_select(0, index))
        return self.kept


def alike(kept: Pair, new: Pair) -> bool:
    """Whether new positions go behind the kept ones as they are."""
    for k, n in zip(kept, new, strict=True):
        a, b = k.shape, n.shape
        if a[:2] != b[:2] or a[3] != b[3] or k.dtype is not n.dtype or k.device != n.device:
            return False
    return True
