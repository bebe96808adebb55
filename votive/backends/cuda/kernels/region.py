"""Regions of elementwise calls on the GPU: one kernel, which reads every operand and writes every result once."""

from __future__ import annotations

from typing import Any

from ....core import dtype as dt
from ....core.layout import broadcast_strides
from ....formula import to_triton
from ....formula.expr import walk
from ...base import add_row
from ...common.slot import Slot
from ...region import SeparateRow, separate
from ..device import math as device_math
from ..programs.pointwise import _TL, _converted, _read, can, jit
from ..programs.program import TYPE, Program
from ..programs.tiles import BLOCK, FEW, Shape, merged
from ..programs.types import Run
from ..rows import cuda

add_row(SeparateRow(op="_region", device="cuda", fn=separate, label="cuda"))


def _stored(k: int, out: Any, body: Any) -> list[str]:
    """Lines that turn result k into what its memory holds."""
    y, stored = f"y{k}", _TL[TYPE[out.dtype]]
    if out.dtype is dt.bool_:
        lines = [f"{y} = tl.where({y}, 1, 0)" if body.is_bool else f"{y} = tl.where({y} != 0, 1, 0)"]
    elif body.is_bool:
        lines = [f"{y} = m.as_number({y}, {stored})"]
    else:
        lines = []
    return [*lines, f"{y} = {y}.to({stored})"]


def source(region: Any, specs: tuple[Any, ...]) -> tuple[str, Shape, list[str]] | None:
    """(text of the kernel, index arithmetic, types of its pointers) for operands of given layouts."""
    outs, roles = region.outs, region.roles
    kinds = {c for _, c, _ in roles if c is not dt.bool_}
    if len(kinds) != 1 or any(s.device.type != "cuda" for s in specs):
        return None
    (compute,) = kinds
    if compute not in TYPE or not compute.is_floating_point or any(o.dtype not in TYPE for o in outs):
        return None
    formulas = [region.formula(i)[0] for i in range(len(outs))]
    if not all(can(f, "f") for f in formulas):
        return None
    T = _TL[TYPE[compute]]
    shape = outs[0].shape
    strides = [o.strides for o in outs] + [broadcast_strides(s.shape, s.strides, shape) for s in specs]
    heavy = any(device_math.is_special(e.op) for b in region.bodies for e in walk(b))
    size = max(s.dtype.itemsize for s in (*outs, *specs))
    block = FEW if heavy else BLOCK // 2 if len(strides) > 8 else BLOCK
    index = Shape(*merged(shape, strides), outs[0].numel, block, size)
    fast = all(o.dtype in dt.HALF for o in outs)
    text = to_triton(tuple(region.bodies), "formulas", list(region.params), "f", fast)
    reads, n = list(enumerate(roles)), len(outs)
    lines = list(index.lines)
    lines += index.guarded(lambda mask: [_read(k, role, index.offsets[n + k], mask) for k, role in reads])
    for k, role in reads:
        lines += _converted(k, role, T)
    results = ", ".join(f"y{k}" for k in range(n))
    lines.append(f"{results} = formulas({', '.join(f'v{k}' for k in range(len(roles)))}, {T})")
    for k, (out, body) in enumerate(zip(outs, region.bodies, strict=True)):
        lines += _stored(k, out, body)
    to = [f"o{k} + {index.offsets[k] or index.offsets[0]}" for k in range(n)]

    def stores(mask: str) -> list[str]:
        return [f"tl.store({to[k]}, y{k}, mask={mask})" if mask else f"tl.store({to[k]}, y{k})" for k in range(n)]

    lines += index.guarded(stores)
    args = [*(f"o{k}" for k in range(n)), *(f"a{k}" for k in range(len(roles))), *index.params]
    args += [f"{c}: tl.constexpr" for c in index.constants]
    text += f"\n\n@triton.jit\ndef region({', '.join(args)}):\n" + "".join(f"    {line}\n" for line in lines)
    types = ["*" + TYPE[s.dtype] for s in outs] + ["*" + TYPE[have] for have, _, _ in roles]
    return text, index, types


@cuda("_region", priority=20)
def region(inputs: Any, region: Any) -> Run:
    slots: tuple[Slot, ...] = inputs
    found = source(region, tuple(s.spec for s in slots))
    if found is None:
        return None
    text, index, types = found
    types = types + ["i64" if index.wide else "i32"] * len(index.params)
    program = Program(jit(text, "region"), types, index.constants)
    first = len(region.outs) + len(region.roles)
    program.divisible = tuple(first + i for i, v in enumerate(index.values) if v % 16 == 0)
    numbers, grid = index.values, index.grid

    def run(outs: Any, values: Any) -> None:
        program(grid, *[o.ptr for o in outs], *[v.ptr for v in values], *numbers)

    return run
