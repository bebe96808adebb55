"""A weight source seen under other names, with tensors changed on the way. Knows no format.

Where `renamed` only names, this one also reorders, transposes, shifts, takes apart and stacks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import votive

from ..io import TensorInfo, WeightSource
from ..io.mapped import Index
from ..io.rotary import halves, neighbours
from ..io.source import TableSource
from ..surface.block_tensor import BlockTensor, like
from ..tensor import Tensor


@dataclass(frozen=True)
class Part:
    """Where a tensor comes from: the `names` there, and what is done to what they hold.

    `fix` is one of FIXES; `number` is what it needs to know, heads or the index of an expert. Where none fits, `change`
    makes the tensor of those that are named; with `rows` it only moves whole rows, which blocks survive.
    """

    names: tuple[str, ...]
    fix: str = ""
    number: int = 0
    change: Callable[..., Tensor] | None = None
    rows: bool = False


def _halves(t: Tensor, heads: int) -> Any:
    return halves(t, heads)


def _neighbours(t: Tensor, heads: int) -> Any:
    return neighbours(t, heads)


def _plus(t: Tensor, number: int) -> Any:
    return t + number


def _transposed(t: Tensor, _: int) -> Any:
    return t.T.contiguous()


def _row(t: Tensor, _: int) -> Any:
    return t.reshape(1, -1)


def _flat(t: Tensor, _: int) -> Any:
    return t.reshape(-1)


def _column(t: Tensor, _: int) -> Any:
    return t.reshape(-1, 1)


def _rows(t: Tensor, count: int) -> Any:
    return t.reshape(count, -1)


def _filter(t: Tensor, _: int) -> Any:
    return t.unsqueeze(1)


def _no_filter(t: Tensor, _: int) -> Any:
    return t.squeeze(1)


def _decay(t: Tensor, _: int) -> Any:
    return -votive.exp(t)


def _decays(t: Tensor, _: int) -> Any:
    return -votive.exp(t).reshape(-1, 1)


def _log_decay(t: Tensor, _: int) -> Any:
    return votive.log(-t)


def _log_decays(t: Tensor, _: int) -> Any:
    return votive.log(-t).reshape(-1)


_FIXES = {
    "halves": _halves,
    "neighbours": _neighbours,
    "plus": _plus,
    "transposed": _transposed,
    "row": _row,
    "flat": _flat,
    "column": _column,
    "rows": _rows,
    "filter": _filter,
    "no filter": _no_filter,
    "decay": _decay,
    "decays": _decays,
    "log decay": _log_decay,
    "log decays": _log_decays,
}
# Those that compute: what they give is rounded once, at the end.
_COMPUTED = ("plus", "decay", "decays", "log decay", "log decays")
# What becomes of the shape of a tensor.
_SHAPES: dict[str, Callable[[tuple[int, ...], int], tuple[int, ...]]] = {
    "transposed": lambda shape, _: shape[::-1],
    "row": lambda shape, _: (1, math.prod(shape)),
    "flat": lambda shape, _: (math.prod(shape),),
    "log decays": lambda shape, _: (math.prod(shape),),
    "column": lambda shape, _: (math.prod(shape), 1),
    "decays": lambda shape, _: (math.prod(shape), 1),
    "rows": lambda shape, count: (count, math.prod(shape) // count),
    "filter": lambda shape, _: (shape[0], 1, *shape[1:]),
    "no filter": lambda shape, _: (shape[0], *shape[2:]),
}
# The same for rows of blocks; a transposed matrix is read by the other dimension.
_BLOCK_FIXES: dict[str, Callable[[BlockTensor, int], BlockTensor]] = {
    "": lambda t, _: t,
    "halves": lambda t, heads: like(t, halves(t.blocks, heads)),
    "neighbours": lambda t, heads: like(t, neighbours(t.blocks, heads)),
    "transposed": lambda t, _: like(t, t.blocks, flipped=True),
    "taken": lambda t, number: like(t, t.blocks[number]),
}
# Those that make many tensors of one or one of many.
TAKEN, STACKED, JOINED = "taken", "stacked", "joined"
FIXES = ["", *_FIXES, TAKEN, STACKED, JOINED]


class Refitted(TableSource[Part]):
    """Tensors of another source by `parts`, and `added` ones that are there already.

    >>> from votive.models.refitted import Part, Refitted
    >>> source = votive.io.MemorySource({"w": votive.ones(2, 3)})
    >>> refitted = Refitted(source, {"x": Part(("w",), "transposed")})
    >>> refitted.info("x").shape, refitted.tensor("x").shape
    ((3, 2), votive.Size([3, 2]))
    """

    def __init__(self, source: WeightSource, parts: Mapping[str, Part], added: Mapping[str, Any] | None = None) -> None:
        self.source, self.metadata = source, source.metadata
        self.entries, self.added = dict(parts), dict(added or {})

    def names(self) -> list[str]:
        return [*self.entries, *self.added]

    def __contains__(self, name: object) -> bool:
        return name in self.entries or name in self.added

    def __len__(self) -> int:
        return len(self.entries) + len(self.added)

    def info(self, name: str) -> TensorInfo:
        if name in self.added:
            t = self.added[name]
            nbytes = t.numel() * t.dtype.itemsize
            return TensorInfo(name, t.dtype, tuple(t.shape), t.dtype.name, nbytes)
        part = self._entry(name)
        info = self.source.info(part.names[0])
        if part.change is not None:
            given = [self.source.info(n) for n in part.names]
            made = part.change(*(votive.empty(one.shape, dtype=one.dtype, device="meta") for one in given))
            return replace(info, name=name, shape=tuple(made.shape), nbytes=made.numel() * info.dtype.itemsize)
        shape, nbytes = tuple(info.shape), info.nbytes
        if part.fix == TAKEN:
            shape, nbytes = shape[1:], nbytes // max(shape[0], 1)
        elif part.fix == STACKED:
            shape, nbytes = (len(part.names), *shape), nbytes * len(part.names)
        elif part.fix == JOINED:
            shape, nbytes = (shape[0] * len(part.names), *shape[1:]), nbytes * len(part.names)
        elif part.fix in _SHAPES:
            shape = _SHAPES[part.fix](shape, part.number)
        return replace(info, name=name, shape=shape, nbytes=nbytes)

    def _read(self, name: str) -> Any:
        return self._made(name, None)

    def blocks(self, name: str) -> BlockTensor | None:
        """What moves whole rows leaves blocks as they are."""
        if name in self.added:
            return None
        part = self._entry(name)
        if part.change is not None:
            return self._moved_blocks(part, part.change) if part.rows else None
        found = self.source.blocks(part.names[0]) if len(part.names) == 1 else None
        if found is None or part.fix not in _BLOCK_FIXES:
            return None
        return _BLOCK_FIXES[part.fix](found, part.number)

    def _moved_blocks(self, part: Part, change: Callable[..., Tensor]) -> BlockTensor | None:
        found = [b for b in map(self.source.blocks, part.names) if b is not None]
        if len(found) < len(part.names) or any(b.dtype is not found[0].dtype or b._flipped for b in found):
            return None
        return like(found[0], change(*(b.blocks for b in found)))

    def _read_as(self, name: str, dtype: Any) -> Any:
        # A sum is rounded once, at the end; the other changes only move numbers.
        if name in self.added or self._entry(name).fix in _COMPUTED or self._entry(name).change is not None:
            return self._made(name, None).to(dtype)
        return self._made(name, dtype)

    def _made(self, name: str, dtype: Any) -> Any:
        if name in self.added:
            return self.added[name]
        part = self._entry(name)
        if part.fix == TAKEN:
            t = self.source.slice(part.names[0], part.number)
            return t if dtype is None else t.to(dtype)
        tensors = [self.source.tensor(n, dtype=dtype) for n in part.names]
        if part.change is not None:
            return part.change(*tensors).contiguous()
        if part.fix == STACKED:
            return votive.stack(tensors)
        if part.fix == JOINED:
            return votive.cat(tensors)
        return _FIXES[part.fix](tensors[0], part.number) if part.fix else tensors[0]

    def _read_part(self, name: str, index: Index) -> Any:
        if name in self.entries and not self.entries[name].fix and self.entries[name].change is None:
            return self.source.slice(self.entries[name].names[0], index)
        return super()._read_part(name, index)

    def close(self) -> None:
        self.source.close()
