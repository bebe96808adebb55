"""Reading and writing along one dimension on native kernels."""

from __future__ import annotations

from ....core import dtype as dt
from ....core.layout import Spec
from ...common.slot import Slot
from ..arrays import Args
from .dtypes import known
from .loader import codes
from .rows import OUT, native

# What can be added up; the other types are moved only.
SUMS = {dt.bool_, dt.int8, dt.int16, dt.int32, dt.int64, dt.uint8, dt.float16, dt.bfloat16, dt.float32, dt.float64}


def by_index(*tensors: Slot) -> bool:
    """Whether these are indexes into something with dimensions."""
    x, *indices = tensors
    return x.ndim > 0 and all(i.dtype in (dt.int64, dt.int32) for i in indices)


def fits(value: Slot, dtype: dt.dtype) -> bool:
    """Whether a number, or the element of a tensor, can be made one of `dtype` by a kernel."""
    if isinstance(value.spec, Spec):
        return value.dtype in codes
    if dtype.is_complex or dtype in (dt.uint32, dt.uint64):
        return False
    kinds = (bool, int, float) if dtype.is_floating_point else (bool, int)
    return isinstance(value.spec, kinds)


@native("gather", "gather", accepts=known)
def gather(x: Slot, dim: int, index: Slot, sparse_grad: bool) -> Args:
    return (OUT, x, index, dim) if by_index(x, index) and index.ndim else None


@native("index_select", "index_select", accepts=known)
def index_select(x: Slot, dim: int, index: Slot) -> Args:
    return (OUT, x, index, dim) if by_index(x, index) else None


@native("index_add", "index_add", accepts=known)
def index_add(x: Slot, dim: int, index: Slot, source: Slot, alpha: Slot) -> Args:
    if not by_index(x, index) or x.dtype not in SUMS or isinstance(alpha.spec, complex):
        return None
    return OUT, x, index, source, dim, alpha


@native("index_copy", "index_copy", accepts=known)
def index_copy(x: Slot, dim: int, index: Slot, source: Slot) -> Args:
    return (OUT, x, index, source, dim) if by_index(x, index) else None


@native("index_fill", "index_fill", accepts=known)
def index_fill(x: Slot, dim: int, index: Slot, value: Slot) -> Args:
    if not by_index(x, index) or not fits(value, x.dtype):
        return None
    return OUT, x, index, dim, value


@native("take", "take", accepts=known)
def take(x: Slot, index: Slot) -> Args:
    return OUT, x, index


@native("put", "put", accepts=known)
def put(x: Slot, index: Slot, source: Slot, accumulate: bool) -> Args:
    if not x.contiguous or (accumulate and x.dtype not in SUMS):
        return None
    return OUT, x, index, source, int(accumulate)
