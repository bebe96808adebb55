"""WeightSource: named tensors somewhere in files, read when asked for. Knows no format.

A format subclasses it with three methods: `names`, `info` and `_read`. Two more are optional:
`_read_part`, if it can read less than a whole tensor, and `close`. Formats that keep a table of their
tensors start from `TableSource`, those over other sources from `NestedSource`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

import numpy as np

from ..core import dtype as dt
from ..core.device import DeviceLike
from ..core.similar import did_you_mean
from ..surface.block_tensor import BlockTensor
from ..surface.interchange import _own, as_tensor
from ..tensor import Tensor
from .mapped import Index, select

# What is taken for a tensor that is in memory.
Values = Tensor | np.ndarray
E = TypeVar("E")
Rule = Mapping[str, str | None] | Callable[[str], str | None]


@dataclass(frozen=True)
class TensorInfo:
    """What is known of a tensor before it is read.

    `dtype` is the type it loads as, `stored` the name its file has for how it is stored, and
    `nbytes` the room it takes there.

    >>> from votive.io import TensorInfo
    >>> info = TensorInfo("w", votive.float32, (2, 3), "F32", 24)
    >>> info.numel
    6
    """

    name: str
    dtype: dt.dtype
    shape: tuple[int, ...]
    stored: str
    nbytes: int
    file: Path | None = None

    @property
    def numel(self) -> int:
        return math.prod(self.shape)


class WeightSource:
    """A read-only collection of named tensors; nothing is read before it is asked for.

    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/model.safetensors"
    >>> votive.io.safetensors.save_file({"a.w": votive.ones(2, 3), "b": votive.zeros(4)}, path)
    >>> source = votive.io.open_weights(path)
    >>> source.names(), source.info("a.w").shape
    (['a.w', 'b'], (2, 3))
    >>> source.tensor("b", dtype=votive.float16)
    tensor([0., 0., 0., 0.], dtype=votive.float16)
    """

    metadata: Mapping[str, Any] = {}

    def names(self) -> list[str]:
        """The names of all tensors.

        >>> votive.io.MemorySource({"w": votive.ones(2)}).names()
        ['w']
        """
        raise NotImplementedError

    def info(self, name: str) -> TensorInfo:
        """Shape, types and size of one tensor, without reading it.

        >>> votive.io.MemorySource({"w": votive.ones(2)}).info("w").stored
        'float32'
        """
        raise NotImplementedError

    def _read(self, name: str) -> Tensor:
        """The tensor on the CPU, of type `info(name).dtype`; the caller may write to it."""
        raise NotImplementedError

    def _read_part(self, name: str, index: Index) -> Tensor:
        """A copy of `tensor[index]`."""
        return _own(select(self._read(name).detach().numpy(), index).copy(), "cpu")

    def _read_as(self, name: str, dtype: dt.dtype) -> Tensor:
        """The tensor converted; a format that need not keep the original in between overrides."""
        return self._read(name).to(dtype)

    def tensor(self, name: str, *, dtype: dt.dtype | str | None = None, device: DeviceLike = None) -> Tensor:
        """One tensor, converted and moved if asked.

        Where neither is needed and the file allows, its memory is the file itself: pages are read
        when they are touched, and writing to it changes only the copy in memory.

        >>> votive.io.MemorySource({"w": votive.ones(2)}).tensor("w", dtype="float64")
        tensor([1., 1.], dtype=votive.float64)
        """
        info = self.info(name)
        dtype = info.dtype if dtype is None else as_dtype(dtype)
        t = self._read(name) if dtype is info.dtype else self._read_as(name, dtype)
        return t if device is None else t.to(device)

    def blocks(self, name: str) -> BlockTensor | None:
        """One tensor as the blocks of few bits that it is stored in; None for one that is stored otherwise.

        >>> votive.io.MemorySource({"w": votive.ones(2)}).blocks("w") is None
        True
        """
        self.info(name)  # an unknown name is an error
        return None

    def slice(self, name: str, index: Index) -> Tensor:
        """A copy of `tensor[index]`, reading only what the index needs, if the format can.

        >>> votive.io.MemorySource({"w": votive.arange(6)}).slice("w", slice(2, 4))
        tensor([2, 3])
        """
        return self._read_part(name, index)

    def items(self) -> Iterator[tuple[str, Tensor]]:
        """Names and tensors, one after the other.

        >>> dict(votive.io.MemorySource({"w": votive.ones(2)}).items())
        {'w': tensor([1., 1.])}
        """
        for name in self.names():
            yield name, self.tensor(name)

    def prefixed(self, prefix: str) -> WeightSource:
        """Only the tensors below a prefix, named without it.

        >>> s = votive.io.MemorySource({"model.w": votive.ones(2), "head": votive.ones(1)})
        >>> s.prefixed("model.").names(), s.prefixed("model").names()
        (['w'], ['w'])
        """
        dotted = prefix if not prefix or prefix.endswith(".") else prefix + "."
        return self.renamed(lambda n: n[len(dotted) :] if n.startswith(dotted) else None)

    def renamed(self, rule: Rule) -> WeightSource:
        """The same tensors under other names.

        `rule` is a mapping from names to new names, where what it does not hold stays, or a
        function. A tensor whose new name is None is left out.

        >>> s = votive.io.MemorySource({"gamma": votive.ones(2), "mask": votive.ones(1)})
        >>> s.renamed({"gamma": "weight", "mask": None}).names()
        ['weight']
        """
        return _Renamed(self, rule)

    def close(self) -> None:
        """Let go of the files; tensors that were read stay valid.

        >>> votive.io.MemorySource({}).close()
        """

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __len__(self) -> int:
        return len(self.names())

    def __contains__(self, name: object) -> bool:
        return name in self.names()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self)} tensors>"

    def _unknown(self, name: str) -> KeyError:
        return KeyError(f"no tensor {name!r} among {len(self)}.{did_you_mean(name, self.names())}")


class TableSource(WeightSource, Generic[E]):
    """A source that keeps its tensors' descriptions, of whatever kind, by name."""

    entries: Mapping[str, E]

    def names(self) -> list[str]:
        return list(self.entries)

    def __contains__(self, name: object) -> bool:
        return name in self.entries

    def __len__(self) -> int:
        return len(self.entries)

    def _entry(self, name: str) -> E:
        if name not in self.entries:
            raise self._unknown(name)
        return self.entries[name]


