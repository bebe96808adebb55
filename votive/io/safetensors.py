"""safetensors files, with the functions of the `safetensors` package. Knows tensors and one format.

The layout itself is read and written by `serialization/container.py`.
"""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import dtype as dt
from ..core.device import DeviceLike
from ..serialization.atomic import replacing
from ..serialization.container import Entry, FileFormatError, read_header, widen, write
from ..surface.block_tensor import BlockTensor, from_blocks
from ..surface.interchange import _own, _share
from ..tensor import Tensor
from .block_entries import as_bytes, stored
from .loading import load_into
from .mapped import Index, MappedFile, select
from .report import LoadError
from .source import TableSource, TensorInfo, Values
from .writing import checked, shared, text_only, without_twins

if TYPE_CHECKING:
    from ..nn import Module

__all__ = ["load", "load_file", "load_model", "safe_open", "save", "save_file", "save_model", "save_sharded"]

_FRAMEWORKS = {"pt": "pt", "torch": "pt", "pytorch": "pt", "votive": "pt", "np": "np", "numpy": "np"}


class SafetensorsFile(TableSource[Entry]):
    """One safetensors file as a source of weights.

    >>> import tempfile
    >>> from votive.io.safetensors import SafetensorsFile, save_file
    >>> path = tempfile.mkdtemp() + "/w.safetensors"
    >>> save_file({"w": votive.ones(2, dtype=votive.bfloat16)}, path, {"by": "me"})
    >>> file = SafetensorsFile(path)
    >>> file.metadata, file.info("w").stored
    ({'by': 'me'}, 'BF16')
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.file = MappedFile(path)
        with open(path, "rb") as f:
            try:
                self.header = read_header(f, self.file.size)
            except FileFormatError as e:
                why = str(e).removeprefix("load: ")
                raise FileFormatError(f"load: {Path(path).name}: {why}") from None
        self.metadata: dict[str, str] = self.header.metadata
        self.entries = self.header.entries
        self._stored = stored(self.metadata, self.entries)

    def info(self, name: str) -> TensorInfo:
        e = self._entry(name)
        if name in self._stored:
            s = self._stored[name]
            return TensorInfo(name, dt.float32, s.shape, s.format.name, e.end - e.begin, self.file.path)
        return TensorInfo(name, e.dtype, e.shape, e.stored, e.end - e.begin, self.file.path)

    def blocks(self, name: str) -> BlockTensor | None:
        e = self._entry(name)
        if name not in self._stored:
            return None
        s = self._stored[name]
        data = self.file.tensor(self.header.start + e.begin, dt.uint8, e.shape)
        return from_blocks(data, s.format, flipped=s.flipped)

    def _read(self, name: str) -> Tensor:
        e = self._entry(name)
        kept = self.blocks(name)
        if kept is not None:
            return kept.dequantize()
        if e.foreign:
            return _own(self._widened(name), "cpu")
        return self.file.tensor(self.header.start + e.begin, e.dtype, e.shape)

    def _read_as(self, name: str, dtype: dt.dtype) -> Tensor:
        e = self._entry(name)
        kept = self.blocks(name)
        if kept is not None and dtype in (dt.float64, *dt.HALF):
            return kept.dequantize(dtype)
        if kept is not None or e.foreign or e.end == e.begin:
            return self._read(name).to(dtype)
        # Through the shared view, so that the original leaves memory when it has been converted.
        begin = self.header.start + e.begin
        if begin % e.dtype.itemsize:
            return self._read(name).to(dtype)
        raw = self.file.peek(begin, e.end - e.begin)
        out = _share(raw.view(e.dtype.np).reshape(e.shape)).to(dtype)
        self.file.forget(begin, e.end - e.begin)
        return out

    def _read_part(self, name: str, index: Index) -> Tensor:
        e = self._entry(name)
        if name in self._stored:
            return self._read(name)[index].clone()
        if e.foreign:
            return _own(np.array(select(self._widened(name), index)), "cpu")
        return self.file.part(self.header.start + e.begin, e.dtype, e.shape, index)

    def _widened(self, name: str) -> np.ndarray:
        e = self._entry(name)
        return widen(name, self.file.peek(self.header.start + e.begin, e.end - e.begin), e)

    def close(self) -> None:
        self.file.close()


class safe_open:
    """Open a file and read tensors, or parts of them, one by one.

    `framework` is "pt" for tensors of votive, "np" for NumPy's arrays. With the backend "mmap"
    their memory is the file's, read when touched; with "pread" it is a copy.

    >>> import tempfile
    >>> from votive.io.safetensors import safe_open, save_file
    >>> path = tempfile.mkdtemp() + "/w.safetensors"
    >>> save_file({"w": votive.arange(6).reshape(3, 2)}, path)
    >>> with safe_open(path, framework="pt") as f:
    ...     print(f.keys(), f.get_slice("w")[1:, 0])
    ['w'] tensor([2, 4])
    """

    def __init__(
        self,
        filename: str | os.PathLike[str],
        framework: str = "pt",
        device: DeviceLike = "cpu",
        *,
        backend: str = "mmap",
    ) -> None:
        if framework not in _FRAMEWORKS:
            raise ValueError(f"safe_open: framework {framework!r} is unknown; use 'pt' (votive) or 'np'.")
        self._np = _FRAMEWORKS[framework] == "np"
        if self._np and str(device) != "cpu":
            raise ValueError(f"safe_open: NumPy arrays live on the CPU, not on {device}.")
        if backend not in ("mmap", "pread"):
            raise ValueError(f"safe_open: backend {backend!r} is unknown; use 'mmap' or 'pread'.")
        self._device, self._copy = device, backend == "pread"
        self._file = SafetensorsFile(filename)

    def keys(self) -> list[str]:
        """The names of all tensors, sorted."""
        return sorted(self._file.names())

    def offset_keys(self) -> list[str]:
        """The names in the order of the data."""
        entries = self._file.header.entries
        return sorted(entries, key=lambda name: (entries[name].begin, entries[name].end))

    def metadata(self) -> dict[str, str] | None:
        """The text that was saved along, or None."""
        return dict(self._file.metadata) or None

    def get_tensor(self, name: str) -> Any:
        """One tensor."""
        kept = None if self._np else self._file.blocks(name)
        if kept is not None:
            return self._out(kept.clone() if self._copy else kept)
        if self._copy:
            return self._out(self._file.slice(name, ...))
        return self._out(self._file.tensor(name))

    def get_tensors(self) -> dict[str, Any]:
        """All tensors by name."""
        return {name: self.get_tensor(name) for name in self.offset_keys()}

    def get_slice(self, name: str) -> SafeSlice:
        """An object to index; only what the index needs is read."""
        self._file.info(name)
        return SafeSlice(self, name)

    def _out(self, tensor: Tensor) -> Any:
        return tensor.numpy() if self._np else tensor.to(self._device)

    def __enter__(self) -> safe_open:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()


class SafeSlice:
    """A tensor in a file that is read by indexing it."""

    def __init__(self, opened: safe_open, name: str) -> None:
        self._opened, self._name = opened, name
        self._info = opened._file.info(name)

    def get_shape(self) -> list[int]:
        """The shape of the whole tensor."""
        return list(self._info.shape)

    def get_dtype(self) -> str:
        """The format's name of the type, such as "BF16"."""
        return self._info.stored

    def __getitem__(self, index: Index) -> Any:
        return self._opened._out(self._opened._file.slice(self._name, index))


