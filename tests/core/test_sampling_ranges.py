"""Samplers keep to their ranges in every dtype, and refuse wrong parameters."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from votive.backends.common import philox, sampling

from .philox_words import BF16, FIRST, FLOATS, INTS, KEY, MASK32, longs


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
