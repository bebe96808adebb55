"""A sum and its norm in one pass, and their gradients."""

from __future__ import annotations

from ....core import dtype as dt
from ....core.promotion import promote_types
from ...common.slot import Slot
from ..rows import Run, kind_of, webgpu
from ..runtime.views import View
from ..shaders import types
from ..shaders.copy import copy_view
from ..shaders.layouts import contiguous
from .normalization import backward, forward, sizes


@webgpu("_add_norm", accepts=types.floats)
def add_norm(
    x: Slot,
    delta: Slot,
    weight: Slot | None,
    bias: Slot | None,
    dims: int,
    eps: float,
    centre: bool,
    dtype: dt.dtype | None,
) -> Run:
    rows, n = sizes(x, dims)
    if not rows or not n or delta.shape != x.shape:
        return None
    total = promote_types(x.dtype, delta.dtype)
    out = total if dtype is None else dtype
    program = forward(x.dtype, out, n, kind_of(weight), kind_of(bias), centre, delta.dtype, total)

    def run(outs: list[View], x: View, delta: View, weight: View | None, bias: View | None) -> None:
        views = [outs[0], outs[3], contiguous(x), *([outs[2]] if centre else [])]
        views += [contiguous(v) for v in (weight, bias) if v is not None]
        program(rows, [*views, contiguous(delta), outs[1]], rows, n, float(eps))

    return run


@webgpu("_add_norm_backward", accepts=types.floats)
def add_norm_backward(
    g: Slot,
    by_sum: Slot | None,
    total: Slot,
    mean: Slot | None,
    rstd: Slot,
    weight: Slot | None,
    dims: int,
    delta: dt.dtype,
    by_affine: bool,
) -> Run:
    run_both = backward(g, total, mean is not None, weight, dims, True, by_affine)
    if run_both is None:
        return None
    same = delta is total.dtype

    def run(
        outs: list[View], g: View, by_sum: View | None, total: View, mean: View | None, rstd: View, weight: View | None
    ) -> None:
        run_both([outs[0], *outs[2:]], g, total, mean, rstd, weight, by_sum)
        if not same:
            copy_view(outs[1], outs[0])

    return run
