"""Bits and bytes: packing, and numbers as text."""

from __future__ import annotations

from typing import Any

import numpy

from .convert import host, ndarray, to_tensor, wrap

_numpy: Any = numpy  # its overloads ask for literals


def packbits(a: Any, /, axis: Any = None, bitorder: str = "big") -> ndarray:
    """Eight truth values in a byte."""
    return wrap(host("packbits", lambda x: _numpy.packbits(x, axis, bitorder), to_tensor(a)))


def unpackbits(a: Any, /, axis: Any = None, count: Any = None, bitorder: str = "big") -> ndarray:
    """The bits of bytes as numbers 0 and 1.

    >>> votive.np.unpackbits(votive.np.array([3], dtype="uint8"))
    array([0, 0, 0, 0, 0, 0, 1, 1], dtype=uint8)
    """
    return wrap(host("unpackbits", lambda x: _numpy.unpackbits(x, axis, count, bitorder), to_tensor(a)))


def binary_repr(num: Any, width: Any = None) -> str:
    """An integer in binary."""
    return numpy.binary_repr(int(num), width)


def base_repr(number: Any, base: int = 2, padding: int = 0) -> str:
    """An integer in another base."""
    return numpy.base_repr(int(number), base, padding)
