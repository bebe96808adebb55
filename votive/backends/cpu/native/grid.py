"""Sampling at positions and grids of positions, natively."""

from __future__ import annotations

from typing import Any

from ....core import dtype as dt
from ...common.grid import MODES, PADDINGS
from .rows import OUT, OUT1, native

_FLOATS = (dt.float32, dt.float64, *dt.HALF)


def _accepts(*specs: Any) -> bool:
    return all(s.dtype in _FLOATS and s.dtype is specs[0].dtype for s in specs)


def _rule(x: Any, mode: str, padding: str, align: bool) -> Any:
    """The numbers that name a way to sample; None when a plane has too many elements for them."""
    steps = zip(x.strides[2:], x.shape[2:], strict=True)
    if sum(abs(s) * (n - 1) for s, n in steps) >= 2**31 or x.spec.layout.numel >= 2**31:
        return None
    return MODES.index(mode), PADDINGS.index(padding), int(align)


@native("_grid_sample", "grid_sample", accepts=_accepts, optional=True)
def grid_sample(x: Any, grid: Any, mode: str, padding: str, align: bool) -> Any:
    how = _rule(x, mode, padding, align)
    return None if how is None else (x, grid, OUT, *how)


@native("_grid_sample_backward", "grid_sample_backward", accepts=_accepts, optional=True)
def grid_sample_backward(
    g: Any, x: Any, grid: Any, mode: str, padding: str, align: bool, by_input: bool, by_grid: bool
) -> Any:
    how = _rule(x, mode, padding, align)
    return None if how is None or not g.contiguous else (g, x, grid, OUT, OUT1, *how)


@native("_affine_grid", "affine_grid", accepts=_accepts, optional=True)
def affine_grid(theta: Any, size: Any, align: bool) -> Any:
    return theta, OUT, int(align)


@native("_affine_grid_transpose", "affine_grid_transpose", accepts=_accepts, optional=True)
def affine_grid_transpose(g: Any, size: Any, align: bool) -> Any:
    return (g, OUT, int(align)) if g.contiguous else None
