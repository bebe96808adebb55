"""The caching allocator of device memory: blocks that are split, merged and reused in stream order.
Knows addresses and streams, not tensors.

A freed block goes to a bin of its own size first, where the next request of that size finds it in
constant time: programs repeat themselves. Bins are emptied into the merging free list only when
neither serves. Work on one stream runs in order, so a block may be handed out again on its stream
while the device still reads it; other streams that used it (`record_stream`) are waited for.
Every call makes the right device the thread's by itself: garbage is collected in any thread.
The native module takes blocks from their bins and puts them back as `_take` and `put` do.
"""

from __future__ import annotations

import threading
from bisect import bisect_left, insort
from collections import Counter
from typing import Any

from ....core.errors import OutOfMemoryError, size_text
from .blocks import Block, Marks, Segment
from .driver import OutOfDeviceMemory

ROUND = 512
SMALL = 1 << 20  # requests up to this share segments
SMALL_SEGMENT = 2 << 20
SMALL_MEMORY = 64 << 20  # of a stream, before small blocks are merged to find room
LARGE_ROUND = 2 << 20
# A block this much larger than asked for is split.
KEEP_WHOLE = 1 << 20


def _rounded(nbytes: int) -> int:
    return (nbytes + ROUND - 1) // ROUND * ROUND or ROUND


class _Size:
    """A key for bisecting lists of blocks."""

    __slots__ = ("nbytes", "ptr")

    def __init__(self, nbytes: int) -> None:
        self.nbytes, self.ptr = nbytes, 0


