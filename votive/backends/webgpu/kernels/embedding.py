"""Rows of a table: reading them, and adding into them."""

from __future__ import annotations

from ...common.slot import Slot
from ..rows import Run, webgpu
from ..runtime.faults import message
from ..runtime.views import View
from ..shaders import types
from ..shaders.layouts import contiguous
from ..shaders.program import Program, groups_for
from ..shaders.rows import Target
from .index import place

_OUT = message(IndexError, "embedding: index {value} is out of bounds for dimension 0 with size {size}.")


@webgpu("_embedding")
def embedding(weight: Slot, indices: Slot, padding_idx: int, scale_grad_by_freq: bool) -> Run:
    if indices.dtype not in types.INTEGERS or weight.ndim != 2:
        return None
    rows, n = weight.shape
    down, right = weight.strides
    body = f"""  if (index < P.count) {{
    let i = {place("i_at(index / P.n)", indices.dtype)};
    if (i < 0 || u32(i) >= P.rows) {{ fail({_OUT}u, i, P.rows); return; }}
    y_set(index, w_at(u32(i) * P.down + (index % P.n) * P.right));
  }}"""
    numbers = [(name, "I") for name in ("count", "n", "rows", "down", "right")]
    operands = [("y", weight.dtype, "w"), ("w", weight.dtype, "r"), ("i", indices.dtype, "r")]
    program = Program("embedding", operands, numbers, body, faults=True)
    count = indices.numel * n

    def run(outs: list[View], weight: View, indices: View) -> None:
        if count:
            to = Target(outs[0])
            program(groups_for(count), [to.view, weight, contiguous(indices)], count, n, rows, down, right)
            to.done()

    return run


@webgpu("_embedding_backward")
def embedding_backward(g: Slot, indices: Slot, rows: int, padding_idx: int, scale_grad_by_freq: bool) -> Run:
    if g.dtype not in types.FLOATS or indices.dtype not in types.INTEGERS or not g.numel:
        return None
    n = g.shape[-1]
    # Each row looks for its own numbers, in order: the sum is the same at every run.
    body = f"""  let column = lid.x + wid.y * 64u;
  let own = i32(wid.x + wid.z * 65535u);
  if (own >= i32(P.rows)) {{ return; }}
  var t = 0.0;
  var k = 0u;
  for (var i = 0u; i < P.count; i++) {{
    if ({place("i_at(i)", indices.dtype)} == own) {{
      if (column < P.n) {{ t += g_at(i * P.n + column); }}
      k++;
    }}
  }}
  if (column < P.n) {{
    if (P.scale != 0u && k > 1u) {{ t = t / f32(k); }}
    y_set(u32(own) * P.n + column, select(t, 0.0, own == P.padding));
  }}"""
    numbers = [("rows", "I"), ("n", "I"), ("count", "I"), ("padding", "i"), ("scale", "I")]
    operands = [("y", g.dtype, "w"), ("g", g.dtype, "r"), ("i", indices.dtype, "r")]
    program = Program("embedding_backward", operands, numbers, body)
    count = indices.numel

    def run(outs: list[View], g: View, indices: View) -> None:
        to = Target(outs[0])
        grid = (min(rows, 65535), -(-n // 64), -(-rows // 65535))
        views = [to.view, contiguous(g), contiguous(indices)]
        program(grid, views, rows, n, count, padding_idx if padding_idx >= 0 else -1, int(scale_grad_by_freq))
        to.done()

    return run
