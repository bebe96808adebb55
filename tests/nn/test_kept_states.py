"""Caches keep states of layers that have no keys: they are replaced and reordered, and cannot be cropped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import votive
from votive import nn
from votive.glass.kv_store import SessionCache

MAKE: dict[str, Callable[[], Any]] = {
    "dynamic": nn.DynamicCache,
    "overwriting": lambda: nn.DynamicCache(overwrite=True),
    "static": lambda: nn.StaticCache(16),
    "sliding": lambda: nn.SlidingWindowCache(4),
    "quantized": lambda: nn.DynamicCache(dtype="q8_0"),
    "session": SessionCache,
}
every = pytest.mark.parametrize("name", MAKE)


def filled(name: str) -> Any:
    """Layer 0 keeps a state, layer 1 keys, layer 2 both; three samples, five positions."""
    cache = MAKE[name]()
    with votive.no_grad():
        keys = votive.randn(3, 1, 5, 32)
        cache.keep(0, [votive.arange(3.0)], 5)
        cache.update(keys, keys, 1)
        cache.update(keys, keys, 2)
        cache.keep(2, [votive.arange(3.0) + 10, votive.ones(3, 2)], 0)
    return cache


@every
def test_every_layer_knows_how_long_the_text_is(name: str) -> None:
    cache = filled(name)
    assert [cache.get_seq_length(i) for i in range(4)] == [5, 5, 5, 0]
    assert cache.keeps_states()
    assert cache.states(1) is None
    assert cache.states(7) is None
    cache.keep(0, [votive.zeros(3)], 2)
    assert cache.get_seq_length(0) == 7
    assert cache.states(0)[0].tolist() == [0, 0, 0]


@every
def test_states_follow_their_samples(name: str) -> None:
    cache = filled(name)
    with votive.no_grad():
        cache.reorder(votive.tensor([2, 0, 0]))
    assert cache.states(0)[0].tolist() == [2, 0, 0]
    assert cache.states(2)[0].tolist() == [12, 10, 10]
    assert cache.states(2)[1].shape == (3, 2)


@every
def test_a_state_cannot_be_cropped_and_nothing_is_lost_by_trying(name: str) -> None:
    cache = filled(name)
    with pytest.raises(ValueError, match="cannot crop to 3, as layer 0 keeps a state of all 5 positions"):
        cache.crop(3)
    assert [cache.get_seq_length(i) for i in range(3)] == [5, 5, 5]
    assert cache.states(0)[0].tolist() == [0, 1, 2]
    cache.crop(5)
    assert cache.states(0) is not None


@every
def test_cropped_to_nothing_it_is_empty(name: str) -> None:
    cache = filled(name)
    if name == "sliding":
        with pytest.raises(ValueError, match="reset"):
            cache.crop(0)
        return
    cache.crop(0)
    assert [cache.get_seq_length(i) for i in range(3)] == [0, 0, 0]
    assert cache.states(0) is None
    assert not cache.keeps_states()
    key = votive.ones(3, 1, 1, 32)
    with votive.no_grad():
        assert cache.update(key, key, 1)[0].shape[2] == 1
    cache.keep(0, [votive.ones(3)], 1)
    assert cache.get_seq_length(0) == 1


@every
def test_a_mark_holds_states_too(name: str) -> None:
    cache = filled(name)
    here = cache.mark()
    with votive.no_grad():
        cache.keep(0, [votive.full((3,), 7.0)], 1)
        key = votive.ones(3, 1, 1, 32)
        cache.update(key, key, 1)
    cache.rewind(here)
    assert cache.states(0)[0].tolist() == [0, 1, 2]
    assert [cache.get_seq_length(i) for i in range(3)] == [5, 5, 5]
    cache.reset()
    assert not cache.keeps_states()
    assert cache.get_seq_length() == 0


@every
def test_states_are_counted_as_memory(name: str) -> None:
    cache = filled(name)
    before = cache.nbytes()
    cache.keep(0, [votive.zeros(3, 100)], 0)
    assert cache.nbytes() == before + 4 * 3 * 100 - 4 * 3


def test_a_session_restores_keys_and_the_last_states() -> None:
    first = SessionCache()
    parts = []
    with votive.no_grad():
        for at in range(3):
            key = votive.randn(1, 1, 2, 4)
            first.keep(0, [votive.full((1, 3), float(at))], 2)
            first.update(key, -key, 1)
            first.keep(2, (), 2)
            parts.append(first.packed(2 * at, 2 * at + 2))
        again = SessionCache()
        for part in parts[:2]:
            again.restore(part, 2)
    assert [again.get_seq_length(i) for i in range(3)] == [4, 4, 4]
    assert again.states(0)[0].tolist() == [[1.0, 1.0, 1.0]]
    assert votive.equal(again._kept[1][0][:, :, :4], first._kept[1][0][:, :, :4])
