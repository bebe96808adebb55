"""Memory: alignment, reuse, statistics, and never reusing what somebody still sees."""

from __future__ import annotations

import gc
import threading

import numpy as np

import votive as vt


def test_blocks_are_aligned_to_64_bytes() -> None:
    for n in (256, 1000, 4096, 100_001):
        assert vt.empty(n).data_ptr() % 64 == 0


def test_a_freed_block_is_handed_out_again() -> None:
    x = vt.ones(50_000)
    y = x + x
    address = y.data_ptr()
    hits = vt.cpu.memory_stats()["hits"]
    del y
    z = x + x
    assert z.data_ptr() == address
    assert vt.cpu.memory_stats()["hits"] == hits + 1


def test_a_block_seen_through_numpy_is_not_handed_out_again() -> None:
    x = vt.ones(50_000)
    y = x + x
    seen = y.numpy()[10:20]
    del y
    others = [x * 3 for _ in range(5)]
    assert (seen == 2).all()
    del others


def test_a_block_seen_through_a_view_stays() -> None:
    x = vt.ones(50_000)
    y = x + x
    view = y[5:8]
    del y
    others = [x * 3 for _ in range(5)]
    assert view.tolist() == [2.0, 2.0, 2.0]
    del others


def test_statistics_count_what_is_held() -> None:
    gc.collect()
    before = vt.cpu.memory_allocated()
    x = vt.empty(1 << 20)
    held = vt.cpu.memory_allocated() - before
    assert (4 << 20) <= held <= (5 << 20)
    assert vt.cpu.max_memory_allocated() >= vt.cpu.memory_allocated()
    del x
    assert vt.cpu.memory_allocated() == before
    assert vt.cpu.memory_stats()["cached_bytes"] >= 4 << 20
    vt.cpu.empty_cache()
    assert vt.cpu.memory_stats()["cached_bytes"] == 0


def test_the_cache_can_be_limited() -> None:
    vt.cpu.empty_cache()
    vt.cpu.set_cache_limit(0)
    try:
        x = vt.empty(1 << 18)
        del x
        assert vt.cpu.memory_stats()["cached_bytes"] == 0
    finally:
        vt.cpu.set_cache_limit(None)


def test_threads_may_allocate_and_free_at_once() -> None:
    wrong = []

    def work(value: float) -> None:
        for _ in range(200):
            t = vt.full((3000,), value)
            if not bool((t * 2 == 2 * value).all()):
                wrong.append(value)

    threads = [threading.Thread(target=work, args=(float(i),)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == []


def test_writes_are_counted_per_storage() -> None:
    x = vt.zeros(4)
    view = x[1:]
    view.add_(1)
    x.mul_(2)
    assert x._version == view._version == 2
    assert x.detach()._version == 2
    assert x.clone()._version == 0


def test_from_numpy_shares_memory_for_any_positive_strides() -> None:
    a = np.arange(24.0).reshape(4, 6)
    for view in (a, a.T, a[1:, ::2], a[2], np.asfortranarray(a)):
        t = vt.from_numpy(view)
        np.testing.assert_array_equal(t.numpy(), view)
        t.add_(1)
        np.testing.assert_array_equal(t.numpy(), view)
