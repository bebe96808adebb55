"""Types, printing and error settings that NumPy and votive share."""

from __future__ import annotations

from typing import Any

import numpy

# Scalar types and the tree of their abstract bases are NumPy's own objects, so that dtypes compare equal.
_SCALARS = (
    "bool bool_ int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128 "
    "byte ubyte short ushort intc uintc int_ uint long ulong longlong ulonglong intp uintp half single double csingle "
    "cdouble generic number integer signedinteger unsignedinteger inexact floating complexfloating dtype issubdtype "
    "typecodes typename mintypecode ScalarType sctypeDict little_endian set_printoptions get_printoptions printoptions"
)
TYPES: dict[str, Any] = {name: getattr(numpy, name) for name in _SCALARS.split() if hasattr(numpy, name)}
INTERNAL = {
    "as_dtype",
    "to_votive",
    "kind_of",
    "promoted",
    "check_cast",
    "no_like",
    "resolved",
    "bounded",
    "product",
    "finished",
    "mean_of",
    "variance_of",
}


class errstate:
    """Accepted for programs that silence NumPy's floating-point warnings; votive gives none, so nothing can be raised.

    >>> with votive.np.errstate(divide="ignore"):
    ...     votive.np.array([1.0]) / 0
    array([inf])
    """

    def __init__(self, **kwargs: Any) -> None:
        _check(kwargs)

    def __enter__(self) -> errstate:
        return self

    def __exit__(self, *exc: object) -> None:
        return None

    def __call__(self, fn: Any) -> Any:
        return fn


def _check(kwargs: dict[str, Any]) -> None:
    for name, value in kwargs.items():
        if name not in ("all", "divide", "over", "under", "invalid", "call"):
            raise TypeError(f"errstate: {name!r} is not a kind of floating-point error.")
        if value in ("raise", "call"):
            raise NotImplementedError(
                f"{name}={value!r}: votive does not watch for floating-point errors; test results with isfinite()."
            )


def seterr(
    all: Any = None, divide: Any = None, over: Any = None, under: Any = None, invalid: Any = None
) -> dict[str, str]:
    """Accepted where warnings are silenced; see `errstate`."""
    _check({"all": all, "divide": divide, "over": over, "under": under, "invalid": invalid})
    return geterr()


def geterr() -> dict[str, str]:
    """What happens at floating-point errors: nothing."""
    return dict.fromkeys(("divide", "over", "under", "invalid"), "ignore")
