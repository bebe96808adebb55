"""Three words of the store that torchrun's agent serves, in its own tongue: how ranks that torchrun starts tell one
another where a store of votive's is. Knows no other store.

A request is a byte for its kind, then texts with their lengths in front, in the machine's byte order.
"""

from __future__ import annotations

import socket
import struct
from types import TracebackType

from .errors import DistNetworkError

_VALIDATE, _SET, _GET, _WAIT = 0, 1, 3, 6
_MAGIC = 0x3C85F7CE
_LARGEST = 1 << 16


def _text(data: bytes) -> bytes:
    return struct.pack("=Q", len(data)) + data


class AgentStore:
    """A connection to the store of a torchrun agent, for a `with` block.

    >>> votive.distributed.agent_store.AgentStore("127.0.0.1", 1, 0.1)
    Traceback (most recent call last):
    ...
    votive.distributed.errors.DistNetworkError: torchrun's store at 127.0.0.1:1 does not answer: Connection refused.
    """

    def __init__(self, host: str, port: int, limit: float) -> None:
        self.place = f"{host}:{port}"
        try:
            self.connection = socket.create_connection((host, port), timeout=limit)
            self.connection.sendall(struct.pack("=BI", _VALIDATE, _MAGIC))
        except OSError as e:
            raise self._silent(e) from None

    def _silent(self, e: OSError) -> DistNetworkError:
        return DistNetworkError(f"torchrun's store at {self.place} does not answer: {e.strerror or e}.")

    def __enter__(self) -> AgentStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.connection.close()

    def set(self, key: str, value: bytes) -> None:
        """Keep a value."""
        try:
            self.connection.sendall(bytes([_SET]) + _text(key.encode()) + _text(value))
        except OSError as e:
            raise self._silent(e) from None

    def get(self, key: str) -> bytes:
        """The value, once somebody has set it."""
        name = _text(key.encode())
        try:
            self.connection.sendall(bytes([_WAIT]) + struct.pack("=Q", 1) + name)
            self._exactly(1)
            self.connection.sendall(bytes([_GET]) + name)
            (size,) = struct.unpack("=Q", self._exactly(8))
            if size > _LARGEST:
                raise ConnectionError(f"it gives {size:,} bytes")
            return self._exactly(size)
        except OSError as e:
            raise self._silent(e) from None

    def _exactly(self, count: int) -> bytes:
        found = b""
        while len(found) < count:
            part = self.connection.recv(count - len(found))
            if not part:
                raise ConnectionError("it has closed the connection")
            found += part
        return found
