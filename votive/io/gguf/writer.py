"""Writing GGUF files: header, then one tensor after the other, so that one is in memory at a time.

Knows the layout and tensors; the names and values are the caller's.
"""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import IO, Any

import numpy as np

from ...backends.base import BACKENDS
from ...backends.common.blocks.encode import FITTED
from ...core import dtype as dt
from ...core.blocks import block_dtype
from ...serialization.atomic import replacing
from ...surface.block_tensor import BlockTensor
from ...tensor import Tensor
from ..mapped import Array
from ..source import WeightSource
from .file import GGUFFile
from .quants import quantize, swap_bytes
from .split import GGUFParts
from .types import ALIGNMENT, BY_DTYPE, BY_FORMAT, MAGIC, MAX_DIMS, MAX_NAME, SMALLER, TensorType, tensor_type
from .values import Order, Value, encoded, text, typed

# Bytes of blocks for the numbers of a tensor.
Encode = Callable[[str, Array, block_dtype], Array]
Types = str | Callable[[str, tuple[int, ...], dt.dtype], str | None] | None

Importance = Callable[[str, tuple[int, ...]], Array | None] | None

_FLOATS = (dt.float64, dt.float32, dt.float16, dt.bfloat16)


@dataclass(frozen=True)
class _Plan:
    """One tensor to write; `data` gives its little-endian bytes when its turn comes."""

    name: str
    shape: tuple[int, ...]
    type: TensorType
    data: Callable[[], Array]

    @property
    def nbytes(self) -> int:
        return self.type.nbytes(math.prod(self.shape))


def write(
    path: str | os.PathLike[str],
    tensors: Mapping[str, Tensor | np.ndarray] | WeightSource,
    metadata: Mapping[str, Any],
    *,
    types: Types = None,
    alignment: int = ALIGNMENT,
    byteorder: str = "little",
    importance: Importance = None,
    encode: Encode | None = None,
) -> None:
    """Write a GGUF file of version 3; an existing one is replaced when the new one is complete.

    `types` says how tensors are stored. None keeps them as they are, blocks of another GGUF file
    included. A name such as "Q4_K" holds for all with two dimensions or more; vectors of floats
    become F32, as readers expect, and tensors whose rows do not fill blocks take smaller blocks
    (32 instead of 256) or F16. A function gets (name, shape, dtype) and returns a type or None.
    Metadata values get their usual types; use `Value` to choose one. `importance`, a function of name
    and shape, weighs the errors of columns where types are fitted: it returns an array (columns,), or
    (matrices, columns) for a tensor of three dimensions, or None.
    `encode` chooses the codes of blocks in place of rounding: it gets a name, the numbers and the format, and gives
    bytes.

    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/small.gguf"
    >>> votive.io.gguf.write(path, {"w": votive.ones(2, 64), "b": votive.ones(2)}, {}, types="Q4_0")
    >>> [(t.name, t.stored, t.shape) for t in votive.io.gguf.GGUFFile(path).tensors]
    [('w', 'Q4_0', (2, 64)), ('b', 'F32', (2,))]
    """
    if alignment <= 0 or alignment & (alignment - 1) or alignment >= 1 << 32:
        raise ValueError(f"gguf.write: alignment must be a power of two, got {alignment}.")
    if byteorder not in ("little", "big"):
        raise ValueError(f"gguf.write: byteorder is 'little' or 'big', got {byteorder!r}.")
    source = tensors if isinstance(tensors, WeightSource) else None
    names = source.names() if source is not None else list(tensors)
    if importance is not None and encode is not None:
        raise ValueError("gguf.write: encode= chooses all codes; importance= weighs those that are rounded. Give one.")
    plans = [_plan(name, tensors, types, importance, encode) for name in names]
    order: Order = "<" if byteorder == "little" else ">"
    header = _header(plans, metadata, alignment, order)
    with replacing(path) as f:
        f.write(header)
        _pad(f, len(header), alignment)
        for plan in plans:
            raw = plan.data()
            if byteorder == "big":
                raw = swap_bytes(raw, plan.type)
            if raw.nbytes != plan.nbytes:
                raise ValueError(f"gguf.write: {plan.name!r} has {raw.nbytes} bytes instead of {plan.nbytes}.")
            if raw.nbytes:
                f.write(raw.reshape(-1).data)
            _pad(f, raw.nbytes, alignment)


def _header(plans: list[_Plan], metadata: Mapping[str, Any], alignment: int, order: Order) -> bytearray:
    values: dict[str, Value] = {}
    for key, value in metadata.items():
        if not isinstance(key, str) or not key:
            raise TypeError(f"gguf.write: keys of metadata are text, got {key!r}.")
        values[key] = typed(key, value)
    if alignment != ALIGNMENT or "general.alignment" in values:
        values["general.alignment"] = Value(alignment, "u32")
    out = bytearray(MAGIC + struct.pack(f"{order}IQQ", 3, len(plans), len(values)))
    for key, value in values.items():
        out += text(key, order, key) + encoded(key, value, order)
    offset = 0
    for plan in plans:
        shape = tuple(reversed(plan.shape))
        out += text(plan.name, order, plan.name)
        out += struct.pack(f"{order}I{len(shape)}QIQ", len(shape), *shape, plan.type.code, offset)
        offset += plan.nbytes + -plan.nbytes % alignment
    return out