class NestedSource(TableSource[E]):
    """A source whose tensors are read from others: `_inner` says from which, and by what name."""

    def _inner(self, name: str) -> tuple[WeightSource, str]:
        raise NotImplementedError

    def info(self, name: str) -> TensorInfo:
        source, inner = self._inner(name)
        return replace(source.info(inner), name=name)

    def _read(self, name: str) -> Tensor:
        source, inner = self._inner(name)
        return source._read(inner)

    def _read_as(self, name: str, dtype: dt.dtype) -> Tensor:
        source, inner = self._inner(name)
        return source._read_as(inner, dtype)

    def _read_part(self, name: str, index: Index) -> Tensor:
        source, inner = self._inner(name)
        return source._read_part(inner, index)

    def blocks(self, name: str) -> BlockTensor | None:
        source, inner = self._inner(name)
        return source.blocks(inner)


class _Renamed(NestedSource[str]):
    """Another source seen through a table of names."""

    def __init__(self, source: WeightSource, rule: Rule) -> None:
        self.source, self.metadata = source, source.metadata
        self.entries: dict[str, str] = {}
        for name in source.names():
            new = rule.get(name, name) if isinstance(rule, Mapping) else rule(name)
            if new is None:
                continue
            if not isinstance(new, str):
                raise TypeError(f"renamed: the rule gave {new!r} for {name!r}; use str or None.")
            if new in self.entries:
                raise ValueError(f"renamed: {self.entries[new]!r} and {name!r} both become {new!r}.")
            self.entries[new] = name

    def _inner(self, name: str) -> tuple[WeightSource, str]:
        return self.source, self._entry(name)

    def close(self) -> None:
        self.source.close()


class MemorySource(TableSource[Values]):
    """Tensors that are in memory already, such as a state dict.

    >>> source = votive.io.MemorySource(votive.nn.Linear(2, 1).state_dict())
    >>> source.names()
    ['weight', 'bias']
    """

    def __init__(self, tensors: Mapping[str, Values], metadata: Mapping[str, Any] | None = None):
        self.entries, self.metadata = tensors, dict(metadata or {})

    def _have(self, name: str) -> Tensor:
        return as_tensor(self._entry(name)).detach()

    def blocks(self, name: str) -> BlockTensor | None:
        have = self._have(name)
        return have if isinstance(have, BlockTensor) else None

    def info(self, name: str) -> TensorInfo:
        t = self._have(name)
        if isinstance(t, BlockTensor):
            return TensorInfo(name, t.compute_dtype, tuple(t.shape), t.dtype.name, t.nbytes)
        nbytes = t.numel() * t.dtype.itemsize
        return TensorInfo(name, t.dtype, tuple(t.shape), t.dtype.name, nbytes)

    def _read(self, name: str) -> Tensor:
        have = self._have(name)
        # A clone, or two modules would be trained as one.
        return have.dequantize() if isinstance(have, BlockTensor) else have.clone()

    def _read_as(self, name: str, dtype: dt.dtype) -> Tensor:
        return self._have(name).to(dtype)

    def _read_part(self, name: str, index: Index) -> Tensor:
        have = self._have(name)
        return (have.dequantize() if isinstance(have, BlockTensor) else have)[index].clone()


def as_dtype(dtype: object) -> dt.dtype:
    """A dtype given as such or by name."""
    if isinstance(dtype, dt.dtype):
        return dtype
    if isinstance(dtype, str):
        return dt.by_name(dtype.removeprefix("votive.").removeprefix("torch."))
    raise TypeError(f"dtype: expected a dtype or its name, got {dtype!r}.")