def load_file(
    filename: str | os.PathLike[str], device: DeviceLike = "cpu", *, backend: str = "mmap"
) -> dict[str, Tensor]:
    """All tensors of a file, memory-mapped where they stay on the CPU.

    >>> import tempfile
    >>> from votive.io.safetensors import load_file, save_file
    >>> path = tempfile.mkdtemp() + "/w.safetensors"
    >>> save_file({"w": votive.ones(2)}, path)
    >>> load_file(path)
    {'w': tensor([1., 1.])}
    """
    with safe_open(filename, "pt", device, backend=backend) as f:
        return f.get_tensors()


def load(data: bytes) -> dict[str, Tensor]:
    """All tensors of a file whose content is given.

    >>> from votive.io.safetensors import load, save
    >>> load(save({"w": votive.ones(2)}))
    {'w': tensor([1., 1.])}
    """
    header = read_header(io.BytesIO(data[: 8 + int.from_bytes(data[:8], "little")]), len(data))
    out = {}
    for name, e in sorted(header.entries.items(), key=lambda item: item[1].begin):
        raw = np.frombuffer(data, np.uint8, e.end - e.begin, header.start + e.begin)
        if e.foreign:
            out[name] = _own(widen(name, raw, e), "cpu")
            continue
        array = np.empty(e.shape, e.dtype.np)
        array.reshape(-1).view(np.uint8)[:] = raw
        out[name] = _own(array if np.little_endian else array.byteswap(), "cpu")
    for name, s in stored(header.metadata, header.entries).items():
        out[name] = from_blocks(out[name], s.format, flipped=s.flipped)
    return out


