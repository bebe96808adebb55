"""CTranslate2's model.bin: named variables one after the other, some of them quantized.

Layout, little-endian, of binary versions 2 to 6: the version; the name and revision of the model's
specification; a count and so many variables (name, rank, sizes, type, bytes); since version 3 a
count and so many other names of variables. A name is its length with a closing zero, then the
bytes. Knows no architecture.
"""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..core import dtype as dt
from ..io.mapped import Index
from ..serialization.container import FileFormatError
from ..surface.interchange import _own
from ..tensor import Tensor
from .mapped import MappedFile, little, select
from .source import TableSource, TensorInfo

__all__ = ["CTranslate2File", "open"]

_TYPES = (dt.float32, dt.int8, dt.int16, dt.int32, dt.float16, dt.bfloat16)
_VERSIONS = range(2, 7)
# More than any model has: counts above these are those of a damaged file.
_MAX_VARIABLES, _MAX_RANK = 1 << 20, 8
_SCALE, _ZERO = "_scale", "_zero"


@dataclass(frozen=True)
class _Entry:
    dtype: dt.dtype
    shape: tuple[int, ...]
    begin: int

    @property
    def nbytes(self) -> int:
        return self.dtype.itemsize * math.prod(self.shape)


class _Reader:
    """Numbers and names from a file, in order; a file that ends too early is an error."""

    def __init__(self, mapped: MappedFile) -> None:
        self.mapped, self.at = mapped, 0

    def number(self, kind: str) -> int:
        size = struct.calcsize(kind)
        (found,) = struct.unpack("<" + kind, bytes(self.mapped.peek(self.at, size)))
        self.at += size
        return int(found)

    def name(self) -> str:
        length = self.number("H")
        raw = bytes(self.mapped.peek(self.at, length))
        self.at += length
        if not raw or raw[-1] != 0 or b"\0" in raw[:-1]:
            raise FileFormatError(f"{self.mapped.path.name}: a name does not end with a zero.")
        try:
            return raw[:-1].decode()
        except UnicodeDecodeError as e:
            raise FileFormatError(f"{self.mapped.path.name}: a name is not UTF-8 ({e}).") from None


