"""Generators: seeds, reserved counters, states, copies, and one default per device."""

from __future__ import annotations

import copy
import pickle
import struct
import threading

import numpy as np
import pytest

import votive
from votive.core import rng
from votive.core.device import device


@pytest.fixture(autouse=True)
def _unchanged_defaults():
    registry, seed = dict(rng._registry), rng._global_seed
    states = {d: g.get_state() for d, g in registry.items()}
    yield
    rng._registry.clear()
    rng._registry.update(registry)
    rng._global_seed = seed
    for d, state in states.items():
        registry[d].set_state(state)


@pytest.mark.parametrize(
    "seed, stored", [(0, 0), (-1, 2**64 - 1), (-(2**63), 2**63), (2**64 - 1, 2**64 - 1), (np.int32(5), 5)]
)
def test_seeds_are_taken_modulo_2_to_the_64(seed, stored):
    g = rng.Generator()
    assert g.manual_seed(seed) is g
    assert g.initial_seed() == stored
    assert g.reserve(1) == (stored, 0)


@pytest.mark.parametrize("seed", [2**64, -(2**63) - 1])
def test_seeds_out_of_range_are_runtime_errors(seed):
    g = rng.Generator().manual_seed(3)
    with pytest.raises(RuntimeError, match="out of range"):
        g.manual_seed(seed)
    with pytest.raises(RuntimeError, match="out of range"):
        rng.manual_seed(seed)
    assert g.initial_seed() == 3


@pytest.mark.parametrize("seed", [1.5, "1", None, True])
def test_a_generator_wants_an_integer_seed(seed):
    with pytest.raises(RuntimeError, match=type(seed).__name__):
        rng.Generator().manual_seed(seed)


def test_fresh_generators_agree_and_seed_makes_them_differ():
    a, b = rng.Generator(), rng.Generator()
    assert a.get_state() == b.get_state()
    assert a.initial_seed() == 67280421310721
    first, second = a.seed(), b.seed()
    assert first == a.initial_seed() != second


def test_reserve_hands_out_consecutive_counters():
    g = rng.Generator().manual_seed(9)
    assert [g.reserve(n) for n in (3, 0, 5, 1)] == [(9, 0), (9, 3), (9, 3), (9, 8)]
    assert g.get_offset() == 9
    with pytest.raises(ValueError, match="counters"):
        g.reserve(-1)


def test_a_reservation_never_crosses_the_end_of_the_counter_space():
    g = rng.Generator()
    g.set_offset(2**64 - 4)
    assert g.reserve(4)[1] == 2**64 - 4
    assert g.get_offset() == 0
    g.set_offset(2**64 - 4)
    assert g.reserve(5)[1] == 0
    assert g.get_offset() == 5
    with pytest.raises(RuntimeError, match="set_offset"):
        g.set_offset(2**64)


def test_threads_never_share_counters():
    g = rng.Generator()
    starts: list[list[int]] = [[] for _ in range(4)]

    def take(mine: list[int]) -> None:
        mine.extend(g.reserve(3)[1] for _ in range(2000))

    threads = [threading.Thread(target=take, args=(mine,)) for mine in starts]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(s for mine in starts for s in mine) == list(range(0, 3 * 8000, 3))


def test_a_state_brings_back_seed_and_position():
    g = rng.Generator().manual_seed(2**63 + 1)
    g.reserve(7)
    state = g.get_state()
    assert state == struct.pack("<QQ", 2**63 + 1, 7)
    after = g.reserve(2)
    other = rng.Generator()
    other.set_state(np.frombuffer(state, np.uint8))
    assert other.reserve(2) == after
    assert other.initial_seed() == 2**63 + 1


@pytest.mark.parametrize(
    "state, error", [(3, TypeError), (bytes(15), RuntimeError), (np.zeros(2, np.float64), TypeError)]
)
def test_what_is_no_state_is_refused(state, error):
    with pytest.raises(error, match="set_state"):
        rng.Generator().set_state(state)


@pytest.mark.parametrize(
    "twin_of", [copy.deepcopy, copy.copy, lambda g: pickle.loads(pickle.dumps(g)), lambda g: g.clone_state()]
)
def test_copies_start_at_the_same_place_and_part_ways(twin_of):
    g = rng.Generator("cuda:1").manual_seed(4)
    g.reserve(5)
    twin = twin_of(g)
    assert twin is not g
    assert twin.device is device("cuda", 1)
    assert twin.get_state() == g.get_state()
    twin.reserve(1)
    assert g.get_offset() == 5


def test_default_generators_are_one_per_device():
    assert rng.default_generator("cpu") is rng.default_generator(device("cpu", 0))
    assert rng.default_generator("cuda") is rng.default_generator("cuda:0")
    assert rng.default_generator("cuda:1") is not rng.default_generator("cuda:0")


def test_manual_seed_reaches_all_devices_also_later_ones():
    rng._registry.clear()
    cuda = rng.default_generator("cuda:0")
    cpu = rng.manual_seed(-2)
    assert cpu is rng.default_generator("cpu")
    late = rng.default_generator("cuda:3")
    assert {g.initial_seed() for g in (cpu, cuda, late)} == {2**64 - 2}
    assert rng.initial_seed() == 2**64 - 2
    assert rng.manual_seed("12").initial_seed() == 12
    assert rng.seed() == rng.initial_seed() == cuda.initial_seed()


def test_rng_state_round_trip():
    rng.manual_seed(1)
    state = rng.get_rng_state()
    first = rng.default_generator("cpu").reserve(3)
    rng.set_rng_state(state)
    assert rng.default_generator("cpu").reserve(3) == first


def test_fork_undoes_everything_on_all_devices():
    rng._registry.clear()
    rng.manual_seed(1)
    old = rng.default_generator("cuda:0")
    old.reserve(4)
    before = rng.get_rng_state(), old.get_state()

    def failing_block() -> None:
        with rng.fork_rng():
            rng.manual_seed(2)
            rng.default_generator("cuda:1").reserve(9)
            raise KeyError

    with pytest.raises(KeyError):
        failing_block()
    assert (rng.get_rng_state(), old.get_state()) == before
    assert rng.default_generator("cuda:1").reserve(0) == (1, 0)
    assert rng.default_generator("cuda:2").initial_seed() == 1


def test_fork_covers_the_cpu_and_the_devices_named():
    rng._registry.clear()
    rng.manual_seed(1)
    named, other = rng.default_generator("cuda:0"), rng.default_generator("cuda:1")
    with rng.fork_rng(devices=[0]):
        rng.manual_seed(2)
    assert (rng.initial_seed(), named.initial_seed(), other.initial_seed()) == (1, 1, 2)
    with rng.fork_rng(enabled=False):
        rng.manual_seed(3)
    assert rng.initial_seed() == 3


def test_a_thread_may_have_default_generators_of_its_own() -> None:
    votive.manual_seed(5)
    wanted = votive.rand(2).tolist()
    votive.manual_seed(5)
    with rng.own_generators():
        assert votive.rand(2).tolist() == wanted
        votive.manual_seed(9)
        inside = votive.rand(2).tolist()
        with votive.fork_rng():
            votive.rand(3)
        # Devices that other tests of this process have used may have one, too.
        assert rng.default_generator("cpu") in rng.default_generators()
    assert votive.rand(2).tolist() == wanted
    votive.manual_seed(9)
    assert votive.rand(2).tolist() == inside
