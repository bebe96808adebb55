"""Logits of any layout as rows of classes, and how programs share them. Knows strides, no losses."""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from .....core.layout import Layout, Spec
from ...programs.layouts import contiguous, last, next_power_of_two
from ...programs.tiles import merge_neighbours
from ...runtime.views import View, empty

LONGEST = 8192  # logits that a program holds at once
TILE = 2048  # of several rows
MOST = 512  # rows of a tile: each takes registers of its own
ACROSS = 64  # rows beside each other in memory that a program reads together, at least
SPLIT = 32  # neighbouring rows from which on no tile has rows of two kinds
PROGRAMS = 8192  # whose sums are joined


@triton.jit
def rows_of(tile, rows, size, blocks, SPLIT: tl.constexpr, BM: tl.constexpr):
    """(numbers of a tile's rows, their places in the last level and in those above, which of them there are)."""
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
    """Where rows begin. UNIT: neighbours are one element apart."""
    if UNIT:
        at = inner.to(tl.int64)
    else:
        at = inner.to(tl.int64) * s2
    if LEVELS == 2:
        at += outer.to(tl.int64) * s1
    if LEVELS == 3:
        at += (outer // middle).to(tl.int64) * s0 + (outer % middle).to(tl.int64) * s1
    return at


def by_class(spec: Spec) -> Spec:
    """Classes last, targets in front."""
    return last(spec, 1) if spec.ndim > 1 else spec


class Rows:
    """Logits as rows of classes, and a second tensor of the same shape beside them, as tiles. `reads`: whether
    whole rows are looked at.
    """

    def __init__(self, spec: Spec, beside: Spec | None = None, reads: bool = True) -> None:
        self.permuted = by_class(spec)
        self.beside = self.permuted if beside is None else by_class(beside)
        lead, self.n = self.permuted.shape[:-1], self.permuted.shape[-1]
        self.direct, self.straight = self._arrange(lead), True
        if not self.direct:  # too many levels: rows are copied
            self.permuted = self.permuted.like(self.permuted.shape)
            self.straight = self._arrange(lead)
        if not self.straight:
            self.beside = self.beside.like(self.beside.shape)
            self._arrange(lead)
        self._tiles(reads)

    def _arrange(self, lead: tuple[int, ...]) -> bool:
        """Join dimensions of rows where all tensors and the targets, which lie dense, agree."""
        dims = [d for d in range(len(lead)) if lead[d] != 1]
        steps = [Layout(lead).strides, self.permuted.strides, self.beside.strides]
        sizes, found, _ = merge_neighbours(lead, dims, steps)
        self.levels = max(1, len(sizes))
        if self.levels > 3:
            return False
        sizes = [1] * (3 - len(sizes)) + sizes
        self.rows = sizes[0] * sizes[1] * sizes[2]
        self.middle, self.size = sizes[1], sizes[2]
        self.steps = [[0] * (3 - len(f)) + f for f in found[1:]]
        self.across = [self._step(s) for s in (self.permuted, self.beside)]
        return True

    def _step(self, spec: Spec) -> int:
        return spec.strides[-1] if self.n > 1 else 1

    def _tiles(self, reads: bool) -> None:
        n = next_power_of_two(self.n)
        # Rows that lie beside each other are read beside each other.
        self.lanes = any(0 < s[2] < a for s, a in zip(self.steps, self.across, strict=True)) and self.n > 1
        if not reads:
            self.bn, self.bm = 1, MOST
        elif self.lanes:
            self.bn = min(n, TILE // ACROSS)
            self.bm = TILE // self.bn
        else:
            self.bn = min(n, LONGEST)
            self.bm = max(1, TILE // self.bn)
        split = self.levels == 1 or self.size >= SPLIT
        self.bm = min(self.bm, MOST, next_power_of_two(self.size if split else self.rows))
        self.blocks = -(-self.size // self.bm)
        self.tiles = self.rows // self.size * self.blocks if split else -(-self.rows // self.bm)
        self.programs = min(self.tiles, PROGRAMS)
        held = self.bm * self.bn
        self.warps = 4 if held <= 2048 else 8 if held <= 4096 else 16
        self.constants: dict[str, Any] = {
            "LEVELS": self.levels,
            "SPLIT": split,
            "LANES": self.lanes and self.n > self.bn,
            "BM": self.bm,
            "BN": self.bn,
        }
        self.numbers = (self.n, self.rows, self.size, self.middle, self.blocks, self.tiles)

    def strides(self, which: int = 0) -> tuple[int, ...]:
        """Of rows at three levels, and of classes: 0 the logits, 1 what lies beside them."""
        return (*self.steps[which], self.across[which])

    def units(self, which: int = 0) -> tuple[bool, bool]:
        """Whether neighbouring rows, and classes, are one element apart."""
        return self.steps[which][2] == 1, self.across[which] == 1

    def written(self, v: View) -> View:
        """Memory beside the logits that is written, and then copied if it is not `v`'s."""
        return v if self.straight else empty(self.beside)

    def view(self, v: View) -> View:
        """The logits as they are read."""
        return v if self.direct else contiguous(View(v.ptr, by_class(v.spec), v.storage))
