"""Smallest and largest values and their places. NaN wins over every number, the first of equals is
named. Few long lines are cut into parts that a second launch joins.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from ....core import dtype as dt
from ....core.layout import Layout, Spec
from ...common.slot import Slot
from ..programs.index_space import Bound
from ..programs.layouts import contiguous, next_power_of_two
from ..programs.lines import key_type, ordered, sought
from ..programs.pointwise import _TL, jit
from ..programs.program import TYPE, Program, pointer
from ..programs.reduction import row_reducer
from ..programs.types import Run
from ..programs.walk import Text, Walk
from ..rows import cuda
from ..runtime.views import View, empty

TILE = 2048  # parts of lines that a program joins


@cuda("amax", accepts=ordered)
def amax(x: Slot, dim: tuple[int, ...], keepdim: bool) -> Run:
    return row_reducer(x, dim, x.dtype, "max", compute=dt.int32 if x.dtype is dt.bool_ else None)


@cuda("amin", accepts=ordered)
def amin(x: Slot, dim: tuple[int, ...], keepdim: bool) -> Run:
    return row_reducer(x, dim, x.dtype, "min", compute=dt.int32 if x.dtype is dt.bool_ else None)


@triton.jit
def best_of(key, place, end, FAR: tl.constexpr):
    """(largest key, the first place it has) of rows. A lane that saw nothing has a place beyond the end."""
    top = tl.max(key, 1)
    return top, tl.min(tl.where((key == top[:, None]) & (place < end), place, FAR), 1)


class _Picker:
    """The kernels that look for the best of each line, for one layout."""

    def __init__(self, x: Spec, dims: tuple[int, ...], largest: bool, values: bool, places: bool) -> None:
        self.x, self.largest, self.values, self.places = x, largest, values, places
        self.walk = Walk(x.shape, dims, [x.strides], x.dtype.itemsize)
        self.key = key_type(x.dtype)
        parts = self.walk.split()
        self.each = self.walk.each(parts)
        self.parts = -(-self.walk.terms // self.each)
        self.lowest, self.far = (-(2**63), 2**63 - 1) if self.key is dt.int64 else (-(2**31), 2**31 - 1)

    def first(self) -> Any:
        """What goes over the lines, or over parts of them."""
        walk, text = self.walk, Text()
        ints = ".to(tl.int64)" if walk.far else ""
        kept, gone = text.offset(0, "k", walk.kept_strides[0]), text.offset(0, "g", walk.gone_strides[0])
        offset = " + ".join(p for p in (kept, gone) if p) or "row * 0 + i * 0"

        def step(mask: str) -> list[str]:
            loop = [f"i = (start + lane){ints}", *text.places("g", walk.gone, "i")]
            if mask:
                loop += [f"inside = {mask}", f"v = tl.load(x + ({offset}), mask=inside, other=0)"]
                loop.append(f"better = (inside) & (sought(v, {self.largest}) > best)")
            else:
                loop += [f"v = tl.load(x + ({offset}))", f"better = sought(v, {self.largest}) > best"]
            return [
                *loop,
                f"best = tl.where(better, sought(v, {self.largest}), best)",
                "place = tl.where(better, i, place)",
            ]

        steps = text.steps(walk, self.parts, ints, step)
        begin = steps.index("lane = tl.arange(0, BN)[None, :]") + 1
        lines = [
            f"row = tl.program_id(0){ints} * BM + tl.arange(0, BM)[:, None]",
            *text.places("k", walk.kept, "row"),
            f"best = tl.full((BM, BN), {self.lowest}, {_TL[TYPE[self.key]]})",
            *steps[:begin],
            f"place = (begin + lane + row * 0){ints}",
            *steps[begin:],
            f"top, place = best_of(best, place, end, {2**63 - 1 if walk.far else 2**31 - 1})",
        ]
        return self._bound("pick", lines, text, walk.bm, walk.bn, self.parts, walk.warps)

    def last(self) -> Any:
        """What the parts of lines come to: they lie in order, so the first of equal ones is the first of all."""
        walk, text = self.walk, Text()
        bn = next_power_of_two(self.parts)
        bm = max(1, min(TILE // bn, 32, next_power_of_two(walk.rows)))
        rows, parts = text.arg("ROWS", walk.rows), text.arg("PARTS", self.parts)
        lines = [
            "row = tl.program_id(0) * BM + tl.arange(0, BM)[:, None]",
            "part = tl.arange(0, BN)[None, :]",
            f"inside = (row < {rows}) & (part < {parts})",
            f"at = part * {rows} + row",
            f"best = tl.load(found + at, mask=inside, other={self.lowest})",
            f"place = tl.load(found + ({parts} * {rows} + at), mask=inside, other={2**63 - 1})",
            f"top, place = best_of(best, place, {2**63 - 1}, {2**63 - 1})",
        ]
        return self._bound("pick_of_parts", lines, text, bm, bn, 1, 4)

    def _bound(self, name: str, lines: list[str], text: Text, bm: int, bn: int, parts: int, warps: int) -> Any:
        """The kernel with its numbers, and what it stores: the results, or keys and places of parts."""
        walk = self.walk
        ints = ".to(tl.int64)" if walk.far else ""
        rows = text.arg("ROWS", walk.rows)
        lines = [*lines, f"line = tl.program_id(0){ints} * BM + tl.arange(0, BM)", f"good = line < {rows}"]
        if parts > 1:
            lines += [
                f"to = tl.program_id(1){ints} * {rows} + line",
                "tl.store(found + to, top.to(tl.int64), mask=good)",
                f"tl.store(found + (tl.num_programs(1) * {rows} + to), place.to(tl.int64), mask=good)",
            ]
        else:
            lines += text.places("t", walk.kept, "line")
            lines.append(f"to = {text.offset('o', 't', walk.out_strides) or 'line'}")
            if self.values:
                source = [text.offset("x", "t", walk.kept_strides[0])]
                if walk.gone:
                    source.append(f"place * {text.arg('gs0_0', walk.gone_strides[0][0])}")
                where = " + ".join(p for p in source if p) or "line * 0"
                lines.append(f"v = tl.load(x + ({where}), mask=good, other=0)")
                lines.append("tl.store(values + to, v, mask=good)")
            if self.places:
                lines.append("tl.store(places + to, place.to(tl.int64), mask=good)")
        args = ["values", "places", "found", "x", *text.params]
        text_ = f"@triton.jit\ndef {name}({', '.join(args)}, BM: tl.constexpr, BN: tl.constexpr):\n"
        text_ += "".join(f"    {line}\n" for line in lines)
        kind = pointer(self.x.dtype)
        types = [kind, "*i64", "*i64", kind]
        types += ["i64" if walk.far else "i32"] * len(text.params)
        fn = jit(text_, name, sought=sought, best_of=best_of)
        program = Program(fn, types, {"BM": bm, "BN": bn}, warps=warps)
        text.promise(program, 4)
        return Bound(program, tuple(text.values), (-(-walk.rows // bm), parts))


def _picked(x: Slot, dim: int | None, largest: bool, values: bool, places: bool) -> Any:
    flat = dim is None and x.ndim > 0
    spec = x.spec.like((x.numel,)) if flat else x.spec
    if not (spec.shape[dim or 0] if spec.ndim else 1):
        return None
    if not spec.numel:
        return lambda outs, x: None
    picker = _Picker(spec, (dim or 0,) if spec.ndim else (), largest, values, places)
    first = picker.first()
    found = Spec(Layout((2, picker.parts, picker.walk.rows)), dt.int64, spec.device)
    second = picker.last() if picker.parts > 1 else None

    def run(outs: list[View], x: View) -> None:
        if flat:
            x = contiguous(x)
        to = outs[0].ptr if values else x.ptr
        where = outs[-1].ptr if places else x.ptr
        if second is None:
            first(to, where, x.ptr, x.ptr)
            return
        parts = empty(found)
        first(to, where, parts.ptr, x.ptr)
        second(to, where, parts.ptr, x.ptr)

    return run


@cuda("argmax", accepts=ordered)
def argmax(x: Slot, dim: int | None, keepdim: bool) -> Run:
    return _picked(x, dim, True, False, True)


@cuda("argmin", accepts=ordered)
def argmin(x: Slot, dim: int | None, keepdim: bool) -> Run:
    return _picked(x, dim, False, False, True)


@cuda("_max_dim", accepts=ordered)
def max_dim(x: Slot, dim: int, keepdim: bool) -> Run:
    return _picked(x, dim, True, True, True)


@cuda("_min_dim", accepts=ordered)
def min_dim(x: Slot, dim: int, keepdim: bool) -> Run:
    return _picked(x, dim, False, True, True)
