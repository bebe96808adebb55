"""Bessel functions of orders 0 and 1 and Airy's function, in float64 whatever the type. The series
and fits are those of `common/special/bessel.py`. Knows blocks, not memory.
"""

from __future__ import annotations

import triton
import triton.language as tl

from ...common.special import airy as airy
from ...common.special import bessel as b
from .elementary import f_div, libdevice
from .source import chebyshev, one_liners, polynomial

_i0_series, _i1_series = (polynomial(f"i{n}_series", b._I[n]) for n in (0, 1))
_i0_fit, _i1_fit = (chebyshev(f"i{n}_fit", b._growing_fit(n)) for n in (0, 1))
_k0_regular, _k1_regular = (polynomial(f"k{n}_regular", b._K_REGULAR[n]) for n in (0, 1))
_k0_series, _k1_series = (polynomial(f"k{n}_series", b._I[n][:12]) for n in (0, 1))
_k0_fit, _k1_fit = (chebyshev(f"k{n}_fit", b.real_fit(n, b._K_START)) for n in (0, 1))
_j0_series, _j1_series = (polynomial(f"j{n}_series", b._J[n]) for n in (0, 1))
_y0_regular, _y1_regular = (polynomial(f"y{n}_regular", b._Y_REGULAR[n]) for n in (0, 1))
_waves = [b.wave_fit(n, b._J_START) for n in (0, 1)]
_p0_fit, _p1_fit = (chebyshev(f"p{n}_fit", _waves[n][0]) for n in (0, 1))
_q0_fit, _q1_fit = (chebyshev(f"q{n}_fit", _waves[n][1]) for n in (0, 1))
_airy_even = polynomial("airy_even", airy._EVEN)
_airy_odd = polynomial("airy_odd", airy._ODD)
_airy_right = chebyshev("airy_right", b.real_fit(1 / 3, airy._RIGHT_ZETA))
_airy_p, _airy_q = (chebyshev(f"airy_{n}", c) for n, c in zip("pq", b.wave_fit(1 / 3, airy._LEFT_ZETA), strict=True))
_LEFT_ZETA = tl.constexpr(airy._LEFT_ZETA)
_RIGHT_ZETA = tl.constexpr(airy._RIGHT_ZETA)
_ROOT_2PI = tl.constexpr(2.5066282746310002)
_ROOT_PI = tl.constexpr(1.7724538509055159)


@triton.jit
def _one(x):
    return tl.zeros_like(x) + 1


@triton.jit
def _i_scaled(x, ORDER: tl.constexpr):
    """exp(-x) I(x) for x >= 0."""
    low = x < 8.0
    half = tl.where(low, x, 0.0) * 0.5
    t = f_div(_one(x) * 16.0, tl.where(low, 8.0, x)) - 1
    if ORDER == 0:
        small = libdevice.exp(-2 * half) * _i0_series(half * half)
        large = _i0_fit(t)
    else:
        small = libdevice.exp(-2 * half) * (half * _i1_series(half * half))
        large = _i1_fit(t)
    large = f_div(large, libdevice.sqrt(x) * _ROOT_2PI)
    return tl.where(x != x, x, tl.where(low, small, large))


@triton.jit
def f_i1e(x):
    y = _i_scaled(tl.abs(x.to(tl.float64)), 1)
    return tl.where(x < 0, -y, y).to(x.dtype)


@triton.jit
def _k(x, ORDER: tl.constexpr, SCALED: tl.constexpr):
    low = x < 1.0
    near = tl.where(low & (x > 0), x, 0.5)
    half = near * 0.5
    square = half * half
    # log x - log 2 and not log(x/2), which is -inf at the smallest number.
    log = libdevice.log(near) - 0.6931471805599453
    t = f_div(_one(x) * 2.0, tl.where(low, 1.0, x)) - 1
    if ORDER == 0:
        small = _k0_regular(square) - log * _k0_series(square)
        large = _k0_fit(t)
    else:
        small = half * (_k1_regular(square) - log * _k1_series(square))
        small = f_div(_one(x), near) - small
        large = _k1_fit(t)
    large = large * libdevice.sqrt(f_div(_one(x) * 1.5707963267948966, tl.where(low, 1.0, x)))
    if SCALED:
        small = small * libdevice.exp(near)
    else:
        large = large * libdevice.exp(-tl.where(low, 1.0, x))
    y = tl.where(low, small, large)
    y = tl.where(x == float("inf"), 0.0, y)
    return tl.where(x == 0, float("inf"), tl.where(x > 0, y, float("nan")))


