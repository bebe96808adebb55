"""The caching allocator, on memory of the host."""

from __future__ import annotations

import gc
import random
from itertools import pairwise
from typing import Any

import pytest

from votive.backends.cuda.emulated.driver import Emulated
from votive.backends.cuda.runtime.allocator import ROUND, SMALL, SMALL_SEGMENT, Allocator
from votive.core.errors import OutOfMemoryError, size_text

from .device import anywhere

pytestmark = anywhere
MIB = 1 << 20


class Slow(Emulated):
    """Events happen when the test says so."""

    def __init__(self, total: int = 64 * MIB) -> None:
        super().__init__(total)
        self.done: set[int] = set()
        self.ended: list[int] = []

    def event_done(self, event: int) -> bool:
        return event in self.done

    def end_event(self, event: int) -> None:
        self.ended.append(event)


@pytest.fixture
def allocator() -> Allocator:
    return Allocator(Slow(), 0)


def chain(pool: Any) -> list[tuple[int, int, bool]]:
    """Every block of a pool; neighbours must lie side by side and know each other."""
    for segment in pool.segments:
        block, at, seen = segment.first, segment.first.ptr, 0
        while block is not None:
            assert block.ptr == at
            assert block.after is None or block.after.before is block
            at, seen = at + block.nbytes, seen + block.nbytes
            block = block.after
        assert seen == segment.nbytes
    return [(b.ptr, b.nbytes, b.free) for b in pool.blocks()]


def test_small_requests_share_a_segment_and_do_not_overlap(allocator: Allocator) -> None:
    pool = allocator.pool(0)
    blocks = [pool.take(n) for n in (1, 512, 513, 4000)]
    assert [b.nbytes for b in blocks] == [512, 512, 1024, 4096]
    assert all(b.ptr % ROUND == blocks[0].ptr % ROUND for b in blocks)
    assert allocator.reserved == SMALL_SEGMENT
    assert len(pool.segments) == 1
    spans = sorted((b.ptr, b.ptr + b.nbytes) for b in blocks)
    assert all(a[1] <= b[0] for a, b in pairwise(spans))
    chain(pool)


def test_an_empty_request_gets_an_address(allocator: Allocator) -> None:
    assert allocator.pool(0).take(0).nbytes == ROUND


def test_a_freed_block_serves_the_next_request_of_its_size(allocator: Allocator) -> None:
    pool = allocator.pool(0)
    a = pool.take(3 * MIB)
    pool.give(a)
    assert pool.take(3 * MIB) is a
    assert allocator.grown == 1


def test_a_large_block_is_split_and_joined_again(allocator: Allocator) -> None:
    pool = allocator.pool(0)
    whole = pool.take(16 * MIB)
    first = whole.ptr
    pool.give(whole)
    parts = [pool.take(4 * MIB) for _ in range(4)]
    assert [p.ptr for p in parts] == [first + i * 4 * MIB for i in range(4)]
    for part in (parts[2], parts[0], parts[3], parts[1]):
        pool.give(part)
    assert pool.take(16 * MIB).ptr == first
    assert allocator.grown == 1
    chain(pool)


def test_neighbours_in_use_are_not_joined(allocator: Allocator) -> None:
    pool = allocator.pool(0)
    pool.give(pool.take(12 * MIB))
    a, b, c = (pool.take(4 * MIB) for _ in range(3))
    pool.give(a)
    pool.give(c)
    big = pool.take(8 * MIB)
    assert allocator.grown == 2
    assert not (big.ptr < b.ptr + b.nbytes and b.ptr < big.ptr + big.nbytes)
    chain(pool)


def test_streams_have_pools_of_their_own(allocator: Allocator) -> None:
    a = allocator.pool(0).take(2 * MIB)
    allocator.pool(0).give(a)
    assert allocator.pool(7).take(2 * MIB) is not a


def test_a_block_that_another_stream_used_waits_for_it(allocator: Allocator) -> None:
    pool, driver = allocator.pool(0), allocator.driver
    a = pool.take(2 * MIB)
    a.streams = {(0, 5), (0, 6)}
    pool.give(a)
    b = pool.take(2 * MIB)
    assert b is not a
    ((_, marks),) = allocator.waiting
    events = [event for _, event in marks.events]
    driver.done = {events[-1]}
    allocator.reap()
    assert allocator.waiting
    driver.done = set(events)
    allocator.reap()
    assert not allocator.waiting
    assert sorted(driver.ended) == sorted(events)
    assert pool.take(2 * MIB) is a


def test_memory_that_is_short_is_taken_back_from_the_cache(allocator: Allocator) -> None:
    pool = allocator.pool(0)
    pool.give(pool.take(40 * MIB))
    allocator.pool(9).take(50 * MIB)
    assert allocator.retries == 1
    assert allocator.failures == 0
    assert allocator.reserved == 50 * MIB


