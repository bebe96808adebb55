"""Ways to go through elements one by one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy

from ..ops.registry import F
from .array import ndarray, wrap
from .convert import cast, to_tensor

ndindex = numpy.ndindex


class flatiter:
    """All elements of an array in one line, for reading and writing."""

    def __init__(self, base: ndarray) -> None:
        self.base = base
        self._at = 0

    def __len__(self) -> int:
        return self.base.size

    def __iter__(self) -> Iterator[ndarray]:
        return iter(wrap(self.base.tensor.reshape(-1)))

    def __next__(self) -> ndarray:
        if self._at >= len(self):
            raise StopIteration
        self._at += 1
        return wrap(self.base.tensor.reshape(-1))[self._at - 1]

    @property
    def index(self) -> int:
        return self._at

    def copy(self) -> ndarray:
        """The elements in one line."""
        return wrap(self.base.tensor.reshape(-1).clone())

    def __getitem__(self, key: Any) -> ndarray:
        found = wrap(self.base.tensor.reshape(-1))[key]
        return found if found.ndim == 0 else wrap(found.tensor.clone())

    def __setitem__(self, key: Any, value: Any) -> None:
        from .indexing import _unravel

        t = self.base.tensor
        where = wrap(F.arange(t.numel(), device=t.device))[key].tensor.reshape(-1)
        new = cast(to_tensor(value, device=t.device), t.dtype).reshape(-1)
        n = int(where.shape[0])
        if not new.numel() or not n:
            return
        new = new.repeat(-(-n // new.numel()))[:n]
        if t.ndim:
            t[_unravel(where, tuple(t.shape))] = new
        else:
            t.copy_(new[0])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self.copy().__array__(dtype, copy)


def ndenumerate(arr: Any) -> Iterator[tuple[tuple[int, ...], ndarray]]:
    """Indices and elements in order."""
    x = wrap(to_tensor(arr))
    for index in numpy.ndindex(*x.shape):
        yield index, x[index]


class broadcast:
    """The common shape of arrays, and their elements side by side."""

    def __init__(self, *args: Any) -> None:
        self._arrays = [wrap(to_tensor(a)) for a in args]
        self.shape = tuple(numpy.broadcast_shapes(*[a.shape for a in self._arrays]))
        self.nd = self.ndim = len(self.shape)
        self.size = int(numpy.prod(self.shape, dtype=int))
        self.numiter = len(self._arrays)

    @property
    def iters(self) -> tuple[flatiter, ...]:
        return tuple(flatiter(wrap(a.tensor.expand(self.shape))) for a in self._arrays)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return zip(*self.iters, strict=True)
