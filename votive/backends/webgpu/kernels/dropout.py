"""Dropout: the mask is drawn by the rule of bernoulli in `common/sampling.py`."""

from __future__ import annotations

import math
from typing import Any

from ...common.slot import Slot
from ..rows import Run, webgpu
from ..runtime.views import View
from ..shaders import philox, types
from ..shaders.layouts import Walk
from ..shaders.program import Program, groups_for


@webgpu("_dropout", accepts=types.floats)
def dropout(x: Slot, key: Slot, counter: Slot, p: float) -> Run:
    if not x.numel:
        return lambda outs, *values: None
    always = math.ceil((1 - p) * 2.0**32) >= 1 << 32
    made: dict[Any, tuple[Program, Walk]] = {}

    def run(outs: list[View], x: View, key: int, counter: int) -> None:
        spec = outs[0].spec
        if spec not in made:
            walk = Walk("k", spec.shape, [spec.strides, x.spec.strides])
            kept = "true" if always else "random_word(index) < P.below"
            body = f"""  if (index < P.n) {{
{walk.lines("index")}    y_set(k0, x_at(k1) * select(0.0, P.scale, {kept}));
  }}"""
            operands = [("y", spec.dtype, "w"), ("x", x.spec.dtype, "r")]
            numbers = [("n", "I"), ("below", "I"), ("scale", "f"), *philox.NUMBERS, *walk.numbers]
            made[spec] = Program("dropout", operands, numbers, body, head=philox.HEAD), walk
        program, walk = made[spec]
        n, scale = spec.numel, 1 / (1 - p) if p < 1 else 0.0
        given = (n, philox.threshold(1 - p), scale, *philox.values(int(key), int(counter)), *walk.values)
        program(groups_for(n), [outs[0], x], *given)

    return run
