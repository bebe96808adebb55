"""Orthogonal polynomials by degree and position, elementwise on float arrays. Knows arrays only.

Three-term recurrences, DLMF table 18.9.1; past degree 8 the Chebyshev families take their closed
forms in cos(n t) and cosh(n t), DLMF 18.5.1-18.5.4, whose cost does not grow with the degree.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .approx import F64, elementwise

Step = Callable[[int, F64, F64, F64], F64]
Closed = Callable[[F64, F64], F64]

CLOSED_FORM_FROM = 9
# Beyond this degree Hermite values overflow for any usable position; torch answers NaN as well.
HERMITE_LIMIT = 512


def _recur(x: F64, n: F64, first: F64, step: Step, last: int | None = None) -> F64:
    """Degree n of each element from degrees 0 and 1: `p[k+1] = step(k, x, p[k], p[k-1])`."""
    n = np.trunc(n)
    before, here = np.ones_like(x), first.copy()
    out = np.where(n == 0, before, np.where(n == 1, here, 0.0))
    top = int(np.max(n, initial=0)) if last is None else min(int(np.max(n, initial=0)), last)
    for k in range(1, top):
        before, here = here, step(k, x, here, before)
        out = np.where(n == k + 1, here, out)
    return out


def _chebyshev(x: F64, n: F64, first: F64, angle: Closed, hyper: Closed) -> F64:
    """Any of the four kinds: they share the recurrence and differ in degree 1."""
    n = np.trunc(n)
    out = _recur(x, n, first, lambda k, x, p, q: 2 * x * p - q, CLOSED_FORM_FROM - 1)
    high = n >= CLOSED_FORM_FROM
    if high.any():
        inside = high & (np.abs(x) <= 1)
        outside = high & ~inside
        out[inside] = angle(np.arccos(x[inside]), n[inside])
        out[outside] = hyper(x[outside], n[outside])
    return out


def _sign(x: F64, n: F64) -> F64:
    """`(-1)^n` where x is negative: what mirrors a polynomial of degree n."""
    return np.where((x < 0) & (n % 2 == 1), -1.0, 1.0)


def _ratio(top: F64, bottom: F64, limit: F64) -> F64:
    return np.where(bottom == 0, limit, top / np.where(bottom == 0, 1, bottom))


def _t_inside(t: F64, n: F64) -> F64:
    return np.cos(n * t)


def _t_outside(x: F64, n: F64) -> F64:
    return _sign(x, n) * np.cosh(n * np.arccosh(np.abs(x)))


def _u_inside(t: F64, n: F64) -> F64:
    # t is pi, not quite, at x = -1: there the sine is rounding error only.
    edge = np.where(t > 1, np.where(n % 2 == 1, -1.0, 1.0), 1.0) * (n + 1)
    s = np.where((t == 0) | (t == np.pi), 0.0, np.sin(t))
    return _ratio(np.sin((n + 1) * t), s, edge)


def _u_outside(x: F64, n: F64) -> F64:
    t = np.arccosh(np.abs(x))
    return _sign(x, n) * np.sinh((n + 1) * t) / np.sinh(t)


def _v_inside(t: F64, n: F64) -> F64:
    edge = np.where(n % 2 == 1, -1.0, 1.0) * (2 * n + 1)
    return _ratio(np.cos((n + 0.5) * t), np.where(t == np.pi, 0.0, np.cos(t / 2)), edge)


def _w_inside(t: F64, n: F64) -> F64:
    return _ratio(np.sin((n + 0.5) * t), np.sin(t / 2), 2 * n + 1)


def _v_outside(x: F64, n: F64) -> F64:
    # V(-x) = (-1)^n W(x), so one side takes cosh, the other sinh.
    t = np.arccosh(np.abs(x))
    even = np.cosh((n + 0.5) * t) / np.cosh(t / 2)
    odd = np.sinh((n + 0.5) * t) / np.sinh(t / 2)
    return _sign(x, n) * np.where(x < 0, odd, even)


def _w_outside(x: F64, n: F64) -> F64:
    return np.where(n % 2 == 1, -1.0, 1.0) * _v_outside(-x, n)


@elementwise
def chebyshev_polynomial_t(x: F64, n: F64) -> F64:
    return _chebyshev(x, n, x, _t_inside, _t_outside)


@elementwise
def chebyshev_polynomial_u(x: F64, n: F64) -> F64:
    return _chebyshev(x, n, 2 * x, _u_inside, _u_outside)


@elementwise
def chebyshev_polynomial_v(x: F64, n: F64) -> F64:
    return _chebyshev(x, n, 2 * x - 1, _v_inside, _v_outside)


@elementwise
def chebyshev_polynomial_w(x: F64, n: F64) -> F64:
    return _chebyshev(x, n, 2 * x + 1, _w_inside, _w_outside)


@elementwise
def shifted_chebyshev_polynomial_t(x: F64, n: F64) -> F64:
    return chebyshev_polynomial_t(2 * x - 1, n)


@elementwise
def shifted_chebyshev_polynomial_u(x: F64, n: F64) -> F64:
    return chebyshev_polynomial_u(2 * x - 1, n)


@elementwise
def shifted_chebyshev_polynomial_v(x: F64, n: F64) -> F64:
    return chebyshev_polynomial_v(2 * x - 1, n)


@elementwise
def shifted_chebyshev_polynomial_w(x: F64, n: F64) -> F64:
    return chebyshev_polynomial_w(2 * x - 1, n)


@elementwise
def hermite_polynomial_h(x: F64, n: F64) -> F64:
    out = _recur(x, n, 2 * x, lambda k, x, p, q: 2 * x * p - 2 * k * q, HERMITE_LIMIT)
    return np.where(n > HERMITE_LIMIT, np.nan, out)


@elementwise
def hermite_polynomial_he(x: F64, n: F64) -> F64:
    out = _recur(x, n, x, lambda k, x, p, q: x * p - k * q, HERMITE_LIMIT)
    return np.where(n > HERMITE_LIMIT, np.nan, out)


@elementwise
def laguerre_polynomial_l(x: F64, n: F64) -> F64:
    return _recur(x, n, 1 - x, lambda k, x, p, q: ((2 * k + 1 - x) * p - k * q) / (k + 1))


@elementwise
def legendre_polynomial_p(x: F64, n: F64) -> F64:
    return _recur(x, n, x, lambda k, x, p, q: ((2 * k + 1) * x * p - k * q) / (k + 1))


POLYNOMIALS = {
    f.__name__: f
    for f in (
        chebyshev_polynomial_t,
        chebyshev_polynomial_u,
        chebyshev_polynomial_v,
        chebyshev_polynomial_w,
        shifted_chebyshev_polynomial_t,
        shifted_chebyshev_polynomial_u,
        shifted_chebyshev_polynomial_v,
        shifted_chebyshev_polynomial_w,
        hermite_polynomial_h,
        hermite_polynomial_he,
        laguerre_polynomial_l,
        legendre_polynomial_p,
    )
}
