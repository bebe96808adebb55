"""Tensors in memory that forked processes have in common. Knows pages of the system, no transport between processes."""

from __future__ import annotations

import gc
import mmap
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from ..dispatch.state import state
from ..ops.registry import F
from .interchange import from_numpy
from .wrapped import Wrapped

if TYPE_CHECKING:
    from ..tensor import Tensor

# What holds a storage that one tensor alone has: the tensor, a name here, and the question itself.
_ALONE = 3


def share(tensor: Tensor) -> None:
    """Move the memory of a tensor, and of all that look at it, into pages that forked processes share."""
    if tensor.is_shared():
        return
    storage = tensor._storage.root
    alone = tensor._storage is storage and sys.getrefcount(storage) <= _ALONE
    first, size = storage.data_ptr(), storage.nbytes
    holders = [tensor] if alone else _lookers(tensor, first, size)
    # Pages without a name: nothing is left behind when a process is killed.
    pages = np.frombuffer(mmap.mmap(-1, max(size, 1)), np.uint8)[:size]
    pages[:] = storage.bytes_view()
    memory = from_numpy(pages)
    memory._storage.root.shared = True
    for holder in holders:
        holder._set(_placed(holder.detach(), memory))


def _lookers(tensor: Tensor, first: int, size: int) -> list[Any]:
    """All tensors of this process whose values lie in a piece of memory, the given one first."""
    plain = state.tensor
    # By type(): isinstance asks objects for __class__, and some that are not ours warn or compute then.
    tensors = [o for o in gc.get_objects() if issubclass(type(o), plain)]
    # Tensors of a trace, which have no memory, may be alive, too.
    found = [o for o in tensors if not isinstance(o, Wrapped) and issubclass(type(o._data), np.ndarray)]
    others = [o for o in found if o is not tensor and o.numel() and first <= o.data_ptr() < first + size]
    return [tensor, *others]


def _placed(tensor: Tensor, memory: Tensor) -> Tensor:
    """The same view of other memory."""
    shape, stride, width = tuple(tensor.shape), tensor.stride(), tensor.element_size()
    whole = memory[: memory.numel() // width * width].view(tensor.dtype)
    if not tensor.numel():
        return F.reshape(whole[:0], shape)
    return F.as_strided(whole, shape, stride, tensor.storage_offset())
