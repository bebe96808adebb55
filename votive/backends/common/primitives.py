"""The formula primitives in NumPy: one function per name. Knows arrays only.

Each takes arrays (or numbers) of one compute type and returns an array of that type, or bool.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.words import words
from . import special
from .special.polynomial import POLYNOMIALS

Array = Any


def _inexact(x: Any) -> Any:
    return x.dtype if isinstance(x, (np.ndarray, np.generic)) else np.dtype(type(x))


def sigmoid(x: Array) -> Array:
    x = np.asarray(x)
    if x.dtype.kind == "c":
        return 1 / (1 + np.exp(-x))
    # exp of a non-positive number only: no overflow on either side.
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + e), e / (1 + e)).astype(x.dtype, copy=False)


def rsqrt(x: Array) -> Array:
    return 1 / np.sqrt(x)


def reciprocal(x: Array) -> Array:
    return np.divide(np.asarray(1, dtype=np.asarray(x).dtype), x)


def sgn(x: Array) -> Array:
    x = np.asarray(x)
    if x.dtype.kind != "c":
        return sign(x)
    size = np.abs(x)
    return np.where(size == 0, 0, x / np.where(size == 0, 1, size)).astype(x.dtype, copy=False)


def sign(x: Array) -> Array:
    x = np.asarray(x)
    if x.dtype.kind == "b":
        return x.copy()
    if x.dtype.kind == "f":
        # torch gives 0 for NaN.
        return ((x > 0).astype(x.dtype) - (x < 0).astype(x.dtype)).astype(x.dtype)
    return np.sign(x)


def floor_divide(a: Array, b: Array) -> Array:
    if np.result_type(a, b).kind in "iu":
        _refuse_zero(b, "floor_divide")
    return np.floor_divide(a, b)


def trunc_divide(a: Array, b: Array) -> Array:
    """Integer division that rounds toward zero."""
    kind = np.result_type(a, b)
    if kind.kind not in "iu":
        return np.trunc(np.divide(a, b))
    _refuse_zero(b, "div")
    q = np.floor_divide(a, b)
    return (q + ((np.multiply(q, b) != a) & ((np.less(a, 0)) != (np.less(b, 0))))).astype(kind)


def remainder(a: Array, b: Array) -> Array:
    if np.result_type(a, b).kind in "iu":
        _refuse_zero(b, "remainder")
        return np.remainder(a, b)
    r = np.fmod(a, b)
    return np.where((r != 0) & ((r < 0) != (np.less(b, 0))), r + b, r).astype(r.dtype, copy=False)


def fmod(a: Array, b: Array) -> Array:
    if np.result_type(a, b).kind in "iu":
        _refuse_zero(b, "fmod")
    return np.fmod(a, b)


def _refuse_zero(b: Array, op: str) -> None:
    if not np.all(b):
        raise RuntimeError(f"{op}: ZeroDivisionError: integer division by zero.")


def pow(a: Array, b: Array) -> Array:
    kind = np.result_type(a, b)
    if kind.kind in "iu":
        if kind.kind == "i" and np.any(np.less(b, 0)):
            # torch: 1 and -1 have integer inverses, everything else truncates to 0.
            a, b = np.broadcast_arrays(np.asarray(a, kind), np.asarray(b, kind))
            inverse = np.where(a == 1, 1, np.where(a == -1, np.where(b % 2 == 0, 1, -1), 0))
            return np.where(b < 0, inverse, np.power(a, np.where(b < 0, 0, b))).astype(kind)
        return np.power(np.asarray(a, kind), np.asarray(b, kind))
    if kind.kind == "b":
        return np.logical_or(a, np.logical_not(b))
    return np.power(a, b)


def _keeps_integers(ufunc: Any) -> Any:
    # Older NumPy rounds integers through float64, which does not hold all of them.
    return lambda x: x if np.asarray(x).dtype.kind in "iu" else ufunc(x)


def where(c: Array, a: Array, b: Array) -> Array:
    return np.where(c, a, b)


def conj(x: Array) -> Array:
    return np.conjugate(x)


def real(x: Array) -> Array:
    return np.real(x)


def imag(x: Array) -> Array:
    return np.imag(x)


def angle(x: Array) -> Array:
    x = np.asarray(x)
    if x.dtype.kind == "c":
        return np.angle(x)
    out = np.where(x < 0, np.pi, 0.0).astype(x.dtype if x.dtype.kind == "f" else np.float32)
    return np.where(np.isnan(x), x, out) if x.dtype.kind == "f" else out


def sinc(x: Array) -> Array:
    x = np.asarray(x)
    z = np.pi * x
    return np.where(x == 0, 1, np.sin(z) / np.where(x == 0, 1, z)).astype(x.dtype, copy=False)


def xlogy(a: Array, b: Array) -> Array:
    a, b = np.broadcast_arrays(a, b)
    return np.where(np.isnan(b), b, np.where(a == 0, 0, a * np.log(b))).astype(b.dtype, copy=False)


def xlog1py(a: Array, b: Array) -> Array:
    a, b = np.broadcast_arrays(a, b)
    product = np.where(a == 0, 0, a * np.log1p(b))
    return np.where(np.isnan(b), b, product).astype(b.dtype, copy=False)


def logaddexp(a: Array, b: Array) -> Array:
    a, b = np.broadcast_arrays(a, b)
    if a.dtype.kind == "c":
        top = np.where(a.real >= b.real, a, b)
        low: Any = np.where(a.real >= b.real, b, a)
        both = np.isinf(a.real) & (a == b)
        out = np.where(both, a, top + log1p(np.exp(low - top)))
        # -inf beside a NaN would otherwise vanish under the exponential.
        return np.where(np.isnan(a) | np.isnan(b), np.nan, out).astype(a.dtype, copy=False)
    return np.logaddexp(a, b)


def log10(x: Array) -> Array:
    x = np.asarray(x)
    # NumPy's float32 log10 misses whole powers of ten by an ulp or two.
    return np.log10(x.astype(np.float64)).astype(x.dtype) if x.dtype == np.float32 else np.log10(x)


def log1p(x: Array) -> Array:
    return np.log1p(x)


def bitwise_left_shift(a: Array, b: Array) -> Array:
    a, b = np.broadcast_arrays(a, b)
    bits = a.dtype.itemsize * 8
    bad = (b < 0) | (b >= bits)
    return np.where(bad, 0, np.left_shift(a, np.where(bad, 0, b))).astype(a.dtype)


def bitwise_right_shift(a: Array, b: Array) -> Array:
    a, b = np.broadcast_arrays(a, b)
    bits = a.dtype.itemsize * 8
    bad = (b < 0) | (b >= bits)
    filler = np.where(a < 0, -1, 0).astype(a.dtype)
    return np.where(bad, filler, np.right_shift(a, np.where(bad, 0, b))).astype(a.dtype)


def gcd(a: Array, b: Array) -> Array:
    return np.gcd(a, b)


def lcm(a: Array, b: Array) -> Array:
    return np.lcm(a, b)


def isneginf(x: Array) -> Array:
    return np.equal(x, -np.inf)


def isposinf(x: Array) -> Array:
    return np.equal(x, np.inf)


def ldexp(a: Array, b: Array) -> Array:
    if np.result_type(a, b).kind == "c":
        return np.multiply(a, np.exp2(b))
    # In two steps: 2^b alone may overflow where the product does not.
    most = np.finfo(np.result_type(a, b)).maxexp - 1
    half = np.clip(np.trunc(np.multiply(b, 0.5)), -most, most)
    return np.multiply(np.multiply(a, np.exp2(half)), np.exp2(np.subtract(b, half)))


def polygamma(n: int, x: Array) -> Array:
    return special.polygamma(n, np.asarray(x))


def make_complex(a: Array, b: Array) -> Array:
    a, b = np.broadcast_arrays(a, b)
    out = np.empty(a.shape, np.complex128 if a.dtype == np.float64 else np.complex64)
    out.real, out.imag = a, b
    return out


class _OutByKeyword:
    """A ufunc that takes `out` by position too: NumPy 2.4 warns of it for maximum and minimum."""

    nin = 2

    def __init__(self, ufunc: Any) -> None:
        self.ufunc = ufunc

    def __call__(self, a: Array, b: Array, out: Any = None) -> Array:
        return self.ufunc(a, b, out=out)


def _on_array(fn: Any) -> Any:
    return lambda *args: fn(*(np.asarray(a) for a in args))


_SPECIAL = words(
    "erf erfc erfinv erfcx lgamma digamma i0 i0e i1 i1e ndtri log_ndtr zeta ndtr entr gammainc gammaincc bessel_j0 "
    "bessel_j1 bessel_y0 bessel_y1 modified_bessel_k0 modified_bessel_k1 scaled_modified_bessel_k0 "
    "scaled_modified_bessel_k1 spherical_bessel_j0 airy_ai"
)

# Names whose NumPy function takes (inputs..., out) directly.
UFUNCS: dict[str, Any] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "neg": np.negative,
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log2": np.log2,
    "log1p": np.log1p, "sqrt": np.sqrt, "sin": np.sin, "cos": np.cos,
    "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh,
    "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh,
    "atanh": np.arctanh, "abs": np.absolute, "square": np.square, "floor": np.floor,
    "ceil": np.ceil, "trunc": np.trunc, "round": np.rint, "maximum": _OutByKeyword(np.maximum),
    "minimum": _OutByKeyword(np.minimum), "fmax": np.fmax, "fmin": np.fmin, "hypot": np.hypot,
    "atan2": np.arctan2, "copysign": np.copysign, "nextafter": np.nextafter,
    "logaddexp2": np.logaddexp2, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal, "isnan": np.isnan,
    "isinf": np.isinf, "isfinite": np.isfinite, "signbit": np.signbit,
    "logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor,
    "logical_not": np.logical_not, "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor, "bitwise_not": np.bitwise_not,
}  # fmt: skip

FUNCTIONS: dict[str, Any] = {
    **{name: _on_array(getattr(special, name)) for name in _SPECIAL},
    **POLYNOMIALS,
    **UFUNCS,
    **{
        f.__name__: f
        for f in (
            sigmoid, rsqrt, reciprocal, sgn, sign, floor_divide, trunc_divide, remainder, fmod, pow,
            where, conj, real, imag, angle, sinc, xlogy, xlog1py, log10, logaddexp,
            bitwise_left_shift, bitwise_right_shift, gcd, lcm, isneginf, isposinf, ldexp, polygamma,
            make_complex,
        )
    },
    **{name: _keeps_integers(UFUNCS[name]) for name in ("floor", "ceil", "trunc", "round")},
    "inf": np.inf,
    "nan": np.nan,
}  # fmt: skip
