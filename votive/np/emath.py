"""Functions that become complex where real numbers have no result."""

from __future__ import annotations

from typing import Any

from ..ops.registry import F
from .array import wrap
from .convert import Tensor, cast, to_tensor
from .ufunc_table import UFUNCS


def _extended(x: Any, outside: Any) -> Any:
    t = to_tensor(x)
    if t.dtype.is_complex or not bool(outside(t.detach()).any()):
        return wrap(t)
    return wrap(cast(t, "complex64" if t.dtype.itemsize <= 4 and t.dtype.is_floating_point else "complex128"))


def _negative(t: Tensor) -> Tensor:
    return F.lt(t, 0)


def _beyond_one(t: Tensor) -> Tensor:
    return F.gt(F.abs(t), 1)


def sqrt(x: Any) -> Any:
    """The square root.

    >>> votive.np.emath.sqrt(-1)
    array(0.+1.j)
    """
    return UFUNCS["sqrt"](_extended(x, _negative))


def log(x: Any) -> Any:
    """The natural logarithm."""
    return UFUNCS["log"](_extended(x, _negative))


def log2(x: Any) -> Any:
    """The logarithm to base 2."""
    return UFUNCS["log2"](_extended(x, _negative))


def log10(x: Any) -> Any:
    """The logarithm to base 10."""
    return UFUNCS["log10"](_extended(x, _negative))


def logn(n: Any, x: Any) -> Any:
    """The logarithm to any base."""
    return log(x) / log(n)


def power(x: Any, p: Any) -> Any:
    """Powers, also of negative numbers."""
    exponent = to_tensor(p)
    if not exponent.dtype.is_inexact and bool(F.lt(exponent, 0).any()):
        exponent = cast(exponent, "float64")
    return UFUNCS["power"](_extended(x, _negative), wrap(exponent))


def arccos(x: Any) -> Any:
    """The inverse cosine."""
    return UFUNCS["arccos"](_extended(x, _beyond_one))


def arcsin(x: Any) -> Any:
    """The inverse sine."""
    return UFUNCS["arcsin"](_extended(x, _beyond_one))


def arctanh(x: Any) -> Any:
    """The inverse hyperbolic tangent."""
    return UFUNCS["arctanh"](_extended(x, _beyond_one))
