"""All universal functions of NumPy for numbers: each name with what computes it on tensors of one dtype."""

from __future__ import annotations

import math
from typing import Any

from ..core import dtype as dt
from ..ops.registry import F
from ..tensor import Tensor
from .array import install
from .ufunc import ufunc

T = Tensor


def _floor_divide_ints(a: T, b: T) -> T:
    # NumPy's rules: x // 0 is 0, and the smallest integer // -1 wraps.
    plain = F.floor_divide(a, _safe(b))
    if b.dtype.is_signed:
        plain = F.where(F.eq(b, -1), F.neg(a), plain)
    return F.where(F.eq(b, 0), F.zeros_like(plain), plain)


def _remainder_ints(a: T, b: T) -> T:
    r = F.remainder(a, _safe(b))
    return F.where(_unsafe(b), F.zeros_like(r), r)


def _fmod_ints(a: T, b: T) -> T:
    r = F.fmod(a, _safe(b))
    return F.where(_unsafe(b), F.zeros_like(r), r)


def _unsafe(b: T) -> T:
    return F.eq(b, 0) | F.eq(b, -1) if b.dtype.is_signed else F.eq(b, 0)


def _safe(b: T) -> T:
    return F.where(_unsafe(b), F.ones_like(b), b)


def _floor_divide(a: T, b: T) -> T:
    # From the remainder, so that both always fit together; x // 0 and inf // x follow IEEE division.
    r = F.fmod(a, b)
    q = F.div(a - r, b)
    q = F.where(F.ne(r, 0) & (F.lt(r, 0) ^ F.lt(b, 0)), q - 1, q)
    whole = F.floor(q)
    whole = F.where(F.gt(q - whole, 0.5), whole + 1, whole)
    plain = F.div(a, b)
    whole = F.where(F.eq(whole, 0), F.copysign(whole, plain), whole)
    return F.where(F.eq(b, 0), plain, whole)


def _remainder(a: T, b: T) -> T:
    r = F.fmod(a, b)
    fixed = F.where(F.ne(r, 0) & (F.lt(r, 0) ^ F.lt(b, 0)), r + b, r)
    return F.where(F.eq(fixed, 0), F.copysign(fixed, b), fixed)


def _power_ints(a: T, b: T) -> T:
    if b.dtype.is_signed and b.numel() and bool(F.lt(b, 0).any()):
        raise ValueError("Integers to negative integer powers are not allowed.")
    if not b.dtype.is_signed:
        a, b = a.to(dt.int64), b.to(dt.int64)  # cast back by the caller; the low bits are the same
    return F.pow(a, b)


def _divmod(a: T, b: T) -> tuple[T, T]:
    return _floor_divide(a, b), _remainder(a, b)


def _divmod_ints(a: T, b: T) -> tuple[T, T]:
    return _floor_divide_ints(a, b), _remainder_ints(a, b)


def _complex_order(name: str, either_nan: bool) -> Any:
    def run(a: T, b: T) -> T:
        if not a.dtype.is_complex:
            return getattr(F, name)(a, b)
        less = _complex_less(a, b)
        first = less if name in ("minimum", "fmin") else _complex_less(b, a)
        chosen = F.where(first | (F.eq(a, b)), a, b)
        if either_nan:
            return F.where(F.isnan(a), a, F.where(F.isnan(b), b, chosen))
        return F.where(F.isnan(a), b, F.where(F.isnan(b), a, chosen))

    return run


def _complex_less(a: T, b: T) -> T:
    ar, br = F.real(a), F.real(b)
    return F.lt(ar, br) | (F.eq(ar, br) & F.lt(F.imag(a), F.imag(b)))


def _compare(name: str) -> Any:
    def run(a: T, b: T) -> T:
        if not a.dtype.is_complex:
            return getattr(F, name)(a, b)
        first, second = (a, b) if name in ("lt", "le") else (b, a)
        less = _complex_less(first, second)
        return less | F.eq(a, b) if name in ("le", "ge") else less

    return run


def _cbrt(x: T) -> T:
    y = F.pow(F.abs(x), 1.0 / 3.0)
    better = y - (y * y * y - F.abs(x)) / (3 * y * y)  # one step of Newton's: 1/3 is not exact
    usable = F.isfinite(better)
    return F.copysign(F.where(usable, better, y), x)


