"""Windows on files that are read when they are touched. Knows bytes and offsets, no format."""

from __future__ import annotations

import bisect
import math
import mmap
import os
import platform
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ..core import dtype as dt
from ..serialization.container import FileFormatError
from ..surface.interchange import _own, _share
from ..tensor import Tensor

if TYPE_CHECKING:
    from types import EllipsisType

Array = np.ndarray[Any, Any]
# What stands between the brackets of `tensor[...]`: one of these, or a tuple of them.
Pick: TypeAlias = "int | slice | EllipsisType | Tensor | Array | list[int] | None"
Index: TypeAlias = "Pick | tuple[Pick, ...]"
# Python names it from 3.12 on; the number is that of Linux on these processors.
_LINUX = sys.platform == "linux" and platform.machine() in ("x86_64", "aarch64")
_NO_RESERVE: int = getattr(mmap, "MAP_NORESERVE", 0x4000 if _LINUX else 0)


class MappedFile:
    """A file whose bytes can be lent, each time as if nobody had written to them before.

    `lend` gives memory that is private to the borrower: writing to it changes neither the file nor
    what the next borrower gets. `peek` gives a read-only view that all share.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        with open(self.path, "rb") as f:
            self.size = os.fstat(f.fileno()).st_size
        self._shared: Any = None
        self._private: Array | None = None
        # A descriptor is held per mapping, so one private mapping serves many ranges; a new one is
        # made when some byte is lent for the second time. Ranges lent so far, sorted, disjoint.
        self._lent: list[tuple[int, int]] = []
        self._lock = threading.Lock()
        self.closed = False

    def peek(self, begin: int, nbytes: int) -> Array:
        """A read-only view of `nbytes` bytes from `begin` on."""
        self._check(begin, nbytes)
        if nbytes == 0:
            return np.empty(0, np.uint8)
        return np.frombuffer(self.buffer(), np.uint8, nbytes, begin)

    def buffer(self) -> Any:
        """All bytes, as an object that can be sliced and searched."""
        if self._shared is None:
            if self.size == 0:
                return b""
            with open(self.path, "rb") as f:
                self._shared = mmap.mmap(f.fileno(), self.size, access=mmap.ACCESS_READ)
        return self._shared

    def lend(self, begin: int, nbytes: int) -> Array:
        """Bytes that the caller may write to; unread until touched."""
        self._check(begin, nbytes)
        if nbytes == 0:
            return np.empty(0, np.uint8)
        with self._lock:
            at = bisect.bisect_left(self._lent, (begin, begin))
            before, after = self._lent[at - 1 : at], self._lent[at : at + 1]
            taken = (before and before[0][1] > begin) or (after and after[0][0] < begin + nbytes)
            if self._private is None or taken:
                self._private = np.frombuffer(self._map_private(), np.uint8)
                self._lent, at = [], 0
            self._lent.insert(at, (begin, begin + nbytes))
            return self._private[begin : begin + nbytes]

    def _map_private(self) -> Any:
        with open(self.path, "rb") as f:
            if not hasattr(mmap, "MAP_PRIVATE"):
                return mmap.mmap(f.fileno(), self.size, access=mmap.ACCESS_COPY)
            # Without room set aside for copies of all pages: a file may be larger than memory.
            flags = mmap.MAP_PRIVATE | _NO_RESERVE
            return mmap.mmap(f.fileno(), self.size, flags=flags, prot=mmap.PROT_READ | mmap.PROT_WRITE)

    def forget(self, begin: int, nbytes: int) -> None:
        """Give the memory back that reading through `peek` took; the bytes stay readable."""
        if self._shared is None or not hasattr(mmap, "MADV_DONTNEED"):
            return
        start = begin - begin % mmap.PAGESIZE
        if nbytes:
            self._shared.madvise(mmap.MADV_DONTNEED, start, begin + nbytes - start)

    def tensor(self, begin: int, dtype: dt.dtype, shape: tuple[int, ...]) -> Tensor:
        """The little-endian elements at `begin` as a tensor, mapped where alignment allows."""
        nbytes = dtype.itemsize * math.prod(shape)
        if begin % dtype.itemsize or sys.byteorder == "big" or nbytes == 0:
            return _own(little(self.peek(begin, nbytes), dtype, shape).copy(), "cpu")
        return _share(self.lend(begin, nbytes).view(dtype.np).reshape(shape))

    def part(self, begin: int, dtype: dt.dtype, shape: tuple[int, ...], index: Index) -> Tensor:
        """A copy of `array[index]`; only the pages that hold it are read."""
        nbytes = dtype.itemsize * math.prod(shape)
        array = little(self.peek(begin, nbytes), dtype, shape)
        out = _own(np.array(select(array, index), order="C"), "cpu")
        self.forget(begin, nbytes)
        return out

    def close(self) -> None:
        """Let go of the file; memory that was lent stays valid."""
        self.closed, self._shared, self._private = True, None, None

    def _check(self, begin: int, nbytes: int) -> None:
        if self.closed:
            raise ValueError(f"{self.path.name}: the weights are closed; open them again.")
        if begin < 0 or nbytes < 0 or begin + nbytes > self.size:
            raise FileFormatError(
                f"load: {self.path.name}: bytes {begin:,}..{begin + nbytes:,} are asked for and "
                f"the file has {self.size:,}; it is cut off."
            )


def little(raw: Array, dtype: dt.dtype, shape: tuple[int, ...]) -> Array:
    """Raw bytes as an array of native elements, whatever their alignment."""
    array = np.ndarray(shape, dtype.np, raw, 0) if raw.size else np.empty(shape, dtype.np)
    return array.byteswap() if sys.byteorder == "big" else array


def select(array: Array, index: Index) -> Array:
    """`array[index]` for the indices that tensors know."""
    for part in index if isinstance(index, tuple) else (index,):
        if isinstance(part, slice) and (part.step or 1) < 0:
            raise ValueError("slice: step must be greater than zero.")
    plain = tuple(_plain(i) for i in index) if isinstance(index, tuple) else _plain(index)
    return np.asarray(array[plain])


def _plain(index: Any) -> Any:
    return index.numpy() if hasattr(index, "_spec") else index