class Pool:
    """The blocks of one device and stream, or those of one graph."""

    __slots__ = ("allocator", "bins", "merged", "parked", "private", "segments", "stream", "users")

    def __init__(self, allocator: Allocator, stream: int, private: bool = False) -> None:
        self.allocator, self.stream, self.private = allocator, stream, private
        self.bins: dict[int, list[Block]] = {}
        self.merged: dict[bool, list[Block]] = {True: [], False: []}
        self.segments: list[Segment] = []
        self.parked: list[Block] = []  # a graph's, used by several of its streams
        self.users = 0  # graphs that share it

    def take(self, nbytes: int) -> Block:
        """A block of at least `nbytes` bytes."""
        a = self.allocator
        with a.lock:
            a.busy += 1
            try:
                if a.late:
                    a.settle()
                return self._take(nbytes)
            finally:
                a.busy -= 1

    def _take(self, nbytes: int) -> Block:
        size = _rounded(nbytes)
        bin_ = self.bins.get(size)
        block = bin_.pop() if bin_ else self._search(size)
        block.free, block.wanted = False, nbytes
        a = self.allocator
        a.allocated += block.nbytes
        a.taken += 1
        if a.allocated > a.peak:
            a.peak = a.allocated
        return block

    def give(self, block: Block) -> None:
        """Take a block back.

        Python may collect garbage, and so let go of tensors, in the middle of anything: also of
        `take` and `merge`, whose lists must not change under them. Such blocks wait.
        """
        a = self.allocator
        if a.busy:
            a.late.append(block)
            return
        with a.lock:
            a.busy += 1
            try:
                block.pool._give(block)
            finally:
                a.busy -= 1

    def _give(self, block: Block) -> None:
        if block.streams and not self.private:
            if not Marks.possible(self.allocator.driver, block.streams):
                self.allocator.late.append(block)
                return
        self.allocator.allocated -= block.nbytes
        if block.streams and self.private:
            self.parked.append(block)
            return
        if block.streams:
            self.allocator.postpone(block)
            return
        self.put(block)

    def put(self, block: Block) -> None:
        block.free = True
        # Under the size that it served: a block that was kept whole is larger than that.
        self.bins.setdefault(_rounded(block.wanted), []).append(block)

    def _search(self, size: int) -> Block:
        self.allocator.reap()
        found = self._fit(size)
        # Merging what is free takes time, and bins fill anew: for small blocks memory is cheaper.
        if found is None and self.bins and (size > SMALL or self._small() >= SMALL_MEMORY):
            self.merge()
            found = self._fit(size)
        return found or self._split(self._grow(size), size)

    def _small(self) -> int:
        """Bytes of segments for small blocks."""
        return sum(s.nbytes for s in self.segments if s.small)

    def _fit(self, size: int) -> Block | None:
        free = self.merged[size <= SMALL]
        at = bisect_left(free, _Size(size))  # type: ignore[call-overload]  # blocks compare with sizes
        if at == len(free):
            return None
        # Cutting a large block for a middling request leaves pieces nobody asks for.
        if size > SMALL and free[at].nbytes > 8 * size and free[at].nbytes > 256 << 20:
            return None
        return self._split(free.pop(at), size)

    def _split(self, block: Block, size: int) -> Block:
        rest = block.nbytes - size
        if rest < (ROUND if block.segment.small else KEEP_WHOLE):
            return block
        other = Block(block.ptr + size, rest, block.segment, self)
        block.nbytes = size
        other.before, other.after = block, block.after
        if block.after is not None:
            block.after.before = other
        block.after = other
        insort(self.merged[block.segment.small], other)
        return block

    def _grow(self, size: int) -> Block:
        small = size <= SMALL
        nbytes = SMALL_SEGMENT if small else (size + LARGE_ROUND - 1) // LARGE_ROUND * LARGE_ROUND
        ptr = self.allocator.segment(nbytes, size)
        segment = Segment(nbytes, small)
        segment.first = Block(ptr, nbytes, segment, self)
        self.segments.append(segment)
        return segment.first

    def merge(self) -> None:
        """Empty the bins, joining free neighbours."""
        for bin_ in self.bins.values():
            for block in bin_:
                insort(self.merged[block.segment.small], block)
        self.bins = {}
        for small, free in self.merged.items():
            combined: list[Block] = []
            gone: set[int] = set()
            for block in sorted(free, key=lambda b: b.ptr):
                if id(block) in gone:
                    continue
                while block.after is not None and block.after.free:
                    other = block.after
                    gone.add(id(other))
                    block.nbytes += other.nbytes
                    block.after = other.after
                    if other.after is not None:
                        other.after.before = block
                combined.append(block)
            combined.sort()
            self.merged[small] = combined

    def release(self) -> int:
        """Give whole free segments back to the driver; says how many bytes."""
        self.merge()
        given = 0
        for segment in list(self.segments):
            first = segment.first
            assert first is not None
            if first.free and first.nbytes == segment.nbytes:
                self.merged[segment.small].remove(first)
                self.segments.remove(segment)
                with self.allocator.driver.on(self.allocator.device):
                    self.allocator.driver.free(first.ptr)
                self.allocator.reserved -= segment.nbytes
                given += segment.nbytes
        return given

    def blocks(self) -> list[Block]:
        out = []
        for segment in self.segments:
            block = segment.first
            while block is not None:
                out.append(block)
                block = block.after
        return out