def _complex_sign(x: T) -> T:
    re, im = F.real(x), F.imag(x)
    far = F.isinf(re), F.isinf(im)
    # An infinite part alone decides the direction; two of them, or NaN, have none.
    re, im = (
        F.where(o, F.where(f, F.sign(p), F.copysign(F.zeros_like(p), p)), p)
        for o, f, p in ((far[0] ^ far[1], far[0], re), (far[0] ^ far[1], far[1], im))
    )
    size = F.hypot(re, im)
    safe = F.where(F.eq(size, 0), F.ones_like(size), size)
    out = F.complex(re / safe, im / safe)
    bad = F.isnan(F.real(x)) | F.isnan(F.imag(x)) | (far[0] & far[1])
    out = F.where(F.eq(x, 0), F.zeros_like(x), out)
    return F.where(bad, F.full_like(x, complex(math.nan, math.nan)), out)


def _sign(x: T) -> T:
    if x.dtype.is_complex:
        return _complex_sign(x)
    if x.dtype.is_floating_point:
        return F.where(F.isnan(x), x, F.sign(x))
    return F.sign(x)


def _spacing(x: T) -> T:
    away = F.copysign(F.full_like(x, math.inf), x)
    gap = F.nextafter(x, away) - x
    return F.abs(gap) if x.dtype is dt.float16 else gap  # NumPy gives half floats a positive one


def _rint(x: T) -> T:
    return F.complex(F.round(F.real(x)), F.round(F.imag(x))) if x.dtype.is_complex else F.round(x)


def _reciprocal_ints(x: T) -> T:
    # 1 / x truncated; NumPy's 1 / 0 is the smallest integer of the wide types and 0 of the narrow ones.
    one = F.eq(x, 1).to(x.dtype)
    if not x.dtype.is_signed:
        return one
    zero = int(_smallest(x)) if x.dtype.itemsize >= 4 else 0
    return F.where(F.eq(x, 0), F.full_like(x, zero), one - F.eq(x, -1).to(x.dtype))


def _smallest(x: T) -> int:
    return -(2 ** (x.dtype.itemsize * 8 - 1))


def _modf(x: T) -> tuple[T, T]:
    whole = F.trunc(x)
    rest = F.where(F.isinf(x), F.zeros_like(x), x - whole)
    return F.copysign(rest, x), whole


def _ldexp(x: T, e: T) -> T:
    return F.ldexp(x, e)


def _log1p(x: T) -> T:
    if not x.dtype.is_complex:
        return F.log1p(x)
    re, im = F.real(x), F.imag(x)
    # log|1+x| without the loss of adding 1 first: log1p(2 re + re^2 + im^2) / 2.
    small = 0.5 * F.log1p(re * (2 + re) + im * im)
    plain = F.log(F.hypot(1 + re, im))
    near = (F.abs(re) < 0.5) & (F.abs(im) < 0.5)
    return F.complex(F.where(near, small, plain), F.atan2(im, 1 + re))


def _expm1(x: T) -> T:
    if not x.dtype.is_complex:
        return F.expm1(x)
    re, im = F.real(x), F.imag(x)
    s = F.sin(im / 2)
    return F.complex(F.expm1(re) * F.cos(im) - 2 * s * s, F.exp(re) * F.sin(im))


def _bit_count(x: T) -> T:
    v = F.abs(x.to(dt.int64))
    smallest = F.lt(v, 0)  # abs of the smallest integer is itself
    total = smallest.to(dt.int64)
    v = F.where(smallest, F.zeros_like(v), v)
    for shift in range(63 if x.dtype.itemsize == 8 else x.dtype.itemsize * 8):
        total = total + F.bitwise_and(F.bitwise_right_shift(v, F.full_like(v, shift)), F.ones_like(v))
    return total


def _shift(name: str) -> Any:
    def run(a: T, b: T) -> T:
        bits = a.dtype.itemsize * 8
        out = getattr(F, name)(a, F.clamp(b, 0, bits - 1))
        beyond = F.lt(b, 0) | F.ge(b, bits)
        if name == "bitwise_left_shift" or not a.dtype.is_signed:
            return F.where(beyond, F.zeros_like(out), out)
        return F.where(beyond, F.where(F.lt(a, 0), F.full_like(a, -1), F.zeros_like(a)), out)

    return run


def _isinf(x: T) -> T:
    return F.isinf(F.real(x)) | F.isinf(F.imag(x)) if x.dtype.is_complex else F.isinf(x)


def _itself(x: T) -> T:
    return x.clone()


def _logaddexp2(a: T, b: T) -> T:
    return F.logaddexp2(a, b)


def _gcd(a: T, b: T) -> T:
    return F.gcd(a, b)


def _both(a: T, b: T) -> T:
    return F.logical_and(a, b)


def _either(a: T, b: T) -> T:
    return F.logical_or(a, b)


