"""Functions of integers and truth values that primitives of formulas name, `i_` before the name.

Division truncates in hardware; Python's rounds down.
"""

from __future__ import annotations

import triton
import triton.language as tl

from .source import one_liners


@triton.jit
def i_floor_divide(a, b):
    q = a // b
    return tl.where((q * b != a) & ((a < 0) != (b < 0)), q - 1, q)


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


one_liners(
    globals(),
    {
        "i_abs(x)": "tl.where(x < 0, -x, x)",
        "i_neg(x)": "-x",
        "i_square(x)": "x * x",
        "i_same(x)": "x",
        "i_sign(x)": "(x > 0).to(x.dtype) - (x < 0).to(x.dtype)",
        "i_never(x)": "x != x",
        "i_always(x)": "x == x",
        "i_signbit(x)": "x < 0",
        "i_maximum(a, b)": "tl.maximum(a, b)",
        "i_minimum(a, b)": "tl.minimum(a, b)",
        "i_trunc_divide(a, b)": "a // b",
        "i_fmod(a, b)": "a % b",
    },
)
