"""Samplers that reject: gamma, poisson, binomial. Each element has counters of its own.

Attempt `k` of an element reads its counters with `k` in the high 64 bits. How often one element is
refused therefore changes no other element, and no draw ever reads past its reservation.

All of this is computed in float64 on 64-bit numbers, whatever the type of the result. With `q0, q1`
the two 64-bit halves of a counter, `open` and `centred` as defined in `sampling.py`:

    poisson, binomial   counter first + i. Small means: inversion, u = open(q0), attempt 0 only.
                        Otherwise u = centred(q0), v = open(q1).
    gamma               counter first + 2i: normal = sqrt(-2 log open(q0)) cos(2 pi open(q1));
                        counter first + 2i + 1: acceptance number open(q0), and, of attempt 0
                        only, the number open(q1) that carries shapes above 1 to shapes below 1.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import DTypeLike

from .philox import Words, philox4x32
from .sampling_bounds import check_poisson
from .sampling_words import Array, centred_unit, float_type, open_unit

# Elements worked on at a time, so that the temporaries stay in cache.
_CHUNK = 8192
# Below this mean a sequential search is short and the rejection constants are not valid (Hörmann).
_SMALL_MEAN = 10.0
# This far from the edge of the hat, a number under the squeeze needs no logarithms (Hörmann). It is
# a short cut only: the full test would accept the same numbers.
_SQUEEZE_FROM = 0.07

# (attempt number, indices of the elements still open) -> (values, accepted)
Attempt = Callable[[int, Array], tuple[Array, Array]]


def _until_accepted(n: int, attempt: Attempt) -> Array:
    """Run attempts 0, 1, ... on the elements that no earlier attempt has settled."""
    out = np.empty(n, dtype=np.float64)
    live = np.arange(n)
    number = 0
    while live.size:
        values, accepted = attempt(number, live)
        out[live[accepted]] = values[accepted]
        live = live[~accepted]
        number += 1
    return out


def _chunks(*arrays: Array) -> Iterator[tuple[slice, list[Array]]]:
    for start in range(0, arrays[0].size, _CHUNK):
        where = slice(start, start + _CHUNK)
        yield where, [a[where] for a in arrays]


def _halves(key: int, counter: int, positions: Array, attempt: int) -> tuple[Words, Words]:
    """The words of each counter: the pairs that make q0, and those that make q1."""
    low = positions.astype(np.uint64) + np.uint64(counter)
    words = philox4x32(key, low, attempt)
    return words[:, :2].reshape(-1), words[:, 2:].reshape(-1)


_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)
# log k! - (k log k - k + log(2 pi k) / 2) for k = 0 .. 15, where Stirling's series is too short;
# the entry for 0 is not used.
_STIRLING_ERRORS = np.array(
    [0.0] + [math.lgamma(k + 1) - (k + 0.5) * math.log(k) + k - _HALF_LOG_2PI for k in range(1, 16)]
)


def _stirling_error(k: Array) -> Array:
    inverse = 1.0 / np.maximum(k, 1.0)
    square = inverse * inverse
    # Stirling's series, Abramowitz and Stegun 6.1.41.
    series = inverse * (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square / 1680)))
    return np.where(k < 16, _STIRLING_ERRORS[np.clip(k, 0, 15).astype(np.intp)], series)


def _log_poisson(k: Array, mean: Array) -> Array:
    """log(mean**k exp(-mean) / k!), by the saddle point: Loader (2000), "Fast and accurate
    computation of binomial probabilities".

    The textbook form subtracts numbers of size `mean * log(mean)`; here all terms stay small.
    """
    d = (k - mean) / mean
    deviance = mean * ((1 + d) * np.log1p(np.maximum(d, -1 + 2.0**-53)) - d)
    body = -_stirling_error(k) - deviance - 0.5 * np.log(2 * math.pi * np.maximum(k, 1.0))
    return np.where(k == 0, -mean, body)


def _search(u: Array, first: Array, ratio: Callable[[int], Array]) -> Array:
    """Inversion: the first k at which the cumulative probability reaches u.

    `first` is the probability of 0, and `ratio(k)` is that of k + 1 over that of k.
    """
    k = np.zeros_like(u)
    term, total = first.copy(), first.copy()
    for step in itertools.count():
        term *= ratio(step)
        after = total + term
        # The sum may stop short of a u next to one; the search ends where it stops growing.
        beyond = (u > total) & (after > total)
        if not beyond.any():
            break
        k += beyond
        total = after
    return k


def _poisson_ratio(mean: Array, k: int) -> Array:
    """The chance of k + 1 by that of k."""
    return mean / (k + 1)


def poisson(key: int, counter: int, shape: Sequence[int], rate: Any, dtype: DTypeLike = np.float32) -> Array:
    """Poisson numbers with the given rates, a number or an array that broadcasts to `shape`."""
    kind = float_type("poisson", dtype)
    rates = np.broadcast_to(np.asarray(rate, dtype=np.float64), tuple(shape)).reshape(-1)
    check_poisson(rates)
    out = np.empty(rates.size, dtype=np.float64)
    positions = np.arange(rates.size)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for where, (at, lam) in _chunks(positions, rates):
            part = np.full(lam.size, np.inf)
            small, large = lam < _SMALL_MEAN, (lam >= _SMALL_MEAN) & np.isfinite(lam)
            if small.any():
                u = open_unit(_halves(key, counter, at[small], 0)[0], wide=True)
                mean = lam[small]
                part[small] = _search(u, np.exp(-mean), partial(_poisson_ratio, mean))
            if large.any():
                part[large] = _poisson_rejection(key, counter, at[large], lam[large])
            out[where] = part
        return out.astype(kind).reshape(tuple(shape))


def _poisson_rejection(key: int, counter: int, at: Array, lam: Array) -> Array:
    """PTRS: Hörmann (1993), "The transformed rejection method for generating Poisson random
    variables"; the constants are those of the paper."""
    b = 0.931 + 2.53 * np.sqrt(lam)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    squeeze = 0.9277 - 3.6224 / (b - 2)

    def attempt(number: int, live: Array) -> tuple[Array, Array]:
        first, second = _halves(key, counter, at[live], number)
        u, v = centred_unit(first, wide=True), open_unit(second, wide=True)
        us = 0.5 - np.abs(u)
        k = np.floor((2 * a[live] / us + b[live]) * u + lam[live] + 0.43)
        inside = (us >= _SQUEEZE_FROM) & (v <= squeeze[live])
        possible = (k >= 0) & np.isfinite(k) & ((us >= 0.013) | (v <= us))
        bound = np.log(v * inverse_alpha[live] / (a[live] / (us * us) + b[live]))
        return k, inside | (possible & (bound <= _log_poisson(k, lam[live])))

    return _until_accepted(at.size, attempt)


