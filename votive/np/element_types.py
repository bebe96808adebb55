"""Element types of `votive.np`: NumPy's own dtype objects and rules, and the way to votive's types and back."""

from __future__ import annotations

import functools
from typing import Any

import numpy

from ..core import dtype as dt

SUPPORTED = {d.np for d in dt.ALL}
INT64, UINT64, FLOAT64, BOOL = (numpy.dtype(n) for n in ("int64", "uint64", "float64", "bool"))
WEAK = (int, float, complex)
# votive follows torch and does no arithmetic in these: they are computed in int64 (or by NumPy, for uint64).
NARROW_UNSIGNED = (numpy.dtype("uint16"), numpy.dtype("uint32"))
_KINDS = {"O": "objects", "S": "bytes", "U": "text", "M": "dates", "m": "time differences", "V": "records", "T": "text"}


def as_dtype(x: Any) -> numpy.dtype[Any]:
    """NumPy's dtype object of anything that names one: a type, a string, a votive dtype."""
    if x.__class__ is numpy.dtype and x in SUPPORTED:
        return x
    if isinstance(x, dt.dtype):
        return x.np
    found = numpy.dtype(x).newbyteorder("=")
    if found not in SUPPORTED:
        what = _KINDS.get(found.kind)
        if what:
            raise TypeError(f"votive.np holds numbers and truth values, no {what}; dtype {found} is not supported.")
        raise TypeError(f"dtype {found} is not supported; the widest types are float64 and complex128.")
    return found


def to_votive(x: Any) -> dt.dtype:
    """The votive dtype of anything that names a type."""
    return x if isinstance(x, dt.dtype) else dt.from_numpy(as_dtype(x))


def kind_of(x: Any) -> Any:
    """What takes part in promotion for a value: its dtype, or the Python type of a weak number (NEP 50)."""
    if type(x) in WEAK:
        return type(x)
    if isinstance(x, bool):
        return BOOL
    dtype = getattr(x, "dtype", None)
    if dtype is not None:
        return as_dtype(dtype)
    return as_dtype(numpy.asarray(x).dtype)


_ZERO = {int: 0, float: 0.0, complex: 0j}


@functools.lru_cache(maxsize=4096)
def _promoted(kinds: tuple[Any, ...]) -> numpy.dtype[Any]:
    return as_dtype(numpy.result_type(*[_ZERO.get(k, k) for k in kinds]))


def promoted(*values: Any) -> numpy.dtype[Any]:
    """The dtype in which values, arrays and Python numbers meet."""
    return _promoted(tuple(kind_of(v) for v in values))


def result_type(*arrays_and_dtypes: Any) -> numpy.dtype[Any]:
    """The dtype that NumPy's promotion gives to arrays, dtypes and numbers.

    >>> votive.np.result_type(votive.np.int32, votive.np.float32)
    dtype('float64')
    """
    if not arrays_and_dtypes:
        raise ValueError("at least one array or dtype is required")
    return _promoted(tuple(_kind_or_dtype(x) for x in arrays_and_dtypes))


def _kind_or_dtype(x: Any) -> Any:
    if isinstance(x, (str, type, numpy.dtype, dt.dtype)):
        return as_dtype(x)
    return kind_of(x)


def promote_types(type1: Any, type2: Any) -> numpy.dtype[Any]:
    """The smallest dtype that holds the values of both.

    >>> votive.np.promote_types("int8", "uint8")
    dtype('int16')
    """
    return as_dtype(numpy.promote_types(as_dtype(type1), as_dtype(type2)))


def can_cast(from_: Any, to: Any, casting: Any = "safe") -> bool:
    """Whether values of a dtype, or of an array, go into another dtype by a casting rule.

    >>> votive.np.can_cast("int32", "float64")
    True
    """
    if type(from_) in (bool, int, float, complex):
        raise TypeError("can_cast() does not support Python ints, floats, and complex because the result is by value.")
    return bool(numpy.can_cast(_kind_or_dtype(from_), as_dtype(to), casting=casting))


def check_cast(name: str, source: numpy.dtype[Any], target: numpy.dtype[Any], casting: Any) -> None:
    """Refuse to store a result in an array whose dtype cannot take it."""
    if source != target and not numpy.can_cast(source, target, casting=casting):
        raise numpy._core._exceptions._UFuncOutputCastingError(  # type: ignore[attr-defined]
            getattr(numpy, name, numpy.add), casting, source, target, 0
        )


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether a dtype is of a kind: "bool", "integral", "real floating", "numeric" …, a dtype, or any of a tuple.

    >>> votive.np.isdtype(votive.np.dtype("int8"), "signed integer")
    True
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    if not isinstance(kind, str):
        return as_dtype(dtype) == as_dtype(kind)
    kinds = _BY_KIND.get(kind)
    if kinds is None:
        raise ValueError(f"isdtype: kind {kind!r} is not one of {', '.join(map(repr, _BY_KIND))}, nor a dtype.")
    found = as_dtype(dtype)
    return found.kind in kinds or (found.kind == "V" and "f" in kinds)


_BY_KIND = {
    "bool": "b",
    "signed integer": "i",
    "unsigned integer": "u",
    "integral": "iu",
    "real floating": "f",
    "complex floating": "c",
    "numeric": "iufc",
}


def _limited(x: Any) -> Any:
    found = getattr(x, "dtype", x)
    return as_dtype(found if isinstance(found, (numpy.dtype, dt.dtype, str, type)) else x)


class finfo:
    """Limits of a floating-point dtype, or of an array's.

    >>> votive.np.finfo("float32").bits
    32
    """

    eps: float
    epsneg: float
    max: float
    min: float
    smallest_normal: float
    smallest_subnormal: float
    tiny: float
    resolution: float
    precision: int

    def __init__(self, type: Any) -> None:
        found = _limited(type)
        if found.kind in "biu":
            raise ValueError(f"data type {found} not inexact")
        import ml_dtypes

        info: Any = numpy.finfo(found) if found.kind in "fc" else ml_dtypes.finfo(found)
        self.dtype = numpy.dtype(info.dtype)
        self.bits = int(info.bits)
        for name in ("eps", "epsneg", "max", "min", "smallest_normal", "smallest_subnormal", "tiny", "resolution"):
            setattr(self, name, float(getattr(info, name)))
        for name in ("precision", "nmant", "nexp", "iexp", "machep", "negep", "minexp", "maxexp"):
            setattr(self, name, int(getattr(info, name)))

    def __repr__(self) -> str:
        return f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, dtype={self.dtype})"


class iinfo:
    """Limits of an integer dtype, or of an array's.

    >>> votive.np.iinfo("int8").max
    127
    """

    def __init__(self, int_type: Any) -> None:
        found = _limited(int_type)
        if found.kind not in "iu":
            raise ValueError(f"Invalid integer data type {found.kind!r}.")
        info = numpy.iinfo(found)
        self.dtype, self.kind, self.bits = found, found.kind, int(info.bits)
        self.min, self.max = int(info.min), int(info.max)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"


def common_type(*arrays: Any) -> Any:
    """The inexact scalar type that arrays share.

    >>> votive.np.common_type(votive.np.arange(2)) is votive.np.float64
    True
    """
    return numpy.common_type(*[numpy.empty(0, kind_of(a)) for a in arrays])


def min_scalar_type(a: Any) -> numpy.dtype[Any]:
    """The smallest dtype that holds a number; the dtype of an array.

    >>> votive.np.min_scalar_type(300)
    dtype('uint16')
    """
    if getattr(a, "ndim", 0):
        return kind_of(a)
    return numpy.min_scalar_type(a.item() if hasattr(a, "item") else a)
