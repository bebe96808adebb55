"""Echoes that come back: one signal per thread, sample after sample."""

from __future__ import annotations

import triton
import triton.language as tl

from ....core import dtype as dt
from ....core.layout import Layout, Spec
from ...common.slot import Slot
from ..programs.copy import copy_view
from ..programs.program import Program, pointer
from ..programs.types import Run, floats
from ..rows import cuda
from ..runtime.faults import faults
from ..runtime.views import View, empty
from .lfilter import LANES


@triton.jit
def _echoes(
    y,
    gain,
    lag,
    fault,
    rows,
    channels,
    echoes,
    time,
    gj,
    gc,
    gt,
    lj,
    lc,
    lt,
    TRANSPOSED: tl.constexpr,
    LANES: tl.constexpr,
):
    """y (time, rows) in place."""
    row = tl.program_id(0) * LANES + tl.arange(0, LANES)
    inside = row < rows
    c = row % channels
    for t in range(time):
        n = time - 1 - t if TRANSPOSED else t
        here = y + n * rows + row
        v = tl.load(here, mask=inside, other=0)
        for j in range(echoes):
            w = tl.load(gain + j * gj + c * gc + n * gt, mask=inside, other=0).to(tl.float64)
            by = tl.load(lag + j * lj + c * lc + n * lt, mask=inside, other=1)
            bad = inside & (by < 1)
            tl.store(fault + tl.zeros_like(row), 1, mask=bad)
            good = inside & (by >= 1) & (by <= n)
            there = y + (n - tl.where(good, by, 0)) * rows + row
            met = tl.load(there, mask=good, other=0)
            if TRANSPOSED:
                tl.store(there, met + w * v, mask=good)
            else:
                v += tl.where(good, w * met, 0.0)
        if not TRANSPOSED:
            tl.store(here, v, mask=inside)


@cuda("_delay_feedback", accepts=lambda x, gain, lag: floats(x, gain))
def delay_feedback(x: Slot, gain: Slot, lag: Slot, transposed: bool) -> Run:
    if not x.numel:
        return lambda outs, x, gain, lag: None
    batch, channels, time = x.shape
    rows = batch * channels
    # Time outermost, so that the threads of a warp read neighbours. Feedback carries rounding on,
    # so it is computed in float64.
    inner = Spec(Layout(x.shape, (channels, 1, rows)), dt.float64, x.spec.device)
    fault = faults.place(ValueError, "delay_feedback: lags must be at least 1.")
    program = Program(
        _echoes,
        ["*fp64", pointer(gain.dtype), "*i64", "*i32", "i64", *["i32"] * 3, *["i64"] * 6],
        {"TRANSPOSED": transposed, "LANES": LANES},
        warps=1,
    )
    numbers = (rows, channels, gain.shape[0], time, *gain.strides, *lag.strides)

    def run(outs: list[View], x: View, gain: View, lag: View) -> None:
        y = empty(inner)
        copy_view(y, x)
        program((-(-rows // LANES),), y.ptr, gain.ptr, lag.ptr, fault, *numbers)
        copy_view(outs[0], y)

    return run
