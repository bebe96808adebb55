"""Writing at positions along one dimension on native kernels."""

from __future__ import annotations

from ....core.layout import Spec
from ...common.slot import Slot
from ..arrays import Args
from .dtypes import known
from .index import SUMS, by_index, fits
from .rows import OUT, native


def _lined(x: Slot, index: Slot) -> bool:
    return by_index(x, index) and index.ndim > 0


@native("_scatter", "scatter", accepts=known)
def scatter(x: Slot, dim: int, index: Slot, src: Slot) -> Args:
    if not _lined(x, index):
        return None
    if isinstance(src.spec, Spec):
        return (OUT, x, index, src, dim) if src.ndim else None
    return (OUT, x, index, dim, src) if fits(src, x.dtype) else None


def _reduced(x: Slot, dim: int, index: Slot, src: Slot, how: int, own: bool) -> Args:
    if not _lined(x, index) or src.ndim == 0 or x.dtype not in SUMS:
        return None
    return OUT, x, index, src, dim, how, int(own)


@native("scatter_add", "scatter_reduce", accepts=known)
def scatter_add(x: Slot, dim: int, index: Slot, src: Slot) -> Args:
    return _reduced(x, dim, index, src, 0, True)


@native("_scatter_prod", "scatter_reduce", accepts=known)
def scatter_prod(x: Slot, dim: int, index: Slot, src: Slot, own: bool) -> Args:
    return _reduced(x, dim, index, src, 1, own)


@native("_scatter_extremum", "scatter_reduce", accepts=known)
def scatter_extremum(x: Slot, dim: int, index: Slot, src: Slot, reduce: str, own: bool) -> Args:
    return _reduced(x, dim, index, src, 2 if reduce == "amax" else 3, own)


@native("_first_order", "copy", accepts=known)
def first_order(x: Slot) -> Args:
    return OUT, x