def save_file(
    tensors: Mapping[str, Values], filename: str | os.PathLike[str], metadata: Mapping[str, str] | None = None
) -> None:
    """Write tensors (or NumPy arrays) under their names; the file appears when it is complete.

    Tensors that share memory are refused, since they would no longer share it when loaded:
    `votive.save` keeps sharing, `save_sharded` keeps one of several equal ones.

    >>> import tempfile
    >>> from votive.io.safetensors import save_file
    >>> save_file({"w": votive.ones(2)}, tempfile.mkdtemp() + "/w.safetensors", {"format": "pt"})
    """
    arrays, text = _prepared("save_file", tensors, metadata)
    with replacing(filename) as f:
        write(f, arrays, text)


def save(tensors: Mapping[str, Values], metadata: Mapping[str, str] | None = None) -> bytes:
    """The content of a file that holds these tensors.

    >>> from votive.io.safetensors import save
    >>> len(save({"w": votive.ones(2)}))
    72
    """
    f = io.BytesIO()
    write(f, *_prepared("save", tensors, metadata))
    return f.getvalue()


def _prepared(
    op: str, tensors: Mapping[str, Values], metadata: Mapping[str, str] | None
) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    tensors, told = as_bytes(tensors)
    arrays = {name: checked(op, name, value) for name, value in tensors.items()}
    groups = [g for g in shared(tensors) if len(g) > 1]
    if groups:
        raise RuntimeError(
            f"{op}: some tensors share memory and would be loaded apart: {groups}. Save one of "
            "each group, clone() the others, or use votive.save, which keeps sharing."
        )
    return arrays, text_only(op, metadata) | told


def save_sharded(
    tensors: Mapping[str, Values],
    folder: str | os.PathLike[str],
    max_shard_size: int | str = "5GB",
    metadata: Mapping[str, str] | None = None,
) -> Path:
    """Write tensors into files of a limited size, and an index of what is where.

    The names are Hugging Face's: `model-00001-of-00003.safetensors` and
    `model.safetensors.index.json`, or `model.safetensors` alone if it suffices. Returns the path
    that `open_weights` takes.

    >>> import tempfile
    >>> from votive.io.safetensors import save_sharded
    >>> state = {"a": votive.ones(100), "b": votive.ones(100)}
    >>> index = save_sharded(state, tempfile.mkdtemp(), max_shard_size=500)
    >>> index.name, votive.io.open_weights(index).names()
    ('model.safetensors.index.json', ['a', 'b'])
    """
    from .sharded import write_shards

    return write_shards(tensors, Path(folder), max_shard_size, metadata)


def save_model(
    model: Module,
    filename: str | os.PathLike[str],
    metadata: Mapping[str, str] | None = None,
    force_contiguous: bool = True,
) -> None:
    """Write a module's state; a tensor that it has under several names is stored once.

    The names left out stand in the metadata, each with the one that was kept.

    >>> import tempfile
    >>> from votive.io.safetensors import load_model, save_model
    >>> path = tempfile.mkdtemp() + "/m.safetensors"
    >>> save_model(votive.nn.Linear(2, 1), path)
    >>> load_model(votive.nn.Linear(2, 1), path)
    (set(), [])
    """
    plain, told = as_bytes(model.state_dict())
    tensors, dropped = without_twins("save_model", plain)
    if not force_contiguous:
        strided = [name for name, t in tensors.items() if isinstance(t, Tensor) and not t.is_contiguous()]
        if strided:
            raise ValueError(f"save_model: {strided} are not contiguous; use force_contiguous.")
    names = {name: kept for kept, others in dropped.items() for name in others}
    save_file(tensors, filename, {**(metadata or {}), **names, **told})


def load_model(
    model: Module, filename: str | os.PathLike[str], strict: bool = True, device: DeviceLike = None
) -> tuple[set[str], list[str]]:
    """Load what `save_model` wrote; returns the names missing and those not used.

    >>> import tempfile
    >>> from votive.io.safetensors import load_model, save_file
    >>> path = tempfile.mkdtemp() + "/m.safetensors"
    >>> save_file({"weight": votive.ones(1, 2)}, path)
    >>> load_model(votive.nn.Linear(2, 1), path, strict=False)
    ({'bias'}, [])
    """
    report = load_into(model, SafetensorsFile(filename), strict=strict, device=device, blocks=True)
    if report.mismatched:
        raise LoadError(type(model).__name__, report)
    return set(report.missing), report.unused
