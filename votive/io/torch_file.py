"""torch's checkpoints (.pt, .pth, .bin) as tensors, read without running anything.

Knows tensors; where they lie in a file is told by `torch_archive.py`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from ..core import dtype as dt
from ..nn.parameter import Parameter
from ..ops.registry import F
from ..serialization.container import FileFormatError
from ..serialization.sharing import span
from ..surface.interchange import _share
from ..tensor import Tensor
from . import torch_parts as parts
from .mapped import Index, MappedFile, select
from .pickle_stack import Maker, Part, UnsafeFileError
from .source import TableSource, TensorInfo
from .torch_archive import Checkpoint

if TYPE_CHECKING:
    from ..serialization import MapLocation

__all__ = ["UnsafeFileError", "load"]

# Shared containers can make a small file look like endlessly many tensors.
_MAX_NAMES = 1_000_000
_MAX_TEXT = 256_000_000
_NESTED = (dict, list, tuple, Part, parts.TensorRef, parts.SparseRef, parts.StorageRef)


class _Builder:
    """Turns references into tensors; those of one storage share its memory."""

    def __init__(self, checkpoint: Checkpoint, mapped: bool, place: Callable[[Any, str], Any]):
        self.checkpoint, self.mapped, self.place = checkpoint, mapped, place
        self.blocks: dict[tuple[str, str], Any] = {}
        self.bases: dict[tuple[str, str], Any] = {}
        self.done: dict[int, Any] = {}

    def base(self, ref: parts.StorageRef, dtype: dt.dtype) -> Any:
        """The whole storage as one row of elements."""
        if (ref.key, dtype.name) not in self.bases:
            c = self.checkpoint
            if ref.key not in c.where:
                raise FileFormatError(f"{c.label}: storage {ref.key!r} is not in the file.")
            raw = self._block(ref, dtype)
            whole = raw.numel() - raw.numel() % dtype.itemsize
            self.bases[ref.key, dtype.name] = raw[:whole].view(dtype)
        return self.bases[ref.key, dtype.name]

    def _block(self, ref: parts.StorageRef, dtype: dt.dtype) -> Any:
        """The bytes of a storage, in this machine's order, where they shall be."""
        c = self.checkpoint
        # Bytes are swapped within elements, so blocks of another order cannot be shared by types.
        key = (ref.key, dtype.name if c.swap else "")
        if key not in self.blocks:
            begin, nbytes = c.where[ref.key]
            aligned = begin % (ref.dtype.itemsize if ref.dtype else 16) == 0
            if self.mapped and c.mapped is not None and aligned and not c.swap:
                raw = c.mapped.lend(begin, nbytes)
            else:
                raw = c.view(begin, nbytes).copy()
            if c.swap:
                whole = nbytes - nbytes % dtype.itemsize
                raw = raw[:whole].view(dtype.np).byteswap().view(np.uint8)
            self.blocks[key] = self.place(_share(raw), ref.location)
        return self.blocks[key]

    def tensor(self, ref: parts.TensorRef) -> Tensor:
        base = self.base(ref.storage, ref.dtype)
        unit = ref.storage.dtype.itemsize if ref.storage.dtype else 1
        start = ref.offset + ref.storage.skip * unit // ref.dtype.itemsize
        if ref.nbytes == 0:
            t = F.empty_strided(ref.shape, ref.strides, dtype=ref.dtype, device=base.device)
        else:
            t = F.as_strided(base, ref.shape, ref.strides, start).detach()
        t = F.conj_physical(t).detach() if ref.conj else t
        t = F.neg(t).detach() if ref.neg else t
        if ref.parameter:
            return Parameter(t, requires_grad=ref.requires_grad)
        return t.requires_grad_() if ref.requires_grad else t

    def sparse(self, ref: parts.SparseRef) -> Tensor:
        from ..sparse.persistence import restore

        try:
            made: Tensor = restore(ref.layout, ref.shape, [self.tensor(p) for p in ref.parts], ref.coalesced)
        except RuntimeError as e:
            raise FileFormatError(f"sparse tensor: {e}") from None
        return made

    def build(self, value: object) -> Any:
        """The object with all references replaced. It is not deep: the machine has checked."""
        if not isinstance(value, _NESTED):
            return _opened(value)
        if id(value) not in self.done:
            self.done[id(value)] = self._build(value)
        return self.done[id(value)]

    def _build(self, value: Any) -> Any:
        if isinstance(value, parts.TensorRef):
            return self.tensor(value)
        if isinstance(value, parts.SparseRef):
            return self.sparse(value)
        if isinstance(value, parts.StorageRef):
            dtype = value.dtype or dt.uint8
            return self.base(value, dtype)[value.skip : value.skip + value.numel]
        if isinstance(value, parts.JitObject):
            return {k: self.build(v) for k, v in value.attributes.items()}
        if isinstance(value, Part):
            return _opened(value)
        if isinstance(value, dict):
            out: Any = type(value)()
            for k, v in value.items():
                out[k] = self.build(v)
            if hasattr(value, "_metadata"):
                out._metadata = self.build(value._metadata)
            return out
        if isinstance(value, list):
            return [self.build(v) for v in value]
        return type(value)(self.build(v) for v in value)


def _opened(value: object) -> Any:
    """The value of a leaf: what a half-made array or a name of a class stands for."""
    if isinstance(value, parts.Array):
        if value.value is None:
            raise FileFormatError("numpy: an array without content.")
        return value.value
    if isinstance(value, parts.ArrayType):
        return value.dtype
    if isinstance(value, parts.StorageType):
        return "storage" if value.dtype is None else value.dtype
    if isinstance(value, Maker):
        raise UnsafeFileError(f"the file holds the function {value.name} as a value; refused.")
    return value