class CTranslate2File(TableSource[_Entry]):
    """A model of CTranslate2 as a source of weights, by the names it has there.

    Quantized variables come as float32: an int8 row, or an int16 tensor, divided by its scale.
    `spec` is the kind of the model and `revision` that of its layout.

    >>> from votive.io.ctranslate2 import CTranslate2File, write
    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/model.bin"
    >>> write(path, "Spec", {"a/weight": votive.tensor([[2, 4]], dtype=votive.int8),
    ...     "a/weight_scale": votive.tensor([2.0])})
    >>> file = CTranslate2File(path)
    >>> file.spec, file.names(), file.tensor("a/weight")
    ('Spec', ['a/weight'], tensor([[1., 2.]]))
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.mapped = MappedFile(path)
        self.path = self.mapped.path
        reader = _Reader(self.mapped)
        self.version = reader.number("I")
        if self.version not in _VERSIONS:
            raise FileFormatError(
                f"{self.path.name}: CTranslate2's binary version {self.version} is not known; "
                f"versions {_VERSIONS[0]} to {_VERSIONS[-1]} are. Convert the model again."
            )
        self.spec, self.revision = reader.name(), reader.number("I")
        self._all = self._variables(reader)
        self.aliases = self._aliases(reader) if self.version >= 3 else {}
        self.metadata = {"spec": self.spec, "revision": self.revision}
        packed = [n for n in self._all if n.endswith(_ZERO)]
        if packed:
            raise FileFormatError(
                f"{self.path.name}: {packed[0].removesuffix(_ZERO)} is packed in 4 bits, which is "
                "not supported; convert the model with int8, float16 or float32."
            )
        self.entries = {
            n: e for n, e in self._all.items() if not (n.endswith(_SCALE) and n.removesuffix(_SCALE) in self._all)
        }

    def _variables(self, reader: _Reader) -> dict[str, _Entry]:
        count, label = reader.number("I"), self.path.name
        if count > _MAX_VARIABLES:
            raise FileFormatError(f"{label}: {count:,} variables are too many; it is damaged.")
        found: dict[str, _Entry] = {}
        for _ in range(count):
            name, rank = reader.name(), reader.number("B")
            if rank > _MAX_RANK or name in found:
                what = f"has {rank} dimensions" if rank > _MAX_RANK else "comes twice"
                raise FileFormatError(f"{label}: {name!r} {what}; the file is damaged.")
            shape = tuple(reader.number("I") for _ in range(rank))
            if self.version >= 4:
                kind, nbytes = reader.number("B"), reader.number("I")
            else:
                # Before, the size of an element stood for its type.
                size, length = reader.number("B"), reader.number("I")
                kind, nbytes = {4: 0, 1: 1, 2: 2}.get(size, len(_TYPES)), size * length
            if kind >= len(_TYPES):
                raise FileFormatError(f"{label}: {name!r} is of an unknown type {kind}.")
            entry = _Entry(_TYPES[kind], shape, reader.at)
            if entry.nbytes != nbytes:
                raise FileFormatError(
                    f"{label}: {name!r} of shape {shape} has {nbytes:,} bytes instead of "
                    f"{entry.nbytes:,}; the file is damaged."
                )
            self.mapped.peek(reader.at, nbytes)  # raises where the file is cut off
            reader.at += nbytes
            found[name] = entry
        return found

    def _aliases(self, reader: _Reader) -> dict[str, str]:
        found: dict[str, str] = {}
        for _ in range(min(reader.number("I"), _MAX_VARIABLES)):
            alias, name = reader.name(), reader.name()
            if name not in self._all:
                raise FileFormatError(f"{self.path.name}: {alias!r} stands for {name!r}, which is not in the file.")
            found[alias] = name
        return found

    def number(self, name: str, default: int | None = None) -> int:
        """A variable that is a whole number, such as `encoder/num_heads`."""
        if name not in self._all and default is not None:
            return default
        entry = self._entry(name)
        if math.prod(entry.shape) != 1:
            raise FileFormatError(f"{self.path.name}: {name!r} is not a number.")
        return int(self._array(entry).flatten()[0])

    def _entry(self, name: str) -> _Entry:
        name = self.aliases.get(name, name)
        if name not in self._all:
            raise self._unknown(name)
        return self._all[name]

    def _array(self, entry: _Entry) -> np.ndarray:
        return little(self.mapped.peek(entry.begin, entry.nbytes), entry.dtype, entry.shape)

    def _quantized(self, name: str) -> bool:
        return f"{self.aliases.get(name, name)}{_SCALE}" in self._all

    def info(self, name: str) -> TensorInfo:
        entry = self._entry(name)
        dtype = dt.float32 if self._quantized(name) else entry.dtype
        return TensorInfo(name, dtype, entry.shape, entry.dtype.name, entry.nbytes, self.path)

    def _read(self, name: str) -> Tensor:
        entry = self._entry(name)
        if not self._quantized(name):
            return self.mapped.tensor(entry.begin, entry.dtype, entry.shape)
        return _own(self._widened(name), "cpu")

    def _read_part(self, name: str, index: Index) -> Tensor:
        entry = self._entry(name)
        if not self._quantized(name):
            return self.mapped.part(entry.begin, entry.dtype, entry.shape, index)
        return _own(np.array(select(self._widened(name), index), order="C"), "cpu")

    def _widened(self, name: str) -> np.ndarray:
        """A quantized variable as float32; one scale per row, or one for all."""
        entry = self._entry(name)
        scale = self._array(self._entry(f"{self.aliases.get(name, name)}{_SCALE}"))
        scale = scale.astype(np.float32)
        if scale.size not in (1, entry.shape[0]):
            raise FileFormatError(
                f"{self.path.name}: {name!r} of shape {entry.shape} has {scale.size} scales; one, "
                "or one for each row, is expected."
            )
        if scale.size > 1:
            scale = scale.reshape(-1, *(1,) * (len(entry.shape) - 1))
        return self._array(entry).astype(np.float32) / scale

    def close(self) -> None:
        self.mapped.close()


def open(path: str | os.PathLike[str]) -> CTranslate2File:
    """Open a model.bin of CTranslate2; the file's variables are the tensors.

    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/model.bin"
    >>> votive.io.ctranslate2.write(path, "Spec", {"w": votive.ones(2)})
    >>> votive.io.ctranslate2.open(path).tensor("w")
    tensor([1., 1.])
    """
    return CTranslate2File(path)


def write(
    path: str | os.PathLike[str],
    spec: str,
    tensors: Mapping[str, Tensor],
    *,
    revision: int = 1,
    aliases: dict[str, str] | None = None,
) -> None:
    """Write variables as a model.bin of binary version 6, as they are: nothing is quantized.

    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/model.bin"
    >>> votive.io.ctranslate2.write(path, "Spec", {"w": votive.ones(2)}, aliases={"v": "w"})
    >>> votive.io.ctranslate2.open(path).aliases
    {'v': 'w'}
    """
    from ..serialization.atomic import replacing

    def text(value: str) -> bytes:
        raw = value.encode() + b"\0"
        return struct.pack("<H", len(raw)) + raw

    with replacing(path) as f:
        f.write(struct.pack("<I", _VERSIONS[-1]) + text(spec) + struct.pack("<I", revision))
        f.write(struct.pack("<I", len(tensors)))
        for name, t in tensors.items():
            if t.dtype not in _TYPES:
                known = ", ".join(k.name for k in _TYPES)
                raise TypeError(f"write: {name!r} is of type {t.dtype}; the format has {known}.")
            array = t.detach().numpy(force=True)
            data = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<")).tobytes()
            f.write(text(name) + struct.pack(f"<B{array.ndim}I", array.ndim, *array.shape))
            f.write(struct.pack("<BI", _TYPES.index(t.dtype), len(data)) + data)
        f.write(struct.pack("<I", len(aliases or {})))
        for alias, name in (aliases or {}).items():
            f.write(text(alias) + text(name))
