"""Reading and writing by index tensors on native kernels."""

from __future__ import annotations

from ...common.slot import Slot
from ..arrays import Args, Ints
from .dtypes import known
from .index import SUMS
from .rows import OUT, native


@native("_index", "index", accepts=known)
def index(x: Slot, indices: Slot, dims: Ints) -> Args:
    return OUT, x, indices, *dims


@native("_index_put", "index_put", accepts=known)
def index_put(x: Slot, indices: Slot, dims: Ints, values: Slot, accumulate: bool) -> Args:
    if accumulate and x.dtype not in SUMS:
        return None
    return OUT, x, values, indices, int(accumulate), *dims
