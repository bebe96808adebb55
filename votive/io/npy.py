"""NumPy's files, .npy and .npz, as tensors. Knows one format; objects in it are refused.

The header is that of NumPy's format 1.0 to 3.0 (numpy.lib.format). Types of ml_dtypes have no name
there: NumPy writes bfloat16 as V2, float8_e4m3fn as V1 and float8_e5m2 as f1, and so they are read.
"""

from __future__ import annotations

import ast
import io
import math
import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from ..core import dtype as dt
from ..serialization.atomic import replacing
from ..serialization.container import FileFormatError
from ..surface.interchange import _own, _share
from ..tensor import Tensor
from .mapped import Index, MappedFile, select
from .source import TableSource, TensorInfo, WeightSource
from .zip_records import Record, records, unpack

__all__ = ["load", "save", "savez", "savez_compressed"]

ArrayLike = Tensor | np.ndarray | Sequence[Any] | float
_MAGIC = b"\x93NUMPY"
# NumPy's own limit on headers it reads without asking.
_MAX_HEADER = 10_000
_NAMELESS = {"V2": dt.bfloat16, "V1": dt.float8_e4m3fn, "f1": dt.float8_e5m2}


@dataclass(frozen=True)
class Header:
    """What a file says of its array; the data begin at `start`."""

    dtype: dt.dtype
    shape: tuple[int, ...]
    fortran: bool
    big: bool
    stored: str
    start: int

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    def array(self, raw: np.ndarray) -> np.ndarray:
        """A view of the data in the file, or a copy where its byte order differs from ours."""
        shape = self.shape[::-1] if self.fortran else self.shape
        out = np.ndarray(shape, self.dtype.np, raw, 0) if raw.size else np.empty(shape, self.dtype.np)
        if self.big != (sys.byteorder == "big") and self.dtype.itemsize > 1:
            out = out.byteswap()
        return out.T if self.fortran else out


def parse(head: bytes, label: str) -> Header:
    """The header at the beginning of `head`."""

    def bad(why: str) -> FileFormatError:
        return FileFormatError(f"{label}: {why}.")

    if len(head) < 10 or head[:6] != _MAGIC:
        raise bad("not a .npy file, or cut off")
    if head[6] not in (1, 2, 3) or head[7] != 0:
        raise bad(f"version {head[6]}.{head[7]} of the format is unknown")
    begin = 10 if head[6] == 1 else 12
    length = int.from_bytes(head[8:begin], "little")
    if length > _MAX_HEADER:
        raise bad(f"a header of {length:,} bytes is refused")
    if len(head) < begin + length:
        raise bad("the header is cut off")
    try:
        text = head[begin : begin + length].decode("utf-8" if head[6] == 3 else "latin1")
        values = ast.literal_eval(text)
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        raise bad("the header is damaged") from None
    if not isinstance(values, dict) or values.keys() != {"descr", "fortran_order", "shape"}:
        raise bad("the header is damaged")
    stored, fortran, shape = values["descr"], values["fortran_order"], values["shape"]
    if type(fortran) is not bool or not isinstance(shape, tuple):
        raise bad("the header is damaged")
    dtype, big = _type(stored, label)
    if any(type(n) is not int or n < 0 for n in shape):
        raise bad("the shape must be made of integers of at least 0")
    if len(shape) > 64 or math.prod(n or 1 for n in shape) * dtype.itemsize > 2**63 - 1:
        raise bad(f"the shape is too large: {str(shape)[:200]}")
    return Header(dtype, shape, fortran, big, stored, begin + length)


def _type(stored: object, label: str) -> tuple[dt.dtype, bool]:
    found = re.fullmatch(r"([<>|=]?)(.+)", stored) if isinstance(stored, str) else None
    if found and found[2] in _NAMELESS:
        return _NAMELESS[found[2]], found[1] == ">"
    if found and re.fullmatch(r"b1|\?|[iu][1248]|f[248]|c8|c16", found[2]):
        return dt.from_numpy(np.dtype(found[2])), found[1] == ">"
    what = "structured arrays"
    if found:
        kinds = {"O": "Python objects, which could run code", "U": "text", "S": "text", "M": "dates", "m": "durations"}
        what = kinds.get(found[2][0], f"numbers of the type {stored}")
    raise FileFormatError(f"{label}: it holds {what}; only numbers are read.")


