"""Bessel functions of orders 0 and 1, of all kinds. Knows arrays only.

Near zero each is its power series. Elsewhere K, J and Y are one smooth function S of 1/x, the
modified Bessel function K with its leading behaviour divided out (`scaled_k`): on the real axis it
gives K, on the imaginary axis J and Y, and at order 1/3 it gives Ai (special_airy.py). S is fitted
once, on first use, from its integral.
"""

from __future__ import annotations

import cmath
import functools
import math

import numpy as np

from .approx import EULER_GAMMA, F64, chebyshev, clenshaw, elementwise, fill, horner, trapezoid

_LOG2 = math.log(2.0)
_TWO_OVER_PI = 2 / math.pi

# Borders between power series and fit: below them the series' terms cancel by a digit at most.
_K_START, _J_START, _I_START = 1.0, 2.0, 8.0


def _series(order: int, terms: int, sign: int) -> list[float]:
    """Coefficients in x²/4 of I (sign 1) and J (sign -1), DLMF 10.25.2 and 10.2.2."""
    return [sign**k / (math.factorial(k) * math.factorial(k + order)) for k in range(terms)]


def _regular_part(order: int, terms: int, sign: int) -> list[float]:
    """The same, each times (ψ(k+1) + ψ(k+order+1)) / 2: what K and Y add to the logarithm.

    DLMF 10.31.1, 10.31.2, 10.8.1 and 10.8.2; ψ(n+1) = 1 + 1/2 + ... + 1/n - γ.
    """

    def psi(n: int) -> float:
        return math.fsum((-EULER_GAMMA, *(1 / j for j in range(1, n))))

    weights = [(psi(k + 1) + psi(k + order + 1)) / 2 for k in range(terms)]
    return [w * c for w, c in zip(weights, _series(order, terms, sign))]


_I = [_series(n, 32, 1) for n in (0, 1)]
_J = [_series(n, 14, -1) for n in (0, 1)]
_K_REGULAR = [_regular_part(n, 12, 1) for n in (0, 1)]
_Y_REGULAR = [_regular_part(n, 14, -1) for n in (0, 1)]


def scaled_k(order: float, z: complex) -> complex:
    """S(z) = √(2z/π) exp(z) K(z), which tends to 1.

    DLMF 10.32.9 with w = √(2z) sinh(t/2): S = 2/√π ∫ exp(-w²) cosh(2·order·s)/cosh(s) dw over
    w > 0, s = arsinh(w/√(2z)); the step resolves the branch points w = ±i√(2z) for |z| > 1/2.
    """
    root = cmath.sqrt(2 * z)

    def integrand(w: float) -> complex:
        s = cmath.asinh(w / root)
        return math.exp(-w * w) * cmath.cosh(2 * order * s) / cmath.cosh(s)

    step, stop, scale = 1 / 16, 6.5, 2 / math.sqrt(math.pi)
    real = trapezoid(lambda w: integrand(w).real, step, stop)
    imaginary = trapezoid(lambda w: integrand(w).imag, step, stop)
    return complex(scale * real, scale * imaginary)


def scaled_i(order: int, x: float) -> float:
    """√(2πx) exp(-x) I(x) from DLMF 10.32.3, whose periodic integrand the trapezoid rule suits."""
    count = math.ceil(6 * math.sqrt(x)) + 30
    step = math.pi / count

    def integrand(angle: float) -> float:
        weight = math.cos(angle) if order else 1.0
        return weight * math.exp(-2 * x * math.sin(angle / 2) ** 2)

    values = [integrand(k * step) for k in range(count + 1)]
    total = math.fsum(values) - (values[0] + values[-1]) / 2
    return math.sqrt(2 * math.pi * x) * total / count


@functools.cache
def real_fit(order: float, start: float) -> tuple[float, ...]:
    return chebyshev(lambda t: scaled_k(order, 2 * start / (1 + t)).real, 36)


@functools.cache
def wave_fit(order: float, start: float) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """S(-ix) = P + iQ: amplitude and phase of J + iY (DLMF 10.17.1-4)."""

    def value(t: float) -> complex:
        return scaled_k(order, -2j * start / (1 + t))

    return chebyshev(lambda t: value(t).real, 30), chebyshev(lambda t: value(t).imag, 30)


@functools.cache
def _growing_fit(order: int) -> tuple[float, ...]:
    return chebyshev(lambda t: scaled_i(order, 2 * _I_START / (1 + t)), 28)


def in_reciprocal(coefficients: tuple[float, ...], start: float, x: F64) -> F64:
    return clenshaw(coefficients, 2 * start / x - 1)


def _i_scaled(order: int, x: F64) -> F64:
    """exp(-x) I(x) for x >= 0."""
    out = np.empty_like(x)

    def small(x: F64) -> F64:
        half = x / 2
        value = horner(_I[order], half * half)
        return np.exp(-x) * (half * value if order else value)

    def large(x: F64) -> F64:
        value = in_reciprocal(_growing_fit(order), _I_START, x)
        return value / (math.sqrt(2 * math.pi) * np.sqrt(x))

    fill(out, x < _I_START, small, x)
    fill(out, ~(x < _I_START), large, x)
    return out


