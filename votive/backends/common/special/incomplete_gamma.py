"""The regularised incomplete gamma functions P(a, x) and Q(a, x). Knows arrays only."""

from __future__ import annotations

import functools

import numpy as np

from .approx import F64, Mask, elementwise, fill, horner
from .error_function import erfcx_positive
from .gamma import descend, lgamma1p, lgamma_near_2, stirling_rest

_EPS = 2.0**-54

# The slowest point of either iteration below, at the borders of its region, needs 102.
_STEPS = 200

# Temme's expansion is used for a > 20, |x - a| < 0.3 a; there these orders reach 1e-17.
_TEMME_ORDERS = 12
_TEMME_DEGREE = 17


@functools.cache
def _temme() -> tuple[tuple[float, ...], ...]:
    """d[k][n] of DLMF 8.12.12-14: Q = erfc(η√(a/2))/2 + exp(-aη²/2)/√(2πa) Σ d[k][n] η^n / a^k.

    Made from exact fractions: in floating point the recurrences lose all digits.
    """
    from fractions import Fraction

    count = _TEMME_DEGREE + 2 * _TEMME_ORDERS
    # λ - 1 = Σ alpha[n] η^n solves η²/2 = λ - 1 - log λ, that is (λ - 1) λ' = η λ.
    alpha = [Fraction(0), Fraction(1)]
    for n in range(2, count + 2):
        known = sum((alpha[j] * alpha[n + 1 - j] for j in range(2, n)), Fraction(0))
        alpha.append(alpha[n - 1] / (n + 1) - known / 2)
    first = [Fraction(-1, 3)] + [(n + 2) * alpha[n + 2] for n in range(1, count)]
    rows, double_factorial = [first], 1
    for k in range(1, _TEMME_ORDERS):
        double_factorial *= 2 * k + 1
        stirling = (-1) ** k * double_factorial * alpha[2 * k + 1]  # DLMF 5.11.5
        last = rows[-1]
        rows.append([stirling * first[n] + (n + 2) * last[n + 2] for n in range(len(last) - 2)])
    return tuple(tuple(float(d) for d in row[: _TEMME_DEGREE - k]) for k, row in enumerate(rows))


def _log_deficit(mu: F64) -> F64:
    """mu - log(1 + mu), which is never negative, with relative accuracy for |mu| <= 1/2.

    With s = mu/(2 + mu), log(1 + mu) = 2 artanh(s) and mu - 2s = s mu.
    """
    s = mu / (2 + mu)
    square = s * s
    return s * (mu - 2 * square * horner([1 / (2 * k + 3) for k in range(17)], square))


def _near_diagonal(a: F64, x: F64) -> F64:
    """Temme's uniform expansion: P where x < a, Q elsewhere."""
    mu = (x - a) / a
    half_eta_squared = _log_deficit(mu)
    eta = np.copysign(np.sqrt(2 * half_eta_squared), mu)
    exponent = a * half_eta_squared
    inverse = 1 / a
    total = np.zeros_like(a)
    for row in reversed(_temme()):
        total *= inverse
        total += horner(row, eta)
    total /= np.copysign(np.sqrt(2 * np.pi * a), mu)
    return np.exp(-exponent) * (0.5 * erfcx_positive(np.sqrt(exponent)) + total)


def _front(a: F64, x: F64) -> F64:
    """x^a exp(-x) / Γ(a + 1)."""
    out = np.empty_like(a)

    def small(a: F64, x: F64) -> F64:
        out = np.empty_like(a)
        low = a < 0.5
        fill(out, low, lambda a: np.exp(-lgamma1p(a)), a)

        def reciprocal_gamma(a: F64) -> F64:
            product, z = descend(a + 1)
            return np.exp(-lgamma_near_2(z)) / product

        fill(out, ~low, reciprocal_gamma, a)
        # Here and below exponents are halved and the root squared, lest a factor alone overflow
        # or vanish; beyond the cap on x the result is zero.
        x = np.minimum(x, 1e3)
        root = x ** (a / 2) * np.exp(-x / 2)
        return root * root * out

    def by_powers(a: F64, x: F64) -> F64:
        x = np.minimum(x, 5e3)
        root = (x / a) ** (a / 2) * np.exp((a - x) / 2)
        return root * root

    def large(a: F64, x: F64) -> F64:
        # Stirling's leading terms are taken into the exponent, where they cancel exactly.
        mu = (x - a) / a
        near, far = np.abs(mu) < 0.5, a >= 200
        lead = np.empty_like(a)
        fill(lead, near, lambda a, mu: np.exp(-a * _log_deficit(mu)), a, mu)
        fill(lead, ~near & ~far, by_powers, a, x)
        fill(lead, ~near & far, lambda a, x: np.exp((a - x) + a * np.log(x / a)), a, x)
        return lead * np.exp(-stirling_rest(a)) / np.sqrt(2 * np.pi * a)

    fill(out, a < 10, small, a, x)
    fill(out, a >= 10, large, a, x)
    return out


