"""The steps of one layer as prepared launches. Knows addresses and sizes, not tensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .....core import dtype as dt
from .....core.layout import Layout, Spec
from ....common.recurrent import Geometry
from ... import precision
from ... import runtime as rt
from ...programs.program import Program, pointer
from ...programs.types import wide
from ...runtime.tables import Table
from ...runtime.views import View, empty, zero
from . import choice
from .choice import Tiling
from .gates import MODES
from .held import held_backward, held_forward
from .shift import bias_sums, lstm_states, shift_rows
from .streamed import streamed_backward, streamed_forward

COLUMNS = 128


class _Cooperative(Program):
    __slots__ = ()
    cooperative = True


@dataclass(frozen=True)
class Sizes:
    """What the walks of all layers of a network share."""

    g: Geometry
    like: Spec  # of the input
    packed: bool

    @property
    def dtype(self) -> dt.dtype:
        return self.like.dtype

    @property
    def wide(self) -> dt.dtype:
        return dt.compute_type(self.dtype)

    def scratch(self, count: int, dtype: dt.dtype) -> View:
        return empty(Spec(Layout((count,)), dtype, self.like.device))

    def offsets(self) -> Table | None:
        """Where the rows of each step begin."""
        if not self.packed:
            return None
        return Table(np.cumsum([0, *self.g.sizes]).astype(np.int32), self.like.device.index or 0)


def tiling(s: Sizes, back: bool) -> Tiling:
    """How a layer is shared by programs; those that wait for each other need a GPU."""
    g = s.g
    most = 1 if rt.runtime.driver.emulated else rt.here_count()
    found = choice.held(g.batch, g.hidden, g.gates, g.directions, s.dtype, most)
    return found or choice.streamed(g.batch, g.hidden, g.gates, g.directions, s.dtype, back, rt.here_count())


def _precision(dtype: dt.dtype) -> str:
    if dtype is dt.float32:
        return "tf32" if precision.convolutions.allow_tf32 else "tf32x3"
    return "ieee"


class _Walk:
    """What both passes share: the grid, and how programs wait for each other."""

    def __init__(self, s: Sizes, tile: Tiling, offsets: Table | None) -> None:
        self.s, self.tile, self.offsets = s, tile, offsets
        g = s.g
        self.steps = len(g.sizes)
        self.grid = (tile.slices, tile.groups, g.directions)
        self.waits = tile.slices > 1 and self.may_wait
        # With one slice nobody waits, and one launch serves.
        self.at_once = self.waits or tile.slices == 1
        self.programs: dict[bool, Program] = {}
        self.fixed: dict[str, Any] = {"MODE": MODES[g.mode], "PACKED": s.packed, "WIDE": wide(s.dtype)}
        self.fixed |= {"BM": tile.bm, "BH": tile.bh, "BK": tile.bk}
        if tile.held:
            self.fixed |= {"SLICED": tile.slices > 1, "THREADS": 32 * tile.warps}
        else:
            self.fixed |= {"WHOLE": self.at_once, "WAITS": self.waits, "PRECISION": _precision(s.dtype)}

    @property
    def may_wait(self) -> bool:
        """Whether all programs run at the same time."""
        slices, groups, directions = self.grid
        return not rt.runtime.driver.emulated and slices * groups * directions <= rt.here_count()

    def program(self, fn: Any, types: list[str], constants: dict[str, Any], numbers: tuple[int | None, ...]) -> None:
        """Prepare the launches; `numbers` are the last arguments, None where they are known with each call only."""
        kind = _Cooperative if self.waits else Program
        first = len(types) - len(numbers)
        for even in (False, True):
            made = kind(fn, types, {**self.fixed, **constants}, warps=self.tile.warps, stages=self.tile.stages)
            known = [even if v is None else v % 16 == 0 for v in numbers]
            made.divisible = tuple(first + i for i, yes in enumerate(known) if yes)
            self.programs[even] = made

    def launcher(self, *numbers: int) -> Program:
        """The program for distances that a call found: multiples of 16, as memory mostly lies, or any."""
        return self.programs[not any(v % 16 for v in numbers)]

    def exchange(self, per_unit: int) -> View:
        """Where programs wait for each other: numbers with their steps, or counters."""
        g = self.s.g
        if not self.tile.held:
            made = self.s.scratch(g.directions * self.tile.groups * 8, dt.int32)
        else:
            made = self.s.scratch(2 * g.directions * g.batch * g.hidden * per_unit, dt.int64)
        zero(made)
        return made

    @property
    def where(self) -> int:
        return self.offsets.ptr if self.offsets is not None else 0

    def carry(self) -> View | None:
        """What units hold from launch to launch."""
        g = self.s.g
        if self.tile.held or self.at_once:
            return None
        return self.s.scratch(g.directions * g.batch * g.hidden, self.s.wide)

    def ranges(self, steps: int) -> list[tuple[int, int]]:
        return [(0, steps)] if self.at_once else [(k, k + 1) for k in range(steps)]


class Forward(_Walk):
    """All steps of a layer. `a` holds what the input contributes to the gates, and gets the gates where they are
    kept.
    """

    def __init__(
        self, s: Sizes, tile: Tiling, offsets: Table | None, states: bool, save: bool, biases: bool, a_row: int
    ) -> None:
        super().__init__(s, tile, offsets)
        g = s.g
        x, acc = pointer(s.dtype), pointer(s.wide)
        types = [acc, x, x, x, x, x, x, x, x, acc]
        types += ["*i64", "*i32"] if tile.held else [acc, "*i32", "*i32"]
        rows = g.rows
        self.out_row = g.directions * g.hidden
        self.sizes = (self.steps, g.batch, g.hidden)
        self.strides = (a_row, rows * a_row)
        self.cells_dir = rows * g.hidden
        constants = {"BIAS": biases, "STATES": states, "SAVE": save}
        before = [] if tile.held else ["i32", "i32"]
        types += [*before, "i32", "i32", "i32", *["i64"] * (7 if tile.held else 8)]
        known = (g.batch, g.hidden, *self.strides, None, None, None, self.out_row, self.cells_dir)
        place = () if tile.held else (None,)
        self.program(held_forward if tile.held else streamed_forward, types, constants, (*known, *place))
        self.states = states

    def __call__(
        self, a: int, w: list[View], b_ih: list[View], b_hh: list[View], h0: int, c0: int, out: int, hn: int, cn: int,
        cells: int,
    ) -> None:  # fmt: skip
        s = self.s
        item = s.dtype.itemsize
        far = [_distance(v, item) for v in (w, b_ih, b_hh)]
        bi, bh = (b_ih[0].ptr, b_hh[0].ptr) if b_ih else (out, out)
        needed = self.waits
        exchange = self.exchange(1) if needed else None
        meet = exchange.ptr if exchange else out
        where = self.where or out
        numbers = (*self.sizes, *self.strides, *far, self.out_row, self.cells_dir)
        start = (a, w[0].ptr, bi, bh, h0 or out, c0 or out, out, hn, cn, cells or a)
        if self.tile.held:
            self.launcher(*far)(self.grid, *start, meet, where, *numbers)
            return
        carry = self.carry()
        place = (h0 - out) // item if h0 else 0
        launch = self.launcher(*far, place)
        for begin, end in self.ranges(self.steps):
            held = carry.ptr if carry else a
            launch(self.grid, *start, held, meet, where, begin, end, *numbers, place)


def _distance(views: list[View], item: int) -> int:
    """From the first direction's weights to the second's, in elements."""
    return (views[1].ptr - views[0].ptr) // item if len(views) > 1 else 0


class Backward(_Walk):
    """The gradients by all gates, and by the first states."""

    def __init__(
        self, s: Sizes, tile: Tiling, offsets: Table | None, states: bool, by: tuple[bool, bool, bool], wants: bool
    ) -> None:
        super().__init__(s, tile, offsets)
        g = s.g
        self.wants = wants
        x, acc = pointer(s.dtype), pointer(s.wide)
        types = [x, x, x, acc, acc, x, x, x, x, x, x, x, x, acc]
        types += ["*i64", "*i32"] if tile.held else [acc, "*i32", "*i32"]
        out_row = g.directions * g.hidden
        self.sizes = (self.steps, g.batch, g.hidden)
        self.span = g.rows * g.gates * g.hidden
        self.numbers = (out_row, g.rows * 4 * g.hidden, out_row)
        constants: dict[str, Any] = {"STATES": states, "BY_OUT": by[0], "BY_H": by[1], "BY_C": by[2]}
        if tile.held:
            constants["WANTS"] = wants
        before = [] if tile.held else ["i32", "i32"]
        types += [*before, "i32", "i32", "i32", *["i64"] * 6]
        known = (g.batch, g.hidden, *self.numbers, None, self.span, g.rows * g.hidden)
        self.program(held_backward if tile.held else streamed_backward, types, constants, known)

    def sums(self) -> View:
        """What a launch sums for the biases."""
        g = self.s.g
        return self.s.scratch(g.directions * self.tile.groups * 4 * g.hidden, self.s.wide)

    def __call__(
        self, by: tuple[int, int, int], a: int, cells: int, out: int, w: list[View], h0: int, c0: int, dx: int,
        dh_gates: int, by_h: int, by_c: int, sums: int,
    ) -> None:  # fmt: skip
        s = self.s
        far = _distance(w, s.dtype.itemsize)
        exchange = self.exchange(4 if s.g.kept else 1) if self.waits else None
        meet = exchange.ptr if exchange else out
        where = self.where or out
        start = (
            *[p or out for p in by], a or sums, cells or sums, out, w[0].ptr, h0 or out, c0 or out, dx, dh_gates or dx,
            by_h or out, by_c or out, sums,
        )  # fmt: skip
        numbers = (*self.sizes, *self.numbers, far, self.span, s.g.rows * s.g.hidden)
        launch = self.launcher(far)
        if self.tile.held:
            launch(self.grid, *start, meet, where, *numbers)
            return
        carry = self.carry()
        for begin, end in self.ranges(self.steps + int(self.wants)):
            held = carry.ptr if carry else sums
            launch(self.grid, *start, held, meet, where, begin, end, *numbers)


class BiasSums:
    """The gradients of a layer's biases."""

    def __init__(self, s: Sizes) -> None:
        g, x = s.g, pointer(s.dtype)
        self.s = s
        types = [x, x, pointer(s.wide), "i32", "i32", "i64", "i64"]
        self.launch = Program(bias_sums, types, {"GATES": g.gates, "WIDE": wide(s.dtype), "BN": COLUMNS})
        self.grid = (-(-g.hidden // COLUMNS), g.gates, g.directions)

    def __call__(self, b_ih: list[View], b_hh: list[View], sums: View, groups: int) -> None:
        item = self.s.dtype.itemsize
        far = _distance(b_ih, item), _distance(b_hh, item)
        self.launch(self.grid, b_ih[0].ptr, b_hh[0].ptr, sums.ptr, groups, self.s.g.hidden, *far)


class Shift:
    """Rows one step further on in a direction; see `shift_rows`. Types are those of to, base, source and states."""

    def __init__(self, s: Sizes, types: tuple[dt.dtype, ...], n: int, offsets: Table | None, **flags: bool) -> None:
        self.s, self.n, self.offsets = s, n, offsets
        known = {"BASE": False, "SOURCE": False, "STATES": False, "ENDS": False, **flags}
        signature = [*map(pointer, types), "*i32", *["i32"] * 3, *["i64"] * 4, "i32"]
        constants = {**known, "PACKED": s.packed, "WIDE": wide(s.dtype), "BM": 4, "BN": COLUMNS}
        self.launch = Program(shift_rows, signature, constants)
        self.grid = (len(s.g.sizes), -(-s.g.batch // 4), -(-n // COLUMNS))

    def __call__(
        self,
        walk: int,
        to: tuple[int, int],
        base: tuple[int, int] = (0, 0),
        source: tuple[int, int] = (0, 0),
        states: tuple[int, int] = (0, 0),
    ) -> None:
        four = (to, base, source, states)
        where = self.offsets.ptr if self.offsets is not None else to[0]
        sizes = (len(self.s.g.sizes), self.s.g.batch, self.n)
        self.launch(self.grid, *[p or to[0] for p, _ in four], where, *sizes, *[row for _, row in four], walk)


class States:
    """The states of an LSTM before their projection."""

    def __init__(self, s: Sizes) -> None:
        acc = pointer(s.wide)
        self.count, self.hidden = s.g.rows * s.g.hidden, s.g.hidden
        self.launch = Program(lstm_states, [pointer(s.dtype), acc, acc, "i64", "i32"], {"BN": 1024})

    def __call__(self, to: int, a: int, cells: int) -> None:
        self.launch((-(-self.count // 1024),), to, a, cells, self.count, self.hidden)
