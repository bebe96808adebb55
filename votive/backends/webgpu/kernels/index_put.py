"""Writing at positions that tensors give, and the flat forms of it. Threads share what is not indexed, so that writes
to one place come in their order.
"""

from __future__ import annotations

import math
from typing import Any

from ....core.layout import Spec, broadcast_shapes, broadcast_strides
from ...common.slot import Slot
from ..rows import Run, webgpu
from ..runtime.faults import message
from ..runtime.views import View
from ..shaders import types
from ..shaders.layouts import Walk, contiguous
from ..shaders.program import Program, groups_for
from .index import place
from .scatter import fits, joined, lined, one_dimensional, types_of_number, words_of, writing

Ints = tuple[int, ...]


class Put:
    """The kernel: a thread per kept position, which goes through all the indices."""

    def __init__(self, to: Spec, indices: list[Slot], dims: Ints, values: Spec, how: str, op: str) -> None:
        common = broadcast_shapes(op, *(i.shape for i in indices))
        kept = [d for d in range(to.ndim) if d not in dims]
        beside = list(dims) == list(range(dims[0], dims[0] + len(dims)))
        lead = dims[0] if beside else 0
        shape = (*[to.shape[d] for d in kept[:lead]], *common, *[to.shape[d] for d in kept[lead:]])
        given = broadcast_strides(values.shape, values.strides, shape)
        middle = given[lead : lead + len(common)]
        outer = (*given[:lead], *given[lead + len(common) :])
        self.rest = Walk("k", tuple(to.shape[d] for d in kept), [tuple(to.strides[d] for d in kept), outer])
        steps = [middle, *[broadcast_strides(i.shape, i.strides, common) for i in indices]]
        self.each = Walk("c", common, steps)
        self.threads, self.n = math.prod(to.shape[d] for d in kept), math.prod(common)
        kind = types.KIND[to.dtype]
        lines = self.each.lines("j") + "    var at = k0;\n"
        numbers, self.sizes = [], []
        for k, (i, d) in enumerate(zip(indices, dims, strict=True)):
            fault = message(IndexError, f"{op}: index {{value}} is out of bounds for dimension {d} with size {{size}}.")
            lines += f"    var i{k} = {place(f'i{k}_at(c{k + 1})', i.dtype)};\n"
            lines += f"    if (i{k} < -i32(P.size{k}) || i{k} >= i32(P.size{k})) {{\n"
            lines += f"      fail({fault}u, i{k}, P.size{k}); return;\n    }}\n"
            lines += f"    if (i{k} < 0) {{ i{k} += i32(P.size{k}); }}\n    at += u32(i{k}) * P.step{k};\n"
            numbers += [(f"size{k}", "I"), (f"step{k}", "I")]
            self.sizes += [to.shape[d], to.strides[d]]
        result = joined(how, kind)
        bits = 8 * to.dtype.itemsize
        if kind in "iu" and bits < 32 and how == "add":
            result = f"{kind}_wrap{bits}({result})"
        value = types.cast("s_at(k1 + c0)", values.dtype, to.dtype)
        old = "" if how == "set" else "let o = y_at(at); "
        body = f"""  if (index >= P.threads) {{ return; }}
{self.rest.lines("index")}  for (var j = 0u; j < P.n; j++) {{
{lines}    {old}let v = {value}; y_set(at, {result});
  }}"""
        operands = [("y", to.dtype, "w"), ("s", values.dtype, "r")]
        operands += [(f"i{k}", i.dtype, "r") for k, i in enumerate(indices)]
        fields = [("threads", "I"), ("n", "I"), *self.rest.numbers, *self.each.numbers, *numbers]
        self.program = Program(op, operands, fields, body, faults=True)

    def __call__(self, to: View, values: View, indices: list[View]) -> None:
        given = (self.threads, self.n, *self.rest.values, *self.each.values, *self.sizes)
        self.program(groups_for(self.threads), [to, values, *indices], *given)


@webgpu("_index_put", into=True, careful=True)
def index_put(x: Slot, indices: tuple[Slot, ...], dims: Ints, values: Slot, accumulate: bool) -> Run:
    if x.dtype not in types.NUMBERS or values.dtype not in types.NUMBERS or not x.ndim or not x.numel:
        return None
    if any(i.dtype not in types.INTEGERS for i in indices) or len(indices) > 4:
        return None
    if not all(i.numel for i in indices):
        return None

    def make(spec: Spec) -> Any:
        kernel = Put(spec, list(indices), dims, values.spec, "add" if accumulate else "set", "index_put")

        def write(to: View, given: list[Any]) -> None:
            at, v = given
            kernel(to, v, list(at))

        return write

    return writing("index_put", x, accumulate, make)


