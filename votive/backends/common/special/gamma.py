"""log Γ, its derivatives, and the Hurwitz zeta function they rest on. Knows arrays only."""

from __future__ import annotations

import functools
import math

import numpy as np
from numpy.typing import NDArray

from .approx import BERNOULLI, EULER_GAMMA, F64, elementwise, fill, horner

_HALF_LOG_2PI = 0.91893853320467274178

# From here on the asymptotic series below are exact to float64 with the twelve numbers we hold.
_ASYMPTOTIC = 10.0

_STIRLING = [b / (2 * k * (2 * k - 1)) for k, b in enumerate(BERNOULLI, 1)]  # DLMF 5.11.1
_DIGAMMA = [-b / (2 * k) for k, b in enumerate(BERNOULLI, 1)]  # DLMF 5.11.2
_MACLAURIN = [b / math.factorial(2 * k) for k, b in enumerate(BERNOULLI, 1)]


def _zeta_positive(s: F64, q: F64) -> F64:
    """Σ (q + k)^-s for s > 1, q > 0: ten terms, then Euler-Maclaurin (DLMF 25.11.5)."""
    total = np.zeros_like(s)
    for k in range(10):
        total += (q + k) ** -s
    w = q + 10
    # s - 1 is exact; w^-s times w is not the same, as it may underflow on the way.
    integral = w ** (1 - s)
    power = integral / w
    total += integral / (s - 1) + 0.5 * power
    # Beyond 1e10 the power is zero already; the cap keeps the rising factorial from overflowing.
    s = np.minimum(s, 1e10)
    factor = power * s / w
    for k, c in enumerate(_MACLAURIN, 1):
        total += c * factor
        factor *= (s + (2 * k - 1)) / w * ((s + 2 * k) / w)
    return total


def _zeta_negative(s: F64, q: F64) -> F64:
    """Integer s, q < 0 no integer: the terms left of zero are a zeta difference of their own."""
    size = -q
    to_left = size - np.floor(size)
    to_right = np.ceil(size) - size
    sign = np.where(np.fmod(s, 2) == 1, -1.0, 1.0)
    # The two near zero first: for odd s halfway between integers they cancel exactly.
    near = _zeta_positive(s, to_right) + sign * _zeta_positive(s, to_left)
    return near - sign * _zeta_positive(s, size + 1)


@elementwise
def zeta(s: F64, q: F64) -> F64:
    """Hurwitz zeta Σ (q + k)^-s over k >= 0; infinite at s = 1 and where q is 0, -1, -2, ..."""
    out = np.full_like(s, np.nan)
    inside = (s > 1) & (q < np.inf)
    fill(out, inside & (q > 0), _zeta_positive, s, q)
    fill(out, inside & (q < 0) & (s == np.floor(s)), _zeta_negative, s, q)
    out[(q <= 0) & (q == np.floor(q)) & ~(s < 1)] = np.inf
    out[s == 1] = np.inf
    return out


@functools.cache
def _zeta_minus_one() -> tuple[float, ...]:
    """ζ(k) - 1 = ζ(k, 2) for k = 2..29: what log Γ is made of around 2."""
    k = np.arange(2.0, 30.0)
    return tuple(_zeta_positive(k, np.full_like(k, 2.0)).tolist())


def lgamma_near_2(z: F64) -> F64:
    """log Γ(2 + z) for |z| <= 1/2 (DLMF 5.7.3); relative accuracy holds at its zero z = 0."""
    tail = ((-1) ** k * c / k for k, c in enumerate(_zeta_minus_one(), 2))
    return z * horner([1 - EULER_GAMMA, *tail], z)


def _digamma_near_2(z: F64) -> F64:
    tail = ((-1) ** k * c for k, c in enumerate(_zeta_minus_one(), 2))
    return horner([1 - EULER_GAMMA, *tail], z)


def lgamma1p(z: F64) -> F64:
    """log Γ(1 + z) for -1/2 <= z <= 3/2, with relative accuracy at its zeros 0 and 1."""
    out = np.empty_like(z)
    low = z <= 0.5
    fill(out, low, lambda z: lgamma_near_2(z) - np.log1p(z), z)
    fill(out, ~low, lambda z: lgamma_near_2(z - 1), z)
    return out


def stirling_rest(x: F64) -> F64:
    """log Γ(x) less its leading terms (x - 1/2) log x - x + log √2π, for x >= 10."""
    return horner(_STIRLING, 1 / (x * x)) / x


def descend(x: F64) -> tuple[F64, F64]:
    """(p, z) with Γ(x) = p Γ(2 + z) and |z| <= 1/2, for 3/2 <= x <= 11."""
    product, z = np.ones_like(x), x - 2
    for j in range(1, 10):
        above = z > 0.5
        product = np.where(above, product * (x - j), product)
        z = np.where(above, x - (j + 2), z)
    return product, z


def _lgamma_small(x: F64) -> F64:
    """log |Γ(x)| for |x| <= 1/2."""
    return lgamma1p(x) - np.log(np.abs(x))


