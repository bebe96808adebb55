"""Orthogonal polynomials by degree and position, in float64 whatever the type. Recurrences and
closed forms are those of `common/special/polynomial.py`. Knows blocks, not memory.
"""

from __future__ import annotations

import triton
import triton.language as tl

from .elementary import f_div, libdevice
from .source import one_liners

HERMITE, HERMITE_E, LAGUERRE, LEGENDRE, CHEBYSHEV = (tl.constexpr(k) for k in range(5))
T, U, V, W = (tl.constexpr(k) for k in range(4))


@triton.jit
def _recurred(x, n, first, LIMIT: tl.constexpr, KIND: tl.constexpr):
    """Degree n of each element from degrees 0 and 1 by the recurrence of a family."""
    before = tl.zeros_like(x) + 1
    here = first
    out = tl.where(n == 0, before, tl.where(n == 1, here, 0.0))
    # The largest degree of a block; a single value counts as a block.
    top = tl.max(n + tl.zeros((1,), tl.float64))
    if LIMIT > 0:
        top = tl.minimum(top, LIMIT)
    k = tl.full((), 1.0, tl.float64)
    while k < top:
        if KIND == HERMITE:
            after = 2 * x * here - 2 * k * before
        elif KIND == HERMITE_E:
            after = x * here - k * before
        elif KIND == LAGUERRE:
            after = f_div((2 * k + 1 - x) * here - k * before, tl.zeros_like(x) + (k + 1))
        elif KIND == LEGENDRE:
            after = f_div((2 * k + 1) * x * here - k * before, tl.zeros_like(x) + (k + 1))
        else:
            after = 2 * x * here - before
        before = here
        here = after
        out = tl.where(n == k + 1, here, out)
        k += 1
    return out


@triton.jit
def _simple(given, degree, KIND: tl.constexpr):
    n = libdevice.trunc(degree.to(tl.float64))
    x = given.to(tl.float64) + tl.zeros_like(n)
    n = n + tl.zeros_like(x)
    if KIND == HERMITE:
        first = 2 * x
    elif KIND == LAGUERRE:
        first = 1 - x
    else:
        first = x
    if (KIND == HERMITE) | (KIND == HERMITE_E):
        # Beyond this degree Hermite values overflow for any usable position.
        y = _recurred(x, n, first, 512, KIND)
        y = tl.where(n > 512, float("nan"), y)
    else:
        y = _recurred(x, n, first, 0, KIND)
    return y.to(given.dtype)


@triton.jit
def _ratio(top, bottom, limit):
    return tl.where(bottom == 0, limit, f_div(top, tl.where(bottom == 0, 1.0, bottom)))


@triton.jit
def _outside_v(x, t, n, odd):
    # V(-x) = (-1)^n W(x), so one side takes cosh, the other sinh.
    even_ = f_div(libdevice.cosh((n + 0.5) * t), libdevice.cosh(t * 0.5))
    odd_ = f_div(libdevice.sinh((n + 0.5) * t), libdevice.sinh(t * 0.5))
    return tl.where((x < 0) & odd, -1.0, 1.0) * tl.where(x < 0, odd_, even_)


@triton.jit
def _chebyshev(given, degree, KIND: tl.constexpr, SHIFTED: tl.constexpr):
    n = libdevice.trunc(degree.to(tl.float64))
    x = given.to(tl.float64) + tl.zeros_like(n)
    n = n + tl.zeros_like(x)
    if SHIFTED:
        x = 2 * x - 1
    if KIND == T:
        first = x
    elif KIND == U:
        first = 2 * x
    elif KIND == V:
        first = 2 * x - 1
    else:
        first = 2 * x + 1
    low = _recurred(x, n, first, 8, CHEBYSHEV)
    # Past degree 8 the closed forms in cos(n t) and cosh(n t).
    odd = n - 2 * libdevice.floor(n * 0.5) == 1
    size = tl.abs(x)
    t = libdevice.acos(tl.where(size <= 1, x, 0.0))
    h = libdevice.acosh(tl.where(size <= 1, 2.0, size))
    mirrored = tl.where((x < 0) & odd, -1.0, 1.0)
    alternating = tl.where(odd, -1.0, 1.0)
    end = size == 1
    if KIND == T:
        inside = libdevice.cos(n * t)
        outside = mirrored * libdevice.cosh(n * h)
    elif KIND == U:
        edge = tl.where(t > 1, alternating, 1.0) * (n + 1)
        inside = _ratio(libdevice.sin((n + 1) * t), tl.where(end, 0.0, libdevice.sin(t)), edge)
        outside = mirrored * f_div(libdevice.sinh((n + 1) * h), libdevice.sinh(h))
    elif KIND == V:
        bottom = tl.where(x == -1, 0.0, libdevice.cos(t * 0.5))
        inside = _ratio(libdevice.cos((n + 0.5) * t), bottom, alternating * (2 * n + 1))
        outside = _outside_v(x, h, n, odd)
    else:
        inside = _ratio(libdevice.sin((n + 0.5) * t), libdevice.sin(t * 0.5), 2 * n + 1)
        outside = alternating * _outside_v(-x, h, n, odd)
    high = tl.where(size <= 1, inside, outside)
    y = tl.where(n >= 9, high, low)
    return y.to(given.dtype)


one_liners(
    globals(),
    {
        "f_chebyshev_polynomial_t(x, n)": "_chebyshev(x, n, T, False)",
        "f_chebyshev_polynomial_u(x, n)": "_chebyshev(x, n, U, False)",
        "f_chebyshev_polynomial_v(x, n)": "_chebyshev(x, n, V, False)",
        "f_chebyshev_polynomial_w(x, n)": "_chebyshev(x, n, W, False)",
        "f_shifted_chebyshev_polynomial_t(x, n)": "_chebyshev(x, n, T, True)",
        "f_shifted_chebyshev_polynomial_u(x, n)": "_chebyshev(x, n, U, True)",
        "f_shifted_chebyshev_polynomial_v(x, n)": "_chebyshev(x, n, V, True)",
        "f_shifted_chebyshev_polynomial_w(x, n)": "_chebyshev(x, n, W, True)",
        "f_hermite_polynomial_h(x, n)": "_simple(x, n, HERMITE)",
        "f_hermite_polynomial_he(x, n)": "_simple(x, n, HERMITE_E)",
        "f_laguerre_polynomial_l(x, n)": "_simple(x, n, LAGUERRE)",
        "f_legendre_polynomial_p(x, n)": "_simple(x, n, LEGENDRE)",
    },
)
