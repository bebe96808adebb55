"""Running sums, products, extremes and recurrences along a dimension. Lines that are few and long
are cut into parts: each part is summed up, the sums are scanned, and the parts begin from them;
sums and products are read only once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import triton
import triton.language as tl

from .....core import dtype as dt
from .....core.layout import Spec
from ....common.slot import Slot
from ...device import math as m
from ...programs.copy import copy_view
from ...programs.fill import bits, fill_view
from ...programs.gather import taken
from ...programs.index_space import cached_by_spec, word
from ...programs.layouts import next_power_of_two, row_stride, view_with_dim_last
from ...programs.lines import Lines, cut, key_type, lines, ordered, scratch, shared_program, sought
from ...programs.program import TYPE, Program, pointer
from ...programs.types import Run, floats
from ...rows import cuda
from ...runtime import here_count
from ...runtime.views import View, empty
from .rules import _add, _add_exponentials, _chained, _later, _multiply
from .single_pass import MOST, Once
from .tiles import EXTREME, LOGSUMEXP, PRODUCT, RECURRENCE, SUM, tiles, width

BLOCK = 4096
PART = 8192  # elements of a part, at least


@triton.jit
def _last(v, lane, BN: tl.constexpr):
    return tl.sum(tl.where(lane == BN - 1, v, 0), 0)


@triton.jit
def _scan(
    o,
    places,
    x,
    gain,
    s_in,
    t_in,
    s_out,
    t_out,
    n,
    sx,
    sg,
    part,
    parts,
    KIND: tl.constexpr,
    LARGEST: tl.constexpr,
    REVERSE: tl.constexpr,
    STORE: tl.constexpr,
    BEGUN: tl.constexpr,
    STATES: tl.constexpr,
    W: tl.constexpr,
    BN: tl.constexpr,
):
    # Grid: (lines, parts of a line). `s` and `t` are the state of a part: the sum, or a key and
    # its place, or a gain and a value. STATES: the input is such states, and so is the result.
    row = tl.program_id(0).to(tl.int64)
    p = tl.program_id(1).to(tl.int64)
    begin = p * part
    end = tl.minimum(begin + part, n)
    lane = tl.arange(0, BN)
    before = row * parts + p - 1
    if KIND == 0:
        s = tl.full((), 0, W)
    elif KIND == 1:
        s = tl.full((), 1, W)
    elif KIND == 2:
        s = tl.full((), float("-inf"), W)
    elif KIND == 3:
        s = tl.full((), 0, W)
    else:
        s = tl.full((), 1, W)
    t = tl.full((), 0, tl.int64) if KIND == 3 else tl.full((), 0, W)
    some = begin > n
    if BEGUN:
        some = p > 0
        s = tl.where(some, tl.load(s_in + before, mask=some, other=0), s)
        if KIND >= 3:
            t = tl.where(some, tl.load(t_in + before, mask=some, other=0), t)
    whole = tl.zeros((BN,), W)
    for start in range(begin, end, BN):
        i = start + lane
        inside = i < end
        at = n - 1 - i if REVERSE else i
        if STATES:
            v = tl.load(x + row * sx + i, mask=inside, other=0)
            v2 = tl.load(gain + row * sx + i, mask=inside, other=0) if KIND >= 3 else v
        else:
            raw = tl.load(x + row * sx + at, mask=inside, other=0)
            v = sought(raw, LARGEST) if KIND == 3 else raw.to(W)
            v2 = v
            if KIND == 3:
                v2 = i
            if KIND == 4:
                v2 = v
                v = tl.load(gain + row * sg + at, mask=inside, other=1).to(W)

        if KIND == 0 and not STORE:  # only the sum is wanted
            whole += tl.where(inside, v, 0)
        elif KIND == 0:
            y = tl.associative_scan(tl.where(inside, v, 0), 0, _add) + s
            s = _last(y, lane, BN)
        elif KIND == 1:
            y = tl.associative_scan(tl.where(inside, v, 1), 0, _multiply) * s
            s = _last(y, lane, BN)
        elif KIND == 2:
            one = tl.full((BN,), 1, W)
            v = tl.where(inside, v, float("-inf"))
            y, y2 = tl.associative_scan((v, tl.where(inside, one, 0)), 0, _add_exponentials)
            y, y2 = _add_exponentials(tl.zeros_like(v) + s, one, y, y2)
            y = y + m.f_log(y2)
            s = _last(y, lane, BN)
        elif KIND == 3:
            low = tl.min(tl.where(inside, v, tl.max(v, 0)), 0)
            key, place = tl.associative_scan((tl.where(inside, v, low), v2.to(tl.int64)), 0, _later)
            held = some & (s > key)
            y = tl.where(held, s, key)
            y2 = tl.where(held, t, place)
            s = tl.sum(tl.where(i == tl.minimum(start + BN, end) - 1, y, 0), 0)
            t = tl.sum(tl.where(i == tl.minimum(start + BN, end) - 1, y2, 0), 0)
            some = start >= begin
        else:
            g, h = tl.associative_scan((tl.where(inside, v, 1), tl.where(inside, v2, 0)), 0, _chained)
            y2 = g * t + h
            y = g * s
            s = _last(y, lane, BN)
            t = _last(y2, lane, BN)

        if STORE:
            if STATES:
                tl.store(o + row * n + i, y, mask=inside)
                if KIND >= 3:
                    tl.store(places + row * n + i, y2, mask=inside)
            elif KIND == 3:
                picked = tl.load(x + row * sx + y2, mask=inside, other=0)
                tl.store(o + row * n + i, picked, mask=inside)
                tl.store(places + row * n + i, y2, mask=inside)
            elif KIND == 4:
                tl.store(o + row * n + at, y2.to(o.dtype.element_ty), mask=inside)
            else:
                tl.store(o + row * n + i, y.to(o.dtype.element_ty), mask=inside)
    if not STORE:
        if KIND == 0:
            s = tl.sum(whole, 0)
        tl.store(s_out + row * parts + p, s)
        if KIND >= 3:
            tl.store(t_out + row * parts + p, t)


_W = {dt.float32: tl.float32, dt.float64: tl.float64, dt.int64: tl.int64, dt.int32: tl.int32}


def _parts(ln: Lines) -> int:
    """Into how many parts lines are cut: few and long ones, so that all processors have work."""
    if ln.rows < 2 * here_count() and ln.n > 2 * PART:
        return min(-(-ln.n // PART), max(8 * here_count() // ln.rows, 1))
    return 1


class _Scan:
    """The launches of a scan over lines."""

    def __init__(
        self,
        kind: int,
        ln: Lines,
        x: dt.dtype,
        gain: dt.dtype,
        out: dt.dtype,
        wide: dt.dtype,
        largest: bool = True,
        reverse: bool = False,
        even: bool = False,
    ) -> None:
        self.kind, self.ln, self.wide = kind, ln, wide
        parts = _parts(ln)
        self.once: Once | None = None
        if parts > 1 and kind in (SUM, PRODUCT, LOGSUMEXP) and ln.n < MOST:
            dense = even and ln.n % 16 == 0
            self.once = Once(kind, ln, x, out, wide, _W[wide], dense)
            return
        self.part, self.parts = cut(ln.n, parts)
        self.second = dt.int64 if kind == EXTREME else wide
        self._flags = {"KIND": kind, "LARGEST": largest, "REVERSE": reverse, "W": _W[wide]}
        self._types = (out, x, gain)
        # Numbers 8 and 11: results lie dense, so lines begin where they are long multiples of 16.
        self._even = (8, 9, 11) if ln.n % 16 == 0 and even else (11,)
        # Pairs take twice the registers.
        small = max(16, min(BLOCK if kind < EXTREME else BLOCK // 4, next_power_of_two(ln.n)))
        self.whole = self._program(STORE=True, BEGUN=self.parts > 1, STATES=False, BN=small)
        if self.parts > 1:
            self.summed = self._program(STORE=False, BEGUN=False, STATES=False, BN=small)
            few = max(16, min(BLOCK, next_power_of_two(self.parts)))
            self.combined = self._program(STORE=True, BEGUN=False, STATES=True, BN=few)

    def _program(self, **flags: Any) -> Program:
        out, x, gain = self._types
        s, t = pointer(self.wide), pointer(self.second)
        if flags["STATES"]:
            first = [s, t, s, t]
        else:
            first = [pointer(out), "*i64", pointer(x), pointer(gain)]
        types = [*first, s, t, s, t, "i64", "i64", "i64", "i64", "i64"]
        even = () if flags["STATES"] else self._even
        warps = 8 if flags["BN"] >= 4096 else 4
        return shared_program(_scan, types, {**self._flags, **flags}, even, warps=warps)

    def __call__(self, o: int, places: int, x: View, sx: int, gain: View, sg: int) -> None:
        if self.once is not None:
            self.once(o, x, sx)
            return
        ln, parts = self.ln, self.parts
        grid = (ln.rows, parts)
        numbers = (ln.n, sx, sg, self.part, parts)
        if parts == 1:
            self.whole(grid, o, places, x.ptr, gain.ptr, o, o, o, o, *numbers)
            return
        s, t, s2, t2 = (scratch(x.spec, ln.rows * parts, d) for d in (self.wide, self.second) * 2)
        ptrs = x.ptr, gain.ptr
        self.summed(grid, o, places, *ptrs, s.ptr, t.ptr, s.ptr, t.ptr, *numbers)
        count = (parts, parts, parts, parts, 1)
        states = s2.ptr, t2.ptr, s.ptr, t.ptr
        self.combined((ln.rows, 1), *states, s.ptr, t.ptr, s.ptr, t.ptr, *count)
        self.whole(grid, o, places, *ptrs, s2.ptr, t2.ptr, s.ptr, t.ptr, *numbers)


def lined_up(outs: list[View], dim: int, run: Callable[..., Any]) -> None:
    """Call `run` with memory for lines that lie dense; what it writes ends up in `outs`."""
    made = []
    for v in outs:
        moved = view_with_dim_last(v, dim) if v.spec.ndim else v
        if not moved.spec.ndim or row_stride(moved.spec) == moved.spec.shape[-1]:
            made.append((moved, moved))
        else:
            made.append((moved, empty(moved.spec.like(moved.spec.shape))))
    run([to for _, to in made])
    for moved, to in made:
        if to is not moved:
            copy_view(moved, to)


def _scanner(
    kind: int, x: Spec, gain: Spec, dim: int, wide: dt.dtype, largest: bool = True, reverse: bool = False
) -> Any:
    """run(outs, x, gain): lines as they lie, or brought together and cut into parts."""
    ln = lines(x, dim)
    long = _parts(ln) > 1
    block = BLOCK if kind < LOGSUMEXP else BLOCK // 4

    def build(out: Spec) -> Any:
        return None if long else tiles(kind, x, gain, out, dim, _W[wide], block, largest, reverse)

    def dense(spec: Spec) -> Spec:
        return spec.like((ln.rows, ln.n))

    find = cached_by_spec(build)
    made: list[Any] = []

    def run(outs: list[View], x: View, gain: View) -> None:
        launch = find(outs[0].spec)
        if launch is not None:
            launch(outs[0].ptr, outs[-1].ptr, x.ptr, gain.ptr)
            return
        v, stride = ln.of(x, dim)
        g, sg = (v, stride) if gain is x else ln.of(gain, dim)
        together = None
        if not long and stride == sg == ln.n:  # now they lie beside each other
            if not made:
                specs = (dense(x.spec), dense(gain.spec), dense(outs[0].spec))
                made.append(tiles(kind, *specs, 1, _W[wide], block, largest, reverse))
            together = made[0]
        if together is not None:
            lined_up(outs, dim, lambda to: together(to[0].ptr, to[-1].ptr, v.ptr, g.ptr))
            return
        scan = parts(x.spec, gain.spec, outs[0].spec)
        lined_up(outs, dim, lambda to: scan(to[0].ptr, to[-1].ptr, v, stride, g, sg))

    @cache
    def parts(x: Spec, gain: Spec, out: Spec) -> _Scan:
        return _Scan(kind, ln, x.dtype, gain.dtype, out.dtype, wide, largest, reverse, ln.even(x, dim))

    return run


def _running(x: Slot, dim: int, dtype: dt.dtype, kind: int) -> Any:
    if x.dtype not in TYPE or dtype not in TYPE:
        return None
    wide = width(dtype, x.dtype)
    if wide is None:
        return None
    if not x.numel:
        return lambda outs, x: None
    scan = _scanner(kind, x.spec, x.spec, dim, wide)
    return lambda outs, x: scan(outs, x, x)


@cuda("cumsum")
def cumsum(x: Slot, dim: int, dtype: dt.dtype) -> Run:
    return _running(x, dim, dtype, SUM)


@cuda("cumprod")
def cumprod(x: Slot, dim: int, dtype: dt.dtype) -> Run:
    return _running(x, dim, dtype, PRODUCT)


@cuda("logcumsumexp", accepts=floats)
def logcumsumexp(x: Slot, dim: int) -> Run:
    return _running(x, dim, x.dtype, LOGSUMEXP)


def _extreme(x: Slot, dim: int, largest: bool) -> Any:
    if not x.numel:
        return lambda outs, x: None
    scan = _scanner(EXTREME, x.spec, x.spec, dim, key_type(x.dtype), largest)
    return lambda outs, x: scan(outs, x, x)


@cuda("_cummax", accepts=ordered)
def cummax(x: Slot, dim: int) -> Run:
    return _extreme(x, dim, True)


@cuda("_cummin", accepts=ordered)
def cummin(x: Slot, dim: int) -> Run:
    return _extreme(x, dim, False)


@cuda("_recurrence", accepts=floats)
def recurrence(gain: Slot, x: Slot, dim: int, reverse: bool) -> Run:
    if gain.shape != x.shape or gain.dtype is not x.dtype:
        return None
    if not x.numel:
        return lambda outs, gain, x: None
    wide = dt.float64 if x.dtype is dt.float64 else dt.float32
    scan = _scanner(RECURRENCE, x.spec, gain.spec, dim, wide, reverse=reverse)
    return lambda outs, gain, x: scan(outs, x, gain)


@cuda("_shift")
def shift(x: Slot, dim: int, by: int, fill: Any) -> Run:
    if word(x.dtype) is None or isinstance(fill, complex):
        return None
    if not x.ndim:
        return lambda outs, x: fill_view(outs[0], fill)
    rules = {dim: lambda p, d, c: f"{c} - {p.arg('by', by)}"}
    find = cached_by_spec(lambda s: taken("shift", x, s.shape, s.strides, rules, fill=True))
    value = bits(fill, x.dtype)
    return lambda outs, x: find(outs[0].spec)(outs[0].ptr, x.ptr, value)
