"""safetensors files, with the functions of the `safetensors` package. Knows tensors and one format.

The layout itself is read and written by `serialization/container.py`.
"""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..core import dtype as dt
from ..interchange import _own, _share
from ..serialization.atomic import replacing
from ..serialization.container import NAMES, FileFormatError, read_header, widen, write
from ..serialization.sharing import span
from ..tensor import Tensor
from .mapped import MappedFile, select
from .source import TensorInfo, WeightSource

__all__ = ["load", "load_file", "safe_open", "save", "save_file", "save_sharded"]

_FRAMEWORKS = {"pt": "pt", "torch": "pt", "pytorch": "pt", "votive": "pt", "np": "np",
               "numpy": "np"}  # fmt: skip


class SafetensorsFile(WeightSource):
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

    def names(self) -> list[str]:
        return list(self.header.entries)

    def __contains__(self, name: object) -> bool:
        return name in self.header.entries

    def __len__(self) -> int:
        return len(self.header.entries)

    def _entry(self, name: str) -> Any:
        if name not in self.header.entries:
            raise self._unknown(name)
        return self.header.entries[name]

    def info(self, name: str) -> TensorInfo:
        e = self._entry(name)
        return TensorInfo(name, e.dtype, e.shape, e.stored, e.end - e.begin, self.file.path)

    def _read(self, name: str) -> Any:
        e = self._entry(name)
        if e.foreign:
            return _own(self._widened(name), "cpu")
        return self.file.tensor(self.header.start + e.begin, e.dtype, e.shape)

    def _read_as(self, name: str, dtype: dt.dtype) -> Any:
        e = self._entry(name)
        if e.foreign or e.end == e.begin:
            return self._read(name).to(dtype)
        # Through the shared view, so that the original leaves memory when it has been converted.
        begin = self.header.start + e.begin
        if begin % e.dtype.itemsize:
            return self._read(name).to(dtype)
        raw = self.file.peek(begin, e.end - e.begin)
        out = _share(raw.view(e.dtype.np).reshape(e.shape)).to(dtype)
        self.file.forget(begin, e.end - e.begin)
        return out

    def _read_part(self, name: str, index: Any) -> Any:
        e = self._entry(name)
        if e.foreign:
            return _own(np.array(select(self._widened(name), index)), "cpu")
        return self.file.part(self.header.start + e.begin, e.dtype, e.shape, index)

    def _widened(self, name: str) -> Any:
        e = self._entry(name)
        return widen(name, self.file.peek(self.header.start + e.begin, e.end - e.begin), e)

    def close(self) -> None:
        self.file.close()


class safe_open:
    """Open a file and read tensors, or parts of them, one by one.

    `framework` is "pt" for tensors of votive, "np" for NumPy's arrays.

    >>> import tempfile
    >>> from votive.io.safetensors import safe_open, save_file
    >>> path = tempfile.mkdtemp() + "/w.safetensors"
    >>> save_file({"w": votive.arange(6).reshape(3, 2)}, path)
    >>> with safe_open(path, framework="pt") as f:
    ...     print(f.keys(), f.get_slice("w")[1:, 0])
    ['w'] tensor([2, 4])
    """

    def __init__(
        self, filename: str | os.PathLike[str], framework: str = "pt", device: Any = "cpu"
    ) -> None:
        if framework not in _FRAMEWORKS:
            raise ValueError(
                f"safe_open: framework {framework!r} is unknown; use 'pt' (votive) or 'np'."
            )
        self._np = _FRAMEWORKS[framework] == "np"
        if self._np and str(device) != "cpu":
            raise ValueError(f"safe_open: NumPy arrays live on the CPU, not on {device}.")
        self._device = device
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
        return self._out(self._file.tensor(name))

    def get_tensors(self) -> dict[str, Any]:
        """All tensors by name."""
        return {name: self.get_tensor(name) for name in self.offset_keys()}

    def get_slice(self, name: str) -> SafeSlice:
        """An object to index; only what the index needs is read."""
        self._file.info(name)
        return SafeSlice(self, name)

    def _out(self, tensor: Any) -> Any:
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

    def __getitem__(self, index: Any) -> Any:
        return self._opened._out(self._opened._file.slice(self._name, index))


