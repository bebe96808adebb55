"""Lines of tensors at up to three levels of strides, and tiles of several lines. Knows strides, no operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import triton
import triton.language as tl

from .layouts import next_power_of_two
from .tiles import merge_neighbours

SPLIT = 32  # neighbouring lines from which on no tile has lines of two kinds


@triton.jit
def lines_of(tile, rows, size, blocks, SPLIT: tl.constexpr, BM: tl.constexpr):
    """(numbers of a tile's lines, their places in the last level and in those above, which of them there are)."""
    lane = tl.arange(0, BM)
    if SPLIT:
        outer = tile // blocks
        inner = tile % blocks * BM + lane
        row = outer * size + inner
        there = inner < size
        outer = outer + lane * 0
    else:
        row = tile * BM + lane
        there = row < rows
        outer = row // size
        inner = row % size
    return row, inner, outer, there


@triton.jit
def begin_of(inner, outer, middle, s0, s1, s2, LEVELS: tl.constexpr, UNIT: tl.constexpr):
    """Where lines begin. UNIT: neighbours are one element apart."""
    if UNIT:
        at = inner.to(tl.int64)
    else:
        at = inner.to(tl.int64) * s2
    if LEVELS == 2:
        at += outer.to(tl.int64) * s1
    if LEVELS == 3:
        at += (outer // middle).to(tl.int64) * s0 + (outer % middle).to(tl.int64) * s1
    return at


class Levels:
    """Sizes and strides of lines, of several tensors alike: `steps[k]` are the three strides of tensor k."""

    def __init__(self, sizes: list[int], steps: list[list[int]]) -> None:
        self.levels = max(1, len(sizes))
        free = 3 - len(sizes)
        self.sizes = [1] * free + sizes
        self.rows = self.sizes[0] * self.sizes[1] * self.sizes[2]
        self.middle, self.size = self.sizes[1:]
        self.steps = [[0] * free + s for s in steps]

    def share(self, most: int) -> None:
        """Cut lines into tiles of at most so many."""
        self.split = self.levels == 1 or self.size >= SPLIT
        self.bm = min(most, next_power_of_two(self.size if self.split else self.rows))
        self.blocks = -(-self.size // self.bm)
        self.tiles = self.rows // self.size * self.blocks if self.split else -(-self.rows // self.bm)

    @property
    def numbers(self) -> tuple[int, ...]:
        """What `lines_of` and `begin_of` are given."""
        return self.rows, self.size, self.middle, self.blocks

    @property
    def constants(self) -> dict[str, Any]:
        """What is fixed when a kernel is compiled."""
        return {"LEVELS": self.levels, "SPLIT": self.split, "BM": self.bm}


def levels(shape: Sequence[int], strides: Sequence[Sequence[int]], order: int | None = None) -> Levels | None:
    """The lines of tensors, whose other dimensions these are; None where they have more levels than three.
    `order`: the tensor in whose memory neighbours shall lie beside each other; else lines stay as they are numbered.
    """
    dims = [d for d in range(len(shape)) if shape[d] != 1]
    if order is not None:
        dims.sort(key=lambda d: -strides[order][d])
    sizes, steps, _ = merge_neighbours(shape, dims, strides)
    return Levels(sizes, steps) if len(sizes) <= 3 else None
