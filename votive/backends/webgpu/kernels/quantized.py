"""Products with weights in blocks of few bits, unpacked in the shader, and their rows as numbers."""

from __future__ import annotations

import math

from ....core import dtype as dt
from ....core.blocks import block_dtype
from ...common.slot import Slot
from ..rows import Run, webgpu
from ..runtime.faults import message
from ..runtime.views import View
from ..shaders import blocks, types
from ..shaders.layouts import contiguous, reshaped
from ..shaders.matmul import Product, Side
from ..shaders.program import Program, groups_for
from ..shaders.rows import Target
from .index import place


def _product(name: str, x: Slot, data: Slot, bias: Slot | None, format: block_dtype, rows: bool) -> Run:
    """`x @ weight.T + bias`, or with `rows` the product with the weight as it lies."""
    head = blocks.head(format.name)
    if head is None or x.dtype not in types.FLOATS or not x.numel or not data.numel:
        return None
    outputs, inputs = data.shape[0], format.row_elements(data.shape[1])
    if rows:
        outputs, inputs = inputs, outputs
    m = math.prod(x.shape[:-1])
    read = "weight_at({k}, {n})" if rows else "weight_at({n}, {k})"
    epilogue = "v" if bias is None else "v + bias_at(n)"
    product = Product(
        name,
        (),
        (m, outputs, inputs),
        Side(x.dtype, inputs, 1, ()),
        Side(dt.uint8, 0 if rows else 1, 0, ()),
        Side(x.dtype, outputs, 1, ()),
        epilogue=epilogue,
        more=[] if bias is None else [("bias", bias.dtype)],
        head=head,
        numbers=[("row_bytes", "I")],
        read=read,
    )
    row_bytes = data.shape[1]

    def run(outs: list[View], x: View, data: View, bias: View | None = None) -> None:
        to = Target(outs[0])
        flat = reshaped(contiguous(x), (m, inputs))
        views = [to.view, flat, contiguous(data), *([] if bias is None else [contiguous(bias)])]
        product(views, row_bytes)
        to.done()

    return run


@webgpu("_block_linear")
def block_linear(x: Slot, data: Slot, bias: Slot | None, format: block_dtype, exact: bool) -> Run:
    return _product("block_linear", x, data, bias, format, False)


@webgpu("_block_matmul")
def block_matmul(x: Slot, data: Slot, format: block_dtype) -> Run:
    return _product("block_matmul", x, data, None, format, True)


@webgpu("_block_decode")
def block_decode(data: Slot, format: block_dtype, dtype: dt.dtype) -> Run:
    head = blocks.head(format.name)
    if head is None or dtype not in types.FLOATS or not data.numel:
        return None
    columns = format.row_elements(data.shape[-1])
    body = "  if (index < P.count) { y_set(index, weight_at(index / P.columns, index % P.columns)); }"
    numbers = [(n, "I") for n in ("count", "columns", "row_bytes")]
    program = Program("block_decode", [("y", dtype, "w"), ("w", dt.uint8, "r")], numbers, body, head=head)

    def run(outs: list[View], data: View) -> None:
        to = Target(outs[0])
        count = outs[0].spec.numel
        program(groups_for(count), [to.view, contiguous(data)], count, columns, data.spec.shape[-1])
        to.done()

    return run


@webgpu("_block_embedding")
def block_embedding(indices: Slot, data: Slot, format: block_dtype, dtype: dt.dtype) -> Run:
    head = blocks.head(format.name)
    if head is None or dtype not in types.FLOATS or not data.numel or indices.dtype not in types.INTEGERS:
        return None
    fault = message(IndexError, "embedding: index {value} is out of bounds for dimension 0 with size {size}.")
    columns = format.row_elements(data.shape[1])
    body = f"""  if (index < P.count) {{
    let i = {place("i_at(index / P.columns)", indices.dtype)};
    if (i < 0 || u32(i) >= P.rows) {{ fail({fault}u, i, P.rows); return; }}
    y_set(index, weight_at(u32(i), index % P.columns));
  }}"""
    numbers = [(n, "I") for n in ("count", "columns", "rows", "row_bytes")]
    operands = [("y", dtype, "w"), ("w", dt.uint8, "r"), ("i", indices.dtype, "r")]
    program = Program("block_embedding", operands, numbers, body, head=head, faults=True)

    def run(outs: list[View], indices: View, data: View) -> None:
        count = outs[0].spec.numel
        if count:
            to = Target(outs[0])
            views = [to.view, contiguous(data), contiguous(indices)]
            program(groups_for(count), views, count, columns, *data.spec.shape)
            to.done()

    return run
