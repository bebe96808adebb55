"""Gradients of the layers of a recurrent network. Knows addresses and sizes, not operators."""

from __future__ import annotations

from dataclasses import dataclass

from ...runtime.tables import Table
from ...runtime.views import View, zero
from .layers import Weights, flipped, matrix, product
from .walk import Backward, BiasSums, Shift, Sizes, States, tiling


@dataclass(frozen=True)
class Given:
    """Addresses of what a layer's gradient is made of; 0 for what is not there."""

    by_out: int
    by_h: int
    by_c: int
    x: int
    h: int
    c: int
    gates: int
    cells: int
    out: int


@dataclass(frozen=True)
class Wanted:
    """Where a layer's gradients go; 0 and None for what is not wanted."""

    by_input: int
    by_h: int
    by_c: int
    weights: Weights | None


class LayerBackward:
    """One layer, both directions. `by`: which gradients of out, h and c there are; `wants`: input, states, weights."""

    def __init__(
        self,
        s: Sizes,
        layer: int,
        row: int,
        offsets: Table | None,
        states: bool,
        by: tuple[bool, bool, bool],
        wants: tuple[bool, bool, bool],
    ) -> None:
        self.s, self.states, self.by, self.wants, self.offsets = s, states, by, wants, offsets
        g, kind = s.g, s.dtype
        self.width, self.steps = g.gates * g.hidden, len(g.sizes)
        features = g.directions * g.out if layer else g.features
        self.features = features
        dx, w_ih = matrix(kind, g.rows, self.width), matrix(kind, self.width, features)
        out = matrix(kind, g.rows, features)
        self.input = [product(dx, w_ih, out, add=d > 0) for d in range(g.directions)] if wants[0] else []
        walked = ((by[0] or by[1]) if g.projected else by[0], by[1] and not g.projected, by[2])
        self.walk = Backward(s, tiling(s, True), offsets, states, walked, wants[1])
        if wants[2]:
            self.weight = product(flipped(dx), matrix(kind, g.rows, features, row), w_ih)
            self.biases = BiasSums(s)
            self._recurrent()
        if g.projected:
            self._project()

    def _recurrent(self) -> None:
        """The gradient of the recurrent weight: by the states before each step."""
        s, g, kind = self.s, self.s.g, self.s.dtype
        to, row = matrix(kind, self.width, g.out), g.directions * g.out
        self.before = None
        if s.packed:
            self.before = Shift(s, (kind,) * 4, g.out, self.offsets, SOURCE=True, STATES=self.states)
            self.over = product(flipped(matrix(kind, g.rows, self.width)), matrix(kind, g.rows, g.out), to)
            return
        rows = g.rows - g.batch
        self.over = product(flipped(matrix(kind, rows, self.width)), matrix(kind, rows, g.out, row), to)
        first = flipped(matrix(kind, g.batch, self.width))
        self.first = product(first, matrix(kind, g.batch, g.out), to, add=rows > 0)

    def _project(self) -> None:
        s, g, kind = self.s, self.s.g, self.s.dtype
        w_hh, w_hr = matrix(kind, self.width, g.out), matrix(kind, g.out, g.hidden)
        self.folded = product(w_hh, w_hr, matrix(kind, self.width, g.hidden))
        of_out = matrix(kind, g.rows, g.out, g.directions * g.out)
        self.raw = product(of_out, w_hr, matrix(kind, g.rows, g.hidden, g.directions * g.hidden))
        self.back = product(matrix(kind, g.rows, self.width), w_hh, matrix(kind, g.rows, g.out))
        kinds = (kind,) * 4
        self.whole = Shift(s, kinds, g.out, self.offsets, BASE=self.by[0], STATES=self.by[1])
        self.all = Shift(s, kinds, g.out, self.offsets, BASE=self.by[0], SOURCE=True, STATES=self.by[1])
        self.ends = Shift(s, kinds, g.out, self.offsets, ENDS=True)
        self.unprojected = States(s)
        self.projection = product(flipped(of_out), matrix(kind, g.rows, g.hidden), w_hr)

    def __call__(self, x: Given, w: Weights, to: Wanted) -> None:
        s, g = self.s, self.s.g
        span = g.rows * self.width
        dx = s.scratch(g.directions * span, s.dtype)
        dh = s.scratch(g.directions * span, s.dtype) if g.mode == "gru" else dx
        sums = self.walk.sums()
        if g.projected:
            self._walk_projected(x, w, to, dx, sums)
        else:
            by = (x.by_out, x.by_h, x.by_c)
            self.walk(by, x.gates, x.cells, x.out, w.w_hh, x.h, x.c, dx.ptr, dh.ptr, to.by_h, to.by_c, sums.ptr)
        step = span * s.dtype.itemsize
        for d, into in enumerate(self.input):
            into(dx.ptr + d * step, w.w_ih[d].ptr, to.by_input)
        if to.weights is None:
            return
        for d in range(g.directions):
            self.weight(dx.ptr + d * step, x.x, to.weights.w_ih[d].ptr)
            self._by_recurrent(d, dh.ptr + d * step, x, to.weights.w_hh[d])
        if g.biases:
            self.biases(to.weights.b_ih, to.weights.b_hh, sums, self.walk.tile.groups)

    def _by_recurrent(self, d: int, dh: int, x: Given, to: View) -> None:
        s, g = self.s, self.s.g
        item, row = s.dtype.itemsize, g.directions * g.out
        out = x.out + d * g.out * item
        h = x.h + d * g.batch * g.out * item
        if self.before is not None:
            before = s.scratch(g.rows * g.out, s.dtype)
            self.before(2 * d - 1, (before.ptr, g.out), source=(out, row), states=(h if self.states else 0, g.out))
            self.over(dh, before.ptr, to.ptr)
            return
        if self.steps > 1:
            later = g.batch * self.width * item
            self.over(dh + (0 if d else later), out + (g.batch * row * item if d else 0), to.ptr)
        elif not self.states:
            zero(to)
        if self.states:
            at = (g.rows - g.batch) * self.width * item if d else 0
            self.first(dh + at, h, to.ptr)

    def _walk_projected(self, x: Given, w: Weights, to: Wanted, dx: View, sums: View) -> None:
        s, g = self.s, self.s.g
        item, kind, row = s.dtype.itemsize, s.dtype, g.directions * g.out
        whole, raw, folded = x.by_out, s.scratch(g.rows * g.directions * g.hidden, kind), []
        if x.by_h:
            made = s.scratch(g.rows * row, kind)
            whole = made.ptr
        for d in range(g.directions):
            column = d * g.out * item
            by_h = (x.by_h + d * g.batch * g.out * item if x.by_h else 0, g.out)
            if x.by_h:
                base = (x.by_out + column if x.by_out else 0, row)
                self.whole(1 - 2 * d, (whole + column, row), base=base, states=by_h)
            if whole:
                self.raw(whole + column, w.w_hr[d].ptr, raw.ptr + d * g.hidden * item)
            folded.append(s.scratch(self.width * g.hidden, kind))
            self.folded(w.w_hh[d].ptr, w.w_hr[d].ptr, folded[d].ptr)
        unused = s.scratch(g.directions * g.batch * g.hidden, kind)
        zero(unused)
        by = (raw.ptr if whole else 0, 0, x.by_c)
        self.walk(by, x.gates, x.cells, x.out, folded, unused.ptr, x.c, dx.ptr, dx.ptr, unused.ptr, to.by_c, sums.ptr)
        if to.weights is None and not to.by_h:
            return
        back, total = s.scratch(g.rows * g.out, kind), s.scratch(g.rows * row, kind)
        state = s.scratch(g.rows * g.hidden, kind)
        for d in range(g.directions):
            column, rows = d * g.out * item, d * g.rows * g.hidden
            self.back(dx.ptr + d * g.rows * self.width * item, w.w_hh[d].ptr, back.ptr)
            by_h = (x.by_h + d * g.batch * g.out * item if x.by_h else 0, g.out)
            if to.by_h:
                self.ends(2 * d - 1, (to.by_h + d * g.batch * g.out * item, g.out), source=(back.ptr, g.out))
            if to.weights is not None:
                base = (x.by_out + column if x.by_out else 0, row)
                self.all(1 - 2 * d, (total.ptr + column, row), base=base, source=(back.ptr, g.out), states=by_h)
                wide = s.wide.itemsize
                self.unprojected(state.ptr, x.gates + 4 * rows * wide, x.cells + rows * wide)
                self.projection(total.ptr + column, state.ptr, to.weights.w_hr[d].ptr)