@webgpu("put", into=True, careful=True)
def put(x: Slot, index: Slot, source: Slot, accumulate: bool) -> Run:
    if x.dtype not in types.NUMBERS or source.dtype is not x.dtype or index.dtype not in types.INTEGERS:
        return None
    if not index.numel or not x.numel:
        return None
    fault = message(IndexError, "put: out of range: tried to access index {value} on a tensor of {size} elements.")
    how, kind = "add" if accumulate else "set", types.KIND[x.dtype]

    def make(spec: Spec) -> Any:
        walk = Walk("k", spec.shape, [spec.strides])
        result = joined(how, kind)
        bits = 8 * spec.dtype.itemsize
        if kind in "iu" and bits < 32 and how == "add":
            result = f"{kind}_wrap{bits}({result})"
        body = f"""  if (index > 0u) {{ return; }}
  for (var j = 0u; j < P.n; j++) {{
    var i = {place("i_at(j)", index.dtype)};
    if (i < -i32(P.size) || i >= i32(P.size)) {{ fail({fault}u, i, P.size); return; }}
    if (i < 0) {{ i += i32(P.size); }}
    let at = y_offset(u32(i));
    let o = y_at(at);
    let v = {types.cast("s_at(j)", source.dtype, spec.dtype)};
    y_set(at, {result});
  }}"""
        operands = [("y", spec.dtype, "w"), ("s", source.dtype, "r"), ("i", index.dtype, "r")]
        fields = [("n", "I"), ("size", "I"), *walk.numbers]
        program = Program("put", operands, fields, body, head=walk.function("y_offset"), faults=True)

        def write(to: View, given: list[Any]) -> None:
            i, s = given
            program(1, [to, contiguous(s), contiguous(i)], index.numel, spec.numel, *walk.values)

        return write

    return writing("put", x, accumulate, make)


@webgpu("index_fill", into=True, careful=True)
def index_fill(x: Slot, dim: int, index: Slot, value: Slot) -> Run:
    if x.dtype not in types.NUMBERS or index.dtype not in types.INTEGERS or not x.numel or not index.numel:
        return None
    number = value.spec.__class__ is not Spec
    if not number and (value.dtype not in types.NUMBERS or value.numel != 1):
        return None
    size = lined(x.spec).shape[dim]
    fault = message(IndexError, f"index_fill: index {{value}} is out of bounds for dimension {dim} with size {{size}}.")

    def make(spec: Spec) -> Any:
        rest = tuple(d for d in range(spec.ndim) if d != dim)
        shape, steps = tuple(spec.shape[d] for d in rest), tuple(spec.strides[d] for d in rest)
        walk = Walk("k", shape, [steps])
        one = math.prod(shape)
        given = types_of_number(spec.dtype) if number else types.cast("s_at(0u)", value.dtype, spec.dtype)
        body = f"""  if (index >= P.count) {{ return; }}
{walk.lines("(index / P.n)")}  var i = {place("i_at(index % P.n)", index.dtype)};
  if (i < -i32(P.size) || i >= i32(P.size)) {{ fail({fault}u, i, P.size); return; }}
  if (i < 0) {{ i += i32(P.size); }}
  y_set(k0 + u32(i) * P.along, {given});"""
        operands = [("y", spec.dtype, "w"), ("i", index.dtype, "r"), *([] if number else [("s", value.dtype, "r")])]
        fields = [(n, "I") for n in ("count", "n", "size", "along", "v0", "v1")]
        program = Program("index_fill", operands, [*fields, *walk.numbers], body, faults=True)
        n = index.numel

        def write(to: View, values: list[Any]) -> None:
            i, v = values
            words = words_of(v, spec.dtype) if number else (0, 0)
            views = [to, contiguous(one_dimensional(i)), *([] if number else [v])]
            numbers = (one * n, n, size, spec.strides[dim], *words, *walk.values)
            program(groups_for(one * n), views, *numbers)

        return write

    run = writing("index_fill", x, False, make)
    if number:

        def checked(outs: list[View], x: View, index: View, value: Any) -> None:
            if not fits(value, x.spec.dtype):
                raise RuntimeError(f"index_fill: value {value} does not fit into {x.spec.dtype.np}.")
            run(outs, x, index, value)

        return checked
    return run
