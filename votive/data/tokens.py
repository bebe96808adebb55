"""Token files for language models: ids as raw integers, read through memory mapping.

Knows integers and files; knows no tokenizer.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from ..serialization.atomic import replacing
from ..serialization.container import FileFormatError
from ..surface.interchange import from_numpy
from .dataset import Dataset

# Header: magic, version, bytes per token, two reserved, number of tokens; all little-endian.
_MAGIC = b"VOTK"
_VERSION = 1
_HEADER = struct.Struct("<4sBBHQ")
_DTYPES: dict[int, np.dtype[Any]] = {2: np.dtype("<u2"), 4: np.dtype("<u4")}
_CHUNK = 1 << 20


class TokenFile:
    """The token ids in a file: a sequence whose slices are NumPy arrays, read when touched.

    >>> import tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "train.tokens")
    >>> tokens = votive.data.TokenFile.write(path, [5, 6, 7, 8])
    >>> len(tokens), tokens[1:3], tokens.dtype
    (4, array([6, 7], dtype=uint16), dtype('uint16'))
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        size = self.path.stat().st_size
        with open(self.path, "rb") as f:
            head = f.read(_HEADER.size)
        if len(head) < _HEADER.size:
            raise FileFormatError(f"TokenFile: {self.path} has {size} bytes and no header.")
        magic, version, width, _, count = _HEADER.unpack(head)
        if magic != _MAGIC:
            raise FileFormatError(f"TokenFile: {self.path} does not begin with {_MAGIC!r}.")
        if version != _VERSION or width not in _DTYPES:
            raise FileFormatError(
                f"TokenFile: {self.path} has version {version} and {width} bytes per token; "
                f"known: version {_VERSION} with 2 or 4."
            )
        if size != _HEADER.size + count * width:
            raise FileFormatError(
                f"TokenFile: {self.path} should hold {count} tokens of {width} bytes, but has "
                f"{size - _HEADER.size} bytes of them; it is cut off or damaged."
            )
        self.dtype = _DTYPES[width].newbyteorder("=")
        self._count = count
        self._array: Any = None

    @property
    def array(self) -> Any:
        """All ids as one read-only array over the file."""
        if self._array is None:
            if self._count == 0:  # an empty mapping is not possible
                self._array = np.empty(0, self.dtype)
            else:
                disk = self.dtype.newbyteorder("<")
                self._array = np.memmap(self.path, disk, "r", _HEADER.size, (self._count,))
        return self._array

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int | slice) -> Any:
        found = self.array[index]
        return np.array(found) if isinstance(index, slice) else int(found)

    def __getstate__(self) -> dict[str, Any]:
        # A worker opens the file itself; sending the mapping would send the whole content.
        return {**self.__dict__, "_array": None}

    def __repr__(self) -> str:
        return f"TokenFile({str(self.path)!r}, tokens={self._count}, dtype={self.dtype})"

    @classmethod
    def write(cls, path: str | os.PathLike[str], tokens: Iterable[Any], dtype: DTypeLike | None = None) -> TokenFile:
        """Write ids, or a stream of lists or arrays of ids, and open the result.

        Ids are 16 bits wide unless `dtype` says 32; an array or list that needs 32 gets them. The
        file appears under its name only when it is complete.

        >>> import tempfile, os
        >>> path = os.path.join(tempfile.mkdtemp(), "big.tokens")
        >>> len(votive.data.TokenFile.write(path, ([i, i] for i in range(3)), dtype=np.uint32))
        6
        """
        if hasattr(tokens, "numpy"):
            tokens = tokens.numpy()
        disk = np.dtype(_narrowest(tokens) if dtype is None else dtype).newbyteorder("<")
        if disk.itemsize not in _DTYPES or disk.kind != "u":
            raise ValueError(f"TokenFile.write: dtype must be uint16 or uint32, got {dtype}.")
        with replacing(path) as f:
            f.write(bytes(_HEADER.size))
            count = 0
            for part in _parts(tokens):
                f.write(_checked(part, disk).tobytes())
                count += part.size
            f.seek(0)
            f.write(_HEADER.pack(_MAGIC, _VERSION, disk.itemsize, 0, count))
        return cls(path)


