"""group_norm with its gradients: as batch_norm, over the groups of each sample."""

from __future__ import annotations

import math
from typing import Any

from ....core.layout import Layout, Spec
from ...common.slot import Slot
from ..programs.copy import copy_view
from ..programs.lane_reduction import moments
from ..programs.layouts import contiguous, contiguous_output
from ..programs.reduction import wide_type
from ..programs.types import Run, floats
from ..rows import cuda
from ..runtime.views import View, empty, zero
from .batch_norm import _VAR, Maker, gradients, normal, present, root, statistics


class _Groups:
    """(N, C, ...) as (N, groups, channels of a group, everything else), row-major."""

    def __init__(self, x: Slot, groups: int) -> None:
        n, channels, *rest = x.shape
        self.shape = (n, groups, channels // groups, math.prod(rest))
        self.spec = Spec(Layout(self.shape), x.dtype, x.spec.device)

    def parameter(self, p: Slot) -> Spec:
        step = p.strides[0]
        steps = (0, step * self.shape[2], step, 0)
        return Spec(Layout((1, *self.shape[1:3], 1), steps), p.dtype, p.spec.device)


@cuda("_group_norm", accepts=floats)
def group_norm(x: Slot, weight: Slot | None, bias: Slot | None, groups: int, eps: float) -> Run:
    if not x.numel:
        return None
    shaped, wide = _Groups(x, groups), wide_type(x.dtype)
    shape = shaped.shape
    stat = Spec(Layout((*shape[:2], 1, 1)), wide, x.spec.device)
    specs = {"x": shaped.spec, "mean": stat, "spread": stat} | present(
        weight=None if weight is None else shaped.parameter(weight),
        bias=None if bias is None else shaped.parameter(bias),
    )
    make = Maker(shape, wide, specs)
    found = moments(shaped.spec, (2, 3), lambda variance: root(float(eps), variance), wide)
    body, extra = normal(_VAR, weight, bias)
    finished = make.mapped("group_norm", body, ["x", "mean", "spread", *extra], shaped.spec)

    def run(outs: list[View], x: View, weight: View | None = None, bias: View | None = None) -> None:
        x = contiguous(x)
        rest = [p.ptr for p in (weight, bias) if p is not None]
        with contiguous_output(outs[0]) as to, statistics(outs, stat) as (m, r):
            found(m.ptr, r.ptr, x.ptr)
            finished(to.ptr, x.ptr, m.ptr, r.ptr, *rest)

    return run


def _nothing(outs: list[View], *given: Any) -> None:
    """Weights of no samples have gradients, which are zero."""
    for out in outs:
        if out.spec.numel:
            zero(out)


@cuda("_group_norm_backward", accepts=floats)
def group_norm_backward(
    g: Slot, x: Slot, mean: Slot, rstd: Slot, weight: Slot | None, groups: int, by_input: bool, by_affine: bool
) -> Run:
    if not x.numel:
        return _nothing
    shaped = _Groups(x, groups)
    shape = shaped.shape
    tables = {
        k: Spec(Layout((*shape[:2], 1, 1), (*v.strides, 0, 0)), v.dtype, v.spec.device)
        for k, v in (("mean", mean), ("spread", rstd))
    }
    specs = {"x": shaped.spec, "g": shaped.spec.like(dtype=g.dtype), **tables}
    if weight is not None:
        specs["weight"] = shaped.parameter(weight)
    n = shape[2] * shape[3]
    go = gradients("group_norm_backward", x, specs, (2, 3), (0, 3), None, n, by_input, by_affine, False)

    def run(outs: list[View], g: View, x: View, mean: View, rstd: View, weight: View | None = None) -> None:
        g, x = contiguous(g), contiguous(x)
        values = {"g": g.ptr, "x": x.ptr, "mean": mean.ptr, "spread": rstd.ptr}
        if weight is not None:
            values["weight"] = weight.ptr
        out = outs[0]
        to = out
        if by_input:
            flat = Spec(shaped.spec.layout, out.spec.dtype, out.spec.device)
            own = out.spec.contiguous
            made = out if own else empty(out.spec.like(out.spec.shape))
            to = View(made.ptr, flat, made.storage)
        go(outs, to, values)
        if by_input and not own:
            copy_view(out, made)

    return run
