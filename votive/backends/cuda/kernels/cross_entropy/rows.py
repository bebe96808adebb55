"""Logits of any layout as rows of classes, and how programs share them. Knows strides, no losses."""

from __future__ import annotations

from typing import Any

from .....core.layout import Layout, Spec
from ...programs.layouts import contiguous, last, next_power_of_two
from ...programs.levels import levels
from ...runtime.views import View, empty

LONGEST = 8192  # logits that a program holds at once
TILE = 2048  # of several rows
MOST = 512  # rows of a tile: each takes registers of its own
ACROSS = 64  # rows beside each other in memory that a program reads together, at least
PROGRAMS = 8192  # whose sums are joined


def by_class(spec: Spec) -> Spec:
    """Classes last, targets in front."""
    return last(spec, 1) if spec.ndim > 1 else spec


class Rows:
    """Logits as rows of classes, and a second tensor of the same shape beside them, as tiles. `reads`: whether
    whole rows are looked at.
    """

    def __init__(self, spec: Spec, beside: Spec | None = None, reads: bool = True) -> None:
        x = by_class(spec)
        other = x if beside is None else by_class(beside)
        lead, self.n = x.shape[:-1], x.shape[-1]
        targets = Layout(lead).strides
        found = levels(lead, [targets, x.strides, other.strides])
        self.direct, self.straight = found is not None, True
        if found is None:  # too many levels: rows are copied
            x = x.like(x.shape)
            found = levels(lead, [targets, x.strides, other.strides])
        if found is None:
            other, self.straight = other.like(other.shape), False
            found = levels(lead, [targets, x.strides, other.strides])
        assert found is not None
        self.beside, self.lines = other, found
        self.steps = found.steps[1:]
        self.across = [s.strides[-1] if self.n > 1 else 1 for s in (x, other)]
        self._tiles(reads)

    def _tiles(self, reads: bool) -> None:
        n = next_power_of_two(self.n)
        # Rows that lie beside each other are read beside each other.
        lanes = any(0 < s[2] < a for s, a in zip(self.steps, self.across, strict=True)) and self.n > 1
        if not reads:
            self.bn, rows = 1, MOST
        elif lanes:
            self.bn = min(n, TILE // ACROSS)
            rows = TILE // self.bn
        else:
            self.bn = min(n, LONGEST)
            rows = max(1, TILE // self.bn)
        self.lines.share(min(rows, MOST))
        self.rows, self.tiles = self.lines.rows, self.lines.tiles
        self.programs = min(self.tiles, PROGRAMS)
        held = self.lines.bm * self.bn
        self.warps = 4 if held <= 2048 else 8 if held <= 4096 else 16
        self.constants: dict[str, Any] = {**self.lines.constants, "LANES": lanes and self.n > self.bn, "BN": self.bn}
        self.numbers = (self.n, *self.lines.numbers, self.tiles)

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
