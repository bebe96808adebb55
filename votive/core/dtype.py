"""Data types: names, sizes, categories, numeric limits. Knows NumPy's types, no tensors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import ml_dtypes
import numpy as np

from . import spelled

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

BOOL, INT, FLOAT, COMPLEX = 0, 1, 2, 3
Dtype = TypeVar("Dtype", bound="dtype")


class dtype:
    """One element type; every type exists once, so comparison is by identity.

    >>> votive.float32.itemsize
    4
    """

    __slots__ = ("category", "is_signed", "itemsize", "name", "np")

    def __init__(self, name: str, np_type: DTypeLike, category: int, signed: bool = True) -> None:
        self.name = name
        self.np: np.dtype[Any] = np.dtype(np_type)
        self.itemsize = self.np.itemsize
        self.category = category
        self.is_signed = signed

    @property
    def is_floating_point(self) -> bool:
        return self.category == FLOAT

    @property
    def is_complex(self) -> bool:
        return self.category == COMPLEX

    @property
    def is_inexact(self) -> bool:
        """Floating point or complex: the types that can carry a gradient."""
        return self.category >= FLOAT

    def to_real(self) -> dtype:
        """The type of the real part."""
        return _REAL.get(self, self)

    def to_complex(self) -> dtype:
        """The complex type whose parts have this type."""
        if self.category == COMPLEX:
            return self
        return complex128 if self is float64 else complex64

    def __repr__(self) -> str:
        return f"{spelled.package}.{self.name}"

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return (by_name, (self.name,))


float64 = dtype("float64", np.float64, FLOAT)
float32 = dtype("float32", np.float32, FLOAT)
float16 = dtype("float16", np.float16, FLOAT)
bfloat16 = dtype("bfloat16", ml_dtypes.bfloat16, FLOAT)
float8_e4m3fn = dtype("float8_e4m3fn", ml_dtypes.float8_e4m3fn, FLOAT)
float8_e5m2 = dtype("float8_e5m2", ml_dtypes.float8_e5m2, FLOAT)
int8 = dtype("int8", np.int8, INT)
int16 = dtype("int16", np.int16, INT)
int32 = dtype("int32", np.int32, INT)
int64 = dtype("int64", np.int64, INT)
uint8 = dtype("uint8", np.uint8, INT, signed=False)
uint16 = dtype("uint16", np.uint16, INT, signed=False)
uint32 = dtype("uint32", np.uint32, INT, signed=False)
uint64 = dtype("uint64", np.uint64, INT, signed=False)
bool_ = dtype("bool", np.bool_, BOOL, signed=False)
complex64 = dtype("complex64", np.complex64, COMPLEX)
complex128 = dtype("complex128", np.complex128, COMPLEX)
# A way to store, which no kernel computes with: not among ALL (see surface/complex_half.py).
complex32 = dtype("complex32", [("real", np.float16), ("imag", np.float16)], COMPLEX)

ALL: tuple[dtype, ...] = (
    bool_,
    uint8,
    int8,
    uint16,
    int16,
    uint32,
    int32,
    uint64,
    int64,
    float8_e4m3fn,
    float8_e5m2,
    float16,
    bfloat16,
    float32,
    float64,
    complex64,
    complex128,
)
FLOAT8 = (float8_e4m3fn, float8_e5m2)
HALF = (float16, bfloat16)
BAREBONES = (uint16, uint32, uint64)

ALIASES = {
    "float": float32,
    "double": float64,
    "half": float16,
    "short": int16,
    "int": int32,
    "long": int64,
    "cfloat": complex64,
    "cdouble": complex128,
}

_REAL = {complex32: float16, complex64: float32, complex128: float64}
_BY_NAME: dict[str, dtype] = {d.name: d for d in (*ALL, complex32)} | ALIASES | {"chalf": complex32}
_BY_NP = {d.np: d for d in ALL}
_BY_PY = {bool: bool_, int: int64, float: None, complex: None}


def register(d: Dtype) -> Dtype:
    """Make a type known by its name; gives it back."""
    _BY_NAME[d.name] = d
    return d


def by_name(name: str) -> dtype:
    """The type called `name` ("float32", or an alias such as "half")."""
    try:
        return _BY_NAME[name]
    except KeyError:
        raise TypeError(f"unknown dtype {name!r}; known: {', '.join(_BY_NAME)}.") from None


def from_numpy(np_type: DTypeLike) -> dtype:
    """The votive type that stores what NumPy's `np_type` stores."""
    d = _BY_NP.get(np.dtype(np_type).newbyteorder("="))
    if d is None:
        raise TypeError(
            f"can't convert an array of NumPy type {np.dtype(np_type)}; supported: {', '.join(str(k) for k in _BY_NP)}."
        )
    return d


