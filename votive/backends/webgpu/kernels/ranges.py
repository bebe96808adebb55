"""Values that follow a rule. The host computes them in double precision, and the device receives them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core import dtype as dt
from ....core.device import device
from ...common.slot import Slot
from .. import cpu_fallback
from ..rows import Run, webgpu
from ..runtime.views import View
from ..shaders import types
from ..shaders.program import Program, groups_for


def _spaced(start: float, end: float, steps: int, kind: str) -> Any:
    """Equal distances, counted from the nearer end so that both are exact."""
    if steps < 2:
        return np.full(steps, start)
    if kind in "iu":
        start, end = int(start), int(end)
    i = np.arange(steps)
    step = (end - start) / (steps - 1)
    return np.where(i < steps // 2, start + step * i, end - step * (steps - 1 - i))


@webgpu("_arange")
def arange(start: Slot, step: Slot, size: int, dtype: dt.dtype, device: device) -> Run:
    if dtype not in types.INTEGERS:

        def received(outs: list[View], start: float, step: float) -> None:
            cpu_fallback.store(float(start) + np.arange(size) * float(step), outs[0])

        return received
    value = "l_add(vec2<u32>(P.a0, P.a1), l_mul(vec2<u32>(index, 0u), vec2<u32>(P.b0, P.b1)))"
    body = f"  if (index < P.n) {{ y_set(index, {types.cast(value, dt.int64, dtype)}); }}"
    program = Program("arange", [("y", dtype, "w")], [(n, "I") for n in ("n", "a0", "a1", "b0", "b1")], body)

    def run(outs: list[View], start: float, step: float) -> None:
        words = [int(v) & 0xFFFFFFFFFFFFFFFF for v in (start, step)]
        program(groups_for(size), [outs[0]], size, *(part for w in words for part in (w & 0xFFFFFFFF, w >> 32)))

    return run


@webgpu("_linspace")
def linspace(start: Slot, end: Slot, steps: int, dtype: dt.dtype, device: device) -> Run:
    def run(outs: list[View], start: float, end: float) -> None:
        cpu_fallback.store(_spaced(start, end, steps, dtype.np.kind), outs[0])

    return None if dtype.is_complex else run


@webgpu("_logspace")
def logspace(start: Slot, end: Slot, steps: int, base: float, dtype: dt.dtype, device: device) -> Run:
    def run(outs: list[View], start: float, end: float) -> None:
        cpu_fallback.store(np.power(base, _spaced(start, end, steps, dtype.np.kind)), outs[0])

    return None if dtype.is_complex else run


@webgpu("_triangle")
def triangle(row: int, col: int, offset: int, lower: bool, dtype: dt.dtype, device: device) -> Run:
    def run(outs: list[View]) -> None:
        pick = np.tril_indices if lower else np.triu_indices
        cpu_fallback.store(np.stack(pick(row, offset, col)), outs[0])

    return run