def load_file(filename: str | os.PathLike[str], device: Any = "cpu") -> dict[str, Any]:
    """All tensors of a file, memory-mapped where they stay on the CPU.

    >>> import tempfile
    >>> from votive.io.safetensors import load_file, save_file
    >>> path = tempfile.mkdtemp() + "/w.safetensors"
    >>> save_file({"w": votive.ones(2)}, path)
    >>> load_file(path)
    {'w': tensor([1., 1.])}
    """
    with safe_open(filename, "pt", device) as f:
        return f.get_tensors()


def load(data: bytes) -> dict[str, Any]:
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
    return out


def save_file(
    tensors: Mapping[str, Any],
    filename: str | os.PathLike[str],
    metadata: Mapping[str, str] | None = None,
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


def save(tensors: Mapping[str, Any], metadata: Mapping[str, str] | None = None) -> bytes:
    """The content of a file that holds these tensors.

    >>> from votive.io.safetensors import save
    >>> len(save({"w": votive.ones(2)}))
    72
    """
    f = io.BytesIO()
    write(f, *_prepared("save", tensors, metadata))
    return f.getvalue()


def _prepared(
    op: str, tensors: Mapping[str, Any], metadata: Mapping[str, str] | None
) -> tuple[dict[str, Any], dict[str, str]]:
    arrays = {name: checked(op, name, value) for name, value in tensors.items()}
    groups = [g for g in shared(tensors) if len(g) > 1]
    if groups:
        raise RuntimeError(
            f"{op}: some tensors share memory and would be loaded apart: {groups}. Save one of "
            "each group, clone() the others, or use votive.save, which keeps sharing."
        )
    return arrays, text_only(op, metadata)


def text_only(op: str, metadata: Mapping[str, str] | None) -> dict[str, str]:
    """Metadata in the only form the format has."""
    out = dict(metadata or {})
    for key, value in out.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise TypeError(f"{op}: metadata must map text to text, got {key!r}: {value!r}.")
    return out


def checked(op: str, name: str, value: Any) -> Any:
    """The array to write for one value."""
    if not isinstance(name, str) or name == "__metadata__":
        raise ValueError(f"{op}: {name!r} cannot be the name of a tensor.")
    if isinstance(value, Tensor):
        value = value.detach().cpu().numpy()
    elif not isinstance(value, np.ndarray):
        raise ValueError(
            f"{op}: {name!r} must be a Tensor or a NumPy array, got {type(value).__name__}."
        )
    try:
        known = dt.from_numpy(value.dtype)
    except TypeError:
        known = None
    if known not in NAMES:
        raise TypeError(
            f"{op}: {name!r} has the type {value.dtype}, which safetensors files cannot hold"
            + ("; save view_as_real() of it." if known is dt.complex128 else ".")
        )
    return value.astype(known.np, copy=False)  # the file's byte order


def shared(tensors: Mapping[str, Any]) -> list[list[str]]:
    """Names in groups: tensors of one group overlap in memory."""
    extents = []
    for name, value in tensors.items():
        if isinstance(value, Tensor):
            if value.numel() == 0 or not value.is_cpu:
                continue
            begin = value.data_ptr()
            size = span(value.shape, value.stride()) * value.dtype.itemsize
            extents.append((begin, begin + size, name))
        elif value.size:
            low, high = np.lib.array_utils.byte_bounds(value)
            extents.append((low, high, name))
    groups: list[list[str]] = []
    reach = -1
    for begin, end, name in sorted(extents):
        if begin < reach:
            groups[-1].append(name)
        else:
            groups.append([name])
        reach = max(reach, end)
    return groups


def save_sharded(
    tensors: Mapping[str, Any],
    folder: str | os.PathLike[str],
    max_shard_size: int | str = "5GB",
    metadata: Mapping[str, str] | None = None,
) -> Any:
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