class NpyFile(WeightSource):
    """One .npy file as a source with a single tensor, named after the file.

    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/scale.npy"
    >>> np.save(path, np.arange(3))
    >>> dict(votive.io.open_weights(path).items())
    {'scale': tensor([0, 1, 2])}
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.file = MappedFile(path)
        self.name = Path(path).stem
        head = self.file.peek(0, min(self.file.size, _MAX_HEADER + 12)).tobytes()
        label = f"load: {self.file.path.name}"
        self.header = parse(head, label)
        if self.header.start + self.header.nbytes > self.file.size:
            raise FileFormatError(f"{label}: the data are cut off.")

    def names(self) -> list[str]:
        return [self.name]

    def info(self, name: str) -> TensorInfo:
        if name != self.name:
            raise self._unknown(name)
        h = self.header
        return TensorInfo(name, h.dtype, h.shape, h.stored, h.nbytes, self.file.path)

    def _read(self, name: str) -> Tensor:
        self.info(name)
        return mapped(self.file, 0, self.header).contiguous()

    def _read_part(self, name: str, index: Index) -> Tensor:
        self.info(name)
        return part(self.file, 0, self.header, index)

    def close(self) -> None:
        self.file.close()


def mapped(file: MappedFile, at: int, h: Header) -> Tensor:
    """The tensor of an .npy file that begins at `at`, over the file's own bytes if they fit."""
    begin = at + h.start
    if h.nbytes == 0 or begin % h.dtype.itemsize:
        return _own(np.array(h.array(file.peek(begin, h.nbytes))), "cpu")
    return _share(h.array(file.lend(begin, h.nbytes)))


def part(file: MappedFile, at: int, h: Header, index: Index) -> Tensor:
    """A copy of the part of an array that an index selects."""
    out = np.array(select(h.array(file.peek(at + h.start, h.nbytes)), index), order="C")
    file.forget(at + h.start, h.nbytes)
    return _own(out, "cpu")


