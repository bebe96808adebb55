"""Arrays as text and in files, in NumPy's formats."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy

from .array import ndarray, wrap
from .convert import detached, to_tensor
from .creation import no_like
from .element_types import as_dtype


def array2string(a: Any, *args: Any, **kwargs: Any) -> str:
    """The values as text."""
    return numpy.array2string(detached(a), *args, **kwargs)


def array_repr(arr: Any, *args: Any, **kwargs: Any) -> str:
    """The array as Python text."""
    return numpy.array_repr(detached(arr), *args, **kwargs)


def array_str(a: Any, *args: Any, **kwargs: Any) -> str:
    """The values as text without a name."""
    return numpy.array_str(detached(a), *args, **kwargs)


def format_float_positional(x: Any, *args: Any, **kwargs: Any) -> str:
    """A number in decimal notation."""
    return numpy.format_float_positional(x.item() if isinstance(x, ndarray) else x, *args, **kwargs)


def format_float_scientific(x: Any, *args: Any, **kwargs: Any) -> str:
    """A number in scientific notation."""
    return numpy.format_float_scientific(x.item() if isinstance(x, ndarray) else x, *args, **kwargs)


def _no_pickle(allow_pickle: bool) -> None:
    if allow_pickle:
        raise ValueError("allow_pickle: there are no Python objects in arrays of votive.np; leave it out.")


def save(file: Any, arr: Any, allow_pickle: bool = False) -> None:
    """Write an array to a `.npy` file."""
    _no_pickle(allow_pickle)
    numpy.save(file, detached(arr), allow_pickle=False)


def savez(file: Any, *args: Any, allow_pickle: bool = False, **kwds: Any) -> None:
    """Write arrays to a `.npz` file."""
    _no_pickle(allow_pickle)
    numpy.savez(file, *[detached(a) for a in args], **{k: detached(v) for k, v in kwds.items()})


def savez_compressed(file: Any, *args: Any, allow_pickle: bool = False, **kwds: Any) -> None:
    """Write arrays to a compressed `.npz` file."""
    _no_pickle(allow_pickle)
    numpy.savez_compressed(file, *[detached(a) for a in args], **{k: detached(v) for k, v in kwds.items()})


class _Archive(Mapping[str, ndarray]):
    """The arrays of a `.npz` file, read when they are asked for."""

    def __init__(self, source: Any) -> None:
        self._source = source
        self.files = source.files

    def __getitem__(self, key: str) -> ndarray:
        return wrap(to_tensor(self._source[key]))

    def __iter__(self) -> Iterator[str]:
        return iter(self.files)

    def __len__(self) -> int:
        return len(self.files)

    def close(self) -> None:
        self._source.close()

    def __enter__(self) -> _Archive:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def load(file: Any, mmap_mode: Any = None, allow_pickle: bool = False, **options: Any) -> Any:
    """Read a `.npy` or `.npz` file; pickled objects are refused."""
    if allow_pickle:
        raise ValueError("load: allow_pickle would run code from the file, and votive.np holds numbers only.")
    found: Any = numpy.load(file, mmap_mode=mmap_mode, **options)
    return _Archive(found) if hasattr(found, "files") else wrap(to_tensor(numpy.asarray(found)))


def loadtxt(fname: Any, dtype: Any = float, **options: Any) -> ndarray:
    """Numbers from a text file."""
    return wrap(to_tensor(numpy.loadtxt(fname, as_dtype(dtype), **options)))


def genfromtxt(fname: Any, dtype: Any = float, **options: Any) -> ndarray:
    """Numbers from a text file with gaps."""
    return wrap(to_tensor(numpy.genfromtxt(fname, as_dtype(dtype), **options)))


def fromfile(
    file: Any, dtype: Any = float, count: int = -1, sep: str = "", offset: int = 0, *, like: Any = None
) -> ndarray:
    """Numbers from the bytes of a file."""
    no_like(like)
    return wrap(to_tensor(numpy.fromfile(file, as_dtype(dtype), count, sep, offset)))


def savetxt(fname: Any, X: Any, *args: Any, **options: Any) -> None:
    """Write numbers to a text file."""
    numpy.savetxt(fname, detached(X), *args, **options)
