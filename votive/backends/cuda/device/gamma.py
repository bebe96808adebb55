"""Digamma and its derivatives, and the Hurwitz zeta function they rest on, in float64 whatever the
type. The formulas are those of `common/special/gamma.py`. Knows blocks, not memory.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from ...common.special.approx import BERNOULLI, EULER_GAMMA
from ...common.special.gamma import _DIGAMMA, _MACLAURIN, _STIRLING, _zeta_minus_one
from .elementary import f_div, libdevice
from .source import function, polynomial

_digamma_series = polynomial("digamma_series", _DIGAMMA)
_trigamma_series = polynomial("trigamma_series", BERNOULLI)
_stirling_series = polynomial("stirling_series", _STIRLING)
_near_2 = polynomial(
    "lgamma_near_2", [1 - EULER_GAMMA, *((-1) ** k * c / k for k, c in enumerate(_zeta_minus_one(), 2))]
)
_digamma_near_2 = polynomial(
    "digamma_near_2", [1 - EULER_GAMMA, *((-1) ** k * c for k, c in enumerate(_zeta_minus_one(), 2))]
)


@triton.jit
def any_(mask):
    """Whether a mask holds anywhere in a block; a single value counts as a block."""
    return tl.max(tl.where(mask, 1, 0) + tl.zeros((1,), tl.int32)) > 0


@triton.jit
def lgamma1p(z):
    """log Γ(1 + z) for -1/2 <= z <= 3/2, with relative accuracy at its zeros 0 and 1."""
    low = z <= 0.5
    w = tl.where(low, z, z - 1)
    near = w * _near_2(w)
    return tl.where(low, near - libdevice.log1p(tl.where(low, z, 0.0)), near)


@triton.jit
def stirling_rest(x):
    """log Γ(x) less its leading terms, for x >= 10."""
    one = tl.zeros_like(x) + 1
    return f_div(_stirling_series(f_div(one, x * x)), x)


@triton.jit
def _digamma_positive(x):
    one = tl.zeros_like(x) + 1
    # Around 2, where its zero lies not far, by its own series; else carried up to 10 and beyond.
    near = (x >= 0.5) & (x <= 2.5)
    w = tl.where(near, tl.where(x < 1.5, x - 1, x - 2), 0.0)
    series = _digamma_near_2(w) - tl.where(x < 1.5, f_div(one, x), 0.0)
    y = tl.where(x < 10, x + 8, x)
    v = f_div(one, y * y)
    far = libdevice.log(y) - f_div(0.5 * one, y) + v * _digamma_series(v)
    steps = tl.zeros_like(x)
    for k in tl.static_range(8):
        steps += f_div(one, x + k)
    far = tl.where(x < 10, far - steps, far)
    return tl.where(near, series, far)


@triton.jit
def f_digamma(given):
    x = given.to(tl.float64)
    one = tl.zeros_like(x) + 1
    small = tl.abs(x) <= 0.5
    w = tl.where(small, x, 0.25)
    near = _digamma_near_2(w) - f_div(one, 1 + w) - f_div(one, w)
    negative = x < -0.5
    positive = _digamma_positive(tl.where(negative, 1 - x, tl.where(small, 1.0, x)))
    # x less its nearest integer is exact, so the cotangent keeps its relative accuracy.
    part = x - libdevice.rint(x)
    reflection = f_div(one * 3.141592653589793, libdevice.tan(part * 3.141592653589793))
    reflection = tl.where(part == 0, float("nan"), reflection)
    y = tl.where(small, near, tl.where(negative, positive - reflection, positive))
    return y.to(given.dtype)


@triton.jit
def _trigamma_positive(x):
    one = tl.zeros_like(x) + 1
    low = x < 10
    y = tl.where(low, x + 10, x)
    v = f_div(one, y)
    large = v + v * v * (0.5 + v * _trigamma_series(v * v))
    steps = tl.zeros_like(x)
    for k in tl.static_range(10):
        steps += f_div(one, (x + (9 - k)) * (x + (9 - k)))
    return tl.where(low, large + steps, large)


@triton.jit
def _trigamma(x):
    negative = x < 0
    value = _trigamma_positive(tl.where(negative, 1 - x, x))
    sine = libdevice.sin(3.141592653589793 * (x - libdevice.rint(x)))
    reflection = f_div(tl.zeros_like(x) + 3.141592653589793, sine)
    return tl.where(negative, reflection * reflection - value, value)


def _maclaurin_sum() -> object:
    lines = []
    for k, c in enumerate(_MACLAURIN, 1):
        lines.append(f"total += {c!r} * factor")
        lines.append(f"factor *= div(s + {2 * k - 1}, w) * div(s + {2 * k}, w)")
    body = "".join(f"    {line}\n" for line in [*lines, "return total"])
    source = f"@triton.jit\ndef maclaurin(total, factor, s, w):\n{body}"
    return function(source, "maclaurin", div=f_div)


_maclaurin: Any = _maclaurin_sum()


@triton.jit
def _zeta_positive(s, q):
    """The sum of (q + k)^-s for s > 1, q > 0: ten terms, then Euler-Maclaurin (DLMF 25.11.5)."""
    total = tl.zeros_like(q)
    for k in tl.static_range(10):
        total += libdevice.pow(q + k, -s)
    w = q + 10
    integral = libdevice.pow(w, 1 - s)
    power = f_div(integral, w)
    total += f_div(integral, s - 1) + 0.5 * power
    # Beyond 1e10 the power is zero already; the cap keeps the rising factorial from overflowing.
    s = tl.minimum(s, 1e10)
    factor = f_div(power * s, w)
    return _maclaurin(total, factor, s, w)


@triton.jit
def _zeta(s, q):
    s = s + tl.zeros_like(q)
    q = q + tl.zeros_like(s)
    inside = (s > 1) & (q < float("inf"))
    positive = inside & (q > 0)
    value = _zeta_positive(tl.where(positive, s, 2.0), tl.where(positive, q, 1.0))
    value = tl.where(positive, value, float("nan"))
    negative = inside & (q < 0) & (s == libdevice.floor(s))
    if any_(negative):
        # Integer s: the terms left of zero are a zeta difference of their own. The two near zero
        # first: for odd s halfway between integers they cancel exactly.
        size = tl.where(negative, -q, 0.5)
        t = tl.where(negative, s, 2.0)
        odd = tl.where(libdevice.fmod(t, tl.zeros_like(t) + 2) == 1, -1.0, 1.0)
        near = _zeta_positive(t, libdevice.ceil(size) - size)
        near += odd * _zeta_positive(t, size - libdevice.floor(size))
        value = tl.where(negative, near - odd * _zeta_positive(t, size + 1), value)
    pole = (q <= 0) & (q == libdevice.floor(q)) & ((s < 1) == 0)
    return tl.where(pole | (s == 1), float("inf"), value)


@triton.jit
def f_zeta(s, q):
    return _zeta(s.to(tl.float64), q.to(tl.float64)).to(s.dtype)


@triton.jit
def f_polygamma(n, given):
    """The n-th derivative of digamma, n >= 1: (-1)^(n+1) n! ζ(n + 1, x) (DLMF 25.11.12)."""
    x = given.to(tl.float64)
    order = n.to(tl.float64)
    # n! as mantissa and exponent: alone it overflows from 171 on, its product with zeta may not.
    factorial = tl.full((), 1.0, tl.float64)
    halves = tl.full((), 0.0, tl.float64)
    k = tl.full((), 2.0, tl.float64)
    while k <= order:
        factorial = factorial * k
        large = factorial > 1.157920892373162e77  # 2^256
        factorial = tl.where(large, factorial * 8.636168555094445e-78, factorial)
        halves = halves + tl.where(large, 128.0, 0.0)
        k = k + 1
    odd = order - 2 * libdevice.floor(order * 0.5)
    scale = libdevice.exp2(halves)
    value = (2 * odd - 1) * factorial * _zeta(order + 1, x) * scale * scale
    value = tl.where(order == 1, _trigamma(x), value)
    return value.to(given.dtype)