def compute_type(d: dtype) -> dtype:
    """The type in which arithmetic on `d` is carried out: half types compute in float32."""
    return float32 if d in HALF or d in FLOAT8 else d


_default: dtype = float32


def get_default_dtype() -> dtype:
    """The type that `tensor(1.5)` gets.

    >>> votive.get_default_dtype()
    votive.float32
    """
    return _default


def set_default_dtype(d: dtype) -> None:
    """Change the type that new floating-point tensors get.

    >>> votive.set_default_dtype(votive.float32)
    """
    global _default
    if not isinstance(d, dtype) or d.category != FLOAT or d in FLOAT8:
        raise TypeError(f"only floating-point types are supported as the default type, got {d}.")
    if d is _default:
        return
    _default = d
    for listener in default_listeners:
        listener()


# Called when the default type changes: plans bake promoted types in, so caches must drop them.
default_listeners: list[Callable[[], None]] = []


def of_scalar(value: object) -> dtype:
    """The type of a Python or NumPy number, with floats at the default type."""
    t = type(value)
    if t is bool:
        return bool_
    if t is int:
        return int64
    if t is float:
        return _default
    if t is complex:
        return _default.to_complex()
    if isinstance(value, np.generic):
        return from_numpy(value.dtype)
    if isinstance(value, bool):
        return bool_
    if isinstance(value, int):
        return int64
    if isinstance(value, float):
        return _default
    if isinstance(value, complex):
        return _default.to_complex()
    raise TypeError(f"expected a number, got {type(value).__name__}.")


class finfo:
    """Limits of a floating-point type.

    >>> votive.finfo(votive.float32).eps
    1.1920928955078125e-07
    """

    def __init__(self, type: dtype | None = None) -> None:
        d = _default if type is None else type
        if not isinstance(d, dtype) or d.category < FLOAT:
            raise TypeError(f"finfo() needs a floating-point or complex type, got {d}; use iinfo.")
        info: Any = ml_dtypes.finfo(d.to_real().np)
        self.dtype = d.to_real().name
        self.bits = info.bits
        self.eps = float(info.eps)
        self.max = float(info.max)
        self.min = float(info.min)
        self.tiny = self.smallest_normal = float(info.smallest_normal)
        # Ten to the number of decimal digits that always survive: floor(mantissa bits * log10(2)).
        self.resolution = 10.0 ** -int(-math.log2(self.eps) * math.log10(2))

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, "
            f"eps={self.eps:g}, smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, "
            f"dtype={self.dtype})"
        )


class iinfo:
    """Limits of an integer type.

    >>> votive.iinfo(votive.int8).max
    127
    """

    def __init__(self, type: dtype) -> None:
        # A quantized type has the limits of its codes.
        if not isinstance(type, dtype) or getattr(type, "codes", type).category != INT:
            raise TypeError(f"iinfo() needs an integer type, got {type}; use finfo.")
        info = np.iinfo(type.np)
        self.dtype = type.name
        self.bits = info.bits
        self.max = int(info.max)
        self.min = int(info.min)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"
