"""Scans of lines that one program goes along as a whole: several short ones, or beside each other in memory, at a time.
Lines of any strides are read and written where they lie. Knows strides, no operators.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from .....core import dtype as dt
from .....core.layout import Spec
from ...device import math as m
from ...programs.layouts import last, next_power_of_two
from ...programs.levels import Levels, begin_of, levels, lines_of
from ...programs.lines import shared_program, sought
from ...programs.program import pointer
from ...runtime import here_count
from .rules import _add, _add_exponentials, _chained, _later, _multiply

BLOCK = 4096  # of one line
TILE = 2048  # elements of several lines
ACROSS = 32  # lines beside each other
STEPS = 8  # along lines that lie across memory; longer ones are brought together first, where they are few
SUM, PRODUCT, LOGSUMEXP, EXTREME, RECURRENCE = range(5)


@triton.jit
def _end(v, lane, BN: tl.constexpr):
    return tl.sum(tl.where(lane == BN - 1, v, 0), 1)


@triton.jit
def _scan_tile(
    o, places, x, gain, n, rows, size, middle, blocks,
    x0, x1, x2, sx, g0, g1, g2, sg, o0, o1, o2, so,
    KIND: tl.constexpr, LARGEST: tl.constexpr, REVERSE: tl.constexpr, W: tl.constexpr, WHOLE: tl.constexpr,
    X_ROW: tl.constexpr, X_UNIT: tl.constexpr, O_ROW: tl.constexpr, O_UNIT: tl.constexpr,
    LEVELS: tl.constexpr, SPLIT: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    # Grid: tiles of lines; what lies beyond the end of a line comes after all of it. WHOLE: lines are no longer than
    # the tile. `s` and `t` are what came before: the sum, or a key and its place, or a gain and a value.
    _, inner, outer, there = lines_of(tl.program_id(0), rows, size, blocks, SPLIT, BM)
    x_at = begin_of(inner, outer, middle, x0, x1, x2, LEVELS, X_ROW)[:, None]
    o_at = begin_of(inner, outer, middle, o0, o1, o2, LEVELS, O_ROW)[:, None]
    lane = tl.arange(0, BN)[None, :]
    if KIND == 2:
        s = tl.full((BM,), float("-inf"), W)
    elif KIND == 0 or KIND == 3:
        s = tl.full((BM,), 0, W)
    else:
        s = tl.full((BM,), 1, W)
    t = tl.full((BM,), 0, tl.int32) if KIND == 3 else tl.full((BM,), 0, W)
    for start in range(0, n, BN):
        i = start + lane
        inside = there[:, None] & (i < n)
        at = n - 1 - i if REVERSE else i
        from_ = x_at + (at if X_UNIT else at.to(tl.int64) * sx)
        raw = tl.load(x + from_, mask=inside, other=0)

        if KIND == 0:
            y = tl.associative_scan(raw.to(W), 1, _add)
            if not WHOLE:
                y += s[:, None]
                s = _end(y, lane, BN)
        elif KIND == 1:
            y = tl.associative_scan(raw.to(W), 1, _multiply)
            if not WHOLE:
                y *= s[:, None]
                s = _end(y, lane, BN)
        elif KIND == 2:
            y, y2 = tl.associative_scan((raw.to(W), tl.full((BM, BN), 1, W)), 1, _add_exponentials)
            if not WHOLE:
                y, y2 = _add_exponentials(s[:, None], t[:, None], y, y2)
                s = tl.max(tl.where(lane == BN - 1, y, float("-inf")), 1)
                t = _end(y2, lane, BN)
            y = y + m.f_log(y2)
        elif KIND == 3:
            y, y2 = tl.associative_scan((sought(raw, LARGEST), i + tl.zeros((BM, BN), tl.int32)), 1, _later)
            if not WHOLE:
                held = (start > 0) & (s[:, None] > y)
                y = tl.where(held, s[:, None], y)
                y2 = tl.where(held, t[:, None], y2)
                s = _end(y, lane, BN)
                t = _end(y2, lane, BN)
        else:
            g_at = begin_of(inner, outer, middle, g0, g1, g2, LEVELS, False)[:, None] + at.to(tl.int64) * sg
            g = tl.load(gain + g_at, mask=inside, other=1).to(W)
            y, y2 = tl.associative_scan((g, raw.to(W)), 1, _chained)
            if not WHOLE:
                y2 += y * t[:, None]
                t = _end(y2, lane, BN)
            y = y2

        to = o_at + (at if O_UNIT else at.to(tl.int64) * so)
        if KIND == 3:
            picked = tl.load(x + x_at + (y2 if X_UNIT else y2.to(tl.int64) * sx), mask=inside, other=0)
            tl.store(o + to, picked, mask=inside)
            tl.store(places + to, y2.to(tl.int64), mask=inside)
        else:
            tl.store(o + to, y.to(o.dtype.element_ty), mask=inside)


class Tiles:
    """The launch of a scan along `dim`; `launch(o, places, x, gain)` takes addresses."""

    def __init__(
        self,
        kind: int,
        specs: tuple[Spec, Spec, Spec],
        found: Levels,
        along: list[int],
        n: int,
        w: Any,
        block: int,
        largest: bool,
        reverse: bool,
    ) -> None:
        x, gain, out = specs
        held = TILE if kind < LOGSUMEXP else TILE // 2
        self.across = 0 < found.steps[0][2] < along[0]
        whole = next_power_of_two(n)
        if self.across:
            bn = min(whole, max(held // min(ACROSS, next_power_of_two(found.size)), 1))
        else:
            bn = min(whole, block)
        found.share(max(1, held // bn))
        self.steps, self.tiles = -(-n // bn), found.tiles
        strides = [(*s, a) for s, a in zip(found.steps, along, strict=True)]
        self.numbers = (n, *found.numbers, *strides[0], *strides[1], *strides[2])
        constants = {
            "KIND": kind,
            "LARGEST": largest,
            "REVERSE": reverse,
            "W": w,
            "WHOLE": n <= bn,
            "X_ROW": strides[0][2] == 1,
            "X_UNIT": along[0] == 1,
            "O_ROW": strides[2][2] == 1,
            "O_UNIT": along[2] == 1,
            **found.constants,
            "BN": bn,
        }
        types = [pointer(out.dtype), "*i64", pointer(x.dtype), pointer(gain.dtype), *["i32"] * 5, *["i64"] * 12]
        even = tuple(4 + k for k, v in enumerate(self.numbers) if v % 16 == 0)
        self.grid = (found.tiles,)
        warps = 8 if found.bm * bn >= 4096 else 4
        self.program = shared_program(_scan_tile, types, constants, even, warps=warps)

    def __call__(self, o: int, places: int, x: int, gain: int) -> None:
        self.program(self.grid, o, places, x, gain, *self.numbers)


def tiles(
    kind: int, x: Spec, gain: Spec, out: Spec, dim: int, w: Any, block: int, largest: bool = True, reverse: bool = False
) -> Tiles | None:
    """The launch that scans lines where they lie; None where they had better be brought together before."""
    specs = (x, gain, out)
    if x.numel >= 2**31:
        return None
    moved = [last(s, dim) if s.ndim else s.like((1,)) for s in specs]
    n = moved[0].shape[-1]
    found = levels(moved[0].shape[:-1], [s.strides[:-1] for s in moved], order=0)
    if found is None:
        return None
    along = [s.strides[-1] if n > 1 else 1 for s in moved]
    made = Tiles(kind, specs, found, along, n, w, block, largest, reverse)
    if along[0] != 1 and made.steps > STEPS and made.tiles < here_count():
        return None
    return made


def width(dtype: dt.dtype, x: dt.dtype) -> dt.dtype | None:
    """The type in which running totals of a dtype are kept; None where there is none."""
    if dtype.is_floating_point:
        return dt.float64 if dtype is dt.float64 else dt.float32
    return None if x.is_floating_point else dt.int64
