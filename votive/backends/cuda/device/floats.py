"""Functions of floats that primitives of formulas name, `f_` before the name. Knows no memory.

`fast_` ones are taken only where the result is a half type anyway.
"""

from __future__ import annotations

import triton
import triton.language as tl

from .elementary import f_div, libdevice
from .source import one_liners

_PI = tl.constexpr(3.141592653589793)
_LOG2E = tl.constexpr(1.4426950408889634)


@triton.jit
def as_number(x, T: tl.constexpr):
    """A truth value as 0 or 1 of the compute type."""
    return tl.where(x, 1, 0).to(T)


@triton.jit
def fast_tanh(x):
    return 2 * tl.sigmoid(2 * x) - 1


@triton.jit
def fast_erf(x):
    # Abramowitz and Stegun 7.1.26: an absolute error of 1.5e-7.
    z = tl.abs(x)
    t = libdevice.fast_dividef(1.0, 1.0 + 0.3275911 * z)
    poly = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    y = 1.0 - poly * tl.math.exp2(-1.4426950408889634 * z * z)
    return tl.where(x < 0, -y, y)


@triton.jit
def swift_exp(x):
    """exp for sums of exponentials of numbers up to 0, where the largest terms are what counts."""
    if x.dtype == tl.float64:
        return libdevice.exp(x)
    else:
        return tl.math.exp2(x * 1.4426950408889634)


@triton.jit
def f_sigmoid(x):
    # exp of a non-positive number only: no overflow on either side.
    e = libdevice.exp(-tl.abs(x))
    return tl.where(x >= 0, f_div(tl.full((), 1, x.dtype), 1 + e), f_div(e, 1 + e))


@triton.jit
def f_sign(x):
    return (x > 0).to(x.dtype) - (x < 0).to(x.dtype)


@triton.jit
def f_isinf(x):
    return tl.abs(x) == float("inf")


@triton.jit
def f_signbit(x):
    if x.dtype == tl.float64:
        return x.to(tl.int64, bitcast=True) < 0
    else:
        return x.to(tl.int32, bitcast=True) < 0


@triton.jit
def f_maximum(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def f_minimum(a, b):
    return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def f_remainder(a, b):
    r = libdevice.fmod(a, b)
    return tl.where((r != 0) & ((r < 0) != (b < 0)), r + b, r)


@triton.jit
def f_floor_divide(a, b):
    # As Python's //: floor of the exact quotient, not of the rounded one.
    r = libdevice.fmod(a, b)
    q = f_div(a - r, b)
    q = tl.where((r != 0) & ((r < 0) != (b < 0)), q - 1, q)
    q = tl.where(q == 0, libdevice.copysign(q * 0, f_div(a, b)), libdevice.rint(q))
    return tl.where(b == 0, f_div(a, b), q)


@triton.jit
def f_logaddexp(a, b):
    top = f_maximum(a, b)
    apart = -tl.abs(a - b)
    out = top + libdevice.log1p(libdevice.exp(apart))
    return tl.where((a == b) & f_isinf(a), a, out)


@triton.jit
def f_logaddexp2(a, b):
    top = f_maximum(a, b)
    apart = -tl.abs(a - b)
    out = top + libdevice.log1p(libdevice.exp2(apart)) * _LOG2E
    return tl.where((a == b) & f_isinf(a), a, out)


@triton.jit
def f_entr(x):
    out = tl.where(x == 0, 0.0, -x * libdevice.log(x))
    return tl.where(x < 0, -float("inf"), out)


@triton.jit
def f_sinc(x):
    z = x * _PI
    return tl.where(x == 0, 1.0, f_div(libdevice.sin(z), tl.where(x == 0, 1.0, z)))


@triton.jit
def f_log_ndtr(given):
    x = given.to(tl.float64)
    # Far left the probability vanishes; its logarithm does not.
    t = x * 0.7071067811865476
    left = libdevice.log(libdevice.erfcx(-t) * 0.5) - t * t
    y = tl.where(x < -1, left, libdevice.log1p(libdevice.erfc(t) * -0.5))
    return y.to(given.dtype)


one_liners(
    globals(),
    {
        "f_square(x)": "x * x",
        "f_abs(x)": "tl.abs(x)",
        "f_neg(x)": "-x",
        "f_floor(x)": "libdevice.floor(x)",
        "f_ceil(x)": "libdevice.ceil(x)",
        "f_trunc(x)": "libdevice.trunc(x)",
        "f_round(x)": "libdevice.rint(x)",
        "f_sgn(x)": "f_sign(x)",
        "f_isnan(x)": "x != x",
        "f_isfinite(x)": 'tl.abs(x) < float("inf")',
        "f_isposinf(x)": 'x == float("inf")',
        "f_isneginf(x)": 'x == -float("inf")',
        "f_copysign(a, b)": "libdevice.copysign(a, b)",
        "f_nextafter(a, b)": "libdevice.nextafter(a, b)",
        "f_fmax(a, b)": "tl.where(a != a, b, tl.where(b != b, a, tl.where(a > b, a, b)))",
        "f_fmin(a, b)": "tl.where(a != a, b, tl.where(b != b, a, tl.where(a < b, a, b)))",
        "f_fmod(a, b)": "libdevice.fmod(a, b)",
        "f_trunc_divide(a, b)": "libdevice.trunc(f_div(a, b))",
        "f_pow(a, b)": "libdevice.pow(a, b)",
        "f_atan2(a, b)": "libdevice.atan2(a, b)",
        "f_hypot(a, b)": "libdevice.hypot(a, b)",
        "f_xlogy(a, b)": "tl.where(b != b, b, tl.where(a == 0, 0.0, a * libdevice.log(b)))",
        "f_xlog1py(a, b)": "tl.where(b != b, b, tl.where(a == 0, 0.0, a * libdevice.log1p(b)))",
        "f_ldexp(a, b)": "a * libdevice.exp2(b)",
        "f_angle(x)": "tl.where(x != x, x, tl.where(x < 0, _PI, 0.0))",
    },
)
