"""Sorting, the largest few, the k-th and distinct values, natively."""

from __future__ import annotations

import numpy as np

from ....core.layout import Spec
from ...base import kernel
from ...common.slot import Slot
from ..arrays import Args, Array
from ..reference.sort import unique as unique_by_numpy
from .extremum import ordered
from .loader import module
from .rows import OUT, OUT1, native

# A place has 32 bits while keys are sorted.
_MOST = 1 << 32
KTH, MEDIAN, NANMEDIAN, MODE = range(4)


def fits(x: Spec) -> bool:
    """Whether the kernels can order these elements."""
    return ordered(x) and x.numel < _MOST


@native("_sort", "sort", accepts=fits)
def sort(x: Slot, dim: int, descending: bool) -> Args:
    return x, OUT, OUT1, dim, int(descending)


@native("_topk", "topk", accepts=fits)
def topk(x: Slot, k: int, dim: int, largest: bool, sorted: bool) -> Args:
    return x, OUT, OUT1, dim, k, int(largest), int(sorted)


@native("_kthvalue", "rank", accepts=fits)
def kthvalue(x: Slot, k: int, dim: int, keepdim: bool) -> Args:
    return x, OUT, OUT1, dim, KTH, k - 1


def _distinct(x: Array, dim: int | None, consecutive: bool, *wanted: bool) -> Args:
    if dim is not None:
        return unique_by_numpy(x, dim, consecutive)
    x = np.ascontiguousarray(x)
    n = x.size
    values, number = np.empty(n, x.dtype), np.empty(1, np.int64)
    which, counts = np.empty(x.shape, np.int64), np.empty(n, np.int64)
    module.Kernel("runs")(x, values, which, counts, number, int(consecutive))
    k = int(number[0])
    return values[:k].copy(), which, counts[:k].copy()


if module is not None:
    kernel("_unique", priority=10, accepts=fits, widen=False, label="native")(_distinct)