class NpzFile(TableSource[Record]):
    """An .npz archive as a source of weights; members that are not compressed are mapped.

    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/w.npz"
    >>> np.savez(path, a=np.ones(2), b=np.arange(3))
    >>> votive.io.open_weights(path).names()
    ['a', 'b']
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.file = MappedFile(path)
        with open(path, "rb") as f:
            found = records(f, f"load: {self.file.path.name}")
        # NumPy names members so; whatever else is in the archive is not an array.
        self.entries = {n.removesuffix(".npy"): r for n, r in found.items() if n.endswith(".npy")}
        if found and not self.entries:
            raise FileFormatError(f"load: {self.file.path.name}: an archive without arrays.")
        self._headers: dict[str, Header] = {}

    def _raw(self, r: Record) -> np.ndarray:
        return self.file.peek(r.begin, r.stored)

    def _header(self, name: str) -> Header:
        r = self._entry(name)
        if name not in self._headers:
            label = f"load: {self.file.path.name}: {name}"
            h = parse(unpack(self._raw(r), r, _MAX_HEADER + 12).tobytes(), label)
            if h.start + h.nbytes != r.size:
                raise FileFormatError(f"{label}: {h.shape} does not fill the {r.size:,} bytes.")
            self._headers[name] = h
        return self._headers[name]

    def info(self, name: str) -> TensorInfo:
        h = self._header(name)
        return TensorInfo(name, h.dtype, h.shape, h.stored, h.nbytes, self.file.path)

    def _load(self, name: str) -> Tensor:
        h, r = self._header(name), self._entry(name)
        if r.plain:
            return mapped(self.file, r.begin, h)
        out = h.array(unpack(self._raw(r), r)[h.start :])
        # The header's length leaves what follows at any address.
        return _own(np.require(out, requirements=["A", "W"]).copy(order="K"), "cpu")

    def _read(self, name: str) -> Tensor:
        return self._load(name).contiguous()

    def _read_part(self, name: str, index: Index) -> Tensor:
        h, r = self._header(name), self._entry(name)
        if r.plain:
            return part(self.file, r.begin, h, index)
        return super()._read_part(name, index)

    def close(self) -> None:
        self.file.close()


def load(file: str | os.PathLike[str] | IO[bytes], mmap_mode: str | None = None) -> Tensor | dict[str, Tensor]:
    """The tensor of an .npy file, or a dict of those of an .npz archive.

    Columns that come first in the file (Fortran order) come first in memory too. With
    `mmap_mode="c"` data are read when touched, and writing changes only the copy in memory.

    >>> import io, votive.io.npy
    >>> file = io.BytesIO()
    >>> votive.io.npy.save(file, votive.arange(3))
    >>> _ = file.seek(0)
    >>> votive.io.npy.load(file)
    tensor([0, 1, 2])
    """
    if mmap_mode not in (None, "c"):
        raise ValueError(f"load: mmap_mode must be None or 'c', got {mmap_mode!r}.")
    if not isinstance(file, (str, os.PathLike)):
        if mmap_mode is not None:
            raise ValueError("load: mmap_mode needs a path, not an open file.")
        return _load_bytes(file.read())
    with open(file, "rb") as f:
        magic = f.read(6)
    if magic != _MAGIC:
        with NpzFile(file) as z:
            return {name: _kept(z._load(name), mmap_mode) for name in z.names()}
    with NpyFile(file) as n:
        return _kept(mapped(n.file, 0, n.header), mmap_mode)


def _kept(tensor: Tensor, mmap_mode: str | None) -> Tensor:
    return tensor if mmap_mode else _own(tensor.numpy().copy(order="K"), "cpu")


def _load_bytes(content: bytes) -> Tensor | dict[str, Tensor]:
    if content[:6] == _MAGIC:
        return _from_bytes(content, "load: the file")
    out = {}
    for name, r in records(io.BytesIO(content), "load: the file").items():
        if name.endswith(".npy"):
            raw = unpack(np.frombuffer(content, np.uint8, r.stored, r.begin), r)
            out[name.removesuffix(".npy")] = _from_bytes(raw.tobytes(), f"load: {name}")
    return out


def _from_bytes(content: bytes, label: str) -> Tensor:
    h = parse(content[: _MAX_HEADER + 12], label)
    if h.start + h.nbytes > len(content):
        raise FileFormatError(f"{label}: the data are cut off.")
    raw = np.frombuffer(bytearray(content[h.start : h.start + h.nbytes]), np.uint8)
    return _share(h.array(raw))


def save(file: str | os.PathLike[str] | IO[bytes], arr: ArrayLike) -> None:
    """Write a tensor or an array; ".npy" is added to a name without it, as NumPy does.

    >>> import tempfile, votive.io.npy
    >>> votive.io.npy.save(tempfile.mkdtemp() + "/w", votive.ones(2))
    """
    array = _plain("save", arr)
    if not isinstance(file, (str, os.PathLike)):
        np.save(file, array, allow_pickle=False)
        return
    with replacing(_ending(file, ".npy")) as f:
        np.save(f, array, allow_pickle=False)


def savez(file: str | os.PathLike[str] | IO[bytes], *args: ArrayLike, **kwds: ArrayLike) -> None:
    """Write several into one archive: positional ones as arr_0, arr_1 …, others by keyword.

    >>> import tempfile, votive.io.npy
    >>> path = tempfile.mkdtemp() + "/w.npz"
    >>> votive.io.npy.savez(path, votive.ones(2), scale=votive.tensor(3))
    >>> votive.io.npy.load(path)
    {'scale': tensor(3), 'arr_0': tensor([1., 1.])}
    """
    _savez(np.savez, file, args, kwds)


def savez_compressed(file: str | os.PathLike[str] | IO[bytes], *args: ArrayLike, **kwds: ArrayLike) -> None:
    """Like `savez`, smaller and slower.

    >>> import tempfile, votive.io.npy
    >>> path = tempfile.mkdtemp() + "/w.npz"
    >>> votive.io.npy.savez_compressed(path, w=votive.ones(2))
    >>> votive.io.npy.load(path)
    {'w': tensor([1., 1.])}
    """
    _savez(np.savez_compressed, file, args, kwds)


def _savez(
    write: Callable[..., None],
    file: str | os.PathLike[str] | IO[bytes],
    args: tuple[ArrayLike, ...],
    kwds: dict[str, ArrayLike],
) -> None:
    arrays = {name: _plain("savez", a) for name, a in kwds.items()}
    positional = [_plain("savez", a) for a in args]
    if not isinstance(file, (str, os.PathLike)):
        write(file, *positional, **arrays)
        return
    with replacing(_ending(file, ".npz")) as f:
        write(f, *positional, **arrays)


def _ending(file: str | os.PathLike[str], suffix: str) -> str:
    name = os.fspath(file)
    return name if name.endswith(suffix) else name + suffix


def _plain(op: str, value: ArrayLike) -> np.ndarray:
    array = value.detach().cpu().numpy() if isinstance(value, Tensor) else np.asarray(value)
    try:
        dt.from_numpy(array.dtype)
    except TypeError as e:
        raise TypeError(f"{op}: {e}") from None
    return array
