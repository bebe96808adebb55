"""Running means and variances, moved by those of a batch: one program per block of channels."""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from ..device import math as m
from ..programs.copy import copy_view
from ..programs.layouts import dense, power
from ..programs.program import Program, pointer
from ..rows import cuda
from ..runtime.views import View, empty
from .softmax import floats, wide

BLOCK = 256


@triton.jit
def _move(
    running, new, channels, rows, kept, share, count, VARIANCE: tl.constexpr, WIDE: tl.constexpr, BLOCK: tl.constexpr
):
    """Each row moves the statistic for itself; every step rounds to its type. Grid: channels."""
    c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    there = c < channels
    kind = running.dtype.element_ty
    old = tl.load(running + c, mask=there, other=0.0).to(WIDE)
    old = (old * kept.to(WIDE)).to(kind).to(WIDE)
    part = share.to(kind).to(WIDE)
    total = tl.zeros((BLOCK,), WIDE)
    at = new + c
    for _ in range(rows):
        v = tl.load(at, mask=there, other=0.0)
        at += channels
        if VARIANCE:  # of a sample: divided by one less
            v = (v.to(WIDE) * count.to(WIDE)).to(new.dtype.element_ty).to(kind).to(WIDE)
            v = m.f_div(v, (count - 1).to(WIDE) + v * 0)
        v = v.to(kind).to(WIDE)
        total += (old + v * part).to(kind).to(WIDE)
    y = m.f_div(total, rows.to(WIDE) + total * 0)
    tl.store(running + c, y.to(kind), mask=there)


def _mover(running: Any, new: Any, variance: bool) -> Any:
    """move(running, new, momentum, count) in place."""
    channels = running.numel
    rows = new.numel // channels if channels else 0
    block = min(BLOCK, max(power(channels), 16))
    constants = {"VARIANCE": variance, "WIDE": wide(running.dtype), "BLOCK": block}
    types = [pointer(running.dtype), pointer(new.dtype), "i32", "i32", "fp64", "fp64", "fp64"]
    program = Program(_move, types, constants, enable_fp_fusion=False)

    def move(to: View, v: View, momentum: float, count: int) -> None:
        if not rows:
            return
        made, v = to, dense(v)
        if not to.spec.contiguous:
            made = empty(to.spec.like(to.spec.shape))
            copy_view(made, to)
        numbers = (channels, rows, 1 - momentum, momentum, float(count))
        program((-(-channels // block),), made.ptr, v.ptr, *numbers)
        if made is not to:
            copy_view(to, made)

    return move


@cuda("_move_statistics", accepts=floats)
def move_statistics(mean: Any, var: Any, means: Any, variances: Any, count: int, momentum: Any) -> Any:
    if not isinstance(momentum.spec, (int, float)):
        return None
    centre, spread = _mover(mean, means, False), _mover(var, variances, True)

    def run(outs: Any, mean: View, var: View, means: View, variances: View, momentum: Any) -> None:
        centre(mean, means, float(momentum), count)
        spread(var, variances, float(momentum), count)

    return run
