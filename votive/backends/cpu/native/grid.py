"""Sampling at positions and grids of positions, natively."""

from __future__ import annotations

from ...common.grid import MODES, PADDINGS
from ...common.slot import Slot
from ..arrays import Args, Ints
from .dtypes import same_float
from .rows import OUT, OUT1, native


def _rule(x: Slot, mode: str, padding: str, align: bool) -> Ints | None:
    """The numbers that name a way to sample; None when a plane has too many elements for them."""
    steps = zip(x.strides[2:], x.shape[2:], strict=True)
    if sum(abs(s) * (n - 1) for s, n in steps) >= 2**31 or x.spec.layout.numel >= 2**31:
        return None
    return MODES.index(mode), PADDINGS.index(padding), int(align)


@native("_grid_sample", "grid_sample", accepts=same_float, optional=True)
def grid_sample(x: Slot, grid: Slot, mode: str, padding: str, align: bool) -> Args:
    how = _rule(x, mode, padding, align)
    return None if how is None else (x, grid, OUT, *how)


@native("_grid_sample_backward", "grid_sample_backward", accepts=same_float, optional=True)
def grid_sample_backward(
    g: Slot, x: Slot, grid: Slot, mode: str, padding: str, align: bool, by_input: bool, by_grid: bool
) -> Args:
    how = _rule(x, mode, padding, align)
    return None if how is None or not g.contiguous else (g, x, grid, OUT, OUT1, *how)


@native("_affine_grid", "affine_grid", accepts=same_float, optional=True)
def affine_grid(theta: Slot, size: Ints, align: bool) -> Args:
    return theta, OUT, int(align)


@native("_affine_grid_transpose", "affine_grid_transpose", accepts=same_float, optional=True)
def affine_grid_transpose(g: Slot, size: Ints, align: bool) -> Args:
    return (g, OUT, int(align)) if g.contiguous else None
