"""Which type a mix of types gives: torch's promotion rules. Pure; no tensors.

Three categories of operands exist: tensors with dimensions, 0-d tensors, and Python numbers. A
lower category changes the result only when its kind (bool < int < float < complex) is higher.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from . import dtype as dt
from .dtype import BOOL, COMPLEX, FLOAT, INT, dtype
from .errors import DtypeError

if TYPE_CHECKING:
    from typing_extensions import TypeIs

_SIGNED_BY_SIZE = {1: dt.int8, 2: dt.int16, 4: dt.int32, 8: dt.int64}


def promote_types(type1: dtype, type2: dtype) -> dtype:
    """The smallest type that holds both.

    >>> votive.promote_types(votive.int32, votive.float16)
    votive.float16
    """
    a, b = type1, type2
    if a is b:
        return a
    if a in dt.FLOAT8 or b in dt.FLOAT8:
        raise DtypeError(f"promote: float8 types do not promote, got {a} and {b}; cast with .to().")
    if a.category > b.category:
        a, b = b, a
    if b.category == COMPLEX:
        if a in dt.BAREBONES:
            raise _unsigned(a, b)
        if a.category < FLOAT or (a is dt.float16 and b is dt.complex32):
            return b
        return dt.complex128 if dt.float64 in (a, b) or dt.complex128 in (a, b) else dt.complex64
    if b.category == FLOAT:
        if a.category < FLOAT:
            return b
        if a.itemsize == b.itemsize:
            return dt.float32  # float16 with bfloat16: neither holds the other
        return a if a.itemsize > b.itemsize else b
    if a in dt.BAREBONES or b in dt.BAREBONES:
        raise _unsigned(a, b)
    if a.category == BOOL:
        return b
    if a.is_signed == b.is_signed:
        return a if a.itemsize > b.itemsize else b
    return _SIGNED_BY_SIZE[max(a.itemsize, b.itemsize, 2)]


def _unsigned(a: dtype, b: dtype) -> DtypeError:
    return DtypeError(f"promote: uint16, uint32 and uint64 do not promote, got {a} and {b}; cast with .to().")


def _combine(higher: dtype | None, lower: dtype | None) -> dtype | None:
    if higher is None or lower is None:
        return higher or lower
    if higher.category == COMPLEX:
        return higher
    if higher.category == FLOAT:
        return higher.to_complex() if lower.category == COMPLEX else higher
    if higher.category == BOOL or lower.category >= FLOAT:
        return promote_types(higher, lower)
    return higher


def result_type_of(dims: list[dtype], zeros: list[dtype], numbers: list[dtype]) -> dtype:
    """The promoted type of operands sorted into the three categories."""
    d = reduce(promote_types, dims) if dims else None
    z = reduce(promote_types, zeros) if zeros else None
    n = reduce(promote_types, numbers) if numbers else None
    out = _combine(d, _combine(z, n))
    assert out is not None
    return out


def number_type(value_type: type) -> dtype:
    """The type a Python number of class `value_type` takes part in promotion with."""
    if value_type is bool:
        return dt.bool_
    if value_type is int:
        return dt.int64
    if value_type is float:
        return dt.get_default_dtype()
    if value_type is complex:
        return dt.get_default_dtype().to_complex()
    raise TypeError(f"expected a number, got {value_type.__name__}.")


def can_cast(from_: dtype, to: dtype) -> bool:
    """Whether torch lets a result of type `from_` be written into `to` (kinds may not drop).

    >>> votive.can_cast(votive.double, votive.int)
    False
    """
    if from_.category == COMPLEX and to.category != COMPLEX:
        return False
    if from_.category == FLOAT and to.category < FLOAT:
        return False
    return not (from_.category == INT and to.category == BOOL)


def is_number(value: object) -> TypeIs[bool | int | float | complex]:
    """Whether `value` is a plain number (Python or NumPy scalar)."""
    import numpy as np

    return isinstance(value, (bool, int, float, complex, np.number, np.bool_))