def _exp_twice(x: F64, value: F64) -> F64:
    """exp(x) · value in two halves: the product may be finite where exp(x) is not."""
    half = np.exp(x / 2)
    return half * value * half


@elementwise
def i0(x: F64) -> F64:
    return _exp_twice(np.abs(x), _i_scaled(0, np.abs(x)))


@elementwise
def i0e(x: F64) -> F64:
    return _i_scaled(0, np.abs(x))


@elementwise
def i1(x: F64) -> F64:
    value = _exp_twice(np.abs(x), _i_scaled(1, np.abs(x)))
    return np.where(x < 0, -value, value)


@elementwise
def i1e(x: F64) -> F64:
    value = _i_scaled(1, np.abs(x))
    return np.where(x < 0, -value, value)


def _logarithmic(order: int, regular: list[float], series: list[float], x: F64) -> F64:
    """regular(x²/4) - log(x/2) series(x²/4), times x/2 for order 1."""
    half = x / 2
    square = half * half
    # log x - log 2 and not log(x/2), which is -inf at the smallest float64.
    value = horner(regular, square) - (np.log(x) - _LOG2) * horner(series, square)
    return half * value if order else value


def _k(order: int, x: F64, scaled: bool) -> F64:
    out = np.full_like(x, np.nan)

    def small(x: F64) -> F64:
        value = _logarithmic(order, _K_REGULAR[order], _I[order][:12], x)
        value = 1 / x - value if order else value
        return value * np.exp(x) if scaled else value

    def large(x: F64) -> F64:
        value = in_reciprocal(real_fit(order, _K_START), _K_START, x) * np.sqrt(np.pi / 2 / x)
        return value if scaled else value * np.exp(-x)

    fill(out, (x > 0) & (x < _K_START), small, x)
    fill(out, x >= _K_START, large, x)
    out[x == 0] = np.inf
    return out


@elementwise
def modified_bessel_k0(x: F64) -> F64:
    return _k(0, x, scaled=False)


@elementwise
def modified_bessel_k1(x: F64) -> F64:
    return _k(1, x, scaled=False)


@elementwise
def scaled_modified_bessel_k0(x: F64) -> F64:
    """exp(x) K0(x)."""
    return _k(0, x, scaled=True)


@elementwise
def scaled_modified_bessel_k1(x: F64) -> F64:
    """exp(x) K1(x)."""
    return _k(1, x, scaled=True)


def _wave(order: int, x: F64, second_kind: bool) -> F64:
    """√(2/πx) (P cos χ - Q sin χ), or with (Q, P) in place of (P, -Q) for Y; χ = x - (2n+1)π/4."""
    p, q = (in_reciprocal(c, _J_START, x) for c in wave_fit(order, _J_START))
    # cos χ and sin χ by the addition theorem: subtracting π/4 from a large x would round it away.
    sine, cosine = np.sin(x), np.cos(x)
    c, s = (sine - cosine, -sine - cosine) if order else (cosine + sine, sine - cosine)
    mixed = q * c + p * s if second_kind else p * c - q * s
    return mixed / (math.sqrt(math.pi) * np.sqrt(x))


def _j(order: int, x: F64) -> F64:
    """J(x) for x >= 0."""
    out = np.empty_like(x)

    def small(x: F64) -> F64:
        half = x / 2
        value = horner(_J[order], half * half)
        return half * value if order else value

    fill(out, x < _J_START, small, x)
    fill(out, ~(x < _J_START), lambda x: _wave(order, x, second_kind=False), x)
    return out


def _y(order: int, x: F64) -> F64:
    out = np.full_like(x, np.nan)

    def small(x: F64) -> F64:
        value = _logarithmic(order, _Y_REGULAR[order], _J[order], x)
        return -_TWO_OVER_PI * (1 / x + value if order else value)

    fill(out, (x > 0) & (x < _J_START), small, x)
    fill(out, x >= _J_START, lambda x: _wave(order, x, second_kind=True), x)
    out[x == 0] = -np.inf
    return out


@elementwise
def bessel_j0(x: F64) -> F64:
    return _j(0, np.abs(x))


@elementwise
def bessel_j1(x: F64) -> F64:
    return np.copysign(1.0, x) * _j(1, np.abs(x))


@elementwise
def bessel_y0(x: F64) -> F64:
    return _y(0, x)


@elementwise
def bessel_y1(x: F64) -> F64:
    return _y(1, x)


@elementwise
def spherical_bessel_j0(x: F64) -> F64:
    """sin(x) / x, with 1 at 0 and 0 at infinity."""
    out = np.sin(x) / x
    out[x == 0] = 1.0
    out[np.isinf(x)] = 0.0
    return out
