"""Layers of a recurrent network with all their products: what the input contributes to the gates of all steps at once,
and the states behind all steps at once. Knows addresses and sizes, not operators.

With a projection the state is P = W_hr h, and the recurrent product W_hh P is (W_hh W_hr) h: the steps walk as without
one, on the product of the two weights, and all states are projected behind them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .....core import dtype as dt
from ...programs.layouts import contiguous
from ...runtime.tables import Table
from ...runtime.views import View, zero
from ..matmul.kernels import Side
from ..matmul.plan import engine
from .walk import Forward, Shift, Sizes, tiling


@dataclass
class Weights:
    """The weights of a layer, a list by direction of each kind."""

    w_ih: list[View]
    w_hh: list[View]
    b_ih: list[View]
    b_hh: list[View]
    w_hr: list[View]


def grouped(s: Sizes, layer: int, flat: list[View], dense: bool = True) -> Weights:
    """The weights of a layer out of all."""
    g, n = s.g, s.g.per_group
    start = layer * g.directions * n
    each = [flat[start + d * n : start + (d + 1) * n] for d in range(g.directions)]
    kinds = [[contiguous(e[k]) if dense else e[k] for e in each] for k in range(n)]
    w_ih, w_hh = kinds[:2]
    b_ih, b_hh = kinds[2:4] if g.biases else ([], [])
    return Weights(w_ih, w_hh, b_ih, b_hh, kinds[-1] if g.projected else [])


def matrix(dtype: dt.dtype, rows: int, cols: int, row: int = 0) -> Side:
    """A matrix whose rows lie dense, `row` elements apart."""
    return Side(dtype, rows, cols, row or cols, 1, 0)


def flipped(m: Side) -> Side:
    return Side(m.dtype, m.cols, m.rows, m.col, m.row, 0)


def product(a: Side, b: Side, out: Side, add: bool = False) -> Any:
    """A product of matrices by their addresses; `add`: to what is there."""
    if not (a.rows and a.cols and b.cols):
        return lambda *args: None
    run = engine(a, b, out, 1, None, add, "")
    if add:
        return lambda a, b, to: run(a, b, to, add=to, alpha=1.0, beta=1.0)
    return run


class LayerForward:
    """One layer, both directions. `features`: what the layer gets; `row`: the distance of its rows."""

    def __init__(self, s: Sizes, layer: int, row: int, offsets: Table | None, states: bool, save: bool) -> None:
        self.s, self.save, self.states, self.offsets = s, save, states, offsets
        g, kind = s.g, s.dtype
        self.width = g.gates * g.hidden
        self.a_row = g.kept * g.hidden if save and g.kept else self.width
        features = g.directions * g.out if layer else g.features
        weight = matrix(kind, self.width, features)
        x = matrix(kind, g.rows, features, row)
        self.input = product(x, flipped(weight), matrix(s.wide, g.rows, self.width, self.a_row))
        self.walk = Forward(s, tiling(s, False), offsets, states, save, g.biases, self.a_row)
        if g.projected:
            self._project()

    def _project(self) -> None:
        s, g, kind = self.s, self.s.g, self.s.dtype
        w_hr = matrix(kind, g.out, g.hidden)
        self.folded = product(matrix(kind, self.width, g.out), w_hr, matrix(kind, self.width, g.hidden))
        raw, out = g.directions * g.hidden, g.directions * g.out
        self.projection = product(matrix(kind, g.rows, g.hidden, raw), flipped(w_hr), matrix(kind, g.rows, g.out, out))
        self.first = product(
            matrix(kind, g.batch, g.out), flipped(matrix(kind, self.width, g.out)), matrix(s.wide, g.batch, self.width)
        )
        wide = (s.wide,) * 4
        self.begin = Shift(s, wide, self.width, self.offsets, BASE=True, STATES=True)
        self.ends = Shift(s, (kind,) * 4, g.out, self.offsets, ENDS=True)

    def __call__(self, x: int, h0: int, c0: int, w: Weights, a: int, cells: int, out: int, hn: int, cn: int) -> None:
        """`a`, `cells`: where what the gradient needs is kept; 0 for nowhere."""
        s, g = self.s, self.s.g
        wide = s.wide.itemsize
        room = None
        if not a:
            room = s.scratch(g.directions * g.rows * self.a_row, s.wide)
            a = room.ptr
        for d in range(g.directions):
            self.input(x, w.w_ih[d].ptr, a + d * g.rows * self.a_row * wide)
        if not g.projected:
            self.walk(a, w.w_hh, w.b_ih, w.b_hh, h0, c0, out, hn, cn, cells)
            return
        self._projected(h0, c0, w, a, cells, out, hn, cn)

    def _projected(self, h0: int, c0: int, w: Weights, a: int, cells: int, out: int, hn: int, cn: int) -> None:
        s, g = self.s, self.s.g
        item, wide = s.dtype.itemsize, s.wide.itemsize
        raw = s.scratch(g.rows * g.directions * g.hidden, s.dtype)
        last = s.scratch(g.directions * g.batch * g.hidden, s.dtype)
        first = s.scratch(g.batch * self.width, s.wide)
        folded = []
        for d in range(g.directions):
            folded.append(s.scratch(self.width * g.hidden, s.dtype))
            self.folded(w.w_hh[d].ptr, w.w_hr[d].ptr, folded[d].ptr)
            if self.states:
                self.first(h0 + d * g.batch * g.out * item, w.w_hh[d].ptr, first.ptr)
                rows = (a + d * g.rows * self.a_row * wide, self.a_row)
                self.begin(2 * d - 1, rows, base=rows, states=(first.ptr, self.width))
        # What the first state contributes is in the gates already: the walk begins at zero.
        none = s.scratch(g.directions * g.batch * g.hidden, s.dtype)
        zero(none)
        self.walk(a, folded, w.b_ih, w.b_hh, none.ptr, c0, raw.ptr, last.ptr, cn, cells)
        for d in range(g.directions):
            column = out + d * g.out * item
            self.projection(raw.ptr + d * g.hidden * item, w.w_hr[d].ptr, column)
            self.ends(1 - 2 * d, (hn + d * g.batch * g.out * item, g.out), source=(column, g.directions * g.out))
