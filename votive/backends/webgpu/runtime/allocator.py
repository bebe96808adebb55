"""Memory of the device: buffers by size class, handed out again, with statistics by owner. Knows no tensors.

Each storage has a buffer of its own: a kernel may not read and write one buffer through two bindings.
"""

from __future__ import annotations

import threading
from collections import Counter
from typing import TYPE_CHECKING, Any

from ....core.errors import OutOfMemoryError, UnsupportedError, caller, size_text

if TYPE_CHECKING:
    from . import Runtime


class Buffer:
    """Memory of the device, numbered so that groups of buffers are found again."""

    __slots__ = ("batch", "handle", "nbytes", "number")
    _count = 0

    def __init__(self, handle: Any, nbytes: int) -> None:
        Buffer._count += 1
        self.handle, self.nbytes, self.number = handle, nbytes, Buffer._count
        self.batch = 0  # the batch that last used it


def size_class(nbytes: int) -> int:
    """Round up so that buffers can be used again: steps of an eighth of a power of two."""
    if nbytes <= 1024:
        return max(64, 1 << (nbytes - 1).bit_length() if nbytes > 1 else 64)
    step = 1 << ((nbytes - 1).bit_length() - 4)
    return (nbytes + step - 1) // step * step


class Allocator:
    """Free lists of buffers by size class."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self.free: dict[int, list[Buffer]] = {}
        # Whoever holds a storage in a cycle of garbage would let Python finalise the buffer with it, although the
        # storage hands it back here; so all of them are held.
        self.held: set[Buffer] = set()
        self.lock = threading.RLock()  # a storage may die while memory is taken
        self.allocated = self.peak = self.cached = self.hits = self.misses = 0
        self.owners: Counter[str] = Counter()

    def take(self, nbytes: int, owner: str) -> Buffer:
        """A buffer of at least so many bytes, with arbitrary content."""
        size = size_class(nbytes)
        with self.lock:
            stack = self.free.get(size)
            found = stack.pop() if stack else None
            if found is not None:
                self.cached -= size
                self.hits += 1
        if found is None:
            found = self._new(size, nbytes)
        with self.lock:
            self.allocated += size
            self.peak = max(self.peak, self.allocated)
            self.owners[owner] += size
        return found

    def _new(self, size: int, nbytes: int) -> Buffer:
        gpu = self._runtime.gpu
        if size > gpu.max_binding:
            size = nbytes + -nbytes % 4
        if size > gpu.max_binding:
            raise UnsupportedError(
                f"{caller.name()}: a tensor of {size_text(nbytes)} is more than this WebGPU device lets a kernel see "
                f"at once ({size_text(gpu.max_binding)}); split it, or keep it on the CPU."
            )
        self.misses += 1
        try:
            return self._hold(size)
        except OutOfMemoryError:
            self.empty_cache()
        try:
            return self._hold(size)
        except OutOfMemoryError:
            raise OutOfMemoryError(
                f"{caller.name()}: out of memory on the WebGPU device: it takes {size_text(nbytes)} ({nbytes:,} "
                f"bytes); votive holds {size_text(self.allocated)} in tensors. Free tensors, or use smaller sizes."
            ) from None

    def _hold(self, size: int) -> Buffer:
        made = Buffer(self._runtime.gpu.buffer(size), size)
        self.held.add(made)
        return made

    def give(self, buffer: Buffer, owner: str) -> None:
        """Take a buffer back."""
        with self.lock:
            size = buffer.nbytes
            self.allocated -= size
            self.cached += size
            self.owners[owner] -= size
            if not self.owners[owner]:
                del self.owners[owner]
            self.free.setdefault(size, []).append(buffer)

    def empty_cache(self) -> None:
        """Give every free buffer back to the driver."""
        with self._runtime.lock:
            self._runtime.flush()
            self._runtime.forget_groups()
            with self.lock:
                for stack in self.free.values():
                    for buffer in stack:
                        self._runtime.gpu.free(buffer.handle)
                        self.held.discard(buffer)
                self.free.clear()
                self.cached = 0

    def stats(self) -> dict[str, int]:
        """Bytes in use, at peak and cached, and how often a free buffer served."""
        return {
            "allocated_bytes": self.allocated,
            "peak_bytes": self.peak,
            "cached_bytes": self.cached,
            "hits": self.hits,
            "misses": self.misses,
        }
