"""New memory and its fillings."""

from __future__ import annotations

from typing import Any

from ....core import dtype as dt
from ....core.device import device
from ...common.slot import Slot
from ..rows import Run, webgpu
from ..runtime.views import View
from ..shaders import types
from ..shaders.program import Program, groups_for
from .fill import fill_view

Ints = tuple[int, ...]


@webgpu("_empty")
def empty(size: Ints, stride: Ints, dtype: dt.dtype, device: device) -> Run:
    return lambda outs: None


@webgpu("_full")
def full(size: Ints, stride: Ints, value: Slot, dtype: dt.dtype, device: device) -> Run:
    def run(outs: list[View], value: Any) -> None:
        fill_view(outs[0], value)

    return run


@webgpu("_eye")
def eye(n: int, m: int, dtype: dt.dtype, device: device) -> Run:
    if dtype not in types.NUMBERS:
        return None
    value = types.cast("select(0u, 1u, index / P.m == index % P.m)", dt.bool_, dtype)
    program = Program(
        "eye", [("y", dtype, "w")], [("n", "I"), ("m", "I")], f"  if (index < P.n) {{ y_set(index, {value}); }}"
    )
    return lambda outs: program(groups_for(n * m), [outs[0]], n * m, m)
