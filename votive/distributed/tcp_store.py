"""A store that one process serves and all others ask by sockets. Knows requests, not what they are for.

A request is a number of parts, each with its length in front. What comes from the network is believed in nothing: a
request of a wrong form ends its connection.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from datetime import timedelta

from .errors import DistNetworkError, DistStoreError
from .store import POLL, HashStore, Store, as_bytes, seconds

# The most that one request may say; what is kept here are addresses and counters.
_LARGEST = 64 << 20


def _send(connection: socket.socket, *parts: bytes) -> None:
    body = b"".join(struct.pack("<I", len(part)) + part for part in parts)
    connection.sendall(struct.pack("<II", len(parts), len(body)) + body)


def _exactly(connection: socket.socket, count: int) -> bytes:
    found = bytearray()
    while len(found) < count:
        part = connection.recv(min(1 << 16, count - len(found)))
        if not part:
            raise ConnectionError("the other end closed the connection")
        found += part
    return bytes(found)


def _receive(connection: socket.socket) -> list[bytes]:
    count, size = struct.unpack("<II", _exactly(connection, 8))
    if size > _LARGEST or count > size // 4 + 1:
        raise ConnectionError(f"a request of {size:,} bytes")
    body, parts, at = _exactly(connection, size), [], 0
    for _ in range(count):
        if at + 4 > size:
            raise ConnectionError("a request that is cut")
        (length,) = struct.unpack_from("<I", body, at)
        parts.append(body[at + 4 : at + 4 + length])
        at += 4 + length
    if at != size:
        raise ConnectionError("a request that does not add up")
    return parts


class _Server:
    """Answers the requests of all processes for one `HashStore`; a thread for each connection."""

    def __init__(self, host: str, port: int) -> None:
        self.store = HashStore()
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.listener = socket.create_server(("", port), family=family)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, name="store", daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        s = self.store
        with contextlib.suppress(OSError, ValueError, KeyError, IndexError, struct.error), connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while True:
                name, *rest = _receive(connection)
                key = rest[0].decode() if rest else ""
                if name == b"set":
                    s.set(key, rest[1])
                    _send(connection)
                elif name == b"find":
                    found = s.find(key)
                    _send(connection, *([] if found is None else [found]))
                elif name == b"add":
                    _send(connection, str(s.add(key, int(rest[1]))).encode())
                elif name == b"append":
                    s.append(key, rest[1])
                    _send(connection)
                elif name == b"compare_set":
                    _send(connection, s.compare_set(key, rest[1], rest[2]))
                elif name == b"delete":
                    _send(connection, b"1" if s.delete_key(key) else b"")
                elif name == b"count":
                    _send(connection, str(s.num_keys()).encode())
                else:
                    return

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.listener.close()


class TCPStore(Store):
    """A store that one process serves and all others ask over the network.

    >>> store = votive.distributed.TCPStore("127.0.0.1", 0, is_master=True)
    >>> store.set("a", "1")
    >>> votive.distributed.TCPStore("127.0.0.1", store.port).get("a")
    b'1'
    """

    def __init__(
        self,
        host_name: str,
        port: int,
        world_size: int | None = None,
        is_master: bool = False,
        timeout: timedelta = timedelta(seconds=300),
        wait_for_workers: bool = True,
    ) -> None:
        self.host, self.timeout, self.world_size = host_name, timeout, world_size
        self._server: _Server | None = None
        if is_master:
            try:
                self._server = _Server(host_name, port)
            except OSError as e:
                raise DistNetworkError(
                    f"The server socket has failed to listen on port {port} of this machine: {e.strerror or e}."
                ) from None
            port = self._server.port
        self.port = port
        self._lock = threading.Lock()
        self._connection = self._connect(seconds(timeout))
        if world_size is not None and world_size > 1 and wait_for_workers:
            self.add("init/", 1)
            end = time.monotonic() + seconds(timeout)
            while int(self.find("init/") or 0) < world_size:
                if time.monotonic() > end:
                    raise DistStoreError(
                        f"Timed out after {seconds(timeout):.0f} seconds waiting for clients. "
                        f"{int(self.find('init/') or 0)}/{world_size} clients joined."
                    )
                time.sleep(POLL)

    def _connect(self, limit: float) -> socket.socket:
        end, wait = time.monotonic() + limit, 0.02
        while True:
            try:
                found = socket.create_connection(
                    ("127.0.0.1" if self._server else self.host, self.port), timeout=max(limit, 1.0)
                )
                found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return found
            except OSError as e:
                if time.monotonic() + wait > end:
                    raise DistNetworkError(
                        f"The client socket has timed out after {limit:.0f}s while trying to connect to "
                        f"({self.host}, {self.port}): {e.strerror or e}."
                    ) from None
                time.sleep(wait)
                wait = min(2 * wait, 1.0)

    def _ask(self, *parts: bytes) -> list[bytes]:
        with self._lock:
            try:
                _send(self._connection, *parts)
                return _receive(self._connection)
            except OSError as e:
                raise DistNetworkError(
                    f"the process that serves the store at {self.host}:{self.port} is gone: {e}."
                ) from None

    def set(self, key: str, value: str | bytes) -> None:
        self._ask(b"set", key.encode(), as_bytes(value))

    def find(self, key: str) -> bytes | None:
        found = self._ask(b"find", key.encode())
        return found[0] if found else None

    def add(self, key: str, amount: int) -> int:
        return int(self._ask(b"add", key.encode(), str(amount).encode())[0])

    def append(self, key: str, value: str | bytes) -> None:
        self._ask(b"append", key.encode(), as_bytes(value))

    def compare_set(self, key: str, expected_value: str | bytes, desired_value: str | bytes) -> bytes:
        return self._ask(b"compare_set", key.encode(), as_bytes(expected_value), as_bytes(desired_value))[0]

    def delete_key(self, key: str) -> bool:
        return bool(self._ask(b"delete", key.encode())[0])

    def num_keys(self) -> int:
        return int(self._ask(b"count")[0])

    def close(self) -> None:
        """End the connection, and the service if it is here."""
        with contextlib.suppress(OSError):
            self._connection.close()
        if self._server is not None:
            self._server.close()

    def __del__(self) -> None:
        if hasattr(self, "_connection"):
            self.close()
