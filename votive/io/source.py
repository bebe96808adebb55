"""WeightSource: named tensors somewhere in files, read when asked for. Knows no format.

A format subclasses it with three methods: `names`, `info` and `_read`. Two more are optional:
`_read_part`, if it can read less than a whole tensor, and `close`.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from ..core import dtype as dt
from ..interchange import as_tensor
from .mapped import select

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
        out = 1
        for n in self.shape:
            out *= n
        return out


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

    def _read(self, name: str) -> Any:
        """The tensor on the CPU, of type `info(name).dtype`; the caller may write to it."""
        raise NotImplementedError

    def _read_part(self, name: str, index: Any) -> Any:
        """A copy of `tensor[index]`."""
        from ..interchange import _own

        return _own(select(self._read(name).detach().numpy(), index).copy(), "cpu")

    def _read_as(self, name: str, dtype: dt.dtype) -> Any:
        """The tensor converted; a format that need not keep the original in between overrides."""
        return self._read(name).to(dtype)

    def tensor(self, name: str, *, dtype: Any = None, device: Any = None) -> Any:
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

    def slice(self, name: str, index: Any) -> Any:
        """A copy of `tensor[index]`, reading only what the index needs, if the format can.

        >>> votive.io.MemorySource({"w": votive.arange(6)}).slice("w", slice(2, 4))
        tensor([2, 3])
        """
        return self._read_part(name, index)

    def items(self) -> Iterator[tuple[str, Any]]:
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
        close = difflib.get_close_matches(name, self.names(), 3)
        hint = f"; similar: {', '.join(close)}" if close else ""
        return KeyError(f"no tensor {name!r} among {len(self)}{hint}")


class _Renamed(WeightSource):
    """Another source seen through a table of names."""

    def __init__(self, source: WeightSource, rule: Rule) -> None:
        self.source, self.metadata = source, source.metadata
        self.old: dict[str, str] = {}
        for name in source.names():
            new = rule.get(name, name) if isinstance(rule, Mapping) else rule(name)
            if new is None:
                continue
            if not isinstance(new, str):
                raise TypeError(f"renamed: the rule gave {new!r} for {name!r}; use str or None.")
            if new in self.old:
                raise ValueError(f"renamed: {self.old[new]!r} and {name!r} both become {new!r}.")
            self.old[new] = name

    def names(self) -> list[str]:
        return list(self.old)

    def __contains__(self, name: object) -> bool:
        return name in self.old

    def __len__(self) -> int:
        return len(self.old)

    def _name(self, name: str) -> str:
        if name not in self.old:
            raise self._unknown(name)
        return self.old[name]

    def info(self, name: str) -> TensorInfo:
        return replace(self.source.info(self._name(name)), name=name)

    def _read(self, name: str) -> Any:
        return self.source._read(self._name(name))

    def _read_as(self, name: str, dtype: dt.dtype) -> Any:
        return self.source._read_as(self._name(name), dtype)

    def _read_part(self, name: str, index: Any) -> Any:
        return self.source._read_part(self._name(name), index)

    def close(self) -> None:
        self.source.close()


class MemorySource(WeightSource):
    """Tensors that are in memory already, such as a state dict.

    >>> source = votive.io.MemorySource(votive.nn.Linear(2, 1).state_dict())
    >>> source.names()
    ['weight', 'bias']
    """

    def __init__(self, tensors: Mapping[str, Any], metadata: Mapping[str, Any] | None = None):
        self.tensors, self.metadata = tensors, dict(metadata or {})

    def names(self) -> list[str]:
        return list(self.tensors)

    def __contains__(self, name: object) -> bool:
        return name in self.tensors

    def _have(self, name: str) -> Any:
        if name not in self.tensors:
            raise self._unknown(name)
        value = self.tensors[name]
        return as_tensor(value).detach()  # arrays of NumPy are welcome too

    def info(self, name: str) -> TensorInfo:
        t = self._have(name)
        nbytes = t.numel() * t.dtype.itemsize
        return TensorInfo(name, t.dtype, tuple(t.shape), t.dtype.name, nbytes)

    def _read(self, name: str) -> Any:
        return self._have(name).clone()  # or two modules would be trained as one

    def _read_as(self, name: str, dtype: dt.dtype) -> Any:
        return self._have(name).to(dtype)

    def _read_part(self, name: str, index: Any) -> Any:
        return self._have(name)[index].clone()


def as_dtype(dtype: Any) -> dt.dtype:
    """A dtype given as such or by name."""
    if isinstance(dtype, dt.dtype):
        return dtype
    if isinstance(dtype, str):
        return dt.by_name(dtype.removeprefix("votive.").removeprefix("torch."))
    raise TypeError(f"dtype: expected a dtype or its name, got {dtype!r}.")