@triton.jit
def _wave(x, ORDER: tl.constexpr, SECOND: tl.constexpr):
    """√(2/πx) (P cos χ - Q sin χ), or with (Q, P) in place of (P, -Q) for Y; χ = x - (2n+1)π/4."""
    t = f_div(_one(x) * 4.0, x) - 1
    # cos χ and sin χ by the addition theorem: subtracting π/4 from a large x would round it away.
    sine, cosine = libdevice.sin(x), libdevice.cos(x)
    if ORDER == 0:
        p, q = _p0_fit(t), _q0_fit(t)
        c, s = cosine + sine, sine - cosine
    else:
        p, q = _p1_fit(t), _q1_fit(t)
        c, s = sine - cosine, -sine - cosine
    mixed = q * c + p * s if SECOND else p * c - q * s
    return f_div(mixed, libdevice.sqrt(x) * _ROOT_PI)


@triton.jit
def _j(x, ORDER: tl.constexpr):
    low = x < 2.0
    half = tl.where(low, x, 0.0) * 0.5
    small = _j0_series(half * half) if ORDER == 0 else half * _j1_series(half * half)
    return tl.where(low, small, _wave(tl.where(low, 2.0, x), ORDER, False))


@triton.jit
def _y(x, ORDER: tl.constexpr):
    low = x < 2.0
    near = tl.where(low & (x > 0), x, 0.5)
    half = near * 0.5
    square = half * half
    log = libdevice.log(near) - 0.6931471805599453
    if ORDER == 0:
        small = _y0_regular(square) - log * _j0_series(square)
    else:
        small = half * (_y1_regular(square) - log * _j1_series(square))
        small = f_div(_one(x), near) + small
    small = small * -0.6366197723675814
    y = tl.where(low, small, _wave(tl.where(low, 2.0, x), ORDER, True))
    return tl.where(x == 0, -float("inf"), tl.where(x > 0, y, float("nan")))


@triton.jit
def f_bessel_j1(x):
    y = _j(tl.abs(x.to(tl.float64)), 1)
    return tl.where(x < 0, -y, y).to(x.dtype)


@triton.jit
def f_spherical_bessel_j0(given):
    x = given.to(tl.float64)
    y = f_div(libdevice.sin(x), tl.where(x == 0, 1.0, x))
    y = tl.where(tl.abs(x) == float("inf"), 0.0, tl.where(x == 0, 1.0, y))
    return y.to(given.dtype)


@triton.jit
def f_airy_ai(given):
    x = given.to(tl.float64)
    centre = (x >= -2.5) & (x < 1.0)
    w = tl.where(centre, x, 0.0)
    cube = w * w * w
    y = _airy_even(cube) * 0.3550280538878172 - _airy_odd(cube) * w * 0.2588194037928068
    # DLMF 9.6.2 on the right, 9.6.6 on the left.
    r = tl.where(x >= 1.0, x, 1.0)
    root = libdevice.sqrt(r)
    zeta = r * root * 0.6666666666666666
    right = _airy_right(f_div(_one(x) * (2 * _RIGHT_ZETA), zeta) - 1) * libdevice.exp(-zeta)
    right = f_div(right, libdevice.sqrt(root) * (2 * _ROOT_PI))
    n = tl.where(x < -2.5, -x, 2.5)
    root = libdevice.sqrt(n)
    zeta = n * root * 0.6666666666666666
    t = f_div(_one(x) * (2 * _LEFT_ZETA), zeta) - 1
    sine, cosine = libdevice.sin(zeta), libdevice.cos(zeta)
    left = _airy_p(t) * (cosine + sine) - _airy_q(t) * (sine - cosine)
    left = f_div(left, libdevice.sqrt(root * 6.283185307179586))
    y = tl.where(x >= 1.0, right, tl.where(x < -2.5, left, y))
    y = tl.where((x == float("inf")) | (x != x), float("nan"), y)
    return y.to(given.dtype)


one_liners(
    globals(),
    {
        "f_i0e(x)": "_i_scaled(tl.abs(x.to(tl.float64)), 0).to(x.dtype)",
        "f_modified_bessel_k0(x)": "_k(x.to(tl.float64), 0, False).to(x.dtype)",
        "f_modified_bessel_k1(x)": "_k(x.to(tl.float64), 1, False).to(x.dtype)",
        "f_scaled_modified_bessel_k0(x)": "_k(x.to(tl.float64), 0, True).to(x.dtype)",
        "f_scaled_modified_bessel_k1(x)": "_k(x.to(tl.float64), 1, True).to(x.dtype)",
        "f_bessel_j0(x)": "_j(tl.abs(x.to(tl.float64)), 0).to(x.dtype)",
        "f_bessel_y0(x)": "_y(x.to(tl.float64), 0).to(x.dtype)",
        "f_bessel_y1(x)": "_y(x.to(tl.float64), 1).to(x.dtype)",
    },
)
