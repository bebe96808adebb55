"""Sorting, the largest and the k-th of lines. What is sorted are places: rows up to 1024 by counting who comes before
whom, longer ones by a bitonic network. Equal values keep their order, NaN is larger than every number.
"""

from __future__ import annotations

from typing import Any

from ....core import dtype as dt
from ....core.layout import Layout, Spec
from ...common.slot import Slot
from ..rows import Run, webgpu
from ..runtime.views import View, empty
from ..shaders import types
from ..shaders.copy import copy_view
from ..shaders.program import Program, groups_for
from ..shaders.rows import Lines
from .extremum import better
from .fill import fill_view

_COUNTED = 1024


class Order:
    """The places of each line's elements in order, as row-major u32 of shape (rows, room)."""

    def __init__(self, x: Slot, dim: int, descending: bool) -> None:
        self.lines = Lines(x.shape, [x.strides], (dim,))
        n = self.lines.n
        self.room = n if n <= _COUNTED else 1 << (n - 1).bit_length()
        self.where = x.spec.device
        kind = types.KIND[x.dtype]
        wins = better(kind, "a", "b", descending)
        loses = better(kind, "b", "a", descending)
        head = self.lines.head("x")
        head += "fn before(at: u32, i: u32, j: u32) -> bool {\n  if (j >= P.n) { return i < P.n || i < j; }\n"
        head += "  if (i >= P.n) { return false; }\n  let a = x_at(at + x_col(i)); let b = x_at(at + x_col(j));\n"
        head += f"  if ({wins}) {{ return true; }}\n  if ({loses}) {{ return false; }}\n  return i < j;\n}}\n"
        operands = [("p", dt.uint32, "w"), ("x", x.dtype, "r")]
        if n <= _COUNTED:
            body = """  if (index >= P.rows * P.n) { return; }
  let r = index / P.n;
  let i = index % P.n;
  let at = x_row(r);
  var place = 0u;
  for (var j = 0u; j < P.n; j++) { place += select(0u, 1u, j != i && before(at, j, i)); }
  p_set(r * P.n + place, i);"""
            self.count = Program("order", operands, self.lines.numbers, body, head=head)
            return
        fields = [*self.lines.numbers, ("room", "I"), ("size", "I"), ("step", "I")]
        body = """  if (index >= P.rows * (P.room / 2u)) { return; }
  let r = index / (P.room / 2u);
  let k = index % (P.room / 2u);
  let low = (k / P.step) * P.step * 2u + k % P.step;
  let high = low + P.step;
  let base = r * P.room;
  let a = p_at(base + low);
  let b = p_at(base + high);
  let up = (low & P.size) == 0u;
  if (before(x_row(r), b, a) == up) { p_set(base + low, b); p_set(base + high, a); }"""
        self.swap = Program("order", operands, fields, body, head=head)
        begin = "  if (index < P.n) { p_set(index, index % P.room); }"
        self.begin = Program("places", [("p", dt.uint32, "w")], [("n", "I"), ("room", "I")], begin)

    def __call__(self, x: View) -> View:
        rows, room = self.lines.rows, self.room
        places = empty(Spec(Layout((rows, room)), dt.uint32, self.where))
        if self.lines.n <= _COUNTED:
            self.count(groups_for(rows * self.lines.n), [places, x], *self.lines.values)
            return places
        self.begin(groups_for(rows * room), [places], rows * room, room)
        size = 2
        while size <= room:
            step = size // 2
            while step:
                # In the last round everything goes up.
                way = size if size < room else 0
                given = (*self.lines.values, room, way, step)
                self.swap(groups_for(rows * room // 2), [places, x], *given)
                step //= 2
            size *= 2
        return places


def _taken(x: Slot, dim: int, first: int, count: int, room: int) -> Any:
    """run(values, indices, places, x): `count` of the ordered elements of each line from the `first` on."""
    made: dict[Any, tuple[Program, Lines, Lines]] = {}

    def run(values: View, indices: View, places: View, x: View) -> None:
        key = (values.spec, indices.spec)
        if key not in made:
            source = Lines(x.spec.shape, [x.spec.strides], (dim,))
            to = Lines(values.spec.shape, [values.spec.strides, indices.spec.strides], (dim,))
            text = to.head("y", "i").replace("P.r", "P.q").replace("P.c", "P.d")
            fields = [("total", "I"), ("first", "I"), ("count", "I"), ("room", "I"), *source.numbers]
            fields += [("q" + n[1:], k) for n, k in to.outer.numbers] + [("d" + n[1:], k) for n, k in to.inner.numbers]
            body = """  if (index >= P.total) { return; }
  let r = index / P.count;
  let j = index % P.count;
  let place = p_at(r * P.room + P.first + j);
  y_set(y_row(r) + y_col(j), x_at(x_row(r) + x_col(place)));
  i_set(i_row(r) + i_col(j), vec2<u32>(place, 0u));"""
            operands = [("y", x.spec.dtype, "w"), ("i", dt.int64, "w"), ("p", dt.uint32, "r"), ("x", x.spec.dtype, "r")]
            made[key] = Program("in_order", operands, fields, body, head=source.head("x") + text), source, to
        program, source, to = made[key]
        total = source.rows * count
        given = (total, first, count, room, *source.values, *to.outer.values, *to.inner.values)
        program(groups_for(total), [values, indices, places, x], *given)

    return run


def _alone(outs: list[View], x: View) -> None:
    copy_view(outs[0], x)
    fill_view(outs[1], 0)


def _select(x: Slot, dim: int, descending: bool, first: int, count: int, drop: bool = False) -> Run:
    if x.dtype not in types.NUMBERS:
        return None
    if not x.ndim:
        return _alone
    if not x.numel or not count:
        return lambda outs, x: None
    order = Order(x, dim, descending)
    take = _taken(x, dim, first, count, order.room)

    def run(outs: list[View], x: View) -> None:
        values, indices = outs
        if drop:
            values, indices = _kept(values, dim), _kept(indices, dim)
        take(values, indices, order(x), x)

    return run


def _kept(v: View, dim: int) -> View:
    """A view with a dimension of size 1 put in again."""
    shape = (*v.spec.shape[:dim], 1, *v.spec.shape[dim:])
    strides = (*v.spec.strides[:dim], 0, *v.spec.strides[dim:])
    return View(v.storage, v.offset, Spec(Layout(shape, strides), v.spec.dtype, v.spec.device))


@webgpu("_sort")
def sort(x: Slot, dim: int, descending: bool) -> Run:
    return _select(x, dim, descending, 0, x.shape[dim] if x.ndim else 1)


@webgpu("_topk")
def topk(x: Slot, k: int, dim: int, largest: bool, in_order: bool) -> Run:
    return _select(x, dim, largest, 0, k)


@webgpu("_kthvalue")
def kthvalue(x: Slot, k: int, dim: int, keepdim: bool) -> Run:
    return _select(x, dim, False, k - 1, 1, not keepdim)
