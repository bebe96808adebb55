"""Generators, Philox words and samplers: the documented rule, its statistics and its errors."""

from __future__ import annotations

import copy
import math
import pickle
import struct
import threading
from collections import Counter

import ml_dtypes
import numpy as np
import pytest

from votive.backends.cpu.reference import philox, sampling, sampling_rejection
from votive.core import rng
from votive.core.device import device

BF16 = np.dtype(ml_dtypes.bfloat16)
FLOATS = [np.dtype(t) for t in (np.float16, BF16, np.float32, np.float64)]
INTS = [np.dtype(t) for t in "bhilqBHILQ"]
MASK32 = 2**32 - 1
KEY, FIRST = 0x0123456789ABCDEF, 41


def scalar_philox(key: int, counter: int) -> list[int]:
    """The definition in the paper, one counter at a time, in Python's integers."""
    c = [(counter >> (32 * i)) & MASK32 for i in range(4)]
    k = [key & MASK32, key >> 32]
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(p1 >> 32) ^ c[1] ^ k[0], p1 & MASK32, (p0 >> 32) ^ c[3] ^ k[1], p0 & MASK32]
        k = [(k[0] + 0x9E3779B9) & MASK32, (k[1] + 0xBB67AE85) & MASK32]
    return c


def words(n: int, key: int = KEY, first: int = FIRST) -> list[int]:
    return [scalar_philox(key, first + i // 4)[i % 4] for i in range(n)]


def longs(n: int, key: int = KEY, first: int = FIRST) -> list[int]:
    w = words(2 * n, key, first)
    return [w[2 * i] | w[2 * i + 1] << 32 for i in range(n)]


# --- Philox -----------------------------------------------------------------------------------

# Lines "philox4x32 10" of kat_vectors in Random123: counter, key, result; word 0 first.
KNOWN_ANSWERS = [
    ("00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
]


@pytest.mark.parametrize("counter, key, result", KNOWN_ANSWERS)
def test_philox_gives_the_published_answers(counter, key, result):
    def number(text: str) -> int:
        return sum(int(word, 16) << (32 * i) for i, word in enumerate(text.split()))

    got = philox.random_uint32(number(key), number(counter), 4)
    assert " ".join(f"{w:08x}" for w in got) == result
    assert scalar_philox(number(key), number(counter)) == got.tolist()


@pytest.mark.parametrize("n", [0, 1, 3, 4, 5, 17])
def test_word_i_is_word_i_mod_4_of_counter_i_div_4(n):
    got = philox.random_uint32(KEY, FIRST, n)
    assert got.dtype == np.uint32
    assert got.tolist() == words(n)
    assert philox.counters_for(n) == math.ceil(n / 4)


def test_block_borders_do_not_show():
    n = 4 * philox.BLOCK + 6
    got = philox.random_uint32(KEY, FIRST, n)
    tail = philox.random_uint32(KEY, FIRST + philox.BLOCK - 1, 10)
    assert got[-10:].tolist() == tail.tolist()


@pytest.mark.parametrize("first", [2**64 - 2, 2**128 - 2])
def test_the_counter_carries_through_all_128_bits(first):
    want = [w for i in range(4) for w in scalar_philox(KEY, (first + i) % 2**128)]
    assert philox.random_uint32(KEY, first, 16).tolist() == want


# --- Generator --------------------------------------------------------------------------------


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


# --- The rule, element by element -------------------------------------------------------------


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_uniform_is_the_top_bits(dtype):
    got = sampling.uniform(KEY, FIRST, (3, 3), dtype=dtype)
    bits = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}[dtype.name]
    source, size = (longs(9), 64) if bits == 53 else (words(9), 32)
    assert got.dtype == dtype
    assert got.ravel().astype(np.float64).tolist() == [(s >> (size - bits)) / 2**bits for s in source]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_normal_and_log_normal_are_box_muller_pairs(dtype):
    source, scale = (longs(8), 2.0**64) if dtype == np.float64 else (words(8), 2.0**32)
    want = []
    for a, b in zip(source[0::2], source[1::2]):
        r, t = math.sqrt(-2 * math.log((a + 0.5) / scale)), 2 * math.pi * b / scale
        want += [r * math.cos(t), r * math.sin(t)]
    want = np.array(want[:7])
    tol = {"float16": 1e-3, "bfloat16": 8e-3, "float32": 3e-6, "float64": 1e-14}[dtype.name]
    z = sampling.normal(KEY, FIRST, (7,), 3.0, 2.0, dtype).astype(np.float64)
    np.testing.assert_allclose(z, want * 2 + 3, rtol=tol, atol=tol)
    y = sampling.log_normal(KEY, FIRST, (7,), 0.5, 0.25, dtype).astype(np.float64)
    np.testing.assert_allclose(y, np.exp(want * 0.25 + 0.5), rtol=tol)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_exponential_cauchy_and_geometric_invert_their_distributions(dtype):
    source, size = (longs(50), 64) if dtype == np.float64 else (words(50), 32)
    u = np.array([(s + 0.5) / 2**size for s in source])
    signed = np.array([((s ^ 1 << size - 1) - (1 << size - 1) + 0.5) / 2**size for s in source])
    tol = {"float16": 1e-3, "bfloat16": 8e-3, "float32": 4e-6, "float64": 1e-13}[dtype.name]
    e = sampling.exponential(KEY, FIRST, (50,), 4.0, dtype).astype(np.float64)
    np.testing.assert_allclose(e, -np.log(u) / 4, rtol=tol, atol=tol)
    c = sampling.cauchy(KEY, FIRST, (50,), 1.0, 2.0, dtype).astype(np.float64)
    np.testing.assert_allclose(c, 1 + 2 * np.tan(np.pi * signed), rtol=10 * tol, atol=10 * tol)
    g = sampling.geometric(KEY, FIRST, (50,), 0.25, dtype).astype(np.float64)
    assert g.tolist() == np.ceil(np.log(u) / math.log(0.75)).tolist()


@pytest.mark.parametrize("dtype", [*FLOATS, *INTS, np.dtype(bool)], ids=str)
def test_bernoulli_compares_words_with_a_threshold(dtype):
    p = np.array([0, 1, 0.25, 0.5, 0.75, 1e-3], dtype=np.float32)
    got = sampling.bernoulli(KEY, FIRST, (2, 6), p, dtype)
    want = [w < math.ceil(float(p[i % 6]) * 2**32) for i, w in enumerate(words(12))]
    assert got.dtype == dtype
    assert got.ravel().astype(bool).tolist() == want
    assert not sampling.bernoulli(KEY, FIRST, (1000,), 0.0).any()
    assert sampling.bernoulli(KEY, FIRST, (1000,), 1.0).all()


@pytest.mark.parametrize(
    "low, high",
    [
        (0, 1),
        (0, 10),
        (-7, 3),
        (0, 2**32 - 1),
        (5, 2**32 + 5),
        (-(2**40), 3**39),
        (-(2**63), 2**63 - 1),
        (-(2**63), 2**63),
    ],
)
def test_randint_is_the_high_half_of_a_128_bit_product(low, high):
    got = sampling.randint(KEY, FIRST, (20,), low, high)
    assert got.tolist() == [low + (q * (high - low) >> 64) for q in longs(20)]


def test_randint_reaches_the_ends_of_uint64():
    got = sampling.randint(KEY, FIRST, (20,), 0, 2**64, np.uint64)
    assert got.tolist() == longs(20)


def test_randperm_sorts_64_bit_keys():
    keys = longs(30)
    assert sampling.randperm(KEY, FIRST, 30).tolist() == sorted(range(30), key=keys.__getitem__)
    assert sampling.randperm(KEY, FIRST, 0).shape == (0,)


def test_multinomial_inverts_the_cumulative_weights():
    weights = np.array([[0, 1, 0, 3, 0], [5, 0, 0, 0, 5]], dtype=np.float32)
    got = sampling.multinomial(KEY, FIRST, weights, 40, True)
    for r, row in enumerate(weights):
        marks = np.cumsum(row / row.sum())
        for s, q in enumerate(longs(80)[40 * r : 40 * r + 40]):
            assert got[r, s] == next(j for j in range(5) if marks[j] > q / 2**64)


def test_multinomial_without_replacement_is_an_exponential_race():
    weights = np.array([[1, 2, 0, 4], [3, 1, 1, 9]], dtype=np.float64)
    got = sampling.multinomial(KEY, FIRST, weights, 3)
    q = longs(8)
    for r, row in enumerate(weights):
        times = [-math.log((q[4 * r + j] + 0.5) / 2**64) / w if w else math.inf for j, w in enumerate(row)]
        assert got[r].tolist() == sorted(range(4), key=times.__getitem__)[:3]


@pytest.mark.parametrize("real, pair", [(np.float32, np.complex64), (np.float64, np.complex128)])
def test_complex_elements_are_two_real_ones(real, pair):
    parts = sampling.uniform(KEY, FIRST, (2, 3, 2), 1.0, 4.0, real)
    got = sampling.uniform(KEY, FIRST, (2, 3), 1.0, 4.0, pair)
    assert got.dtype == pair
    np.testing.assert_array_equal(got, parts[..., 0] + 1j * parts[..., 1])
    z = sampling.normal(KEY, FIRST, (5, 2), 0.0, math.sqrt(0.5), real)
    np.testing.assert_array_equal(sampling.normal(KEY, FIRST, (5,), dtype=pair), z.view(pair)[:, 0])
    assert sampling.counters("normal", 5, pair) == sampling.counters("normal", 10, real)


# --- Splitting, order, independence -----------------------------------------------------------

DRAWS = {
    "uniform": lambda c, n: sampling.uniform(KEY, c, (n,), 2.0, 3.0),
    "normal": lambda c, n: sampling.normal(KEY, c, (n,), dtype=np.float64),
    "bernoulli": lambda c, n: sampling.bernoulli(KEY, c, (n,), 0.3),
    "randint": lambda c, n: sampling.randint(KEY, c, (n,), 0, 1000),
    "geometric": lambda c, n: sampling.geometric(KEY, c, (n,), 0.01, np.int64),
    "poisson": lambda c, n: sampling.poisson(KEY, c, (n,), 20.0),
    "binomial": lambda c, n: sampling.binomial(KEY, c, (n,), 100, 0.4),
    "gamma": lambda c, n: sampling.gamma(KEY, c, (n,), 0.7),
}
DRAW_TYPES = {"normal": np.float64, "geometric": np.int64}


@pytest.mark.parametrize("name", DRAWS)
def test_two_draws_of_whole_counters_equal_one(name):
    draw, dtype = DRAWS[name], DRAW_TYPES.get(name, np.float32)
    step = sampling.counters(name, 40, dtype)
    both = np.concatenate([draw(FIRST, 40), draw(FIRST + step, 25)])
    assert both.tolist() == draw(FIRST, 65).tolist()


@pytest.mark.parametrize("name", DRAWS)
def test_a_longer_draw_starts_with_the_shorter_one(name):
    # Longer than every block and chunk, so their borders are inside.
    draw = DRAWS[name]
    long = draw(FIRST, 70_000 if name in ("uniform", "normal", "bernoulli", "randint") else 9_001)
    assert long[:33].tolist() == draw(FIRST, 33).tolist()
    assert len(set(long.tolist())) > 1


def test_a_generator_draws_n_then_m_from_adjacent_counters():
    g = rng.Generator().manual_seed(KEY)
    pieces = []
    for n in (5, 6):
        key, first = g.reserve(sampling.counters("uniform", n))
        pieces.append(sampling.uniform(key, first, (n,)))
    stream = sampling.uniform(KEY, 0, (14,))
    # Five elements use two counters, so the second draw starts at word 8.
    assert pieces[0].tolist() == stream[:5].tolist()
    assert pieces[1].tolist() == stream[8:].tolist()


@pytest.mark.parametrize(
    "name, n, dtype, want",
    [
        ("uniform", 5, np.float32, 2),
        ("uniform", 5, np.float64, 3),
        ("uniform", 5, BF16, 2),
        ("normal", 5, np.float64, 3),
        ("geometric", 5, np.int8, 3),
        ("bernoulli", 5, np.float64, 2),
        ("randint", 5, np.uint8, 3),
        ("randperm", 5, np.int64, 3),
        ("poisson", 5, np.float32, 5),
        ("binomial", 5, np.float32, 5),
        ("gamma", 5, np.float64, 10),
        ("uniform", 0, np.float32, 0),
        ("uniform", 5, np.complex64, 3),
        ("uniform", 5, np.complex128, 5),
    ],
)
def test_counters_needed(name, n, dtype, want):
    assert sampling.counters(name, n, dtype) == want


def test_multinomial_draws():
    assert sampling.multinomial_draws((7,), 3, True) == 3
    assert sampling.multinomial_draws((4, 7), 3, True) == 12
    assert sampling.multinomial_draws((4, 7), 3, False) == 28
    assert sampling.multinomial_draws((4, 7), 1, False) == 4


def test_an_element_that_rejects_changes_no_other():
    mixed = np.where(np.arange(200) % 3 == 0, 25.0, np.arange(200) / 10)
    for draw in (
        lambda a: sampling.gamma(KEY, FIRST, a.shape, a + 0.1, np.float64),
        lambda a: sampling.poisson(KEY, FIRST, a.shape, a, np.float64),
        lambda a: sampling.binomial(KEY, FIRST, a.shape, 60, a / 60, np.float64),
    ):
        same = draw(np.full(200, 25.0))
        assert draw(mixed)[::3].tolist() == same[::3].tolist()


def test_chunk_size_does_not_show(monkeypatch):
    rates = np.linspace(0.1, 50, 300)
    whole = [
        sampling.gamma(KEY, FIRST, (300,), rates, np.float64).tolist(),
        sampling.poisson(KEY, FIRST, (300,), rates, np.float64).tolist(),
    ]
    monkeypatch.setattr(sampling_rejection, "_CHUNK", 7)
    assert whole == [
        sampling.gamma(KEY, FIRST, (300,), rates, np.float64).tolist(),
        sampling.poisson(KEY, FIRST, (300,), rates, np.float64).tolist(),
    ]


def test_the_squeeze_is_only_a_short_cut(monkeypatch):
    means = np.geomspace(10, 1e7, 20_000)

    def draws() -> list[list[float]]:
        return [
            sampling.poisson(KEY, FIRST, means.shape, means, np.float64).tolist(),
            sampling.binomial(KEY, FIRST, means.shape, means // 0.3, 0.35, np.float64).tolist(),
        ]

    with_squeeze = draws()
    monkeypatch.setattr(sampling_rejection, "_SQUEEZE_FROM", 1.0)
    assert draws() == with_squeeze


# --- Ranges and types -------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("low, high", [(0, 1), (1, 1.0625), (-1, 1), (1000, 1008), (-3, -2.96875)])
def test_uniform_stays_below_high(dtype, low, high):
    got = sampling.uniform(1, 0, (50_000,), low, high, dtype).astype(np.float64)
    assert low <= got.min() <= got.max() < high
    assert len(np.unique(got)) > 1


def test_uniform_of_an_empty_range_is_its_bound():
    assert sampling.uniform(1, 0, (3,), 2.5, 2.5).tolist() == [2.5] * 3


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_all_ones_and_all_zeros_words_stay_inside(dtype, monkeypatch):
    for word in (0, MASK32):
        monkeypatch.setattr(
            philox, "philox4x32", lambda key, low, high=0, word=word: np.full((len(low), 4), word, np.uint32)
        )
        u = sampling.uniform(0, 0, (4,), 1.0, 3.0, dtype).astype(np.float64)
        assert ((u >= 1) & (u < 3)).all()
        e = sampling.exponential(0, 0, (4,), 1.0, dtype).astype(np.float64)
        assert ((e > 0) & np.isfinite(e)).all()
        for f in (sampling.normal, sampling.cauchy):
            x = f(0, 0, (4,), dtype=np.float32 if dtype.itemsize == 2 else dtype)
            assert np.isfinite(x).all()
        g = sampling.geometric(0, 0, (4,), 0.5, dtype).astype(np.float64)
        assert ((g >= 1) & np.isfinite(g)).all()
        rare, sure = (sampling.bernoulli(0, 0, (4,), p, dtype).astype(bool) for p in (1e-12, 1.0))
        assert rare.all() == (word == 0)
        assert sure.all()
        assert sampling.multinomial(0, 0, np.array([0, 1, 1, 0], dtype), 2, True).tolist() == (
            [1, 1] if word == 0 else [2, 2]
        )


@pytest.mark.parametrize("dtype", INTS, ids=str)
def test_random_fills_the_type_from_zero_up(dtype):
    top = int(np.iinfo(dtype).max)
    got = sampling.random(KEY, FIRST, (4000,), dtype=dtype)
    assert got.dtype == dtype
    assert got.min() >= 0
    assert int(got.max()) > top * 0.99
    low = sampling.random(KEY, FIRST, (4000,), top - 2, dtype=dtype)
    assert set(low.tolist()) == {top - 2, top - 1, top}


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_random_of_a_float_type_goes_to_its_last_exact_integer(dtype):
    last = {"float16": 2**11, "bfloat16": 2**8, "float32": 2**24, "float64": 2**53}[dtype.name]
    got = sampling.random(KEY, FIRST, (4000,), dtype=dtype).astype(np.float64)
    assert got.min() >= 0
    assert last * 0.99 < got.max() <= last
    ends = sampling.random(KEY, FIRST, (4000,), last - 1, dtype=dtype).astype(np.float64)
    assert set(ends.tolist()) == {last - 1, last}


def test_random_with_the_lowest_start_means_all_64_bits():
    signed = [q - 2**63 for q in longs(6)]
    assert sampling.random(KEY, FIRST, (6,), -(2**63)).tolist() == signed
    got = sampling.random(KEY, FIRST, (6,), -(2**63), dtype=np.float64)
    assert got.tolist() == [float(s) for s in signed]


@pytest.mark.parametrize("dtype", [*FLOATS, *INTS, np.dtype(bool)], ids=str)
def test_randint_serves_every_type(dtype):
    got = sampling.randint(KEY, FIRST, (500,), 0, 2, dtype)
    assert got.dtype == dtype
    assert got.astype(int).tolist() == [q * 2 >> 64 for q in longs(500)]


def test_randint_rounded_to_a_float_type_stays_in_range():
    with pytest.warns(UserWarning, match="precision limitations"):
        got = sampling.randint(KEY, FIRST, (3000,), 2049, 4096, np.float16)
    # As Python numbers: in float16 the bound itself would round up.
    assert 2049 <= float(got.min()) <= float(got.max()) <= 4095


def test_geometric_saturates_integers_and_starts_at_one():
    got = sampling.geometric(KEY, FIRST, (2000,), 1e-4, np.int8)
    assert got.max() == 127
    assert got.min() >= 1
    assert sampling.geometric(KEY, FIRST, (20,), 1e-300, np.int64).tolist() == [2**63 - 1] * 20
    edge = sampling._saturate(np.array([2.0**63, 2.0**62]), np.dtype(np.int64))
    assert edge.tolist() == [2**63 - 1, 2**62]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_gamma_and_counts_at_the_edges(dtype):
    got = sampling.gamma(KEY, FIRST, (5,), [0.0, 1e-30, np.inf, -1.0, np.nan], dtype)
    tiny = float(ml_dtypes.finfo(dtype).smallest_normal)
    np.testing.assert_array_equal(got.astype(np.float64), [tiny, tiny, np.inf, np.nan, np.nan])
    p = sampling.poisson(KEY, FIRST, (2,), [0.0, np.inf], dtype).astype(np.float64)
    assert p.tolist() == [0, math.inf]
    b = sampling.binomial(KEY, FIRST, (7,), [5, 5, 0, -3, 5, np.inf, 7.9], [0, 1, 0.5, 0.5, np.nan, 0.7, 2], dtype)
    np.testing.assert_array_equal(b.astype(np.float64), [0, 5, 0, 0, np.nan, np.inf, 7])


@pytest.mark.parametrize("dtype, most", [(np.int8, 128), (np.uint8, 256), (BF16, 257)])
def test_randperm_is_a_permutation_in_every_type_that_can_hold_it(dtype, most):
    got = sampling.randperm(KEY, FIRST, most, dtype)
    assert got.dtype == dtype
    assert sorted(got.astype(int).tolist()) == list(range(most))
    with pytest.raises(RuntimeError, match="cannot be"):
        sampling.randperm(KEY, FIRST, most + 1, dtype)


def test_multinomial_never_draws_weight_zero_and_never_twice():
    weights = np.zeros((50, 20))
    weights[:, ::2] = 10.0 ** -np.arange(0, 300, 30)
    got = sampling.multinomial(KEY, FIRST, weights, 10)
    assert got.dtype == np.int64
    assert all(sorted(row) == list(range(0, 20, 2)) for row in got.tolist())
    again = sampling.multinomial(KEY, FIRST, weights, 100, True)
    assert (again % 2 == 0).all()
    assert sampling.multinomial(KEY, FIRST, np.full(3, 1.7e308), 50, True).max() == 2
    assert sorted(sampling.multinomial(KEY, FIRST, np.array([0, 5e-324, 1]), 2)) == [1, 2]
    assert sampling.multinomial(KEY, FIRST, np.ones((0, 3)), 2).shape == (0, 2)


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (2, 3, 4)])
def test_shapes_are_kept(shape):
    for f in (sampling.uniform, sampling.normal, sampling.exponential, sampling.bernoulli):
        assert f(KEY, FIRST, shape).shape == shape
    assert sampling.poisson(KEY, FIRST, shape, 12.0).shape == shape
    assert sampling.gamma(KEY, FIRST, shape, 2.0).shape == shape
    assert sampling.normal(KEY, FIRST, shape, dtype=np.complex64).shape == shape


# --- Statistics -------------------------------------------------------------------------------

N = 200_000


def assert_moments(x: np.ndarray, mean: float, var: float, kurtosis: float = 3.0) -> None:
    """Mean and variance within five standard errors; `kurtosis` is E[(x-mean)^4] / var^2."""
    x = x.astype(np.float64)
    assert abs(x.mean() - mean) < 5 * math.sqrt(var / x.size)
    assert abs(x.var() - var) < 5 * var * math.sqrt((kurtosis - 1) / x.size)


# mean, variance, kurtosis of each distribution, from its textbook formulas.
MOMENTS = {
    "uniform32": (lambda: sampling.uniform(1, 0, (N,), -1, 3), 1, 16 / 12, 1.8),
    "uniform64": (lambda: sampling.uniform(2, 0, (N,), dtype=np.float64), 0.5, 1 / 12, 1.8),
    "normal32": (lambda: sampling.normal(3, 0, (N,)), 0, 1, 3),
    "normal64": (lambda: sampling.normal(4, 0, (N,), 5, 2, np.float64), 5, 4, 3),
    "exponential": (lambda: sampling.exponential(5, 0, (N,), 2.0), 0.5, 0.25, 9),
    "bernoulli": (lambda: sampling.bernoulli(6, 0, (N,), 0.2), 0.2, 0.16, 3.25),
    "randint": (lambda: sampling.randint(7, 0, (N,), 0, 7), 3, 4, 1.75),
    "geometric": (lambda: sampling.geometric(8, 0, (N,), 0.25), 4, 12, 9.0834),
    "log_normal": (
        lambda: sampling.log_normal(9, 0, (N,), 0, 0.25, np.float64),
        math.exp(0.03125),
        (math.exp(0.0625) - 1) * math.exp(0.0625),
        4.2,
    ),
    **{
        f"poisson{m}": (lambda m=m: sampling.poisson(10, 0, (N // 4,), m, np.float64), m, m, 3 + 1 / m)
        for m in (0.3, 9.9, 10.0, 45.0, 1e6, 1e16)
    },
    **{
        f"binomial{n}-{p}": (
            lambda n=n, p=p: sampling.binomial(11, 0, (N // 4,), n, p, np.float64),
            n * p,
            n * p * (1 - p),
            3 + (1 - 6 * p * (1 - p)) / (n * p * (1 - p)),
        )
        for n, p in ((5, 0.3), (40, 0.25), (40, 0.8), (1000, 0.5), (10**9, 0.01))
    },
    **{
        f"gamma{a}": (lambda a=a: sampling.gamma(12, 0, (N // 4,), a, np.float64), a, a, 3 + 6 / a)
        for a in (0.1, 0.9, 1.0, 3.5, 1e4, 1e14)
    },
}


@pytest.mark.parametrize("name", MOMENTS)
def test_moments_are_right(name):
    draw, mean, var, kurtosis = MOMENTS[name]
    assert_moments(draw(), mean, var, kurtosis)


def test_neighbours_are_uncorrelated():
    for x in (sampling.normal(13, 0, (N,)), sampling.uniform(14, 0, (N,), dtype=np.float64)):
        for lag in (1, 2, 4):
            assert abs(np.corrcoef(x[:-lag], x[lag:])[0, 1]) < 5 / math.sqrt(N)


def test_seeds_and_counters_give_unrelated_streams():
    base = sampling.normal(1, 0, (N,))
    for other in (sampling.normal(2, 0, (N,)), sampling.normal(1, N, (N,))):
        assert abs(np.corrcoef(base, other)[0, 1]) < 5 / math.sqrt(N)


def test_randint_favours_no_value_of_a_large_range():
    # With 32 bits, a third of the values of 0 .. 3 * 2**30 - 1 would come twice as often.
    third = sampling.randint(15, 0, (N,), 0, 3 * 2**30) // 2**30
    assert (np.abs(np.bincount(third) - N / 3) < 5 * math.sqrt(N * 2 / 9)).all()


def test_all_permutations_are_equally_likely():
    n = 12_000
    seen = Counter(tuple(sampling.randperm(16, 2 * i, 3).tolist()) for i in range(n))
    assert len(seen) == 6
    assert sum((c - n / 6) ** 2 / (n / 6) for c in seen.values()) < 25.7  # chi2(5), 1e-4


@pytest.mark.parametrize("replacement", [True, False])
def test_multinomial_follows_the_weights(replacement):
    weights = np.array([1.0, 2.0, 0.0, 5.0])
    p = weights / 8
    got = sampling.multinomial(17, 0, np.tile(weights, (N // 8, 1)), 2, replacement)
    rows = len(got)
    for i in (0, 1, 3):
        for j in (0, 1, 3):
            # Without replacement the second is drawn from what the first left.
            want = p[i] * (p[j] if replacement else (i != j) * p[j] / (1 - p[i]))
            share = ((got[:, 0] == i) & (got[:, 1] == j)).mean()
            assert abs(share - want) <= 5 * math.sqrt(want * (1 - want) / rows)


@pytest.mark.parity
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_continuous_distributions_pass_kolmogorov_smirnov(dtype):
    stats = pytest.importorskip("scipy.stats")
    n = (20_000,)
    for x, law in (
        (sampling.uniform(20, 0, n, dtype=dtype), stats.uniform()),
        (sampling.normal(21, 0, n, dtype=dtype), stats.norm()),
        (sampling.exponential(22, 0, n, 2.0, dtype), stats.expon(scale=0.5)),
        (sampling.cauchy(23, 0, n, 1.0, 2.0, dtype), stats.cauchy(1, 2)),
        (sampling.log_normal(24, 0, n, 0.0, 1.0, dtype), stats.lognorm(1)),
        (sampling.gamma(25, 0, n, 0.3, dtype), stats.gamma(0.3)),
        (sampling.gamma(26, 0, n, 7.0, dtype), stats.gamma(7.0)),
    ):
        assert stats.kstest(x.astype(np.float64), law.cdf).pvalue > 1e-4


@pytest.mark.parity
def test_discrete_distributions_pass_chi_square():
    stats = pytest.importorskip("scipy.stats")
    n = 40_000
    for x, law in (
        (sampling.poisson(30, 0, (n,), 4.0), stats.poisson(4.0)),
        (sampling.poisson(31, 0, (n,), 10.0), stats.poisson(10.0)),
        (sampling.poisson(32, 0, (n,), 60.0), stats.poisson(60.0)),
        (sampling.binomial(33, 0, (n,), 12, 0.4), stats.binom(12, 0.4)),
        (sampling.binomial(34, 0, (n,), 50, 0.3), stats.binom(50, 0.3)),
        (sampling.binomial(35, 0, (n,), 30, 0.9), stats.binom(30, 0.9)),
        (sampling.geometric(36, 0, (n,), 0.3), stats.geom(0.3)),
    ):
        values = np.arange(0, int(x.max()) + 2)
        expected = n * law.pmf(values)
        observed = np.bincount(x.astype(int), minlength=len(values))
        big = expected >= 10
        rest = n - expected[big].sum(), n - observed[big].sum()
        chi2 = ((observed - expected)[big] ** 2 / expected[big]).sum()
        chi2 += (rest[1] - rest[0]) ** 2 / rest[0]
        assert stats.chi2(big.sum()).sf(chi2) > 1e-4


# --- Errors -----------------------------------------------------------------------------------

NAN, INF = math.nan, math.inf
F32, I32 = np.float32, np.int32
BAD = [
    (sampling.uniform, (2, 1), "from=2 > to=1"),
    (sampling.uniform, (NAN, 1), "from is out of bounds"),
    (sampling.uniform, (-3e38, 3e38), "exceed the limit"),
    (sampling.uniform, (0, 70000, np.float16), "to is out of bounds for float16"),
    (sampling.normal, (0, -1), "normal expects std >= 0.0, but found std -1"),
    (sampling.normal, (0, NAN), "found std nan"),
    (sampling.normal, (0, np.array([1.0, -1.0])), "all elements of std"),
    (sampling.normal, (0, -1, np.complex64), "found std -1"),
    (sampling.exponential, (0,), "exponential_ expects lambda > 0.0, but found lambda=0"),
    (sampling.exponential, (1, I32), "continuous probability distribution"),
    (sampling.bernoulli, (1.5,), r"bernoulli_ expects p to be in \[0, 1\], but got p=1.5"),
    (sampling.bernoulli, (NAN,), "got p=nan"),
    (sampling.bernoulli, (np.array([0.5, 1.5]),), "Expected p_in >= 0 && p_in <= 1"),
    (sampling.bernoulli, (np.array([0.5, NAN]),), "Expected p_in >= 0 && p_in <= 1"),
    (sampling.geometric, (0,), r"geometric_ expects p to be in \(0, 1\), but got p=0"),
    (sampling.geometric, (1,), "got p=1"),
    (sampling.cauchy, (0, 0), "cauchy_ expects sigma > 0.0, but found sigma=0"),
    (sampling.log_normal, (0, 0), "log_normal_ expects std > 0.0, but found std=0"),
    (sampling.poisson, (np.array([1.0, -1.0]),), "invalid Poisson rate"),
    (sampling.poisson, (NAN,), "invalid Poisson rate"),
    (sampling.randint, (5, 5), "from=5 >= to=5"),
    (sampling.randint, (0, 257, np.uint8), "to - 1 is out of bounds for uint8"),
    (sampling.randint, (-1, 5, np.uint8), "from is out of bounds for uint8"),
    (sampling.randint, (0, 3, bool), "to - 1 is out of bounds for bool"),
    (sampling.randint, (0, 100000, np.float16), "to - 1 is out of bounds for float16"),
    (sampling.random, (2**25, None, F32), "from=33554432 > to_inc=16777216"),
    (sampling.random, (200, None, np.int8), "from=200 > to_inc=127"),
]


@pytest.mark.parametrize("sampler, args, text", BAD)
def test_wrong_parameters_are_runtime_errors(sampler, args, text):
    with pytest.raises(RuntimeError, match=text):
        sampler(KEY, FIRST, (2,), *args)


@pytest.mark.parametrize(
    "draw",
    [
        lambda: sampling.uniform(0, 0, (2,), dtype=I32),
        lambda: sampling.normal(0, 0, (2,), dtype=I32),
        lambda: sampling.log_normal(0, 0, (2,), dtype=I32),
        lambda: sampling.cauchy(0, 0, (2,), dtype=I32),
        lambda: sampling.uniform(0, 0, (2,), dtype=ml_dtypes.float8_e4m3fn),
        lambda: sampling.bernoulli(0, 0, (2,), 0.5, np.complex64),
        lambda: sampling.bernoulli(0, 0, (2,), np.array([0, 1])),
        lambda: sampling.geometric(0, 0, (2,), 0.5, bool),
        lambda: sampling.randint(0, 0, (2,), 0, 5, np.complex64),
        lambda: sampling.poisson(0, 0, (2,), 1.0, I32),
        lambda: sampling.gamma(0, 0, (2,), 1.0, I32),
        lambda: sampling.binomial(0, 0, (2,), 1, 0.5, I32),
        lambda: sampling.randperm(0, 0, 2, bool),
    ],
)
def test_types_without_the_distribution_are_not_implemented(draw):
    with pytest.raises(NotImplementedError):
        draw()


@pytest.mark.parametrize(
    "weights, num_samples, replacement, text",
    [
        ([1.0, -1.0], 1, False, "element < 0"),
        ([1.0, INF], 1, False, "element < 0"),
        ([1.0, NAN], 1, True, "element < 0"),
        ([0.0, 0.0], 1, True, "sum of probabilities <= 0"),
        ([[1.0, 0.0], [0.0, 0.0]], 1, False, "sum of probabilities <= 0"),
        ([1.0, 0.0], 3, False, "n_sample > prob_dist.size"),
        ([1.0, 0.0], 2, False, "not enough non-negative category"),
        ([1.0, 0.0], 0, False, "n_sample <= 0"),
        (1.0, 1, False, "1 or 2 dim"),
        ([[[1.0]]], 1, False, "1 or 2 dim"),
        ([1, 2], 1, False, "floating-point"),
    ],
)
def test_wrong_weights_are_runtime_errors(weights, num_samples, replacement, text):
    with pytest.raises(RuntimeError, match=text):
        sampling.multinomial(0, 0, np.array(weights), num_samples, replacement)


def test_randperm_of_a_negative_length_is_a_runtime_error():
    with pytest.raises(RuntimeError, match="negative dimension -1"):
        sampling.randperm(0, 0, -1)
