"""Memory elsewhere: storages that are numbers, and views of them. Knows no messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from ...core.layout import Spec, extent
from ...core.storage import Storage

if TYPE_CHECKING:
    from .connection import Connection


class RemoteStorage(Storage):
    """A block of memory of a server, known by its number. The server frees it some time after this is gone."""

    device_type = "remote"

    def __init__(self, connection: Connection, number: int, nbytes: int) -> None:
        self.connection = connection
        self.id = number
        self._nbytes = nbytes
        self.memory = None

    def __del__(self) -> None:
        connection = getattr(self, "connection", None)
        if connection is not None:
            connection.gone.append(self.id)
            connection.gone_bytes += self._nbytes

    @property
    def nbytes(self) -> int:
        return self._nbytes

    def bytes_view(self) -> NoReturn:
        raise NotImplementedError("the bytes of a remote tensor are elsewhere; copy it with .cpu() first.")

    def data_ptr(self) -> int:
        """No address, but a number that differs between storages and counts bytes inside one."""
        return self.id << 48


class RemoteView:
    """What kernels get: part of a storage, seen through a spec from an element on."""

    __slots__ = ("id", "offset", "spec", "storage")

    def __init__(self, storage: RemoteStorage, spec: Spec, offset: int = 0) -> None:
        self.storage, self.spec, self.offset = storage, spec, offset
        self.id = storage.id

    @property
    def connection(self) -> Connection:
        return self.storage.connection

    def __getitem__(self, part: slice) -> RemoteView:
        """Elements from the front of a view with one dimension."""
        count = len(range(*part.indices(self.spec.numel)))
        if part.start or part.step or self.spec.ndim != 1:
            raise IndexError("remote: only the front of a one-dimensional view is taken here.")
        return RemoteView(self.storage, self.spec.like((count,), strides=self.spec.strides), self.offset)

    def overlaps(self, other: Any) -> bool:
        """Whether both may reach the same bytes."""
        if not isinstance(other, RemoteView) or other.id != self.id:
            return False
        a, b = self._reach(), other._reach()
        return max(a.start, b.start) < min(a.stop, b.stop)

    def _reach(self) -> range:
        size = self.spec.dtype.itemsize
        begin = self.offset * size
        return range(begin, begin + extent(self.spec.shape, self.spec.strides) * size)

    def __repr__(self) -> str:
        return "..."
