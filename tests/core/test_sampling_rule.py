"""Every sampler follows the documented rule, element by element."""

from __future__ import annotations

import math

import numpy as np
import pytest

from votive.backends.common import sampling

from .philox_words import FIRST, FLOATS, INTS, KEY, longs, words


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
