"""Caches that write over their own memory, and windows that differ by layer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import votive
from votive import nn

MAKE: dict[str, Callable[[], Any]] = {
    "dynamic": lambda: nn.DynamicCache(overwrite=True),
    "static": lambda: nn.StaticCache(64),
    "sliding": lambda: nn.SlidingWindowCache(64, overwrite=True),
}


def some(batch: int, positions: int, seed: int = 0) -> Any:
    votive.manual_seed(seed)
    return votive.randn(batch, 1, positions, 2)


@pytest.mark.parametrize("name", MAKE)
def test_cropping_and_reordering_stay_in_the_same_memory(name: str) -> None:
    cache = MAKE[name]()
    with votive.no_grad():
        whole = some(3, 4)
        cache.update(whole, -whole)
        new = some(3, 1, 1)
        place = cache.update(new, -new)[0].data_ptr()  # room has been made by now
        whole = votive.cat([whole, new], 2)
        for i in range(12):
            if i % 3 == 1:
                cache.crop(whole.shape[2] - 2)
                whole = whole[:, :, :-2]
            if i % 3 == 2:
                order = votive.tensor([2, 0, 0])
                cache.reorder(order)
                whole = whole.index_select(0, order)
            new = some(3, 1 + i % 2, i)
            key, value = cache.update(new, -new)
            whole = votive.cat([whole, new], 2)
            assert key.tolist() == whole.tolist()
            assert value.tolist() == (-whole).tolist()
            assert key.data_ptr() == place
            assert cache.get_seq_length() == whole.shape[2]


@pytest.mark.parametrize("name", MAKE)
def test_a_batch_may_grow_and_shrink(name: str) -> None:
    cache = MAKE[name]()
    with votive.no_grad():
        whole = some(2, 5)
        cache.update(whole, -whole)
        for index in ([0, 0, 1, 1], [3, 0], [1]):
            order = votive.tensor(index)
            cache.reorder(order)
            new = some(len(index), 1, len(index))
            whole = votive.cat([whole.index_select(0, order), new], 2)
            assert cache.update(new, -new)[0].tolist() == whole.tolist()


def test_without_overwrite_what_was_given_stays() -> None:
    cache = nn.DynamicCache()
    with votive.no_grad():
        x = some(2, 3)
        cache.update(x, x)
        given = cache.update(x, x)[0]
        before = given.tolist()
        cache.crop(4)
        cache.update(-x, -x)
        cache.reorder(votive.tensor([1, 0]))
        cache.update(x, x)
    assert given.tolist() == before


def test_windows_may_differ_by_layer() -> None:
    cache = nn.SlidingWindowCache([None, 3])
    with votive.no_grad():
        x = some(1, 5)
        for layer in (0, 1):
            cache.update(x, x, layer)
        new = some(1, 1, 1)
        assert cache.update(new, new, 0)[0].shape == (1, 1, 6, 2)
        assert cache.update(new, new, 1)[0].tolist() == votive.cat([x[:, :, 3:], new], 2).tolist()
    assert cache.get_seq_length(0) == cache.get_seq_length(1) == 6
    assert cache.get_max_length() is None
    assert nn.SlidingWindowCache([4, 9]).get_max_length() == 9
    with pytest.raises(IndexError, match="windows for 2 layers, but layer 2"):
        cache.update(x, x, 2)
    for wrong in ([], [0], [None, -1]):
        with pytest.raises(ValueError, match="positive"):
            nn.SlidingWindowCache(wrong)


def test_a_crop_that_one_layer_cannot_do_is_done_by_none() -> None:
    cache = nn.SlidingWindowCache([None, 3])
    x = some(1, 6)
    with votive.no_grad():
        for layer in (0, 1):
            cache.update(x, x, layer)
    with pytest.raises(ValueError, match="are gone"):
        cache.crop(4)
    assert cache.get_seq_length(0) == cache.get_seq_length(1) == 6


def test_a_static_cache_writes_where_a_tensor_says_and_gives_all_of_its_memory() -> None:
    cache = nn.StaticCache(6)
    with votive.no_grad():
        first = some(2, 3)
        cache.update(first, -first)
        place, new = votive.tensor([4]), some(2, 1, 1)
        with cache.at(place):
            key, value = cache.update(new, -new)
            memory = key.data_ptr()
            place.fill_(3)  # the same work serves the next position
            later = some(2, 1, 2)
            cache.update(later, -later)
    want = votive.cat([first, later, new, votive.zeros(2, 1, 1, 2)], 2)
    assert key.tolist() == want.tolist()
    assert value.tolist() == (-want).tolist()
    assert key.data_ptr() == memory
    assert cache.get_seq_length() == 3


def test_a_static_cache_may_begin_at_a_place_and_with_a_later_layer() -> None:
    cache = nn.StaticCache(4)
    new = some(1, 2)
    with votive.no_grad(), cache.at(votive.tensor([3, 1])):
        key, _ = cache.update(new, new, layer_idx=1)
    assert key[0, 0, [3, 1]].tolist() == new[0, 0].tolist()
    assert not key[0, 0, [0, 2]].any()
    assert (len(cache), cache.get_seq_length(1)) == (2, 0)


def test_a_static_cache_counts_on_after_at_even_when_it_ended_with_an_error() -> None:
    cache = nn.StaticCache(4)
    new = some(1, 1)
    with votive.no_grad():
        with pytest.raises(KeyError), cache.at(votive.tensor([2])):
            raise KeyError
        key, _ = cache.update(new, new)
    assert key.tolist() == new.tolist()
    assert cache.get_seq_length() == 1