def _lower_series(a: F64, x: F64) -> F64:
    """P as a power series with positive terms (DLMF 8.11.4); for x < a or small x."""
    total, term, n = np.ones_like(a), np.ones_like(a), a.copy()
    for _ in range(_STEPS):
        n += 1
        term *= x / n
        total += term
        if np.all(term <= _EPS * total):
            break
    return _front(a, x) * total


def _upper_series(a: F64, x: F64) -> F64:
    """Q for small x and a, where P is near 1 (DLMF 8.7.1, its leading term by expm1)."""
    total, power = np.zeros_like(a), np.ones_like(a)
    for n in range(1, 22):
        power *= -x / n
        total += power / (a + n)
    head = np.expm1(a * np.log(x) - lgamma1p(a))
    return -head - (1 + head) * a * total


def _upper_fraction(a: F64, x: F64) -> F64:
    """Q by its continued fraction (DLMF 8.9.2), for x > a and x > 1.

    Summed as a series of its convergents' differences, so that rounding errors do not pile up
    over the steps (Gautschi, ACM TOMS 5, 1979, section 2.3).
    """
    b = x + 1 - a
    total, term, rho = np.ones_like(a), np.ones_like(a), np.zeros_like(a)
    lower = b
    for k in range(1, _STEPS):
        upper = lower + 2
        rho = (1 + rho) * (k * (k - a) / lower / upper)
        rho = rho / (1 - rho)
        # For integer a the series ends, and past its end rho may be anything.
        term = np.where(term == 0, 0.0, term * rho)
        total += term
        lower = upper
        if np.all(np.abs(term) <= _EPS * total):
            break
    return a * _front(a, x) * total / b


def _tail(a: F64, x: F64) -> tuple[F64, Mask]:
    """One of P and Q, that which keeps relative accuracy, and where it is Q; a, x > 0 finite."""
    out = np.empty_like(a)
    diagonal = (a > 20) & (np.abs(x - a) < 0.3 * a)
    series = ~diagonal & ((x < 1.1) | (x < a))
    fraction = ~(diagonal | series)
    # P falls below about 2/3 when x^a does; above that Q is the one to compute.
    upper = series & (x < 1.1) & np.where(x <= 0.5, a <= -0.4 / np.log(x), a <= 1.1 * x)
    fill(out, diagonal, _near_diagonal, a, x)
    fill(out, series & ~upper, _lower_series, a, x)
    fill(out, upper, _upper_series, a, x)
    fill(out, fraction, _upper_fraction, a, x)
    return out, upper | fraction | (diagonal & (x >= a))


def _regularised(a: F64, x: F64, want_upper: bool) -> F64:
    out = np.full_like(a, np.nan)
    at_zero, at_infinity = (1.0, 0.0) if want_upper else (0.0, 1.0)

    def inside(a: F64, x: F64) -> F64:
        value, is_upper = _tail(a, x)
        return np.where(is_upper == want_upper, value, 1 - value)

    fill(out, (a > 0) & (x > 0) & (a < np.inf) & (x < np.inf), inside, a, x)
    valid = ~((a < 0) | (x < 0))
    out[valid & (x == np.inf)] = at_infinity
    out[valid & (a == np.inf)] = at_zero
    out[(a == np.inf) & (x == np.inf)] = np.nan
    out[valid & (x == 0)] = at_zero
    out[valid & (a == 0)] = at_infinity
    out[(a == 0) & ~(x > 0)] = np.nan
    return out


@elementwise
def gammainc(a: F64, x: F64) -> F64:
    """P(a, x) = 1/Γ(a) ∫ t^(a-1) exp(-t) dt over 0 < t < x."""
    return _regularised(a, x, want_upper=False)


@elementwise
def gammaincc(a: F64, x: F64) -> F64:
    """Q(a, x) = 1 - P(a, x)."""
    return _regularised(a, x, want_upper=True)
