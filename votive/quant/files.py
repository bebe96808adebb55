"""Weights of a file put in blocks while they are written: one tensor, or some of its rows, at a time.

Knows weight sources and formats; opens and writes no file.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..backends.common.blocks.encode import FITTED
from ..core import dtype as dt
from ..core.blocks import block_dtype
from ..io.block_entries import KEY
from ..io.mapped import Index, select
from ..io.source import TensorInfo, WeightSource
from ..surface.interchange import _own
from ..tensor import Tensor
from .encoding import rounded
from .grid import ASYMMETRIC, Array
from .hqq import hqq
from .imatrix import by_all_names, columns_of

# The bytes of blocks for the numbers of a tensor.
Encode = Callable[[str, Array, block_dtype], Array]


def encoder(
    method: str = "rtn", importance: Mapping[str, Any] | None = None, done: Callable[[str], None] | None = None
) -> Encode:
    """What puts the numbers of one tensor in blocks, by a method that needs no data: "rtn" or "hqq".

    `importance` is an importance matrix by names of weights, the file's or llama.cpp's. `done` is told names.

    >>> from votive.quant.files import encoder
    >>> encoder()("w", np.ones((1, 32), np.float32), votive.q8_0).shape
    (1, 34)
    """
    if method not in ("rtn", "hqq"):
        raise ValueError(f"encoder: {method} chooses codes by what layers are fed; use votive.quantize_ on the model.")
    known = by_all_names(importance or {})

    def encode(name: str, array: Array, format: block_dtype) -> Array:
        weight = columns_of(known, [name], array.shape)
        rows = array.reshape(-1, array.shape[-1])
        if not np.isfinite(rows).all():
            raise ValueError(f"quantize: {name!r} holds infinities or NaN.")
        chosen = hqq if method == "hqq" and format.name in ASYMMETRIC else rounded
        if weight is not None and weight.ndim == 2:
            raw = np.stack([chosen(part, format, columns) for part, columns in zip(array, weight)])
        else:
            raw = chosen(rows, format, weight)
        if done is not None:
            done(name)
        out: Array = np.ascontiguousarray(raw).view(np.uint8).reshape(*array.shape[:-1], -1)
        return out

    return encode


def check_importance(
    importance: Mapping[str, Any], wanted: Mapping[str, tuple[block_dtype, tuple[int, ...]]], method: str = "rtn"
) -> None:
    """Raise where an importance matrix would change nothing, or does not fit; `wanted` has formats and shapes.

    >>> from votive.quant.files import check_importance
    >>> check_importance({"w": np.ones(256)}, {"w": (votive.q4_k, (1, 256))})
    """
    known = by_all_names(importance)
    heard = (*sorted(FITTED), *(ASYMMETRIC if method == "hqq" else ()))
    named = {name for name, (_, shape) in wanted.items() if columns_of(known, [name], shape) is not None}
    if not any(format.name in heard for format, _ in wanted.values()):
        names = ", ".join(sorted({format.name for format, _ in wanted.values()}))
        raise ValueError(f"quantize: {names} is rounded as it is; importance weighs errors in {', '.join(heard)}.")
    if not any(wanted[name][0].name in heard for name in named):
        raise ValueError("quantize: the importance matrix names no weight of this model; is it of another one?")


class SourceInBlocks(WeightSource):
    """A source whose chosen matrices are rows of bytes of blocks, encoded when they are read; for safetensors files.

    `formats` gives names and their formats; those in `transposed` are stored as (inputs, outputs).

    >>> from votive.quant.files import SourceInBlocks, encoder
    >>> source = votive.io.MemorySource({"w": votive.ones(2, 32), "b": votive.ones(2)})
    >>> made = SourceInBlocks(source, {"w": votive.q8_0}, encoder())
    >>> made.info("w").shape, made.info("b").shape, made.slice("w", slice(0, 1)).shape
    ((2, 34), (2,), votive.Size([1, 34]))
    """

    def __init__(
        self,
        source: WeightSource,
        formats: Mapping[str, block_dtype],
        encode: Encode,
        transposed: frozenset[str] = frozenset(),
    ) -> None:
        self.source, self.formats, self.encode, self.transposed = source, dict(formats), encode, transposed
        told = {n: [f.name, *(["transposed"] if n in transposed else [])] for n, f in self.formats.items()}
        self.metadata = {KEY: json.dumps(told)}

    def names(self) -> list[str]:
        return self.source.names()

    def info(self, name: str) -> TensorInfo:
        info = self.source.info(name)
        if name not in self.formats:
            return info
        shape = self._rows(name)
        full = (*shape[:-1], self.formats[name].row_bytes(shape[-1]))
        return TensorInfo(name, dt.uint8, full, self.formats[name].name, math.prod(full))

    def _rows(self, name: str) -> tuple[int, ...]:
        shape = tuple(self.source.info(name).shape)
        return (*shape[:-2], shape[-1], shape[-2]) if name in self.transposed else shape

    def _read(self, name: str) -> Tensor:
        if name not in self.formats:
            # A copy: what is mapped would stay in memory while the rest is written.
            return self.source._read_part(name, ...) if self.info(name).shape else self.source._read(name)
        return self._encoded(name, ...)

    def _read_part(self, name: str, index: Index) -> Tensor:
        if name not in self.formats:
            return self.source._read_part(name, index)
        rows = index if isinstance(index, tuple) else (index,)
        if len(rows) == 1 and isinstance(rows[0], slice) and name not in self.transposed:
            return self._encoded(name, rows[0])
        whole = self._encoded(name, ...)
        return whole if rows == (...,) else _own(select(whole.numpy(), index).copy(), "cpu")

    def _encoded(self, name: str, rows: Any) -> Tensor:
        part = self.source._read_part(name, rows).to(dt.float32)
        part = part.transpose(-1, -2) if name in self.transposed else part
        array = np.ascontiguousarray(part.numpy())
        return _own(self.encode(name, array, self.formats[name]), "cpu")