def test_the_error_says_what_was_asked_for_and_who_holds_the_rest(allocator: Allocator) -> None:
    pool = allocator.pool(0)
    kept = [pool.take(20 * MIB), pool.take(20 * MIB), pool.take(3 * MIB)]
    with pytest.raises(OutOfMemoryError) as e:
        pool.take(100 * MIB)
    text = str(e.value)
    assert "cuda:0" in text
    assert "asking for 100.0 MiB" in text
    assert "Of 64.0 MiB, 20.0 MiB are free" in text
    assert "43.0 MiB in tensors" in text
    assert "2 x 20.0 MiB" in text
    assert allocator.stats()["num_ooms"] == 1
    assert kept[0].free is False


def test_a_limit_on_the_share_is_kept(allocator: Allocator) -> None:
    allocator.fraction = 0.25
    pool = allocator.pool(0)
    pool.take(10 * MIB)
    with pytest.raises(OutOfMemoryError):
        pool.take(10 * MIB)


def test_empty_cache_gives_back_free_segments_only(allocator: Allocator) -> None:
    pool = allocator.pool(0)
    a, b = pool.take(4 * MIB), pool.take(6 * MIB)
    small = pool.take(100)
    pool.give(a)
    assert allocator.empty_cache() == 4 * MIB
    assert allocator.reserved == 6 * MIB + SMALL_SEGMENT
    pool.give(b)
    pool.give(small)
    assert allocator.empty_cache() == 6 * MIB + SMALL_SEGMENT
    assert allocator.reserved == 0
    assert allocator.driver.used == [0, 0]


def test_statistics_count_what_happened(allocator: Allocator) -> None:
    pool = allocator.pool(0)
    a = pool.take(2 * MIB)
    b = pool.take(4 * MIB)
    pool.give(a)
    stats = allocator.stats()
    assert stats["allocated_bytes.current"] == 4 * MIB
    assert stats["allocated_bytes.peak"] == 6 * MIB
    assert stats["reserved_bytes.current"] == 6 * MIB
    assert stats["allocation.count"] == 2
    assert stats["segment.count"] == 2
    allocator.reset_peak()
    assert allocator.stats()["allocated_bytes.peak"] == 4 * MIB
    pool.give(b)
    assert allocator.stats()["allocated_bytes.current"] == 0


def test_a_graph_keeps_its_memory_until_it_is_dropped(allocator: Allocator) -> None:
    home, own = allocator.pool(0), allocator.private_pool(0)
    a = own.take(2 * MIB)
    own.give(a)
    assert allocator.empty_cache() == 0
    assert home.take(2 * MIB).ptr != a.ptr
    held = own.take(2 * MIB)
    allocator.drop(own)
    assert held.pool is home
    held.pool.give(held)
    assert home.take(2 * MIB).ptr == a.ptr
    chain(home)


def test_many_requests_leave_the_books_balanced(allocator: Allocator) -> None:
    import random

    rng, pool, held = random.Random(5), allocator.pool(0), []
    for _ in range(2000):
        if held and rng.random() < 0.5:
            pool.give(held.pop(rng.randrange(len(held))))
        else:
            held.append(pool.take(rng.choice([100, 700, 5000, SMALL, 2 * MIB, 3 * MIB + 1])))
            if len(held) > 12:
                pool.give(held.pop(0))
        spans = sorted((b.ptr, b.ptr + b.nbytes) for b in held)
        assert all(a[1] <= b[0] for a, b in pairwise(spans))
    assert allocator.allocated == sum(b.nbytes for b in held)
    chain(pool)
    for b in held:
        pool.give(b)
    allocator.empty_cache()
    assert (allocator.allocated, allocator.reserved) == (0, 0)


@pytest.mark.parametrize(
    ("nbytes", "text"), [(5, "5 B"), (1536, "1.5 KiB"), (3 << 20, "3.0 MiB"), (5 << 30, "5.00 GiB")]
)
def test_sizes_are_written_for_people(nbytes: int, text: str) -> None:
    assert size_text(nbytes) == text


@anywhere
def test_blocks_never_overlap_when_garbage_is_collected_in_the_middle_of_taking_one() -> None:
    class Cycle:
        """Let go of by the collector only, which may run anywhere."""

        def __init__(self, pool: Any, block: Any) -> None:
            self.pool, self.block, self.me = pool, block, self

        def __del__(self) -> None:
            self.pool.give(self.block)

    dice = random.Random(0)
    threshold = gc.get_threshold()
    gc.set_threshold(7)
    try:
        for _ in range(10):
            pool = Allocator(Emulated(1 << 40), 0).pool(0)
            pool.allocator.driver.alloc = _addresses()
            held: list[Any] = []
            sizes = [dice.choice([100, 5000, 900_000, 3 << 20, dice.randrange(50 << 20)]) for _ in range(12)]
            for _ in range(600):
                if held and dice.random() < 0.5:
                    held.pop(dice.randrange(len(held)))
                else:
                    held.append(Cycle(pool, pool.take(dice.choice(sizes))))
            spans = sorted((c.block.ptr, c.block.ptr + c.block.nbytes) for c in held)
            assert all(a[1] <= b[0] for a, b in pairwise(spans))
    finally:
        gc.set_threshold(*threshold)


def _addresses() -> Any:
    """Addresses without memory behind them."""
    at = iter(range(1 << 30, 1 << 60, 1 << 32))
    return lambda nbytes: next(at)
