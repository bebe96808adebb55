"""Overwriting memory with one value."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core import dtype as dt
from ....core.layout import Layout, Spec
from ....formula import Formula, var
from ...common.slot import Slot
from .. import cpu_fallback
from ..rows import Run, webgpu
from ..runtime.views import View
from ..shaders import types
from ..shaders.copy import copy_view
from ..shaders.pointwise import Made, build, packing

_VALUE = Formula("fill", ("value",), var("value"))
_made: dict[Spec, Made | None] = {}


def fill_view(to: View, value: Any) -> None:
    """Write a number over a view of any strides."""
    spec = to.spec
    if not spec.numel:
        return
    if spec not in _made:
        if len(_made) > 2048:
            _made.clear()
        kind = spec.dtype
        compute = dt.float32 if kind in types.FLOATS else kind
        _made[spec] = build(_VALUE, ["value"], [(None, compute, None)], [None], spec) if kind in types.NUMBERS else None
    how = _made[spec]
    if how is None:
        one = Spec(Layout(()), spec.dtype, spec.device)
        copy_view(to, cpu_fallback.uploaded(np.asarray(value), one))
        return
    compute = dt.float32 if spec.dtype in types.FLOATS else spec.dtype
    number = bool(value) if spec.dtype is dt.bool_ else value
    if isinstance(number, complex):
        number = number.real
    how.program(how.groups, [to], *how.values, *packing(compute, None)(number))


@webgpu("_fill", into=True)
def fill(x: Slot, value: Slot) -> Run:
    if value.spec.__class__ is Spec:

        def copied(outs: list[View], x: View, value: View) -> None:
            copy_view(outs[0], value)

        return copied

    def run(outs: list[View], x: View, value: Any) -> None:
        fill_view(outs[0], value)

    return run
