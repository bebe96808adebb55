"""Device memory as tensors see it: storages that own blocks, and views with an address. Knows no
kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....core.layout import Spec
from ....core.storage import Storage
from .. import runtime as rt
from . import fast_path
from .allocator import Allocator, Pool
from .blocks import Block
from .faults import faults


class CudaStorage(Storage):
    """A block of device memory; goes back to its pool with the last tensor that sees it."""

    __slots__ = ("_nbytes", "block", "device", "ptr")

    device_type = "cuda"

    def __init__(self, nbytes: int, device: int) -> None:
        here = rt.here
        pool = here.pool if here.device == device else here.pool_of(device)
        block = pool.take(nbytes)
        self.block, self.ptr, self._nbytes, self.device = block, block.ptr, nbytes, device

    @property
    def nbytes(self) -> int:
        return self._nbytes

    @property
    def memory(self) -> Any:
        """The bytes on the host, copied."""
        return self.bytes_view()

    def bytes_view(self) -> np.ndarray[Any, Any]:
        out = np.empty(self._nbytes, np.uint8)
        to_host(out, self.ptr)
        return out

    def data_ptr(self) -> int:
        return self.ptr

    def __del__(self) -> None:
        # Interpreters shut down in any order; the driver takes all memory back then anyway.
        block = getattr(self, "block", None)
        if block is not None and rt is not None and not rt.runtime.forked:
            block.pool.give(block)

    def record_stream(self, device: int, stream: int) -> None:
        """Keep the memory, once it is let go of, until a stream has come so far as it is then."""
        block = self.block
        if block is not None and (device, stream) != (self.device, block.pool.stream):
            block.streams = {*(block.streams or ()), (device, stream)}


class ForeignStorage(CudaStorage):
    """Device memory of another library, kept alive by its owner."""

    __slots__ = ("owner",)

    def __init__(self, ptr: int, nbytes: int, device: int, owner: Any) -> None:
        self.ptr, self._nbytes, self.device, self.owner = ptr, nbytes, device, owner
        self.block = None


class View:
    """What kernels take: an address, the spec of what lies there, and the storage it is in."""

    __slots__ = ("ptr", "spec", "storage")

    def __init__(self, ptr: int, spec: Spec, storage: Any) -> None:
        self.ptr, self.spec, self.storage = ptr, spec, storage

    def __repr__(self) -> str:
        return f"View({self.ptr:#x}, {self.spec})"


fast_path.memory(View, CudaStorage, Block, Pool, Allocator)


def _empty(spec: Spec) -> View:
    storage = CudaStorage(spec.nbytes, spec.device.index or 0)
    return View(storage.ptr, spec, storage)


# empty(spec): new device memory seen through a spec.
empty: Callable[[Spec], View] = fast_path.new_view or _empty


def zero(v: View) -> None:
    """Set dense memory to zero."""
    if v.spec.nbytes:
        rt.runtime.driver.fill_bytes(v.ptr, 0, v.spec.nbytes, rt.here.stream)


def wait() -> None:
    """Let the host wait for the current stream; errors that kernels found are raised here."""
    rt.waiting()
    rt.runtime.driver.wait_stream(rt.here.stream)
    faults.check()


def to_host(array: np.ndarray[Any, Any], ptr: int) -> None:
    """Fill a C-contiguous array from device memory, and wait for it."""
    if array.nbytes:
        driver, stream = rt.runtime.driver, rt.here.stream
        driver.to_host(array.__array_interface__["data"][0], ptr, array.nbytes, stream)
        wait()


def to_device(ptr: int, array: np.ndarray[Any, Any]) -> None:
    """Fill device memory from a C-contiguous array. Pageable memory is staged before it returns."""
    if array.nbytes:
        if rt.here.capturing:
            rt.here.kept.append(array)  # the graph reads it at each replay
        rt.runtime.driver.to_device(ptr, array.__array_interface__["data"][0], array.nbytes, rt.here.stream)
