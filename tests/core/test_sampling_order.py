"""Draws can be split, extended and reordered without changing an element."""

from __future__ import annotations

import numpy as np
import pytest

from votive.backends.common import sampling, sampling_rejection
from votive.core import rng

from .philox_words import BF16, FIRST, KEY

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