def binomial(
    key: int, counter: int, shape: Sequence[int], count: Any, prob: Any, dtype: DTypeLike = np.float32
) -> Array:
    """The number of successes in `count` trials; probabilities outside [0, 1] count as the nearer
    end, counts are rounded down, and NaN gives NaN."""
    kind = float_type("binomial", dtype)
    trials, chance = (np.broadcast_to(np.asarray(v, dtype=np.float64), tuple(shape)).reshape(-1) for v in (count, prob))
    out = np.empty(trials.size, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for where, (at, n, p) in _chunks(np.arange(trials.size), trials, chance):
            n, p = np.maximum(np.floor(n), 0.0), np.clip(p, 0.0, 1.0)
            # The rarer outcome is drawn: both methods want p <= 1/2.
            flip = p > 0.5
            rare = np.where(flip, 1 - p, p)
            mean = n * rare
            part = np.where(rare == 0, 0.0, np.where(np.isnan(mean), np.nan, np.inf))
            known = np.isfinite(mean) & (rare > 0)
            small, large = known & (mean < _SMALL_MEAN), known & (mean >= _SMALL_MEAN)
            if small.any():
                u = open_unit(_halves(key, counter, at[small], 0)[0], wide=True)
                part[small] = _binomial_search(u, n[small], rare[small])
            if large.any():
                part[large] = _binomial_rejection(key, counter, at[large], n[large], rare[large])
            out[where] = np.where(flip & np.isfinite(part), n - part, part)
        return out.astype(kind).reshape(tuple(shape))


def _binomial_search(u: Array, n: Array, p: Array) -> Array:
    odds = p / (1 - p)
    first = np.exp(n * np.log1p(-p))
    return _search(u, first, lambda k: np.maximum(n - k, 0.0) / (k + 1) * odds)


def _binomial_rejection(key: int, counter: int, at: Array, n: Array, p: Array) -> Array:
    """BTRS: Hörmann (1993), "The generation of binomial random variates"; constants as there."""
    mean = n * p
    spread = np.sqrt(mean * (1 - p))
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * p
    squeeze = 0.92 - 4.2 / b
    alpha = (2.83 + 5.1 / b) * spread
    failures = n * (1 - p)

    def log_weight(k: Array, live: Array) -> Array:
        # A binomial probability is that of two Poisson numbers over that of their sum, and the sum
        # cancels in a ratio.
        return _log_poisson(k, mean[live]) + _log_poisson(n[live] - k, failures[live])

    peak = log_weight(np.floor((n + 1) * p), np.arange(at.size))

    def attempt(number: int, live: Array) -> tuple[Array, Array]:
        first, second = _halves(key, counter, at[live], number)
        u, v = centred_unit(first, wide=True), open_unit(second, wide=True)
        us = 0.5 - np.abs(u)
        k = np.floor((2 * a[live] / us + b[live]) * u + mean[live] + 0.5)
        possible = (k >= 0) & (k <= n[live])
        inside = possible & (us >= _SQUEEZE_FROM) & (v <= squeeze[live])
        bound = np.log(v * alpha[live] / (a[live] / (us * us) + b[live]))
        return k, inside | (possible & (bound <= log_weight(k, live) - peak[live]))

    return _until_accepted(at.size, attempt)


def gamma(key: int, counter: int, shape: Sequence[int], alpha: Any, dtype: DTypeLike = np.float32) -> Array:
    """Standard gamma numbers of shape `alpha`, at least the smallest normal number of the type.

    Shape 0 gives that smallest number and infinity gives infinity; negative shapes give NaN.
    """
    kind = float_type("gamma", dtype)
    shapes = np.broadcast_to(np.asarray(alpha, dtype=np.float64), tuple(shape)).reshape(-1)
    out = np.empty(shapes.size, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        for where, (at, a) in _chunks(np.arange(shapes.size), shapes):
            part = np.where(a >= 0, a, np.nan)
            regular = (a > 0) & np.isfinite(a)
            if regular.any():
                part[regular] = _marsaglia_tsang(key, counter, at[regular], a[regular])
            out[where] = part
        tiny = kind.type(ml_dtypes.finfo(kind).smallest_normal)
        return np.maximum(out.astype(kind), tiny).reshape(tuple(shape))


def _marsaglia_tsang(key: int, counter: int, at: Array, alpha: Array) -> Array:
    """Marsaglia and Tsang (2000), "A simple method for generating gamma variables"."""
    d = np.where(alpha < 1, alpha + 1, alpha) - 1 / 3
    c = 1 / np.sqrt(9 * d)

    def attempt(number: int, live: Array) -> tuple[Array, Array]:
        pair = _halves(key, counter, 2 * at[live], number)
        r, t = (open_unit(words, wide=True) for words in pair)
        x = np.sqrt(-2 * np.log(r)) * np.cos(2 * math.pi * t)
        u = open_unit(_halves(key, counter, 2 * at[live] + 1, number)[0], wide=True)
        s = c[live] * x
        # v = (1 + s)**3. Its distance from one and its logarithm are each taken from s: for large
        # shapes both are tiny, and `d - d v + d log v` would round their difference away.
        excess = s * (3 + s * (3 + s))
        gain = d[live] * (3 * np.log1p(np.maximum(s, -1.0)) - excess)
        return d[live] * (1 + excess), (s > -1) & (np.log(u) < 0.5 * x * x + gain)

    value = _until_accepted(at.size, attempt)
    below = alpha < 1
    if below.any():
        u = open_unit(_halves(key, counter, 2 * at[below] + 1, 0)[1], wide=True)
        value[below] = np.exp(np.log(value[below]) + np.log(u) / alpha[below])
    return value