def load(
    f: str | os.PathLike[str] | IO[bytes],
    map_location: MapLocation = None,
    *,
    mmap: bool = False,
    weights_only: bool = True,
) -> Any:
    """What `torch.save` wrote, with votive's tensors; nothing in the file is run.

    Tensors that shared memory share it again. A module saved as a whole is refused, since making
    it would run code; a scripted one gives its attributes as nested dicts. With `mmap` tensors are
    read when they are touched.

    >>> import pathlib, votive.io.torch_file
    >>> votive.io.torch_file.load("no such file")
    Traceback (most recent call last):
    FileNotFoundError: [Errno 2] No such file or directory: 'no such file'
    """
    from ..serialization import _placement

    place = _placement(map_location)
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as file:
            checkpoint = Checkpoint(f, file)
    elif mmap:
        raise ValueError("load: mmap=True needs a path, not an open file.")
    else:
        checkpoint = Checkpoint(None, f)
    try:
        return _Builder(checkpoint, mmap, place).build(checkpoint.root)
    finally:
        if checkpoint.mapped is not None:
            checkpoint.mapped.close()


def _stay(tensor: Tensor, location: str) -> Tensor:
    return tensor


class TorchFile(TableSource[parts.TensorRef]):
    """A checkpoint of torch as a source of weights: tensors by dotted names, the rest as metadata.

    `{"model": {"w": tensor}, "epoch": 3}` gives the tensor `model.w` and the metadata `epoch`.
    Every tensor has memory of its own; `load` is what keeps shared storages shared.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        with open(path, "rb") as file:
            self.checkpoint = Checkpoint(path, file)
        assert self.checkpoint.mapped is not None  # it was opened by name
        self._mapped: MappedFile = self.checkpoint.mapped
        self.path = Path(path)
        self.entries: dict[str, parts.TensorRef] = {}
        self.metadata: dict[str, Any] = {}
        builder = _Builder(self.checkpoint, False, _stay)
        budget = [_MAX_NAMES, _MAX_TEXT]
        for name, value in _leaves(self.checkpoint.root, "", _holds_tensors(), budget):
            name = self._free(name or "tensor")
            if isinstance(value, parts.TensorRef):
                self.entries[name] = value
            else:
                self.metadata[name] = builder.build(value)
        versions = getattr(self.checkpoint.root, "_metadata", None)
        if versions is not None:
            self.metadata["_metadata"] = builder.build(versions)

    def _free(self, name: str) -> str:
        # Two paths can read alike: {"a.b": x, "a": {"b": y}}.
        free, n = name, 1
        while free in self.entries or free in self.metadata:
            n += 1
            free = f"{name}#{n}"
        return free

    def info(self, name: str) -> TensorInfo:
        r = self._entry(name)
        return TensorInfo(name, r.dtype, r.shape, r.dtype.name, r.nbytes, self.path)

    def _read(self, name: str) -> Tensor:
        ref = self._entry(name)
        window = self._window(ref, self._mapped.lend)
        if window is None:
            return _Builder(self.checkpoint, False, _stay).tensor(ref).detach()
        # Elements that lie on top of each other could not be written to one by one.
        stacked = any(n > 1 and s == 0 for n, s in zip(ref.shape, ref.strides))
        return _share(window.copy() if stacked else window)

    def _read_part(self, name: str, index: Index) -> Tensor:
        window = self._window(self._entry(name), self._mapped.peek)
        if window is None:
            return super()._read_part(name, index)
        out = _share(np.array(select(window, index), order="C"))
        self._mapped.forget(0, self._mapped.size)
        return out

    def _window(self, ref: parts.TensorRef, take: Callable[[int, int], np.ndarray]) -> np.ndarray | None:
        """An array over the bytes of the file, or None where they are not the elements."""
        c, size = self.checkpoint, ref.dtype.itemsize
        begin, _ = c.where.get(ref.storage.key, (0, 0))
        unit = ref.storage.dtype.itemsize if ref.storage.dtype else 1
        start = begin + ref.offset * size + ref.storage.skip * unit
        if c.swap or ref.conj or ref.neg or ref.nbytes == 0 or start % size or not begin:
            return None
        raw = take(start, span(ref.shape, ref.strides) * size)
        return np.ndarray(ref.shape, ref.dtype.np, raw, 0, [s * size for s in ref.strides])

    def close(self) -> None:
        self._mapped.close()


def _holds_tensors() -> Callable[[Any], bool]:
    """Whether there is a tensor somewhere below a value; each value is looked at once."""
    known: dict[int, bool] = {}

    def holds(value: object) -> bool:
        if isinstance(value, parts.TensorRef):
            return True
        if not isinstance(value, (dict, list, tuple, parts.JitObject)):
            return False
        if id(value) not in known:
            below = value.attributes if isinstance(value, parts.JitObject) else value
            inner = below.values() if isinstance(below, dict) else below
            known[id(value)] = any(holds(v) for v in inner)
        return known[id(value)]

    return holds


def _leaves(value: object, path: str, holds: Callable[[Any], bool], budget: list[int]) -> Iterator[tuple[str, Any]]:
    """Tensors, and values without any below them, by dotted names."""
    if isinstance(value, parts.JitObject):
        value = value.attributes
    if isinstance(value, Mapping) and (holds(value) or not path):
        inner = [(str(k), v) for k, v in value.items()]
    elif isinstance(value, (list, tuple)) and holds(value):
        inner = [(str(i), v) for i, v in enumerate(value)]
    else:
        budget[0] -= 1
        budget[1] -= len(path)
        if min(budget) < 0:
            raise FileFormatError("the file describes too many tensors by sharing lists; refused.")
        yield path, value
        return
    for k, v in inner:
        yield from _leaves(v, f"{path}.{k}" if path else k, holds, budget)
