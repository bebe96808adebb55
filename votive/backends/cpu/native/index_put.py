"""Reading and writing by index tensors on native kernels."""

from __future__ import annotations

from typing import Any

from ...common.slot import Slot
from .copy import known
from .index import SUMS
from .rows import OUT, native


@native("_index", "index", accepts=known)
def index(x: Slot, indices: Slot, dims: Any) -> Any:
    return OUT, x, indices, *dims


@native("_index_put", "index_put", accepts=known)
def index_put(x: Slot, indices: Slot, dims: Any, values: Slot, accumulate: bool) -> Any:
    if accumulate and x.dtype not in SUMS:
        return None
    return OUT, x, values, indices, int(accumulate), *dims
