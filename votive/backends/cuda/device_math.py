"""Scalar functions that kernels use, by the names of the formula primitives: `f_` on floats, `i_`
on integers and truth values. Knows blocks, not memory.

`libdevice` is NVIDIA's library of precise functions; `tl`'s own approximations lose digits for
large arguments (`exp(80)` to 1e-5), so they are taken only where the result is a half type anyway.
"""

from __future__ import annotations

import triton
import triton.language as tl

if triton.knobs.runtime.interpret:
    from .host_math import libdevice
else:
    from triton.language.extra.cuda import libdevice

_NAN = tl.constexpr(float("nan"))
_PI = tl.constexpr(3.141592653589793)
_LN2 = tl.constexpr(0.6931471805599453)
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
    poly = t * (
        0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429)))
    )
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
def f_exp(x):
    return libdevice.exp(x)


@triton.jit
def f_exp2(x):
    return libdevice.exp2(x)


@triton.jit
def f_expm1(x):
    return libdevice.expm1(x)


@triton.jit
def f_log(x):
    return libdevice.log(x)


@triton.jit
def f_log2(x):
    return libdevice.log2(x)


@triton.jit
def f_log10(x):
    return libdevice.log10(x)


@triton.jit
def f_log1p(x):
    return libdevice.log1p(x)


@triton.jit
def f_sin(x):
    return libdevice.sin(x)


@triton.jit
def f_cos(x):
    return libdevice.cos(x)


@triton.jit
def f_tan(x):
    return libdevice.tan(x)


@triton.jit
def f_asin(x):
    return libdevice.asin(x)


@triton.jit
def f_acos(x):
    return libdevice.acos(x)


@triton.jit
def f_atan(x):
    return libdevice.atan(x)


@triton.jit
def f_sinh(x):
    return libdevice.sinh(x)


@triton.jit
def f_cosh(x):
    return libdevice.cosh(x)


@triton.jit
def f_tanh(x):
    return libdevice.tanh(x)


@triton.jit
def f_asinh(x):
    return libdevice.asinh(x)


@triton.jit
def f_acosh(x):
    return libdevice.acosh(x)


@triton.jit
def f_atanh(x):
    return libdevice.atanh(x)


@triton.jit
def f_erf(x):
    return libdevice.erf(x)


@triton.jit
def f_erfc(x):
    return libdevice.erfc(x)


@triton.jit
def f_erfcx(x):
    return libdevice.erfcx(x)


@triton.jit
def f_erfinv(x):
    return libdevice.erfinv(x)


@triton.jit
def f_ndtri(x):
    return libdevice.normcdfinv(x)


@triton.jit
def f_lgamma(x):
    # A negative infinity has no sign to choose; the mathematics says infinity.
    return tl.where(x == -float("inf"), float("inf"), libdevice.lgamma(x))


@triton.jit
def f_i0(x):
    return libdevice.cyl_bessel_i0(x)


@triton.jit
def f_i1(x):
    return libdevice.cyl_bessel_i1(x)


@triton.jit
def f_sqrt(x):
    return libdevice.sqrt(x)


@triton.jit
def f_rsqrt(x):
    return libdevice.rsqrt(x)


@triton.jit
def f_reciprocal(x):
    return f_div(tl.full((), 1, x.dtype), x)


@triton.jit
def f_div(a, b):
    return libdevice.div_rn(a, b)


@triton.jit
def f_sigmoid(x):
    # exp of a non-positive number only: no overflow on either side.
    e = libdevice.exp(-tl.abs(x))
    return tl.where(x >= 0, f_div(tl.full((), 1, x.dtype), 1 + e), f_div(e, 1 + e))


@triton.jit
def f_square(x):
    return x * x


@triton.jit
def f_abs(x):
    return tl.abs(x)


@triton.jit
def f_neg(x):
    return -x


@triton.jit
def f_floor(x):
    return libdevice.floor(x)


@triton.jit
def f_ceil(x):
    return libdevice.ceil(x)


@triton.jit
def f_trunc(x):
    return libdevice.trunc(x)


@triton.jit
def f_round(x):
    return libdevice.rint(x)


@triton.jit
def f_sign(x):
    return (x > 0).to(x.dtype) - (x < 0).to(x.dtype)


@triton.jit
def f_sgn(x):
    return f_sign(x)


@triton.jit
def f_isnan(x):
    return x != x


@triton.jit
def f_isinf(x):
    return tl.abs(x) == float("inf")


@triton.jit
def f_isfinite(x):
    return tl.abs(x) < float("inf")


