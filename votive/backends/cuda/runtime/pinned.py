"""Page-locked memory of the host: blocks that copies to and from a GPU use without waiting. Knows
addresses and streams, not tensors.

Locking pages is slow, so blocks are kept and handed out again, by powers of two. A block whose
owner is gone may still be read by a copy under way: it waits until the streams that used it have
come so far.
"""

from __future__ import annotations

import threading
from bisect import bisect_right, insort
from typing import Any

import numpy as np

from ....core.errors import OutOfMemoryError, size_text
from ....core.storage import Storage
from .. import runtime as rt
from .blocks import Marks
from .driver import OutOfDeviceMemory

LEAST = 4096  # a page


class HostBlock:
    """A range of page-locked memory, and the streams whose copies use it."""

    __slots__ = ("address", "nbytes", "streams")

    def __init__(self, address: int, nbytes: int) -> None:
        self.address, self.nbytes = address, nbytes
        self.streams: set[tuple[int, int]] = set()  # (device, stream)


class HostAllocator:
    """All page-locked memory, with statistics."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver
        self.free: dict[int, list[HostBlock]] = {}
        self.waiting: list[tuple[HostBlock, Marks]] = []
        self.late: list[HostBlock] = []  # given back while the lists were being changed
        self.starts: list[int] = []
        self.blocks: dict[int, HostBlock] = {}
        self.lock = threading.RLock()
        self.busy = 0
        self.allocated = self.peak = self.reserved = self.reserved_peak = 0
        self.taken = self.grown = 0

    def take(self, nbytes: int) -> HostBlock:
        """A block of at least `nbytes` bytes."""
        size = 1 << max(nbytes - 1, LEAST - 1).bit_length()
        with self.lock:
            self.busy += 1
            try:
                self.settle()
                self.reap()
                kept = self.free.get(size)
                block = kept.pop() if kept else self._grow(size)
                self.allocated += size
                self.peak = max(self.peak, self.allocated)
                self.taken += 1
                return block
            finally:
                self.busy -= 1

    def _grow(self, size: int) -> HostBlock:
        try:
            address = self._lock(size)
        except OutOfDeviceMemory:
            self._release()
            try:
                address = self._lock(size)
            except OutOfDeviceMemory:
                raise OutOfMemoryError(
                    f"pin_memory: {size_text(size)} cannot be page-locked; votive holds "
                    f"{size_text(self.allocated)} of such memory. Pin less, or use fewer workers "
                    "and a smaller prefetch_factor."
                ) from None
        self.grown += 1
        self.reserved += size
        self.reserved_peak = max(self.reserved_peak, self.reserved)
        block = self.blocks[address] = HostBlock(address, size)
        insort(self.starts, address)
        return block

    def _lock(self, size: int) -> int:
        # The thread of a loader has no device of its own.
        with self.driver.somewhere():
            return int(self.driver.alloc_pinned(size))

    def give(self, block: HostBlock) -> None:
        """Take a block back. It may come in the middle of `take`, from the garbage collector."""
        if self.busy:
            self.late.append(block)
            return
        with self.lock:
            self.busy += 1
            try:
                self._give(block)
            finally:
                self.busy -= 1

    def _give(self, block: HostBlock) -> None:
        if block.streams and not Marks.possible(self.driver, block.streams):
            self.late.append(block)
            return
        self.allocated -= block.nbytes
        if block.streams:
            marks = Marks(self.driver, block.streams)
            block.streams = set()
            self.waiting.append((block, marks))
        else:
            self.free.setdefault(block.nbytes, []).append(block)

    def settle(self) -> None:
        """Take back what was given while the lists were being changed."""
        late, self.late = self.late, []
        for block in late:
            self._give(block)

    def reap(self) -> None:
        """Make blocks free whose copies are done."""
        still = []
        for block, marks in self.waiting:
            if marks.reached():
                self.free.setdefault(block.nbytes, []).append(block)
            else:
                still.append((block, marks))
        self.waiting = still

    def find(self, address: int) -> HostBlock | None:
        """The block that an address lies in."""
        with self.lock:
            at = bisect_right(self.starts, address) - 1
            block = self.blocks[self.starts[at]] if at >= 0 else None
        return block if block is not None and address < block.address + block.nbytes else None

    def _release(self) -> int:
        """Unlock what nobody uses."""
        given = 0
        for kept in self.free.values():
            for block in kept:
                self.starts.remove(block.address)
                del self.blocks[block.address]
                with self.driver.somewhere():
                    self.driver.free_pinned(block.address)
                given += block.nbytes
        self.free = {}
        self.reserved -= given
        return given

    def empty_cache(self) -> int:
        """Give memory that nobody uses back to the system; says how many bytes."""
        with self.lock:
            self.busy += 1
            try:
                self.settle()
                self.reap()
                return self._release()
            finally:
                self.busy -= 1

    def stats(self) -> dict[str, int]:
        with self.lock:
            if not self.busy:
                self.settle()
        return {
            "allocated_bytes.current": self.allocated,
            "allocated_bytes.peak": self.peak,
            "reserved_bytes.current": self.reserved,
            "reserved_bytes.peak": self.reserved_peak,
            "allocations.allocated": self.taken,
            "num_host_alloc": self.grown,
        }

    def reset_peak(self) -> None:
        self.peak, self.reserved_peak = self.allocated, self.reserved


_made: list[HostAllocator] = []


def hosts() -> HostAllocator:
    """The allocator, made when it is first needed."""
    if not _made:
        with rt.runtime.lock:
            if not _made:
                _made.append(HostAllocator(rt.runtime.start()))
    return _made[0]


class _Owner:
    """Lets NumPy see a block; gives it back when the last array over it is gone."""

    __slots__ = ("__array_interface__", "block")

    def __init__(self, block: HostBlock, nbytes: int) -> None:
        self.block = block
        self.__array_interface__ = {"version": 3, "data": (block.address, False), "shape": (nbytes,), "typestr": "|u1"}

    def __del__(self) -> None:
        # A forked child has copies of its parent's blocks; at the end of a program nothing is left.
        if rt is not None and _made and not rt.runtime.forked:
            _made[0].give(self.block)


class PinnedStorage(Storage):
    """Memory of the host that a GPU can reach by itself."""

    def __init__(self, nbytes: int) -> None:
        self.memory = np.asarray(_Owner(hosts().take(nbytes), nbytes))


def used(address: int) -> bool:
    """Note that a copy on the current stream uses memory of the host; whether it is page-locked."""
    block = _made[0].find(address) if _made else None
    if block is None:
        return False
    block.streams.add((rt.here.device, rt.here.stream))
    return True


def is_pinned(address: int) -> bool:
    """Whether memory of the host is page-locked, by votive or by somebody else."""
    if _made and _made[0].find(address) is not None:
        return True
    driver = rt.runtime.driver
    if driver is None or rt.runtime.forked:
        return False
    with driver.somewhere():
        return bool(driver.is_pinned(address))
