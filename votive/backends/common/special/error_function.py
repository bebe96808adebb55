"""The error function family and the normal distribution built on it. Knows arrays only."""

from __future__ import annotations

import functools
import math

import numpy as np

from .approx import F64, chebyshev, clenshaw, elementwise, fill, horner

SQRT1_2 = math.sqrt(0.5)
SQRT2 = math.sqrt(2.0)
SQRT_PI = math.sqrt(math.pi)

# erf(x) / x = 2/√π Σ (-x²)^n / (n! (2n+1)), DLMF 7.6.1; 19 terms reach 1e-17 at |x| = 1.
_ERF = [2 / SQRT_PI * (-1) ** n / (math.factorial(n) * (2 * n + 1)) for n in range(19)]

# Midpoint rule for erfcx; its own error exp(-π²/STEP²) is 7e-18.
_STEP = 0.5
_NODES = [((k + 0.5) * _STEP) ** 2 for k in range(13)]
_WEIGHTS = [2 * _STEP / math.pi * math.exp(-w) for w in _NODES]

# erfinv and ndtri: w = -log(1 - x²) is split here, and ends at log(2^1074), the smallest float64.
_SPLIT_W = 6.25
_MAX_W = 745.2


def _gauss(x: F64, scale: float) -> F64:
    """exp(scale · x²), |scale| <= 1, without the relative error 2x² that rounding x² would bring.

    x is cut to a multiple of 1/16, whose square is exact; the rest is a small exponent.
    """
    x = np.clip(x, -64.0, 64.0)
    head = np.rint(x * 16) / 16
    return np.exp(scale * (head * head)) * np.exp(scale * ((x - head) * (x + head)))


def erfcx_positive(x: F64) -> F64:
    """erfcx(x) = 2x/π ∫ exp(-w²) / (x² + w²) dw over w > 0 (DLMF 7.7.1), for x >= 0.

    The midpoint rule misses the pole at w = ix; its residue is added back, which leaves full
    accuracy down to x = 0 (Chiarella & Reichel, Math. Comp. 22, 1968).
    """
    near = np.minimum(x, 1e8)
    square = near * near
    total = np.zeros_like(x)
    for node, weight in zip(_NODES, _WEIGHTS):
        total += weight / (square + node)
    total *= near

    def residue(x: F64, square: F64) -> F64:
        return 2 / (np.exp(-square) + np.exp((2 * math.pi / _STEP) * x - square))

    missing = np.zeros_like(x)
    fill(missing, x < math.pi / _STEP, residue, x, square)
    total += missing
    return np.where(x > 1e8, 1 / (SQRT_PI * x), total)


def _erf_small(x: F64) -> F64:
    return x * horner(_ERF, x * x)


def _erfc_positive(x: F64) -> F64:
    return _gauss(x, -1.0) * erfcx_positive(x)


@elementwise
def erf(x: F64) -> F64:
    out = np.empty_like(x)
    small = np.abs(x) < 1
    fill(out, small, _erf_small, x)
    fill(out, ~small, lambda x: np.copysign(1 - _erfc_positive(np.abs(x)), x), x)
    return out


@elementwise
def erfc(x: F64) -> F64:
    out = np.empty_like(x)
    small, large = np.abs(x) < 0.5, x >= 0.5
    fill(out, small, lambda x: 1 - _erf_small(x), x)
    fill(out, large, _erfc_positive, x)
    fill(out, ~(small | large), lambda x: 2 - _erfc_positive(-x), x)
    return out


@elementwise
def erfcx(x: F64) -> F64:
    out = np.empty_like(x)
    positive = x >= 0
    fill(out, positive, erfcx_positive, x)
    fill(out, ~positive, lambda x: 2 * _gauss(x, 1.0) - erfcx_positive(-x), x)
    return out


def _erfinv_over_x(w: float) -> float:
    """erfinv(x) / x at x = √(1 - exp(-w)): Newton on log erfc, where every tail is well scaled."""
    x = math.sqrt(-math.expm1(-w))
    log_q = -w - math.log1p(x)
    y = math.sqrt(w - math.log(w) / 2) if w > 4 else x
    for _ in range(12):
        if y < 0.5:
            log_erfc, erfcx_y = math.log1p(-math.erf(y)), math.exp(y * y) * math.erfc(y)
        else:
            erfcx_y = float(erfcx_positive(np.array([y]))[0])
            log_erfc = math.log(erfcx_y) - y * y
        y += (log_erfc - log_q) * SQRT_PI / 2 * erfcx_y
    return y / x


