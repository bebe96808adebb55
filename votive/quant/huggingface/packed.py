"""A weight as codes, scales and zero points, whichever library stored it, and what blocks are made of it.

Knows no files: the schemes beside this one unpack them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...backends.common.blocks.bits import pack
from ...backends.common.blocks.groups import values
from ...core.group_formats import KINDS, SIZES, group_format
from ...io.source import WeightSource
from ...serialization.container import FileFormatError
from ...surface.block_tensor import BlockTensor, from_blocks
from ...surface.interchange import _own
from ...tensor import Tensor

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Packed:
    """Codes (rows, columns), scales and zero points (rows, groups), and the group of each column."""

    kind: str
    codes: Array
    scale: Array
    zero: Array | None
    index: Array

    def blocks(self) -> BlockTensor | None:
        """Blocks of the same codes, or None where no block of ours has one scale only (GPTQ with act-order), or zero
        points need more than half precision."""
        rows, columns = self.codes.shape
        if self.zero is not None and not _half(self.zero):
            return None
        for size in SIZES:
            if (
                columns
                and columns % size == 0
                and bool((self.index.reshape(-1, size) == self.index[::size, None]).all())
            ):
                break
        else:
            return None
        format, bits = group_format(self.kind, size), KINDS[self.kind][0]
        records = np.empty(rows * (columns // size), format.np)
        records["d"] = self.scale[:, self.index[::size]].reshape(-1)
        if self.zero is not None:
            records["z"] = self.zero[:, self.index[::size]].reshape(-1)
        codes = self.codes.reshape(-1, size)
        records["qs"] = codes if bits == 8 else pack(codes, bits, size * bits // 8)
        return from_blocks(_own(records.view(np.uint8).reshape(rows, -1), "cpu"), format)

    def numbers(self) -> Tensor:
        """The numbers themselves, in float32, by the arithmetic that blocks are decoded with."""
        zero = None if self.zero is None else self.zero[:, self.index]
        return _own(values(self.kind, self.codes, self.scale[:, self.index], zero), "cpu")


def _half(zero: Array) -> bool:
    """Whether half precision holds numbers, but for what is nothing beside a code's step."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool((np.abs(zero.astype(np.float16).astype(np.float32) - zero) <= 2.0**-24).all())


@dataclass(frozen=True)
class Layer:
    """A quantized weight that was found: the tensors it lies in, its shape, and how to unpack it."""

    parts: tuple[str, ...]
    shape: tuple[int, int]
    unpack: Callable[[], Packed]


class Reader:
    """Tensors of a file as arrays, checked as they are read; errors name the scheme and the tensor."""

    def __init__(self, source: WeightSource, scheme: str) -> None:
        self.source, self.scheme = source, scheme
        self.known = frozenset(source.names())

    def fail(self, name: str, what: str) -> FileFormatError:
        """An error about one tensor, to be raised."""
        return FileFormatError(f"{self.scheme}: {name} {what}.")

    def shape(self, name: str, dims: int) -> tuple[int, ...]:
        """The shape of a tensor that must be there, with so many dimensions."""
        if name not in self.known:
            raise self.fail(name, "is missing")
        shape = tuple(self.source.info(name).shape)
        if len(shape) != dims:
            raise self.fail(name, f"must have {dims} dimensions, got the shape {shape}")
        return shape

    def want(self, name: str, *allowed: tuple[int, ...]) -> None:
        """Check that a tensor is there and has one of the shapes."""
        if name not in self.known:
            raise self.fail(name, "is missing")
        shape = tuple(self.source.info(name).shape)
        if shape not in allowed:
            raise self.fail(name, f"must have the shape {' or '.join(map(str, allowed))}, got {shape}")

    def stored(self, name: str, dtype: str) -> Array:
        """The numbers as they are; `dtype` is what the scheme has them in."""
        if self.source.info(name).dtype.name != dtype:
            raise self.fail(name, f"must be {dtype}, got {self.source.info(name).dtype.name}")
        return np.ascontiguousarray(self.source.tensor(name).numpy())

    def floats(self, name: str) -> Array:
        """Scales, in float32."""
        if not self.source.info(name).dtype.is_floating_point:
            raise self.fail(name, f"must hold floating-point scales, got {self.source.info(name).dtype.name}")
        import votive

        return np.ascontiguousarray(self.source.tensor(name, dtype=votive.float32).numpy())

    def words(self, name: str, bits: int) -> Array:
        """int32 words taken apart along a new last dimension, the lowest bits first."""
        packed = self.stored(name, "int32").view(np.uint32)
        return self._fields(packed, bits)

    def stream(self, name: str, bits: int, dim: int) -> Array:
        """Codes that follow one another along a dimension without regard to the ends of words, the lowest bits first;
        that dimension comes last."""
        packed = np.ascontiguousarray(np.moveaxis(self.stored(name, "int32"), dim, -1))
        if 32 % bits == 0:
            return self._fields(packed.view(np.uint32), bits).reshape(*packed.shape[:-1], -1)
        each = np.unpackbits(packed.astype("<i4").view(np.uint8), axis=-1, bitorder="little")
        each = each.reshape(*packed.shape[:-1], -1, bits)
        return np.asarray(each @ (1 << np.arange(bits, dtype=np.uint8)), np.uint8)

    @staticmethod
    def _fields(packed: Array, bits: int) -> Array:
        fields = packed[..., None] >> np.arange(0, 32, bits, dtype=np.uint32)
        return (fields & np.uint32((1 << bits) - 1)).astype(np.uint8)


def whole(value: object, scheme: str, name: str, allowed: tuple[int, ...]) -> int:
    """A whole number of a configuration, one of those that are supported."""
    if type(value) is not int or value not in allowed:
        raise ValueError(f"{scheme}: {name}={value!r} is not supported; it must be one of {allowed}.")
    return value


def even(columns: int, groups: int) -> Array:
    """The group of each column where all groups are of one size."""
    return np.arange(columns) // (columns // groups)
