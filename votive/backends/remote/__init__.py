"""A device on another machine: tensors are numbers of a server's storages, operators are messages.

Dispatch, autograd and modules run here; kernels run there. `votive.remote` is what users see of it.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from ...core.layout import Spec, broadcast_shapes
from ...core.storage import Storage
from . import connections, rows, wire
from .connection import Connection
from .views import RemoteStorage, RemoteView

# Contents from so many bytes on are known by their digest: sent once, to however many sessions of a server.
SHARED = 64 << 10


class RemoteBackend:
    """See `backends.base.Backend`; `data` is a `RemoteView`."""

    name = "remote"

    def pointwise(self, formula: Any, names: Any, roles: Any, inputs: Any, out: Spec, empty: Any) -> tuple[Any, Any]:
        """See `backends.base.Backend.pointwise`."""
        return rows.pointwise(formula, names, roles, inputs, out)

    def empty(self, spec: Spec) -> tuple[Storage, Any]:
        storage = self._new(connections.of(spec.device), spec.nbytes)
        return storage, RemoteView(storage, spec)

    def _new(self, connection: Connection, nbytes: int) -> RemoteStorage:
        number = connection.number()
        connection.send(wire.message(wire.EMPTY, wire.SIZED.pack(number, nbytes)), number)
        return RemoteStorage(connection, number, nbytes)

    def view(self, storage: Storage, spec: Spec, offset: int) -> Any:
        root = storage.root
        assert isinstance(root, RemoteStorage)
        return RemoteView(root, spec, offset)

    def adopt(self, data: Any, spec: Spec | None, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        assert isinstance(data, RemoteView)
        return data.storage, data, data.spec

    def receive(self, array: Any, spec: Spec, non_blocking: bool = False) -> tuple[Storage, Any, Spec]:
        """(storage, data, spec) of new memory there with values of this machine."""
        connection = connections.of(spec.device)
        connection.open()
        bytes_ = _in_order(array, spec)
        number, size = connection.number(), bytes_.nbytes
        digest = hashlib.sha256(bytes_.data).digest() if size >= SHARED else wire.NO_DIGEST
        head = wire.CONTENT.pack(number, size, digest)
        if digest in connection.uploaded:
            connection.send(wire.message(wire.KNOWN, head), number)
        else:
            connection.send(wire.message(wire.UPLOAD, head), number)
            for at in range(0, size, wire.CHUNK):
                part = bytes_[at : at + wire.CHUNK].tobytes()
                connection.send(wire.message(wire.DATA, wire.SLICE.pack(number, at) + part), number)
            if digest != wire.NO_DIGEST and connection.welcome.get("keeps"):
                connection.uploaded.add(digest)
        storage = RemoteStorage(connection, number, size)
        return storage, RemoteView(storage, spec), spec

    def copy(self, out: Any, data: Any) -> None:
        """Write `data` over `out`, converting the dtype."""
        broadcast_shapes("copy_", out.spec.shape, data.spec.shape)
        if data.connection is not out.connection:
            array = fetch(data)
            spec = Spec(data.spec.dense_like().layout, data.spec.dtype, out.spec.device)
            data = self.receive(array, spec)[1]
        connection = out.connection
        with connection.lock:
            body = _part(connection, out) + _part(connection, data)
            connection.send(wire.message(wire.COPY, body), out.id)

    def to_numpy(self, data: Any) -> Any:
        return fetch(data)

    def item(self, data: Any) -> Any:
        return fetch(data).item()

    def window(self, spec: Spec) -> None:
        return None

    def clone_storage(self, storage: Any) -> Storage:
        connection, number = storage.root.connection, storage.root.connection.number()
        connection.send(wire.message(wire.CLONE, wire.SIZED.pack(number, storage.root.id)), number)
        return RemoteStorage(connection, number, storage.nbytes)


def _part(connection: Connection, data: RemoteView) -> bytes:
    return wire.PART.pack(data.id, data.offset, connection.spec_number(data.spec))


def _in_order(array: Any, spec: Spec) -> np.ndarray[Any, Any]:
    """The bytes of an array as a dense spec lays them out."""
    laid = np.empty(spec.numel, spec.dtype.np)
    if spec.numel:
        np.ndarray(spec.shape, spec.dtype.np, laid, 0, spec.byte_strides)[...] = array
    return laid.view(np.uint8)


def fetch(data: RemoteView) -> np.ndarray[Any, Any]:
    """The values of a view as an array; waits for them."""
    connection, spec = data.connection, data.spec
    with connection.lock:
        raw = connection.ask(wire.READ, _part(connection, data))
    return np.frombuffer(raw, spec.dtype.np, spec.numel).reshape(spec.shape)