class Allocator:
    """All pools of one device, with statistics."""

    __slots__ = (
        "allocated",
        "busy",
        "device",
        "driver",
        "failures",
        "fraction",
        "grown",
        "late",
        "lock",
        "peak",
        "pools",
        "private",
        "reserved",
        "reserved_peak",
        "retries",
        "taken",
        "waiting",
    )

    def __init__(self, driver: Any, device: int) -> None:
        self.driver, self.device = driver, device
        self.pools: dict[int, Pool] = {}
        self.private: list[Pool] = []
        self.waiting: list[tuple[Block, Marks]] = []
        self.allocated = self.peak = self.reserved = self.reserved_peak = 0
        self.taken = self.grown = self.retries = self.failures = 0
        self.fraction = 1.0
        self.lock = threading.RLock()
        self.busy = 0  # somebody is changing the lists
        self.late: list[Block] = []  # given back meanwhile

    def settle(self) -> None:
        """Take back what was given while the lists were being changed."""
        late, self.late = self.late, []
        for block in late:
            block.pool._give(block)

    def pool(self, stream: int) -> Pool:
        found = self.pools.get(stream)
        if found is None:  # another thread may come first
            found = self.pools.setdefault(stream, Pool(self, stream))
        return found

    def private_pool(self, stream: int) -> Pool:
        """A pool of its own for a graph: its addresses stay what they were when it was captured."""
        pool = Pool(self, stream, private=True)
        self.private.append(pool)
        return pool

    def drop(self, pool: Pool) -> None:
        """A graph is gone: its memory may serve others once no graph and no tensor uses it."""
        pool.users -= 1
        if pool in self.private and pool.users <= 0:
            self.private.remove(pool)
            home = self.pool(pool.stream)
            for block in pool.parked:
                block.streams = None
                pool.put(block)
            pool.parked = []
            for segment in pool.segments:
                part: Block | None = segment.first
                while part is not None:
                    part.pool = home
                    part = part.after
            pool.merge()
            home.segments += pool.segments
            for small, free in pool.merged.items():
                for block in free:
                    insort(home.merged[small], block)
            pool.segments, pool.merged = [], {True: [], False: []}

    def segment(self, nbytes: int, wanted: int) -> int:
        """Fresh memory from the driver, after freeing what is cached if need be."""
        with self.driver.on(self.device):
            return self._segment(nbytes, wanted)

    def _segment(self, nbytes: int, wanted: int) -> int:
        limit = self.fraction < 1.0 and self.reserved + nbytes > (self.fraction * self.driver.memory_info()[1])
        try:
            if limit:
                raise OutOfDeviceMemory
            ptr = self.driver.alloc(nbytes)
        except OutOfDeviceMemory:
            self.retries += 1
            self.driver.synchronize()
            self.reap()
            if not self.empty_cache() and limit:
                self._fail(wanted)
            try:
                ptr = self.driver.alloc(nbytes)
            except OutOfDeviceMemory:
                self._fail(wanted)
        self.grown += 1
        self.reserved += nbytes
        self.reserved_peak = max(self.reserved_peak, self.reserved)
        return int(ptr)

    def _fail(self, wanted: int) -> None:
        self.failures += 1
        free, total = self.driver.memory_info()
        largest = Counter(b.wanted for p in self.every() for b in p.blocks() if not b.free)
        top = sorted(largest.items(), key=lambda kv: -kv[0] * kv[1])[:4]
        held = ", ".join(f"{n} x {size_text(size)}" for size, n in top) or "nothing"
        raise OutOfMemoryError(
            f"cuda:{self.device}: out of memory asking for {size_text(wanted)}. Of "
            f"{size_text(total)}, {size_text(free)} are free; votive holds "
            f"{size_text(self.allocated)} in tensors and "
            f"{size_text(self.reserved - self.allocated)} in its cache. The most is in "
            f"{held}. Free tensors, use smaller batches, or look at "
            "votive.cuda.memory_summary()."
        )

    def postpone(self, block: Block) -> None:
        """Keep a block until the streams that used it have come so far."""
        marks = Marks(self.driver, block.streams or set())
        block.streams = None
        self.waiting.append((block, marks))

    def reap(self) -> None:
        """Take back the blocks whose other streams are done."""
        still = []
        for block, marks in self.waiting:
            if marks.reached():
                block.pool.put(block)
            else:
                still.append((block, marks))
        self.waiting = still

    def every(self) -> list[Pool]:
        return [*self.pools.values(), *self.private]

    def empty_cache(self) -> int:
        """Give free memory back to the driver; graphs keep theirs."""
        with self.lock:
            self.busy += 1
            try:
                self.settle()
                self.reap()
                return sum(pool.release() for pool in self.pools.values())
            finally:
                self.busy -= 1

    def stats(self) -> dict[str, int]:
        return {
            "allocated_bytes.current": self.allocated,
            "allocated_bytes.peak": self.peak,
            "reserved_bytes.current": self.reserved,
            "reserved_bytes.peak": self.reserved_peak,
            "allocation.count": self.taken,
            "segment.count": sum(len(p.segments) for p in self.every()),
            "num_device_alloc": self.grown,
            "num_alloc_retries": self.retries,
            "num_ooms": self.failures,
        }

    def reset_peak(self) -> None:
        self.peak, self.reserved_peak = self.allocated, self.reserved

    def reset_counts(self) -> None:
        self.taken = self.grown = self.retries = self.failures = 0