def lgamma_positive(x: F64) -> F64:
    """log Γ(x) for x > 0."""
    out = np.empty_like(x)

    def middle(x: F64) -> F64:
        product, z = descend(x)
        return np.log(product) + lgamma_near_2(z)

    def large(x: F64) -> F64:
        # Leading terms regrouped so that no two large numbers cancel.
        return (x - 0.5) * (np.log(x) - 1) + ((_HALF_LOG_2PI - 0.5) + stirling_rest(x))

    fill(out, x < 0.5, _lgamma_small, x)
    fill(out, (x >= 0.5) & (x <= 2.5), lambda x: lgamma1p(x - 1), x)
    fill(out, (x > 2.5) & (x < _ASYMPTOTIC), middle, x)
    fill(out, ~(x < _ASYMPTOTIC), large, x)
    return out


@elementwise
def lgamma(x: F64) -> F64:
    """log |Γ(x)|; +inf at 0, -1, -2, ..."""
    out = np.empty_like(x)
    small, negative = np.abs(x) <= 0.5, x < -0.5

    def reflected(x: F64) -> F64:
        sine = np.sin(np.pi * np.abs(x - np.rint(x)))
        return np.where(sine > 0, np.log(np.pi / sine) - lgamma_positive(1 - x), np.inf)

    fill(out, small, _lgamma_small, x)
    fill(out, negative, reflected, x)
    fill(out, ~(small | negative), lgamma_positive, x)
    return out


def _digamma_small(x: F64) -> F64:
    """ψ(x) for |x| <= 1/2; the sign of a zero chooses the side of the pole."""
    return _digamma_near_2(x) - 1 / (1 + x) - 1 / x


def _digamma_positive(x: F64) -> F64:
    out = np.empty_like(x)

    def large(x: F64) -> F64:
        v = 1 / (x * x)
        return np.log(x) - 0.5 / x + v * horner(_DIGAMMA, v)

    def middle(x: F64) -> F64:
        return large(x + 8) - sum(1 / (x + k) for k in range(8))

    fill(out, x < 0.5, _digamma_small, x)
    fill(out, (x >= 0.5) & (x < 1.5), lambda x: _digamma_near_2(x - 1) - 1 / x, x)
    fill(out, (x >= 1.5) & (x <= 2.5), lambda x: _digamma_near_2(x - 2), x)
    fill(out, (x > 2.5) & (x < _ASYMPTOTIC), middle, x)
    fill(out, ~(x < _ASYMPTOTIC), large, x)
    return out


@elementwise
def digamma(x: F64) -> F64:
    """ψ(x) = d/dx log Γ(x); -inf at +0, +inf at -0, nan at the other poles."""
    out = np.empty_like(x)
    small, negative = np.abs(x) <= 0.5, x < -0.5

    def reflected(x: F64) -> F64:
        # x less its nearest integer is exact, so the cotangent keeps its relative accuracy.
        r = x - np.rint(x)
        cotangent = np.where(r == 0, np.nan, np.pi / np.tan(np.pi * r))
        return _digamma_positive(1 - x) - cotangent

    fill(out, small, _digamma_small, x)
    fill(out, negative, reflected, x)
    fill(out, ~(small | negative), _digamma_positive, x)
    return out


def _trigamma_positive(x: F64) -> F64:
    out = np.empty_like(x)

    def large(x: F64) -> F64:
        v = 1 / x
        return v + v * v * (0.5 + v * horner(BERNOULLI, v * v))

    low = x < _ASYMPTOTIC
    fill(out, low, lambda x: large(x + 10) + sum(1 / (x + k) ** 2 for k in range(9, -1, -1)), x)
    fill(out, ~low, large, x)
    return out


@elementwise
def trigamma(x: F64) -> F64:
    """ψ'(x) = Σ 1/(x + k)² over k >= 0; +inf at 0, -1, -2, ..."""
    out = np.empty_like(x)
    negative = x < 0

    def reflected(x: F64) -> F64:
        sine = np.sin(np.pi * (x - np.rint(x)))
        return (np.pi / sine) ** 2 - _trigamma_positive(1 - x)

    fill(out, negative, reflected, x)
    fill(out, ~negative, _trigamma_positive, x)
    return out


def polygamma(n: int, x: NDArray) -> NDArray:
    """The n-th derivative of digamma: (-1)^(n+1) n! ζ(n + 1, x) for n >= 1 (DLMF 25.11.12).

    Zero where ζ(n + 1, x) alone underflows, which takes an order near 100 and a large x.
    """
    if n < 0:
        raise ValueError(f"polygamma: n must not be negative, got {n}; use n >= 0.")
    if n < 2:
        return (digamma, trigamma)[n](x)
    return _scaled_zeta(x, np.asarray(n))


@elementwise
def _scaled_zeta(x: F64, n: F64) -> F64:
    order = int(n[0]) if n.size else 0
    factorial = math.factorial(order)
    # n! as mantissa and exponent: alone it overflows from 171 on, its product with zeta may not.
    exponent = factorial.bit_length()
    mantissa = (factorial << 64 >> exponent) / 2.0**64
    sign = -1.0 if order % 2 == 0 else 1.0
    return np.ldexp(sign * mantissa * zeta(n + 1, x), exponent)


__all__ = ["digamma", "lgamma", "polygamma", "trigamma", "zeta"]
