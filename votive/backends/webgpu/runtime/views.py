"""Memory of the device as tensors see it: storages that own buffers, and views of them. Knows no kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.errors import WebGpuError
from ....core.layout import Spec
from ....core.mode import mode
from ....core.storage import Storage
from . import runtime as rt
from .allocator import Buffer


class WebGpuStorage(Storage):
    """A buffer of the device; goes back to the allocator with the last tensor that sees it."""

    __slots__ = ("_buffer", "_nbytes", "_owner")

    device_type = "webgpu"

    def __init__(self, nbytes: int) -> None:
        self._buffer: Buffer | None = None
        self._nbytes, self._owner = nbytes, mode.module_path
        self._buffer = rt.allocator.take(nbytes, self._owner)

    @property
    def buffer(self) -> Buffer:
        found = self._buffer
        if found is None:
            raise WebGpuError("this tensor was disposed of: its memory was given back; compute it again.")
        return found

    @property
    def nbytes(self) -> int:
        return self._nbytes

    @property
    def memory(self) -> Any:
        """The bytes on the host, copied."""
        return self.bytes_view()

    def bytes_view(self) -> np.ndarray[Any, Any]:
        if not self._nbytes:
            return np.empty(0, np.uint8)
        data = rt.download(self.buffer, 0, self._nbytes + -self._nbytes % 4)
        return np.frombuffer(data, np.uint8)[: self._nbytes].copy()

    def data_ptr(self) -> int:
        """A number that tells memories apart: WebGPU has no addresses."""
        return self.buffer.number << 40

    def release(self) -> None:
        """Give the memory back now; whoever uses it then hears of it."""
        buffer, self._buffer = self._buffer, None
        if buffer is not None:
            rt.allocator.give(buffer, self._owner)

    def __del__(self) -> None:
        # Interpreters shut down in any order; the driver takes all memory back then anyway.
        if getattr(self, "_buffer", None) is not None and rt is not None:
            self.release()


class View:
    """What kernels take: a storage, the element of it that is the first, and the spec of what lies there."""

    __slots__ = ("offset", "spec", "storage")

    def __init__(self, storage: Any, offset: int, spec: Spec) -> None:
        self.storage, self.offset, self.spec = storage, offset, spec

    def __repr__(self) -> str:
        return f"View({self.offset}, {self.spec})"


def empty(spec: Spec) -> View:
    """New memory seen through a spec."""
    return View(WebGpuStorage(spec.nbytes), 0, spec)


def to_host(v: View, nbytes: int) -> np.ndarray[Any, Any]:
    """Bytes of the memory from a view's first element on; waits for the device."""
    start = v.offset * v.spec.dtype.itemsize
    lead = start % 4
    size = nbytes + lead
    data = rt.download(v.storage.buffer, start - lead, size + -size % 4)
    return np.frombuffer(data, np.uint8)[lead : lead + nbytes]


def to_device(storage: WebGpuStorage, flat: np.ndarray[Any, Any]) -> None:
    """Fill new memory from a contiguous array."""
    nbytes = flat.nbytes
    if not nbytes:
        return
    data = flat.reshape(-1).view(np.uint8)
    if nbytes % 4:
        data = np.concatenate([data, np.zeros(-nbytes % 4, np.uint8)])
    rt.upload(storage.buffer, data)