def _float_kernel(name: str) -> Any:
    return lambda *args: getattr(F, name)(*args)


_PLAIN = {
    "negative": "neg",
    "exp": "exp",
    "exp2": "exp2",
    "log": "log",
    "log2": "log2",
    "log10": "log10",
    "sqrt": "sqrt",
    "sin": "sin",
    "cos": "cos",
    "tan": "tan",
    "arcsin": "asin",
    "arccos": "acos",
    "arctan": "atan",
    "sinh": "sinh",
    "cosh": "cosh",
    "tanh": "tanh",
    "arcsinh": "asinh",
    "arccosh": "acosh",
    "arctanh": "atanh",
    "arctan2": "atan2",
    "hypot": "hypot",
    "degrees": "rad2deg",
    "rad2deg": "rad2deg",
    "radians": "deg2rad",
    "deg2rad": "deg2rad",
    "logaddexp": "logaddexp",
    "logaddexp2": "logaddexp2",
    "subtract": "sub",
    "divide": "div",
    "square": "square",
    "isfinite": "isfinite",
    "signbit": "signbit",
    "copysign": "copysign",
    "nextafter": "nextafter",
    "gcd": "gcd",
    "lcm": "lcm",
    "fabs": "abs",
    "logical_and": "logical_and",
    "logical_or": "logical_or",
    "logical_xor": "logical_xor",
    "logical_not": "logical_not",
    "bitwise_and": "bitwise_and",
    "bitwise_or": "bitwise_or",
    "bitwise_xor": "bitwise_xor",
    "invert": "bitwise_not",
    "frexp": "frexp",
    "ldexp": "ldexp",
}

UFUNCS: dict[str, ufunc] = {name: ufunc(name, _float_kernel(target)) for name, target in _PLAIN.items()}


def _put(name: str, kernel: Any, **variants: Any) -> None:
    UFUNCS[name] = ufunc(name, kernel, **variants)


_put("add", F.add, bools=_either)
_put("multiply", F.mul, bools=_both)
_put("maximum", _complex_order("maximum", True), bools=_either)
_put("minimum", _complex_order("minimum", True), bools=_both)
_put("fmax", _complex_order("fmax", False), bools=_either)
_put("fmin", _complex_order("fmin", False), bools=_both)
_put("floor_divide", _floor_divide, ints=_floor_divide_ints)
_put("remainder", _remainder, ints=_remainder_ints)
_put("fmod", F.fmod, ints=_fmod_ints)
_put("divmod", _divmod, ints=_divmod_ints)
_put("power", F.pow, ints=_power_ints)
_put("float_power", F.pow)
_put("positive", _itself)
_put("absolute", F.abs, bools=_itself)
_put("conjugate", lambda x: F.conj_physical(x) if x.dtype.is_complex else x.clone())
_put("sign", _sign)
_put("cbrt", _cbrt)
_put("reciprocal", F.reciprocal, ints=_reciprocal_ints)
_put("rint", _rint)
_put("log1p", _log1p)
_put("expm1", _expm1)
_put("isnan", F.isnan, bools=F.zeros_like)
_put("isinf", _isinf, bools=F.zeros_like)
_put("equal", F.eq)
_put("not_equal", F.ne)
_put("less", _compare("lt"))
_put("less_equal", _compare("le"))
_put("greater", _compare("gt"))
_put("greater_equal", _compare("ge"))
_put("left_shift", _shift("bitwise_left_shift"))
_put("right_shift", _shift("bitwise_right_shift"))
_put("spacing", _spacing)
_put("heaviside", lambda x, y: F.where(F.isnan(x), x, F.heaviside(x, y)))
_put("modf", _modf)
_put("bitwise_count", _bit_count)
for _name in ("floor", "ceil", "trunc"):
    _put(_name, getattr(F, _name), bools=_itself, ints=_itself)

ALIASES = {
    "abs": "absolute",
    "acos": "arccos",
    "acosh": "arccosh",
    "asin": "arcsin",
    "asinh": "arcsinh",
    "atan": "arctan",
    "atan2": "arctan2",
    "atanh": "arctanh",
    "bitwise_invert": "invert",
    "bitwise_left_shift": "left_shift",
    "bitwise_not": "invert",
    "bitwise_right_shift": "right_shift",
    "conj": "conjugate",
    "mod": "remainder",
    "pow": "power",
    "true_divide": "divide",
}
UFUNCS |= {alias: UFUNCS[name] for alias, name in ALIASES.items()}


def finish(matmul: Any) -> None:
    """Bind Python's operators once the matrix product is there, too."""
    install({**UFUNCS, "matmul": matmul})
