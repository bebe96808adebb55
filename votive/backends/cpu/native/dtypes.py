"""Which element types the native kernels know: tests that rows accept by."""

from __future__ import annotations

from ....core import dtype as dt
from ....core.layout import Spec
from .loader import codes

FLOATS = frozenset((dt.float32, dt.float64, *dt.HALF))
INTEGERS = frozenset((dt.int8, dt.int16, dt.int32, dt.int64, dt.uint8))


def known(*specs: Spec) -> bool:
    """Whether kernels know the element types of all these."""
    return all(s.dtype in codes for s in specs)


def nonempty(*specs: Spec) -> bool:
    """A first tensor with elements, of a type that kernels know."""
    return specs[0].dtype in codes and bool(specs[0].numel)


def floats(*specs: Spec) -> bool:
    """Whether all tensors are of types that kernels compute in float or double."""
    return all(s.dtype in FLOATS for s in specs)


def first_float(*specs: Spec) -> bool:
    """The same of the first alone."""
    return specs[0].dtype in FLOATS


def same_float(*specs: Spec) -> bool:
    """Whether all tensors have one of those types, the same for all."""
    return specs[0].dtype in FLOATS and all(s.dtype is specs[0].dtype for s in specs)


def wide(dtype: dt.dtype) -> dt.dtype:
    """The type in which floating-point elements are reduced."""
    return dt.float64 if dtype is dt.float64 else dt.float32
