"""Regions of elementwise calls: one kernel, which reads every operand and writes every result once."""

from __future__ import annotations

from typing import Any

from ....core import dtype as dt
from ....formula.wgsl import to_wgsl
from ...base import add_row
from ...common.slot import Slot
from ...region import SeparateRow, separate
from ..rows import Run, webgpu
from ..runtime import runtime as rt
from ..runtime.views import View
from ..shaders import types
from ..shaders.layouts import Walk, strides_as
from ..shaders.pointwise import can, compute_of, converted
from ..shaders.program import Program, groups_for

add_row(SeparateRow(op="_region", device="webgpu", fn=separate, label="webgpu"))


def _stored(k: int, is_bool: bool, out: dt.dtype) -> str:
    if is_bool:
        return types.cast(f"y.y{k}", dt.bool_, out)
    return f"y.y{k}" if out.is_floating_point else types.cast(f"y.y{k}", dt.float32, out)


def program(region: Any, specs: tuple[Any, ...]) -> tuple[Program, list[int]] | None:
    """(the kernel of a region for operands of given layouts, its numbers)."""
    outs, roles = region.outs, list(region.roles)
    compute = compute_of(roles)
    if compute is not dt.float32 or any(s.device.type != "webgpu" for s in specs) or not outs[0].numel:
        return None
    kinds = [o.dtype for o in outs] + [have for have, _, _ in roles]
    if any(k not in types.NUMBERS for k in kinds) or len(outs) + len(roles) > rt.gpu.max_buffers:
        return None
    if not all(can(b, compute) for b in region.bodies):
        return None
    shape = outs[0].shape
    walk = Walk("k", shape, [*(o.strides for o in outs), *(strides_as(s, shape) for s in specs)])
    n = len(outs)
    text = to_wgsl(tuple(region.bodies), "formulas", list(region.params), "f")
    reads = [converted(k, r, compute).replace(f"r{k}", f"a{k}_at(k{n + k})") for k, r in enumerate(roles)]
    body = f"  if (index >= P.n) {{ return; }}\n{walk.lines('index')}  let y = formulas({', '.join(reads)});\n"
    for k, (o, b) in enumerate(zip(outs, region.bodies, strict=True)):
        body += f"  o{k}_set(k{k}, {_stored(k, b.is_bool, o.dtype)});\n"
    operands = [(f"o{k}", o.dtype, "w") for k, o in enumerate(outs)]
    operands += [(f"a{k}", have, "r") for k, (have, _, _) in enumerate(roles)]
    return Program("region", operands, [("n", "I"), *walk.numbers], body, head=text), [outs[0].numel, *walk.values]


@webgpu("_region", priority=20)
def region(inputs: Any, region: Any) -> Run:
    slots: tuple[Slot, ...] = inputs
    found = program(region, tuple(s.spec for s in slots))
    if found is None:
        return None
    kernel, numbers = found
    groups = groups_for(region.outs[0].numel)

    def run(outs: list[View], values: Any) -> None:
        kernel(groups, [*outs, *values], *numbers)

    return run
