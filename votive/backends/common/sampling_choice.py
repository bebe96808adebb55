"""Samplers of positions: permutations and weighted choice. Knows no generators.

    randperm     position i has the key q[i]; the result is the stable order of the keys
    multinomial  with replacement, or one sample: sample s of row r is the first position whose
                 cumulative weight exceeds unit(q[r * num_samples + s]) * total, in float64
                 without replacement: position j of row r arrives at the time exponential[r*n + j]
                 (of float64) over its weight; the samples are the first arrivals, in order

The races draw without replacement exactly (Efraimidis and Spirakis, 2006), and a position of weight
zero never arrives. `q`, `unit` and `exponential` are defined in `sampling.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from .philox import random_uint32, random_uint64
from .sampling_bounds import check_multinomial, check_randperm
from .sampling_words import Array, standard_exponential, unit

_FLOAT64 = np.dtype(np.float64)


def randperm(key: int, counter: int, n: int, dtype: DTypeLike = np.int64) -> Array:
    """A random order of 0 .. n-1."""
    kind = np.dtype(dtype)
    check_randperm(n, kind)
    return np.argsort(random_uint64(key, counter, n), kind="stable").astype(kind)


def multinomial_draws(shape: Sequence[int], num_samples: int, replacement: bool) -> int:
    """How many elements `multinomial` draws, the `n` of `counters("multinomial", n)`."""
    rows = shape[0] if len(shape) == 2 else 1
    return rows * (num_samples if _by_inversion(num_samples, replacement) else shape[-1])


def _by_inversion(num_samples: int, replacement: bool) -> bool:
    return replacement or num_samples == 1


def multinomial(key: int, counter: int, weights: Any, num_samples: int, replacement: bool = False) -> Array:
    """Positions drawn with chances proportional to `weights`, a vector or one row per draw."""
    given = np.asarray(weights)
    check_multinomial(given, num_samples, replacement)
    rows = np.atleast_2d(given).astype(np.float64)
    words = random_uint32(key, counter, 2 * multinomial_draws(given.shape, num_samples, replacement))
    if _by_inversion(num_samples, replacement):
        picked = _invert(rows, unit(words, _FLOAT64).reshape(len(rows), num_samples))
    else:
        times = standard_exponential(words, _FLOAT64)
        picked = _race(rows, times.reshape(rows.shape), num_samples)
    return picked if given.ndim == 2 else picked[0]


def _invert(rows: Array, u: Array) -> Array:
    out = np.empty(u.shape, dtype=np.int64)
    for row, numbers, picked in zip(rows, u, out):
        # Scaling by a power of two is exact and keeps the sum of huge weights finite.
        total = np.cumsum(np.ldexp(row, -np.frexp(row.max())[1]))
        # side="right" skips positions of weight zero, which share their predecessor's sum. A number
        # of 53 bits below one times the total is below the total, so the search ends inside.
        picked[:] = np.searchsorted(total, numbers * total[-1], side="right")
    return out


def _race(rows: Array, times: Array, num_samples: int) -> Array:
    # Logarithms, because the quotient overflows for tiny weights that may well be drawn.
    with np.errstate(divide="ignore"):
        arrival = np.log(times) - np.log(rows)
    return np.argsort(arrival, axis=-1, kind="stable")[:, :num_samples].astype(np.int64)
