"""Blocks of memory, and the caching allocator of the CPU. Knows bytes, not tensors.

Fresh pages are what makes large elementwise work slow: the kernel zeroes each page on first touch.
So blocks go back to a free list and are handed out again. A block is reused only when nobody else
can see it: NumPy views keep their owner alive, so the owner's reference count tells.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from .device import DeviceLike
from .errors import OutOfMemoryError, caller, size_text

ALIGNMENT = 64
# Below this size malloc is as fast as a free list and touches no fresh pages.
SMALL = 1024
_MIN_CLASS = 4096


class Storage:
    """One block of device memory with a version that counts in-place writes."""

    # Plain attributes with class defaults: making a storage must set as little as possible.
    version = 0
    elsewhere = 0  # writes that other versions of this memory counted
    owned = True
    readonly = False  # memory of another object that must not be written
    shared = False  # forked processes see what is written
    device_type = "cpu"
    memory: Any

    def __init__(self, memory: Any) -> None:
        self.memory = memory

    @property
    def root(self) -> Storage:
        """What holds the memory: equal where two storages are one block."""
        return self

    @property
    def writes(self) -> int:
        """All in-place writes to the memory, whoever counted them."""
        return self.version + self.elsewhere

    @property
    def nbytes(self) -> int:
        return int(self.memory.nbytes)

    def bytes_view(self) -> np.ndarray[Any, Any]:
        """The whole block as bytes."""
        m = self.memory
        if m.dtype == np.uint8 and m.ndim == 1:
            return m
        return np.ndarray((m.nbytes,), np.uint8, m)

    def data_ptr(self) -> int:
        return int(self.memory.__array_interface__["data"][0])

    def is_pinned(self, device: DeviceLike = None) -> bool:
        """Whether the pages are locked, so that a GPU copies them without the processor."""
        return self.device_type == "cpu" and memory.is_pinned(self.data_ptr())


class AliasStorage(Storage):
    """The memory of another storage with a version of its own: what is written through it is not
    noticed by backward. The rest is the other's.
    """

    def __init__(self, storage: Storage, version: int = 0) -> None:
        self._root, self._version = storage.root, version
        self.owned, self.device_type = self._root.owned, self._root.device_type
        self.readonly = self._root.readonly

    @property
    def root(self) -> Storage:
        return self._root

    @property
    def version(self) -> int:
        return self._version

    @version.setter
    def version(self, value: int) -> None:
        self._root.elsewhere += value - self._version
        self._version = value

    @property
    def writes(self) -> int:
        return self._root.writes

    @property
    def nbytes(self) -> int:
        return self._root.nbytes

    def bytes_view(self) -> np.ndarray[Any, Any]:
        return self._root.bytes_view()

    def data_ptr(self) -> int:
        return self._root.data_ptr()

    def __getattr__(self, name: str) -> Any:
        # Only reached for what the class has not: memory, and what devices add.
        if name[:1] == "_":
            raise AttributeError(name)
        return getattr(self._root, name)


class _Memory:
    """What a GPU's backend knows of the host's memory, once it is in use."""

    is_pinned: Callable[[int], bool] = staticmethod(lambda address: False)


memory = _Memory()


class CachedStorage(Storage):
    """A storage whose block returns to the allocator when the last tensor lets go of it."""

    def __del__(self) -> None:
        # The interpreter may be shutting down, when globals are already gone.
        if _release is not None:
            _release(self.memory)


def size_class(nbytes: int) -> int:
    """Round up so that blocks can be reused: steps of an eighth of a power of two."""
    if nbytes <= _MIN_CLASS:
        return max(ALIGNMENT, (nbytes + 511) // 512 * 512)
    step = 1 << (nbytes.bit_length() - 4)
    return (nbytes + step - 1) // step * step


class Allocator:
    """Free lists of aligned blocks by size class, with statistics."""

    def __init__(self) -> None:
        self.free: dict[int, list[np.ndarray[Any, Any]]] = {}
        self.lock = threading.Lock()
        self.allocated = 0
        self.peak = 0
        self.cached = 0
        self.hits = 0
        self.misses = 0
        self._limit: int | None = None
        self.source: Any = None  # the native module, when it hands out the blocks

    @property
    def limit(self) -> int | None:
        return self._limit

    @limit.setter
    def limit(self, nbytes: int | None) -> None:
        self._limit = nbytes
        if self.source is not None:
            self.source.set_cache_limit(-1 if nbytes is None else nbytes)

    def block(self, nbytes: int) -> np.ndarray[Any, Any]:
        """An aligned block of at least `nbytes` bytes with arbitrary content."""
        if self.source is not None:
            try:
                return self.source.block(nbytes)
            except MemoryError:
                self.fail(nbytes)
        size = size_class(nbytes)
        found = None
        with self.lock:
            stack = self.free.get(size)
            if stack:
                found = stack.pop()
                self.cached -= size
                self.hits += 1
            self.allocated += size
            if self.allocated > self.peak:
                self.peak = self.allocated
        if found is not None:
            return found
        self.misses += 1
        try:
            raw = np.empty(size + ALIGNMENT, np.uint8)
        except MemoryError:
            self.empty_cache()
            try:
                raw = np.empty(size + ALIGNMENT, np.uint8)
            except MemoryError:
                with self.lock:
                    self.allocated -= size
                self.fail(nbytes)
        start = -raw.__array_interface__["data"][0] % ALIGNMENT
        return raw[start : start + size]

    def fail(self, nbytes: int, what: str = "it", op: str = "") -> NoReturn:
        """Raise the error for memory that is not there."""
        raise OutOfMemoryError(
            f"{op or caller.name()}: out of memory on the CPU: {what} takes {size_text(nbytes)} "
            f"({nbytes:,} bytes); votive holds {size_text(self.stats()['allocated_bytes'])} in "
            "tensors. Free tensors, or use smaller sizes."
        ) from None

    def release(self, block: np.ndarray[Any, Any]) -> None:
        """Take a block back; drop it when somebody still sees it or the cache is full."""
        size = block.nbytes
        raw = block.base
        # References to the raw owner: block.base, the local, the argument. Any view adds one.
        reusable = sys.getrefcount(raw) <= _RAW_REFS and sys.getrefcount(block) <= _BLOCK_REFS
        with self.lock:
            self.allocated -= size
            if reusable and (self.limit is None or self.cached + size <= self.limit):
                self.free.setdefault(size, []).append(block)
                self.cached += size

    def count(self, nbytes: int) -> None:
        """Count memory that somebody else allocated (or, if negative, gave back)."""
        if self.source is not None:
            self.source.count(nbytes)
            return
        self.allocated += nbytes
        if self.allocated > self.peak:
            self.peak = self.allocated

    def empty_cache(self) -> None:
        """Give every cached block back to the system."""
        if self.source is not None:
            self.source.empty_cache()
        with self.lock:
            self.free.clear()
            self.cached = 0

    def stats(self) -> dict[str, int]:
        """Counts of bytes in use, at peak, and cached, and how often the cache served."""
        names = ("allocated_bytes", "peak_bytes", "cached_bytes", "hits", "misses")
        if self.source is not None:
            return dict(zip(names, self.source.memory_stats(), strict=True))
        counts = (self.allocated, self.peak, self.cached, self.hits, self.misses)
        return dict(zip(names, counts, strict=True))

    def reset_peak(self) -> None:
        if self.source is not None:
            self.source.reset_peak()
        self.peak = self.allocated


cpu_allocator = Allocator()
if hasattr(os, "register_at_fork"):
    # Another thread may hold the lock at the moment of a fork; the child must not wait for it.
    os.register_at_fork(after_in_child=lambda: setattr(cpu_allocator, "lock", threading.Lock()))


def _calibrate() -> tuple[int, int]:
    """What the two reference counts read inside `release` when nobody else holds the block."""
    seen: list[int] = []

    class Probe(Allocator):
        def release(self, block: np.ndarray[Any, Any]) -> None:
            size = block.nbytes
            raw = block.base
            seen.append(sys.getrefcount(raw) + 0 * size)
            seen.append(sys.getrefcount(block))

    probe = Probe()

    class Holder:
        memory: Any

        def __del__(self) -> None:
            probe.release(self.memory)

    h = Holder()
    h.memory = probe.block(8192)
    del h
    return seen[0], seen[1]


_RAW_REFS, _BLOCK_REFS = _calibrate()
_release: Any = cpu_allocator.release


def new_cpu(nbytes: int) -> Storage:
    """A storage of `nbytes` bytes on the CPU with arbitrary content."""
    if nbytes < SMALL:
        return Storage(np.empty(nbytes, np.uint8))
    return held(cpu_allocator.block(nbytes))


def held(block: np.ndarray[Any, Any]) -> Storage:
    """A storage for a block of the allocator; the native module's find their way back alone."""
    return Storage(block) if cpu_allocator.source is not None else CachedStorage(block)


class Foreign:
    """Lets NumPy see a range of somebody else's memory and keeps its owner alive."""

    def __init__(self, address: int, nbytes: int, readonly: bool, owner: object) -> None:
        self.owner = owner
        self.__array_interface__ = {"version": 3, "data": (address, readonly), "shape": (nbytes,), "typestr": "|u1"}


def wrap_array(array: np.ndarray[Any, Any]) -> tuple[Storage, int]:
    """A storage over the memory of a NumPy array, and the byte offset of its first element."""
    if array.size == 0:
        return Storage(np.empty(0, np.uint8)), 0
    readonly = not array.flags.writeable
    offset = 0
    if not array.flags.c_contiguous:
        low, high = np.lib.array_utils.byte_bounds(array)
        offset = array.__array_interface__["data"][0] - low
        array = np.asarray(Foreign(low, high - low, readonly, array))
    s = Storage(array)
    if readonly:
        s.readonly = True
    return s, offset
