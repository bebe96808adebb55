"""Reading and writing along one dimension, and reading by index tensors."""

from __future__ import annotations

import math
from typing import Any

from ....core import dtype as dt
from ....core.layout import broadcast_shapes, broadcast_strides
from ...common.slot import Slot
from ..rows import Run, webgpu
from ..runtime.faults import message
from ..runtime.views import View
from ..shaders import types
from ..shaders.layouts import Walk, contiguous
from ..shaders.program import Program, groups_for
from ..shaders.rows import Target

Ints = tuple[int, ...]


def place(value: str, d: dt.dtype) -> str:
    """An index as an i32. What does not fit is out of range, whatever it is."""
    if d is dt.int64:
        return f"i_place({value})"
    return value if types.KIND[d] == "i" else f"i32({value})"


def _bounds(op: str, dim: int, kind: type[Exception]) -> int:
    return message(kind, f"{op}: index {{value}} is out of bounds for dimension {dim} with size {{size}}.")


def _sizes(x: Slot, dim: int) -> Ints:
    return x.shape if x.ndim else (1,)


@webgpu("gather")
def gather(x: Slot, dim: int, index: Slot, sparse_grad: bool) -> Run:
    if index.dtype not in types.INTEGERS:
        return None
    if not index.numel:
        return lambda outs, x, index: None
    fault = _bounds("gather", dim, RuntimeError)
    strides = list(x.strides) if x.ndim else [0]
    along = strides[dim]
    rest = tuple(0 if d == dim else s for d, s in enumerate(strides))
    shape = index.shape if index.ndim else (1,)
    walk = Walk("k", shape, [rest, index.strides if index.ndim else (0,)])
    body = f"""  if (index < P.count) {{
{walk.lines("index")}    let i = {place("i_at(k1)", index.dtype)};
    if (i < 0 || u32(i) >= P.size) {{ fail({fault}u, i, P.size); return; }}
    y_set(index, x_at(k0 + u32(i) * P.along));
  }}"""
    numbers = [("count", "I"), ("size", "I"), ("along", "I"), *walk.numbers]
    operands = [("y", x.dtype, "w"), ("x", x.dtype, "r"), ("i", index.dtype, "r")]
    program = Program("gather", operands, numbers, body, faults=True)
    size = _sizes(x, dim)[dim]

    def run(outs: list[View], x: View, index: View) -> None:
        to = Target(outs[0])
        program(groups_for(index.spec.numel), [to.view, x, index], index.spec.numel, size, along, *walk.values)
        to.done()

    return run


@webgpu("index_select")
def index_select(x: Slot, dim: int, index: Slot) -> Run:
    if index.dtype not in types.INTEGERS:
        return None
    return _read("index_select", x, [index], (dim if x.ndim else 0,), False)


@webgpu("take")
def take(x: Slot, index: Slot) -> Run:
    if index.dtype not in types.INTEGERS:
        return None
    fault = message(IndexError, "take: out of range: tried to access index {value} on a tensor of {size} elements.")
    walk = Walk("k", x.shape, [x.strides])
    body = f"""  if (index < P.count) {{
    var i = {place("i_at(index)", index.dtype)};
    if (i < -i32(P.size) || i >= i32(P.size)) {{ fail({fault}u, i, P.size); return; }}
    if (i < 0) {{ i += i32(P.size); }}
    y_set(index, x_at(x_offset(u32(i))));
  }}"""
    numbers = [("count", "I"), ("size", "I"), *walk.numbers]
    operands = [("y", x.dtype, "w"), ("x", x.dtype, "r"), ("i", index.dtype, "r")]
    program = Program("take", operands, numbers, body, head=walk.function("x_offset"), faults=True)

    def run(outs: list[View], x: View, index: View) -> None:
        if index.spec.numel:
            to = Target(outs[0])
            views = [to.view, x, contiguous(index)]
            program(groups_for(index.spec.numel), views, index.spec.numel, x.spec.numel, *walk.values)
            to.done()

    return run


def selection(op: str, shape: Ints, strides: Ints, indices: list[Slot], dims: Ints, wrap: bool) -> tuple[Any, ...]:
    """(shape of what indices select, the walk over it, WGSL that declares the element `at` of the tensor, numbers)."""
    common = broadcast_shapes(op, *(i.shape for i in indices))
    kept = [d for d in range(len(shape)) if d not in dims]
    side_by_side = list(dims) == list(range(dims[0], dims[0] + len(dims)))
    lead = dims[0] if side_by_side else 0
    out = (*[shape[d] for d in kept[:lead]], *common, *[shape[d] for d in kept[lead:]])
    own = (*[strides[d] for d in kept[:lead]], *[0] * len(common), *[strides[d] for d in kept[lead:]])
    steps = [own]
    for i in indices:
        at = broadcast_strides(i.shape, i.strides, common)
        steps.append((*[0] * lead, *at, *[0] * (len(kept) - lead)))
    walk = Walk("k", out, steps)
    lines, numbers, values = walk.lines("index") + "    var at = k0;\n", [], []
    for n, (i, d) in enumerate(zip(indices, dims, strict=True)):
        fault = _bounds(op, d, IndexError)
        low = f"i{n} < -i32(P.size{n})" if wrap else f"i{n} < 0"
        lines += f"    var i{n} = {place(f'i{n}_at(k{n + 1})', i.dtype)};\n"
        lines += f"    if ({low} || i{n} >= i32(P.size{n})) {{ fail({fault}u, i{n}, P.size{n}); return; }}\n"
        lines += f"    if (i{n} < 0) {{ i{n} += i32(P.size{n}); }}\n    at += u32(i{n}) * P.step{n};\n"
        numbers += [(f"size{n}", "I"), (f"step{n}", "I")]
        values += [shape[d], strides[d]]
    return out, walk, lines, numbers, values


def _read(op: str, x: Slot, indices: list[Slot], dims: Ints, wrap: bool) -> Run:
    shape, strides = (x.shape, x.strides) if x.ndim else ((1,), (0,))
    out, walk, lines, numbers, values = selection(op, shape, strides, indices, dims, wrap)
    count = math.prod(out)
    if not count:
        return None
    body = f"  if (index < P.count) {{\n{lines}    y_set(index, x_at(at));\n  }}"
    operands = [("y", x.dtype, "w"), ("x", x.dtype, "r")]
    operands += [(f"i{n}", i.dtype, "r") for n, i in enumerate(indices)]
    program = Program(op, operands, [("count", "I"), *walk.numbers, *numbers], body, faults=True)

    def run(outs: list[View], x: View, given: Any) -> None:
        to = Target(outs[0])
        views = list(given) if isinstance(given, (list, tuple)) else [given]
        program(groups_for(count), [to.view, x, *views], count, *walk.values, *values)
        to.done()

    return run


@webgpu("_index")
def index(x: Slot, indices: tuple[Slot, ...], dims: Ints) -> Run:
    if any(i.dtype not in types.INTEGERS for i in indices) or len(indices) > 4:
        return None
    return _read("indexing", x, list(indices), dims, True)
