"""Which bytes of memory bear a mark, and what reading some of them tells. Knows no operators.

A mark is sure where each byte depends on what is followed. Over other memory it is known only that
something in there does: whoever reads all of it reads that too, of a part this cannot be told.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..core.layout import extent, is_dense
from ..tensor import Tensor

# What is known of a tensor: nothing in it is marked, perhaps some, surely some, all of it.
NONE, MAYBE, SOME, ALL = range(4)


@dataclass(frozen=True)
class Region:
    """Bytes of a block of memory: all from `start` to `stop`, or those that `mask` chooses."""

    start: int
    stop: int
    mask: Any = None

    def bits(self, start: int, stop: int) -> np.ndarray:
        """Which of the bytes from `start` to `stop` belong to it."""
        out = np.zeros(stop - start, bool)
        a, b = max(start, self.start), min(stop, self.stop)
        if a < b:
            inside = slice(a - self.start, b - self.start)
            out[a - start : b - start] = True if self.mask is None else self.mask[inside]
        return out

    def meets(self, other: Region) -> bool:
        """Whether they have a byte in common."""
        a, b = max(self.start, other.start), min(self.stop, other.stop)
        if a >= b:
            return False
        if self.mask is None and other.mask is None:
            return True
        return bool((self.bits(a, b) & other.bits(a, b)).any())

    def holds(self, other: Region) -> bool:
        """Whether all bytes of another one belong to it."""
        if self.mask is None:
            return self.start <= other.start and other.stop <= self.stop
        mine = self.bits(other.start, other.stop)
        return bool((mine | ~other.bits(other.start, other.stop)).all())

    def without(self, other: Region) -> list[Region]:
        """What is left of it without another one."""
        if not self.meets(other):
            return [self]
        if other.holds(self):
            return []
        left = self.bits(self.start, self.stop) & ~other.bits(self.start, self.stop)
        return [Region(self.start, self.stop, left)]


def region(t: Tensor, where: np.ndarray | None = None) -> Region | None:
    """The bytes of a tensor's elements, or of those that an array of its shape chooses."""
    shape, strides, size = tuple(t.shape), tuple(t.stride()), int(t.element_size())
    span, start = extent(shape, strides), t._offset * size
    if not span or (where is not None and not where.any()):
        return None
    if is_dense(shape, strides) and (where is None or where.all()):
        return Region(start, start + span * size)
    bits = np.zeros(span, bool)
    seen = np.lib.stride_tricks.as_strided(bits, shape, strides)  # a step is one element
    seen[...] = True if where is None else where
    return Region(start, start + span * size, np.repeat(bits, size))


@dataclass
class Marked:
    """What bears one mark in a block of memory."""

    sure: list[Region] = field(default_factory=list)
    some: list[Region] = field(default_factory=list)
    maybe: list[Region] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.sure or self.some or self.maybe)

    def state(self, t: Tensor) -> int:
        """What is known of a tensor."""
        read = region(t)
        if read is None:
            return NONE
        if any(r.holds(read) for r in self.sure):
            return ALL
        return SOME if any(r.meets(read) for r in self.sure) else self.vague(t)

    def vague(self, t: Tensor) -> int:
        """What is known of a tensor apart from its elements that are surely marked."""
        read = region(t)
        if read is None:
            return NONE
        if any(read.holds(r) for r in self.some):
            return SOME
        return MAYBE if any(r.meets(read) for r in (*self.some, *self.maybe)) else NONE

    def elements(self, t: Tensor) -> np.ndarray:
        """Which elements of a tensor are surely marked, as an array of its shape."""
        size = int(t.element_size())
        start, span = t._offset * size, extent(tuple(t.shape), tuple(t.stride()))
        bits = np.zeros(span * size, bool)
        for r in self.sure:
            bits |= r.bits(start, start + span * size)
        steps = [s * size for s in t.stride()]
        return np.lib.stride_tricks.as_strided(bits[::size], tuple(t.shape), steps)

    def add(self, t: Tensor, state: int, where: np.ndarray | None = None) -> None:
        """Mark a tensor, or elements of it."""
        new = region(t, where)
        into = {ALL: self.sure, SOME: self.some, MAYBE: self.maybe}.get(state)
        if into is None or new is None or any(r.holds(new) for r in self.sure):
            return
        into.append(new)

    def overwrite(self, t: Tensor) -> None:
        """A tensor was written to: what was there is gone."""
        gone = region(t)
        if gone is None:
            return
        self.sure = [left for r in self.sure for left in r.without(gone)]
        self.maybe = [left for r in self.maybe for left in r.without(gone)]
        # Of what is cut into it is no longer known whether the rest was meant.
        self.maybe += [left for r in self.some if r.meets(gone) for left in r.without(gone)]
        self.some = [r for r in self.some if not r.meets(gone)]
