"""Cross entropy and likelihoods: rows of the kernel table."""

from __future__ import annotations

from ....core import dtype as dt
from ....core.layout import Spec
from ...common.slot import Slot
from ..arrays import Args, Ints
from .dtypes import FLOATS
from .rows import OUT, OUT1, OUT2, native

NONE, MEAN, SUM = range(3)


def _accepts(*specs: Spec) -> bool:
    """Floats, and one tensor of class indices among them."""
    return all(s.dtype in FLOATS or s.dtype in (dt.int64, dt.uint8) for s in specs)


@native("_nll", "nll", accepts=_accepts)
def nll(x: Slot, t: Slot, weight: Slot | None, ignore: int, smoothing: float, dtype: dt.dtype) -> Args:
    return None if smoothing or not x.numel else (x, t, weight, OUT, None, ignore, NONE)


@native("_nll_backward", "nll_backward", accepts=_accepts)
def nll_backward(
    g: Slot, t: Slot, weight: Slot | None, ignore: int, smoothing: float, size: Ints, dtype: dt.dtype
) -> Args:
    if smoothing or 0 in size or dtype not in FLOATS:
        return None
    return g, t, weight, OUT, None, ignore, NONE


@native("_nll_reduced", "nll", accepts=_accepts)
def nll_reduced(x: Slot, t: Slot, weight: Slot | None, ignore: int, mean: bool) -> Args:
    return (x, t, weight, OUT, OUT1, ignore, MEAN if mean else SUM) if x.numel else None


@native("_nll_reduced_backward", "nll_backward", accepts=_accepts)
def nll_reduced_backward(
    g: Slot, total: Slot, t: Slot, weight: Slot | None, ignore: int, mean: bool, size: Ints, dtype: dt.dtype
) -> Args:
    if 0 in size or dtype not in FLOATS:
        return None
    return g, t, weight, OUT, total, ignore, MEAN if mean else SUM


@native("_cross_entropy", "cross_entropy", accepts=_accepts)
def cross_entropy(x: Slot, t: Slot, weight: Slot | None, ignore: int, smoothing: float, dtype: dt.dtype) -> Args:
    return x, t, weight, OUT, None, None, ignore, NONE, float(smoothing)


@native("_cross_entropy_backward", "cross_entropy_backward", accepts=_accepts)
def cross_entropy_backward(g: Slot, x: Slot, t: Slot, weight: Slot | None, ignore: int, smoothing: float) -> Args:
    return g, x, t, weight, OUT, None, None, ignore, NONE, float(smoothing)


@native("_cross_entropy_reduced", "cross_entropy", accepts=_accepts)
def cross_entropy_reduced(x: Slot, t: Slot, weight: Slot | None, ignore: int, smoothing: float, mean: bool) -> Args:
    kind = MEAN if mean else SUM
    return x, t, weight, OUT, OUT1, OUT2, ignore, kind, float(smoothing)


@native("_cross_entropy_reduced_backward", "cross_entropy_backward", accepts=_accepts)
def cross_entropy_reduced_backward(
    g: Slot,
    x: Slot,
    t: Slot,
    weight: Slot | None,
    total: Slot,
    statistics: Slot,
    ignore: int,
    smoothing: float,
    mean: bool,
) -> Args:
    if not statistics.contiguous:
        return None
    kind = MEAN if mean else SUM
    return g, x, t, weight, OUT, total, statistics, ignore, kind, float(smoothing)
