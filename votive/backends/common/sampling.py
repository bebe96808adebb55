"""Samplers: (key, first counter, shape, parameters, dtype) -> array. Pure; hold no generator.

This page is the rule that every device follows. `w[i]` is word `i` of the draw (see `philox.py`),
`q[i] = w[2i] | w[2i+1] << 32`, and elements are numbered in row-major order. Conversions to the
unit interval are bit for bit the same everywhere; logarithms and sines may differ in the last bit.

Unit numbers, narrow (float16, bfloat16, float32; in float32) and wide (float64, integers):

    unit      top b bits * 2**-b         of w (b = 11, 8, 24) or q (b = 53); in [0, 1)
    open      w * 2**-32 + 2**-33        or q * 2**-64 + 2**-65; in (0, 1]
    centred   int32(w) * 2**-32 + 2**-33 or int64(q) * 2**-64 + 2**-65; in [-1/2, 1/2]

Element i:

    uniform      low + unit[i] * (high - low), product rounded first, in float32 for half types;
                 what rounds up to `high` becomes the number before it
    normal       the pair j = i // 2 has r = sqrt(-2 log open[2j]) and the angle
                 t = 2 pi * w[2j+1] / 2**32, or 2 pi * q[2j+1] / 2**64;
                 even i gives r cos t, odd i gives r sin t; then * std + mean
    log_normal   exp(normal)
    exponential  max(-log open[i], floor) / lambd, floor = 2**-26 (float16 2**-24, float64 2**-55):
                 open[i] rounds to 1 now and then, and 0 is no value of this distribution
    cauchy       median + sigma * tan(pi * centred[i])
    geometric    max(ceil(log open[i] / log(1 - p)), 1); integers saturate
    bernoulli    w[i] < ceil(p * 2**32), whatever the types
    randint      low + floor(q[i] * (high - low) / 2**64), for every type: chances differ by at most
                 2**-64, where 32 bits would show a bias for ranges of millions
    randperm     positions sorted by q[i], ties by position (`sampling_choice.py`)
    multinomial  inverse of the cumulative sum, or exponential races (`sampling_choice.py`)
    poisson, binomial, gamma    counter `first + i` (gamma: `first + 2i`, `+ 1`), attempt number in
                 the high 64 bits of the counter (`sampling_rejection.py`)

Complex elements are two real ones, real part first; normal divides `std` by sqrt 2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from ...core.errors import DtypeError, UnsupportedError, fail
from . import sampling_bounds as bounds
from .philox import Longs, Words, as_uint64, counters_for
from .sampling_bounds import FLOATS, nearest_inside
from .sampling_choice import multinomial, multinomial_draws, randperm
from .sampling_rejection import binomial, gamma, poisson
from .sampling_words import (
    COMPLEX_PARTS,
    Array,
    centred_unit,
    compute_type,
    fill,
    float_type,
    is_wide,
    open_unit,
    spread,
    standard_exponential,
    unit,
    words_each,
)

__all__ = [
    "bernoulli",
    "binomial",
    "cauchy",
    "counters",
    "exponential",
    "gamma",
    "geometric",
    "log_normal",
    "multinomial",
    "multinomial_draws",
    "normal",
    "poisson",
    "randint",
    "random",
    "randperm",
    "uniform",
]

# Words per element where the type does not decide.
_WORDS = {
    "bernoulli": 1,
    "randint": 2,
    "random": 2,
    "randperm": 2,
    "multinomial": 2,
    "poisson": 4,
    "binomial": 4,
    "gamma": 8,
}
_BY_TYPE = ("uniform", "normal", "log_normal", "exponential", "cauchy", "geometric")


def counters(sampler: str, n: int, dtype: DTypeLike = np.float32) -> int:
    """How many counters `sampler` needs for `n` elements (`multinomial`: see `multinomial_draws`).

    >>> counters("uniform", 10, np.float32), counters("uniform", 10, np.float64)
    (3, 5)
    """
    if sampler in _BY_TYPE:
        kind = np.dtype(dtype)
        part = COMPLEX_PARTS.get(kind)
        return counters_for(n * words_each(kind) if part is None else 2 * n * words_each(part))
    return counters_for(n * _WORDS[sampler])


def uniform(
    key: int, counter: int, shape: Sequence[int], low: float = 0.0, high: float = 1.0, dtype: DTypeLike = np.float32
) -> Array:
    """Uniform on [low, high); `high` itself never comes unless it equals `low`."""
    part = COMPLEX_PARTS.get(np.dtype(dtype))
    if part is not None:
        return uniform(key, counter, (*shape, 2), low, high, part).view(dtype)[..., 0]
    kind = float_type("uniform", dtype)
    bounds.check_uniform(low, high, kind)
    each = words_each(kind)
    if (low, high) == (0, 1):
        return fill(key, counter, shape, kind, each, lambda w: unit(w, kind))
    real = compute_type(kind)
    first, end = kind.type(low), kind.type(high)
    last = np.nextafter(end, first)
    origin, width = real(first), real(end) - real(first)

    def place(values: Array, where: slice) -> Array:
        return np.minimum((values * width + origin).astype(kind), last)

    return fill(key, counter, shape, kind, each, lambda w: unit(w, kind), place)


def _box_muller(words: Words, wide: bool) -> Array:
    """Standard normal numbers, as many as unit numbers: Box and Muller (1958), equation 1."""
    pairs = (as_uint64(words) if wide else words).reshape(-1, 2)
    real: type[np.floating[Any]] = np.float64 if wide else np.float32
    out = np.empty(pairs.shape, dtype=real)
    radius = np.sqrt(np.log(open_unit(words, wide)[0::2]) * real(-2))
    angle = pairs[:, 1].astype(real) * real(2 * math.pi * (2.0**-64 if wide else 2.0**-32))
    np.multiply(radius, np.cos(angle), out=out[:, 0])
    np.multiply(radius, np.sin(angle), out=out[:, 1])
    return out.reshape(-1)


def normal(
    key: int, counter: int, shape: Sequence[int], mean: Any = 0.0, std: Any = 1.0, dtype: DTypeLike = np.float32
) -> Array:
    """Normal with `mean` and `std`, numbers or arrays that broadcast to `shape`."""
    part = COMPLEX_PARTS.get(np.dtype(dtype))
    if part is not None:
        bounds.check_normal(std)
        # The variance of a complex number is shared by its parts.
        mean, std = (v if np.ndim(v) == 0 else np.asarray(v)[..., None] for v in (mean, std))
        scaled = std * math.sqrt(0.5)
        return normal(key, counter, (*shape, 2), mean, scaled, part).view(dtype)[..., 0]
    kind = float_type("normal", dtype)
    bounds.check_normal(std)
    wide, real = is_wide(kind), compute_type(kind)
    scale, shift = spread(std, shape, real), spread(mean, shape, real)
    return fill(
        key,
        counter,
        shape,
        kind,
        words_each(kind),
        lambda w: _box_muller(w, wide),
        lambda z, where: z * scale(where) + shift(where),
    )


def log_normal(
    key: int, counter: int, shape: Sequence[int], mean: float = 1.0, std: float = 2.0, dtype: DTypeLike = np.float32
) -> Array:
    """The exponential of a normal number with `mean` and `std`."""
    kind = float_type("log_normal", dtype)
    bounds.check_log_normal(std)
    wide, real = is_wide(kind), compute_type(kind)
    return fill(
        key,
        counter,
        shape,
        kind,
        words_each(kind),
        lambda w: _box_muller(w, wide),
        lambda z, where: np.exp(z * real(std) + real(mean)),
    )


def exponential(
    key: int, counter: int, shape: Sequence[int], lambd: float = 1.0, dtype: DTypeLike = np.float32
) -> Array:
    """Exponential with rate `lambd`; positive as long as the quotient does not underflow."""
    if np.dtype(dtype) not in FLOATS:
        raise DtypeError(
            "Exponential distribution is a continuous probability distribution. dtype must be a "
            f"floating point but you specified {np.dtype(dtype)}"
        )
    kind = np.dtype(dtype)
    bounds.check_exponential(lambd)
    rate = compute_type(kind)(lambd)
    return fill(key, counter, shape, kind, words_each(kind), lambda w: standard_exponential(w, kind) / rate)


def cauchy(
    key: int, counter: int, shape: Sequence[int], median: float = 0.0, sigma: float = 1.0, dtype: DTypeLike = np.float32
) -> Array:
    """Cauchy around `median` with half-width `sigma`."""
    kind = float_type("cauchy", dtype)
    bounds.check_cauchy(sigma)
    wide, real = is_wide(kind), compute_type(kind)
    return fill(
        key,
        counter,
        shape,
        kind,
        words_each(kind),
        lambda w: np.tan(centred_unit(w, wide) * real(math.pi)) * real(sigma) + real(median),
    )


def geometric(key: int, counter: int, shape: Sequence[int], p: float, dtype: DTypeLike = np.float32) -> Array:
    """The number of trials up to the first success, 1 or more."""
    kind = np.dtype(dtype)
    if kind not in FLOATS and kind.kind not in "iu":
        fail(UnsupportedError, "geometric", f"not implemented for {kind}.")
    bounds.check_geometric(p)
    wide, real = is_wide(kind), compute_type(kind)
    log_failure = real(math.log1p(-p))

    def draw(words: Words) -> Array:
        trials = np.maximum(np.ceil(np.log(open_unit(words, wide)) / log_failure), real(1))
        return trials if kind in FLOATS else _saturate(trials, kind)

    return fill(key, counter, shape, kind, words_each(kind), draw)


def _saturate(values: Array, kind: np.dtype[Any]) -> Array:
    # 2**63 - 1 is no float64, so comparing with it before the cast would let 2**63 through.
    largest = np.iinfo(kind).max
    over = values >= float(largest)
    return np.where(over, largest, np.where(over, 0.0, values).astype(kind))


def bernoulli(key: int, counter: int, shape: Sequence[int], p: Any = 0.5, dtype: DTypeLike = np.float32) -> Array:
    """One with probability `p`, a number or an array that broadcasts to `shape`, else zero."""
    kind = np.dtype(dtype)
    if kind not in FLOATS and kind.kind not in "biu":
        fail(UnsupportedError, "bernoulli", f"not implemented for {kind}.")
    if np.ndim(p):
        float_type("bernoulli", np.asarray(p).dtype)
    bounds.check_bernoulli(p)
    # An integer threshold needs no float64 on the device and is exact at 0 and at 1.
    scaled = np.ceil(np.asarray(p, dtype=np.float64) * 2.0**32).astype(np.uint64)
    threshold = spread(scaled, shape, np.uint64)
    return fill(key, counter, shape, kind, 1, lambda w: w, lambda w, where: w < threshold(where))


def _multiply_high(bits: Longs, span: int) -> Longs:
    """floor(bits * span / 2**64) for 1 <= span <= 2**64."""
    if span == 1 << 64:
        return bits
    half, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    upper, lower = bits >> half, bits & mask
    span_upper, span_lower = np.uint64(span >> 32), np.uint64(span & 0xFFFFFFFF)
    if span_upper == 0:
        return (upper * span_lower + (lower * span_lower >> half)) >> half
    cross = upper * span_lower
    middle = (lower * span_lower >> half) + (cross & mask) + lower * span_upper
    return upper * span_upper + (cross >> half) + (middle >> half)


def randint(key: int, counter: int, shape: Sequence[int], low: int, high: int, dtype: DTypeLike = np.int64) -> Array:
    """Integers of [low, high), all equally likely."""
    kind = np.dtype(dtype)
    bounds.check_range(low, high, kind)
    origin = np.uint64(low % (1 << 64))
    whole = np.uint64 if kind == np.uint64 else np.int64

    def draw(words: Words) -> Array:
        # Unsigned sums wrap, so a negative `low` comes out right once read as signed.
        return (_multiply_high(as_uint64(words), high - low) + origin).view(whole)

    if kind not in FLOATS:
        return fill(key, counter, shape, kind, 2, draw)
    first, last = nearest_inside(low, kind, 1), nearest_inside(high - 1, kind, -1)
    return fill(
        key, counter, shape, kind, 2, draw, lambda v, where: np.minimum(np.maximum(v.astype(kind), first), last)
    )


def random(
    key: int, counter: int, shape: Sequence[int], low: int = 0, high: int | None = None, dtype: DTypeLike = np.int64
) -> Array:
    """`random_`: integers of [low, high), or up to the largest that the type holds exactly."""
    low, high = bounds.random_range(low, high, np.dtype(dtype))
    return randint(key, counter, shape, low, high, dtype)