def _narrowest(tokens: Iterable[Any]) -> np.dtype[Any]:
    """16 bits, unless ids are at hand that need more."""
    if not isinstance(tokens, (list, tuple, np.ndarray)):
        return np.dtype(np.uint16)
    largest = max((int(np.max(p)) for p in _parts(tokens) if p.size), default=0)
    return np.dtype(np.uint16 if largest <= np.iinfo(np.uint16).max else np.uint32)


def _parts(tokens: Iterable[Any]) -> Iterator[np.ndarray[Any, Any]]:
    """Ids in arrays of moderate size."""
    if isinstance(tokens, np.ndarray):
        flat = tokens.reshape(-1)
        for start in range(0, flat.size, _CHUNK):
            yield flat[start : start + _CHUNK]
        return
    gathered: list[int] = []
    for item in tokens:
        if isinstance(item, (int, np.integer)):
            gathered.append(int(item))
            if len(gathered) == _CHUNK:
                yield np.array(gathered, np.int64)
                gathered = []
            continue
        if gathered:
            yield np.array(gathered, np.int64)
            gathered = []
        inner = item.numpy() if hasattr(item, "numpy") else np.asarray(item)
        if inner.size:
            yield inner.reshape(-1)
    if gathered:
        yield np.array(gathered, np.int64)


def _checked(part: np.ndarray[Any, Any], disk: np.dtype[Any]) -> np.ndarray[Any, Any]:
    if part.dtype.kind not in "iu":
        raise TypeError(f"TokenFile.write: token ids are integers, got {part.dtype}.")
    low, high = int(part.min()), int(part.max())
    if low < 0 or high > np.iinfo(disk).max:
        raise ValueError(
            f"TokenFile.write: id {low if low < 0 else high} does not fit into {disk}; use dtype=np.uint32."
        )
    return part.astype(disk)


class TokenWindows(Dataset[tuple[Any, Any]]):
    """Windows of `length` tokens and the same windows one token later: (x, y), both int64.

    Windows begin every `stride` tokens (default: `length`, so that each token is predicted once).

    >>> data = votive.data.TokenWindows(np.arange(7), length=3)
    >>> len(data), data[1]
    (2, (tensor([3, 4, 5]), tensor([4, 5, 6])))
    """

    def __init__(
        self, file: str | os.PathLike[str] | TokenFile | Sequence[int], length: int, stride: int | None = None
    ) -> None:
        self.tokens = TokenFile(file) if isinstance(file, (str, os.PathLike)) else file
        self.length = length
        self.stride = length if stride is None else stride
        if length < 1 or self.stride < 1:
            raise ValueError(f"TokenWindows: length and stride must be positive, got {length} and {self.stride}.")

    def __len__(self) -> int:
        # The last target lies one behind the window.
        return max(0, (len(self.tokens) - 1 - self.length) // self.stride + 1)

    def _windows(self, indices: list[int]) -> np.ndarray[Any, Any]:
        n = len(self)
        for i in indices:
            if not -n <= i < n:
                raise IndexError(f"TokenWindows: index {i} is out of range for {n} windows.")
        ids = getattr(self.tokens, "array", self.tokens)
        out = np.empty((len(indices), self.length + 1), np.int64)
        for row, i in zip(out, indices):
            start = (i % n) * self.stride
            row[:] = ids[start : start + self.length + 1]
        return out

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        (window,) = self._windows([int(index)])
        return from_numpy(window[:-1].copy()), from_numpy(window[1:].copy())

    def _batch(self, indices: list[int]) -> list[Any]:
        windows = self._windows(indices)
        return [from_numpy(windows[:, :-1].copy()), from_numpy(windows[:, 1:].copy())]
