"""Choosing by truth on native kernels: counted first, then written into memory of that size."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core import dtype as dt
from ....core.device import cpu
from ....core.errors import fail
from ....core.layout import Layout, Spec
from ...base import BACKENDS, kernel
from ..arrays import Array, Ints
from .dtypes import known
from .loader import module

_BLOCK = 1 << 15  # elements of a mask that are counted together

_count = module.Kernel("count_true")
_select = module.Kernel("masked_select")
_places = module.Kernel("nonzero")
_scatter = module.Kernel("masked_scatter")
_copy = module.Kernel("copy")


def _starts(mask: Array, cut: bool) -> Any:
    """How many true values lie before each block of rows, and in all."""
    counts = np.empty(-(-mask.size // _BLOCK) + 1 if mask.size else 2, np.int64)
    _count(mask, counts, int(cut))
    return counts


def _made(shape: Ints, dtype: dt.dtype) -> Any:
    spec = Spec(Layout(shape), dtype, cpu)
    return *BACKENDS["cpu"].empty(spec), spec


@kernel("_masked_select", priority=10, widen=False, accepts=known, label="native")
def masked_select(x: Array, mask: Array) -> tuple[Any, ...]:
    cut = mask.flags.c_contiguous and x.flags.c_contiguous
    starts = _starts(mask, cut)
    made = _made((int(starts[-1]),), dt.from_numpy(x.dtype))
    _select(made[1], x, mask, starts, int(cut))
    return made


@kernel("_masked_scatter", priority=10, widen=False, into=True, accepts=known, label="native")
def masked_scatter(x: Array, mask: Array, source: Array, out: Array) -> None:
    cut = mask.flags.c_contiguous and out.flags.c_contiguous
    starts = _starts(mask, cut)
    n = int(starts[-1])
    if source.size < n:
        fail(
            RuntimeError,
            "masked_scatter",
            f"source has {source.size} elements, fewer than the {n} true values of the mask.",
        )
    if not source.flags.c_contiguous or np.may_share_memory(source, out):
        source = source.flatten()
    _copy(out, x)
    _scatter(out, mask, source, starts, int(cut))


@kernel("_nonzero", priority=10, widen=False, accepts=known, label="native")
def nonzero(x: Array) -> Array | tuple[Any, ...]:
    if x.ndim == 0:
        return np.zeros((0, int(bool(x))), np.int64)
    if x.dtype != np.bool_:
        truth = np.empty(x.shape, np.bool_)
        _copy(truth, x)
        x = truth
    cut = x.ndim == 1 and x.flags.c_contiguous
    starts = _starts(x, cut)
    made = _made((x.ndim, int(starts[-1])), dt.int64)
    _places(made[1], x, starts, int(cut))
    return made
