"""GGUFFile: the tensors and metadata of a GGUF file, read when they are asked for.

Knows the layout, blocks and tensors; knows no model: names and values are what the file says.
"""

from __future__ import annotations

import math
import os
from functools import cached_property
from typing import Any

import numpy as np

from ...core import dtype as dt
from ...serialization.container import FileFormatError
from ...surface.block_tensor import BlockTensor, from_blocks
from ...surface.interchange import _own
from ...tensor import Tensor
from ..mapped import Array, Index, MappedFile, select
from ..source import TableSource, TensorInfo
from .layout import Entry, Field, read_header, value
from .quants import decode_into, swap_bytes
from .types import ARRAY, READABLE, TensorType
from .values import Value

_FLOATS = (dt.float64, dt.float32, dt.float16, dt.bfloat16)


class GGUFFile(TableSource[Entry]):
    """A GGUF file (version 2 or 3, either byte order) as a source of weights.

    Opening reads the header only. Plain tensors are mapped from the file; quantized ones are
    decoded when asked for, to float32 or straight to the dtype wanted. Shapes are in votive's
    order, the fastest dimension last.

    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/small.gguf"
    >>> votive.io.gguf.write(path, {"w": votive.ones(2, 32)}, {"general.name": "x"}, types="Q8_0")
    >>> file = votive.io.gguf.GGUFFile(path)
    >>> file.metadata, file.info("w").stored, file.slice("w", (0, slice(2)))
    ({'general.name': 'x'}, 'Q8_0', tensor([0.9999, 0.9999]))
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.mapped = MappedFile(path)
        self.path = self.mapped.path
        self._data = self.mapped.peek(0, self.mapped.size).data
        try:
            self.header = read_header(self._data, self.mapped.size)
        except FileFormatError as e:
            self.close()
            raise FileFormatError(f"{self.path.name}: {e}") from None
        self.entries = self.header.entries

    @cached_property
    def metadata(self) -> dict[str, Any]:  # type: ignore[override]
        """All values by their keys, decoded at the first use."""
        return {key: self._value(field) for key, field in self.header.fields.items()}

    def typed_metadata(self) -> dict[str, Value]:
        """All values with their types, as `write` takes them to write the same again.

        >>> import tempfile
        >>> path = tempfile.mkdtemp() + "/small.gguf"
        >>> votive.io.gguf.write(path, {}, {"n": 3})
        >>> votive.io.gguf.GGUFFile(path).typed_metadata()
        {'n': Value(value=3, type='u32', item='')}
        """
        return {key: self._typed(field) for key, field in self.header.fields.items()}

    def _typed(self, field: Field) -> Value:
        if field.kind == ARRAY and field.item == ARRAY:
            return Value([self._typed(inner) for inner in field.starts], ARRAY, ARRAY)
        return Value(self._value(field), field.kind, field.item)

    def _value(self, field: Field) -> Any:
        self.mapped._check(0, 0)  # a closed file has an error of its own
        return value(self._data, field, self.header.big)

    @property
    def tensors(self) -> list[TensorInfo]:
        """Descriptions of all tensors, in the order of the file."""
        return [self.info(name) for name in self.names()]

    def info(self, name: str) -> TensorInfo:
        e = self._entry(name)
        # What votive cannot decode would be float32 as well.
        dtype = e.type.dtype or dt.float32
        return TensorInfo(name, dtype, e.shape, e.type.name, e.nbytes, self.path)

    def raw(self, name: str) -> Array:
        """The bytes of a tensor as they are stored, read-only: (..., bytes of a row).

        >>> import tempfile
        >>> path = tempfile.mkdtemp() + "/small.gguf"
        >>> votive.io.gguf.write(path, {"w": votive.ones(2, 32)}, {}, types="Q4_0")
        >>> votive.io.gguf.GGUFFile(path).raw("w").shape
        (2, 18)
        """
        e = self._entry(name)
        flat = self.mapped.peek(e.begin, e.nbytes)
        if not e.shape:
            return flat
        return flat.reshape(*e.shape[:-1], e.type.nbytes(e.shape[-1]))

    def stored_type(self, name: str) -> TensorType:
        """How a tensor is stored."""
        return self._entry(name).type

    def stored_bytes(self, name: str) -> Array:
        """The bytes of a tensor in little-endian order, as a new file takes them."""
        raw = self.raw(name)
        return swap_bytes(raw, self.stored_type(name)) if self.header.big else raw

    def _readable(self, name: str) -> tuple[Entry, dt.dtype]:
        e = self._entry(name)
        if e.type.dtype is None:
            raise FileFormatError(
                f"{self.path.name}: tensor {name!r} is stored as {e.type.name}, which votive "
                f"cannot decode; it reads {', '.join(READABLE)}."
            )
        return e, e.type.dtype

    def blocks(self, name: str) -> BlockTensor | None:
        """A quantized tensor as it is stored: its memory is the file itself."""
        e = self._entry(name)
        if e.type.format is None or self.header.big or not e.shape:
            return None
        rows = (*e.shape[:-1], e.type.nbytes(e.shape[-1]))
        return from_blocks(self.mapped.tensor(e.begin, dt.uint8, rows), e.type.format)

    def _read(self, name: str) -> Tensor:
        e, dtype = self._readable(name)
        if not e.type.plain:
            return self._decoded(e, dt.float32)
        if self.header.big:
            return _own(self._swapped(e).copy(), "cpu")
        return self.mapped.tensor(e.begin, dtype, e.shape)

    def _read_as(self, name: str, dtype: dt.dtype) -> Tensor:
        e, _ = self._readable(name)
        if e.type.plain or dtype not in _FLOATS:
            return self._read(name).to(dtype)
        return self._decoded(e, dtype)

    def _decoded(self, e: Entry, dtype: dt.dtype) -> Tensor:
        out = np.empty(e.shape, dtype.np)
        decode_into(out.reshape(-1), self.mapped.peek(e.begin, e.nbytes), e.type, big=self.header.big)
        self.mapped.forget(e.begin, e.nbytes)
        return _own(out, "cpu")

    def _swapped(self, e: Entry) -> Array:
        """The elements of a plain tensor in a big-endian file."""
        size = e.type.record.itemsize
        bits = self.mapped.peek(e.begin, e.nbytes).view(f">u{size}")
        return bits.astype(f"u{size}").view(e.type.record).reshape(e.shape)

    def _read_part(self, name: str, index: Index) -> Tensor:
        e, dtype = self._readable(name)
        if not e.type.plain:
            return _own(np.array(self._rows(e, index), order="C"), "cpu")
        if self.header.big:
            return _own(np.array(select(self._swapped(e), index), order="C"), "cpu")
        return self.mapped.part(e.begin, dtype, e.shape, index)

    def _rows(self, e: Entry, index: Index) -> Array:
        """`array[index]` of a quantized tensor, decoding only the blocks it touches."""
        if 0 in e.shape:  # the other sizes may be anything
            return select(np.empty(e.shape, np.float32), index)
        parts = _split(index, len(e.shape))
        if parts is None:
            return select(self._decoded(e, dt.float32).numpy(), index)
        lead, last = parts
        count = math.prod(e.shape[:-1])
        rows = np.asarray(select(np.arange(count).reshape(e.shape[:-1]), lead))
        # An index that is out of range is refused here, before anything is decoded.
        columns = np.arange(e.shape[-1])[last]
        low = int(columns.min()) // e.type.block if columns.size else 0
        high = -(-(int(columns.max()) + 1) // e.type.block) if columns.size else 0
        size = e.type.record.itemsize
        raw = self.mapped.peek(e.begin, e.nbytes).reshape(count, -1)
        picked = np.ascontiguousarray(raw[rows.reshape(-1), low * size : high * size])
        out = np.empty((*rows.shape, (high - low) * e.type.block), np.float32)
        decode_into(out.reshape(-1), picked.reshape(-1), e.type, big=self.header.big)
        self.mapped.forget(e.begin, e.nbytes)
        return out[..., columns - low * e.type.block]

    def close(self) -> None:
        """Let go of the file; tensors that were read stay valid."""
        self._data = memoryview(b"")
        self.mapped.close()


def _split(index: Index, ndim: int) -> tuple[tuple[Any, ...], Any] | None:
    """An index as one of all dimensions but the last and one of the last; None if it is neither."""
    parts = index if isinstance(index, tuple) else (index,)
    if any(p is None or isinstance(p, bool) for p in parts) or ndim == 0:
        return None
    dots = [i for i, p in enumerate(parts) if p is Ellipsis]
    if len(dots) > 1:
        return None
    if any(getattr(p, "dtype", None) in (np.bool_, dt.bool_) or isinstance(p, list) for p in parts):
        return None
    if dots:
        fill = (slice(None),) * (ndim - len(parts) + 1)
        parts = (*parts[: dots[0]], *fill, *parts[dots[0] + 1 :])
    if len(parts) < ndim:
        return parts, slice(None)
    last = parts[-1]
    if len(parts) > ndim or not isinstance(last, (int, np.integer, slice)):
        return None
    if isinstance(last, slice) and (last.step or 1) < 0:
        return None
    if isinstance(last, (int, np.integer)) and any(not isinstance(p, (int, np.integer, slice)) for p in parts[:-1]):
        return None  # a number beside an array is an array too, and moves dimensions
    return parts[:-1], last