@triton.jit
def f_isposinf(x):
    return x == float("inf")


@triton.jit
def f_isneginf(x):
    return x == -float("inf")


@triton.jit
def f_signbit(x):
    if x.dtype == tl.float64:
        return x.to(tl.int64, bitcast=True) < 0
    else:
        return x.to(tl.int32, bitcast=True) < 0


@triton.jit
def f_copysign(a, b):
    return libdevice.copysign(a, b)


@triton.jit
def f_nextafter(a, b):
    return libdevice.nextafter(a, b)


@triton.jit
def f_maximum(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def f_minimum(a, b):
    return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def f_fmax(a, b):
    return tl.where(a != a, b, tl.where(b != b, a, tl.where(a > b, a, b)))


@triton.jit
def f_fmin(a, b):
    return tl.where(a != a, b, tl.where(b != b, a, tl.where(a < b, a, b)))


@triton.jit
def f_fmod(a, b):
    return libdevice.fmod(a, b)


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
def f_trunc_divide(a, b):
    return libdevice.trunc(f_div(a, b))


@triton.jit
def f_pow(a, b):
    return libdevice.pow(a, b)


@triton.jit
def f_atan2(a, b):
    return libdevice.atan2(a, b)


@triton.jit
def f_hypot(a, b):
    return libdevice.hypot(a, b)


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
def f_xlogy(a, b):
    return tl.where(b != b, b, tl.where(a == 0, 0.0, a * libdevice.log(b)))


@triton.jit
def f_xlog1py(a, b):
    return tl.where(b != b, b, tl.where(a == 0, 0.0, a * libdevice.log1p(b)))


@triton.jit
def f_entr(x):
    out = tl.where(x == 0, 0.0, -x * libdevice.log(x))
    return tl.where(x < 0, -float("inf"), out)


@triton.jit
def f_ldexp(a, b):
    return a * libdevice.exp2(b)


@triton.jit
def f_sinc(x):
    z = x * _PI
    return tl.where(x == 0, 1.0, f_div(libdevice.sin(z), tl.where(x == 0, 1.0, z)))


@triton.jit
def f_angle(x):
    return tl.where(x != x, x, tl.where(x < 0, _PI, 0.0))


# Integers. Division truncates in hardware; Python's rounds down.


@triton.jit
def i_abs(x):
    return tl.where(x < 0, -x, x)


@triton.jit
def i_neg(x):
    return -x


@triton.jit
def i_square(x):
    return x * x


@triton.jit
def i_same(x):
    return x


@triton.jit
def i_sign(x):
    return (x > 0).to(x.dtype) - (x < 0).to(x.dtype)


@triton.jit
def i_never(x):
    return x != x


@triton.jit
def i_always(x):
    return x == x


@triton.jit
def i_signbit(x):
    return x < 0


@triton.jit
def i_maximum(a, b):
    return tl.maximum(a, b)


@triton.jit
def i_minimum(a, b):
    return tl.minimum(a, b)


@triton.jit
def i_trunc_divide(a, b):
    return a // b


@triton.jit
def i_floor_divide(a, b):
    q = a // b
    return tl.where((q * b != a) & ((a < 0) != (b < 0)), q - 1, q)


@triton.jit
def i_fmod(a, b):
    return a % b


@triton.jit
def i_remainder(a, b):
    r = a % b
    return tl.where((r != 0) & ((r < 0) != (b < 0)), r + b, r)


@triton.jit
def i_bitwise_left_shift(a, b):
    bits: tl.constexpr = a.dtype.primitive_bitwidth
    return tl.where((b < 0) | (b >= bits), a * 0, a << b)


@triton.jit
def i_bitwise_right_shift(a, b):
    bits: tl.constexpr = a.dtype.primitive_bitwidth
    beyond = (b < 0) | (b >= bits)
    shifted = a >> tl.where(beyond, b * 0 + (bits - 1), b)
    if a.dtype.is_int_unsigned():
        return tl.where(beyond, a * 0, shifted)
    else:
        return shifted


@triton.jit
def i_pow(a, b):
    # Square and multiply; negative exponents leave only 1 and -1 standing.
    kind: tl.constexpr = a.dtype
    out = (a * 0 + 1).to(kind)
    base = a
    left = tl.where(b < 0, b * 0, b)
    bits: tl.constexpr = kind.primitive_bitwidth
    for _ in tl.static_range(bits):
        out = tl.where((left & 1) != 0, out * base, out).to(kind)
        base = (base * base).to(kind)
        left = (left >> 1).to(b.dtype)
    odd = (b & 1) != 0
    inverse = tl.where(a == 1, 1, tl.where(a == -1, tl.where(odd, -1, 1), 0)).to(a.dtype)
    return tl.where(b < 0, inverse, out)


@triton.jit
def i_gcd(a, b):
    # Euclid's algorithm; Fibonacci numbers need the most steps, 93 in 64 bits.
    a, b = tl.abs(a), tl.abs(b)
    for _ in range(93):
        more = b != 0
        rest = a % tl.where(more, b, 1)
        a = tl.where(more, b, a)
        b = tl.where(more, rest, b)
    return a


@triton.jit
def i_lcm(a, b):
    g = i_gcd(a, b)
    return tl.where(g == 0, a * 0, tl.abs(a // tl.where(g == 0, 1, g) * b))


@triton.jit
def f_digamma(x):
    # Below 1/2 by reflection, up to 10 by recurrence, then the asymptotic series (Abramowitz and
    # Stegun 6.3.7, 6.3.5, 6.3.18).
    one = tl.zeros_like(x) + 1
    low = x < 0.5
    y = tl.where(low, 1 - x, x)
    total = tl.zeros_like(x)
    for _ in range(10):
        small = y < 10
        total -= tl.where(small, f_div(one, y), 0)
        y += tl.where(small, 1, 0)
    z = f_div(one, y * y)
    series = z * (691.0 / 32760 - z * (1.0 / 12))
    series = z * (1.0 / 240 - z * (1.0 / 132 - series))
    series = z * (1.0 / 12 - z * (1.0 / 120 - z * (1.0 / 252 - series)))
    total += libdevice.log(y) - f_div(0.5 * one, y) - series
    # Near its poles the tangent wants the distance to the nearest integer, not a multiple of pi.
    part = x - libdevice.rint(x)
    turned = f_div(one * _PI, libdevice.tan(part * _PI))
    total = tl.where(low, total - turned, total)
    pole = (x < 0) & (part == 0)
    total = tl.where(pole | (x == -float("inf")), _NAN, total)
    return tl.where(x == 0, -f_div(one, x), tl.where(x == float("inf"), x, total))


@triton.jit
def f_log_ndtr(x):
    # Far left the probability vanishes; its logarithm does not.
    t = x * 0.7071067811865476
    left = libdevice.log(libdevice.erfcx(-t) * 0.5) - t * t
    return tl.where(x < -1, left, libdevice.log1p(libdevice.erfc(t) * -0.5))


@triton.jit
def key_of(v):
    """Integers in the order of the values; NaN is the largest, both zeros are the same."""
    if v.dtype.is_floating():
        if v.dtype == tl.float64:
            v = tl.where(v == 0, 0.0, v)
            b = v.to(tl.int64, bitcast=True)
            k = b ^ ((b >> 63) & 0x7FFFFFFFFFFFFFFF)
            k = tl.where(v != v, 0x7FFFFFFFFFFFFFFF, k)
        else:
            f = v.to(tl.float32)
            f = tl.where(f == 0, 0.0, f)
            b = f.to(tl.int32, bitcast=True)
            k = b ^ ((b >> 31) & 0x7FFFFFFF)
            k = tl.where(f != f, 0x7FFFFFFF, k)
    elif v.dtype == tl.int64:
        k = v
    else:
        k = v.to(tl.int32)
    return k


@triton.jit
def sought(v, LARGEST: tl.constexpr):
    """Keys of which the largest is wanted: NaN wins whichever end is looked for."""
    k = key_of(v)
    if not LARGEST:
        k = ~k
        if v.dtype.is_floating():
            if v.dtype == tl.float64:
                k = tl.where(v != v, 0x7FFFFFFFFFFFFFFF, k)
            else:
                k = tl.where(v != v, 0x7FFFFFFF, k)
    return k


@triton.jit
def value_of(k, T: tl.constexpr, LARGEST: tl.constexpr):
    """The value whose `sought` key this is."""
    if T.is_floating():
        if T == tl.float64:  # noqa: SIM300
            nan = k == 0x7FFFFFFFFFFFFFFF
            if not LARGEST:
                k = ~k
            v = (k ^ ((k >> 63) & 0x7FFFFFFFFFFFFFFF)).to(tl.float64, bitcast=True)
        else:
            nan = k == 0x7FFFFFFF
            if not LARGEST:
                k = ~k
            v = (k ^ ((k >> 31) & 0x7FFFFFFF)).to(tl.float32, bitcast=True)
        v = tl.where(nan, float("nan"), v)
    else:
        v = k if LARGEST else ~k
    return v.to(T)