@functools.cache
def _erfinv_fits() -> tuple[tuple[float, ...], tuple[float, ...]]:
    """erfinv(x)/x over [0, SPLIT] in w, and over [SPLIT, MAX] as a multiple of √w in 1/√w."""
    low, high = 1 / math.sqrt(_MAX_W), 1 / math.sqrt(_SPLIT_W)

    def tail(t: float) -> float:
        v = low + (high - low) * (t + 1) / 2
        return _erfinv_over_x(v**-2) * v

    return chebyshev(lambda t: _erfinv_over_x(_SPLIT_W * (t + 1) / 2), 26), chebyshev(tail, 44)


def _erfinv_positive(x: F64, q: F64) -> F64:
    """erfinv(x) for x in [0, 1) given with q = 1 - x, the one exact where the other is not."""
    centre, tail = _erfinv_fits()
    low, high = 1 / math.sqrt(_MAX_W), 1 / math.sqrt(_SPLIT_W)
    # log(q) and log1p apart: the product q(1 + x) would lose bits where it is subnormal.
    w = -np.log(q) - np.log1p(x)
    out = np.empty_like(x)

    def outer(w: F64) -> F64:
        root = np.sqrt(w)
        return root * clenshaw(tail, (2 / root - (high + low)) / (high - low))

    fill(out, w < _SPLIT_W, lambda w: clenshaw(centre, w * (2 / _SPLIT_W) - 1), w)
    fill(out, w >= _SPLIT_W, outer, w)
    return x * out


@elementwise
def erfinv(x: F64) -> F64:
    size = np.abs(x)
    out = np.full_like(x, np.nan)
    fill(out, size < 1, lambda s: _erfinv_positive(s, 1 - s), size)
    out[size == 1] = np.inf
    return np.copysign(out, x)


@elementwise
def ndtri(p: F64) -> F64:
    out = np.full_like(p, np.nan)
    centre = (p >= 0.25) & (p <= 0.75)
    low, high = (p > 0) & (p < 0.25), (p > 0.75) & (p < 1)

    def inner(p: F64) -> F64:
        x = 2 * p - 1
        size = np.abs(x)
        return np.copysign(SQRT2 * _erfinv_positive(size, 1 - size), x)

    fill(out, centre, inner, p)
    fill(out, low, lambda p: -SQRT2 * _erfinv_positive(1 - 2 * p, 2 * p), p)
    fill(out, high, lambda p: SQRT2 * _erfinv_positive(2 * p - 1, 2 - 2 * p), p)
    out[p == 0], out[p == 1] = -np.inf, np.inf
    return out


def _normal_tail(x: F64) -> F64:
    """P(X > x) for x >= 0; as erfc(x/√2)/2 the rounding of x/√2 would cost x² in accuracy."""
    return 0.5 * _gauss(x, -0.5) * erfcx_positive(x * SQRT1_2)


@elementwise
def ndtr(x: F64) -> F64:
    out = np.empty_like(x)
    small, left = np.abs(x) < 1, x <= -1
    fill(out, small, lambda x: 0.5 + 0.5 * _erf_small(x * SQRT1_2), x)
    fill(out, left, lambda x: _normal_tail(-x), x)
    fill(out, ~(small | left), lambda x: 1 - _normal_tail(x), x)
    return out


@elementwise
def log_ndtr(x: F64) -> F64:
    out = np.empty_like(x)
    left, right = x < -1, x >= 1

    def far_left(x: F64) -> F64:
        return np.log(0.5 * erfcx_positive(x * -SQRT1_2)) - 0.5 * x * x

    fill(out, left, far_left, x)
    fill(out, right, lambda x: np.log1p(-_normal_tail(x)), x)
    fill(out, ~(left | right), lambda x: np.log(0.5 + 0.5 * _erf_small(x * SQRT1_2)), x)
    return out


@elementwise
def entr(x: F64) -> F64:
    """Entropy term -x log(x), continued by 0 at 0 and -inf below."""
    out = np.where(x < 0, -np.inf, -x * np.log(x))
    out[x == 0] = 0.0
    return out