def _pad(f: IO[bytes], written: int, alignment: int) -> None:
    f.write(bytes(-written % alignment))


def _plan(
    name: str,
    tensors: Mapping[str, Tensor | np.ndarray] | WeightSource,
    types: Types,
    importance: Importance,
    encode: Encode | None,
) -> _Plan:
    if not isinstance(name, str) or not 0 < len(name.encode()) <= MAX_NAME:
        raise ValueError(f"gguf.write: the name of a tensor has 1 to {MAX_NAME} bytes of text, got {name!r}.")
    kept: BlockTensor | None = None
    if isinstance(tensors, WeightSource):
        info = tensors.info(name)
        kept = None if isinstance(tensors, (GGUFFile, GGUFParts)) else tensors.blocks(name)
        shape, dtype = tuple(info.shape), info.dtype
        read: Callable[[], Array] = lambda: _array(tensors.tensor(name))
    else:
        value = tensors[name]
        if isinstance(value, BlockTensor):
            kept, numbers = value, value.dequantize
            shape, dtype, read = tuple(value.shape), value.compute_dtype, lambda: _array(numbers(dt.float32))
        else:
            array = _array(value) if isinstance(value, Tensor) else np.asarray(value)
            shape, dtype = array.shape, _dtype(name, array)
            read = lambda: array
    if len(shape) > MAX_DIMS:
        raise ValueError(f"gguf.write: {name!r} has shape {shape}; the format allows {MAX_DIMS} dimensions.")
    asked = types(name, shape, dtype) if callable(types) else types
    if isinstance(tensors, (GGUFFile, GGUFParts)):
        stored = tensors.stored_type(name)
        if asked is None or tensor_type(asked) is stored:
            return _Plan(name, shape, stored, lambda: tensors.stored_bytes(name))
    if kept is not None and not kept._flipped and kept.dtype in BY_FORMAT:
        stored = BY_FORMAT[kept.dtype]
        if asked is None or tensor_type(asked) is stored:
            return _Plan(name, shape, stored, lambda: _array(kept.blocks))
    chosen = _choose(name, shape, dtype, asked, strict=callable(types))
    if encode is not None and chosen.format is not None:
        made, format = encode, chosen.format
        return _Plan(name, shape, chosen, lambda: made(name, np.asarray(read(), np.float32), format))
    # Asked for before anything is written, so that what does not fit leaves nothing behind.
    fitted = importance is not None and chosen.format is not None and chosen.format.name in FITTED
    weights = importance(name, shape) if importance is not None and fitted else None
    return _Plan(name, shape, chosen, lambda: _bytes(name, read(), chosen, weights))


def _choose(name: str, shape: tuple[int, ...], dtype: dt.dtype, asked: str | None, *, strict: bool) -> TensorType:
    """The type for one tensor; unless `strict`, one that fits is found."""
    own = BY_DTYPE.get(dtype)
    if asked is None or (not strict and dtype not in _FLOATS):
        if own is None:
            raise TypeError(
                f"gguf.write: {name!r} is {dtype}, which the format does not have; "
                f"convert it to one of {', '.join(d.name for d in BY_DTYPE)}."
            )
        return own
    wanted = tensor_type(asked)
    if not strict and len(shape) < 2:
        return tensor_type("F32")
    row = shape[-1] if shape else 1
    while not strict and row % wanted.block:
        wanted = tensor_type(SMALLER.get(wanted.name, "F16"))
    if row % wanted.block:
        raise ValueError(
            f"gguf.write: {name!r} has shape {shape}; {wanted.name} needs rows that are a multiple of {wanted.block}."
        )
    return wanted


def _bytes(name: str, array: Array, t: TensorType, importance: Array | None) -> Array:
    if t.plain and t.dtype is not None and not t.dtype.is_floating_point and array.dtype != t.record:
        raise TypeError(f"gguf.write: {name!r} is {array.dtype} and cannot become {t.name}.")
    try:
        return quantize(array if array.ndim else array.reshape(1), t, importance=importance)
    except ValueError as e:
        raise ValueError(f"gguf.write: {name!r}: {e}") from None


def _array(tensor: Tensor) -> Array:
    t = tensor.detach()
    return np.asarray(BACKENDS[t.device.type].to_numpy(t._data), order="C")


def _dtype(name: str, array: Array) -> dt.dtype:
    try:
        return dt.from_numpy(array.dtype)
    except TypeError:
        raise TypeError(f"gguf.write: {name!r} is an array of {array.dtype}.") from None
