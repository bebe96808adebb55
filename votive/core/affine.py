"""Quantized types: integers that stand for numbers by a scale and a zero point, and the schemes by which they do.
Knows no tensors.
"""

from __future__ import annotations

from typing import Any

from . import dtype as dt
from . import spelled
from .blocks import BLOCK


class quantized_dtype(dt.dtype):
    """A dtype whose codes stand for `scale * (code - zero_point)`.

    >>> votive.quint8, votive.quint8.codes, votive.quint8.itemsize
    (votive.quint8, votive.uint8, 1)
    """

    __slots__ = ("codes", "high", "low")

    def __init__(self, name: str, codes: dt.dtype) -> None:
        super().__init__(name, codes.np, BLOCK, codes.is_signed)
        self.codes = codes
        bits = 8 * codes.itemsize
        self.low = -(1 << (bits - 1)) if codes.is_signed else 0
        self.high = self.low + (1 << bits) - 1


class qscheme:
    """How codes stand for numbers; every scheme exists once.

    >>> votive.per_tensor_affine
    votive.per_tensor_affine
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"{spelled.package}.{self.name}"

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return (scheme, (self.name,))


TYPES: dict[str, quantized_dtype] = {
    name: dt.register(quantized_dtype(name, codes))
    for name, codes in (("qint8", dt.int8), ("quint8", dt.uint8), ("qint32", dt.int32))
}
qint8, quint8, qint32 = TYPES["qint8"], TYPES["quint8"], TYPES["qint32"]

SCHEMES: dict[str, qscheme] = {
    name: qscheme(name)
    for name in (
        "per_tensor_affine",
        "per_channel_affine",
        "per_tensor_symmetric",
        "per_channel_symmetric",
        "per_channel_affine_float_qparams",
    )
}
per_tensor_affine, per_channel_affine = SCHEMES["per_tensor_affine"], SCHEMES["per_channel_affine"]
per_tensor_symmetric, per_channel_symmetric = SCHEMES["per_tensor_symmetric"], SCHEMES["per_channel_symmetric"]
per_channel_affine_float_qparams = SCHEMES["per_channel_affine_float_qparams"]


def scheme(name: str) -> qscheme:
    """The scheme of a name."""
    return SCHEMES[name]
