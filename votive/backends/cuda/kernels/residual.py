"""A sum and the norm behind it: rows of the kernel table over the kernels of norms."""

from __future__ import annotations

from typing import Any

from ....core import dtype as dt
from ....core.layout import Spec
from ....core.promotion import promote_types
from ...common.slot import Slot
from ..programs.types import Run
from ..rows import cuda
from ..runtime.views import View
from .normalization.backward import backward
from .normalization.forward import forward


@cuda("_add_norm")
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
    total: Spec = x.spec.like(x.shape, dtype=promote_types(x.dtype, delta.dtype))
    normed = total if dtype is None else total.like(x.shape, dtype=dtype)
    launch = forward(x, delta, weight, bias, (normed, total), dims, float(eps), centre)
    if launch is None:
        return None

    def run(outs: list[View], x: View, delta: View, weight: View | None, bias: View | None) -> None:
        launch(outs[0], outs[2].ptr, outs[3].ptr, outs[1], x, delta, weight, bias)

    return run


@cuda("_add_norm_backward")
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
    narrow = None if delta is total.dtype else total.spec.like(total.shape, dtype=delta)
    run = backward(g, by_sum, total, mean, rstd, weight, dims, total.spec, narrow, by_affine)
    if run is None:
        return None

    def both(
        outs: list[View], g: View, by_sum: Any, total: View, mean: View | None, rstd: View, weight: View | None
    ) -> None:
        second = None if narrow is None else outs[1]
        run(outs[0], second, outs[2], outs[3], g, by_sum, total, mean, rstd, weight)

    return both
