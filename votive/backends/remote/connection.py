"""One session with a server: messages are gathered and sent without waiting; answers are waited for. Knows bytes,
numbers of storages and plans; no tensors.

Messages go in frames. A frame is run as a whole or, when the connection breaks before it arrived, not at all, so that
both sides can say by counting frames what was done.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import socket
import ssl
import struct
import threading
import time
import weakref
from collections import deque
from typing import Any, NoReturn

from . import wire
from .address import Address, keep_alive
from .errors import RemoteConnectionError, RemoteError, raised
from .wire import ProtocolError

# What is gathered goes when it is so much, or when the last went so many seconds ago: the first messages of a burst go
# at once, so that the server computes while the rest is made. What then is left is sent by the thread behind.
GATHERED = 24 << 10
PAUSE = 0.0003
# The server is told of tensors that are gone when there are so many, or so many bytes of them.
FORGOTTEN, FORGOTTEN_BYTES = 64, 4 << 20
# What is told of plans and specs at once; servers allow twice as much.
PLANS, SPECS = 1 << 15, 1 << 15
# Seconds to wait for a connection, and for the first answer on it (a server may have to start a process).
CONNECT = 30.0
WELCOME = 120.0


class _Unwelcome(RemoteConnectionError):
    """A server that answers, but gives no session."""


class Connection:
    """A device elsewhere. `open` begins a session, `resume` goes on with it after the line broke."""

    def __init__(self, address: Address, index: int) -> None:
        self.address, self.index = address, index
        self._numbers = itertools.count(1)
        self.plan_numbers = itertools.count(1)
        self.spec_numbers = itertools.count(1)
        self.gone: deque[int] = deque()  # storages that nobody has any more
        self.gone_bytes = 0
        self.gone_plans: deque[int] = deque()
        self.live: dict[int, int] = {}  # storages there, and the frame that wrote them last
        self.plans: deque[weakref.ref[Any]] = deque()  # what has been told, oldest first, with `.frame`
        self.specs: dict[Any, tuple[int, int]] = {}  # spec -> number, the frame that told it
        self.uploaded: set[bytes] = set()  # digests of contents that the server has
        self.welcome: dict[str, Any] = {}
        self.session: str | None = None
        self.frame = 0  # how many frames were sent
        self.waits = self.messages = self.sent = self.received = 0
        self._socket: socket.socket | None = None
        self._flushed = 0.0
        self._patience = 0
        self.lock = threading.RLock()
        self._buffer = bytearray()
        self._wake = threading.Event()
        self._process = os.getpid()
        self._untold: RemoteConnectionError | None = None  # that the thread behind met, for the next use
        self._sender: threading.Thread | None = None
        self.lost: list[int] = []  # storages that the last break cost
        self.closed = False

    def __repr__(self) -> str:
        return f"<connection to {self.address.url}>"

    # --- begin, break, go on ------------------------------------------------------------------

    def open(self, again: bool = False) -> None:
        """Begin a session, or go on with the one that broke; that it broke is raised first unless asked to go on."""
        with self.lock:
            if self._socket is not None:
                return
            untold, self._untold = self._untold, None
            if untold is not None and not again:
                raise untold
            if self.closed:
                raise RemoteError(f"{self.address.url}: the connection was closed by votive.remote.disconnect().")
            for left in range(3, -1, -1):
                try:
                    return self._join()
                except _Unwelcome as e:
                    # The process of the session may be about to end, and the server not know it yet.
                    if self.session is None or not left:
                        raise RemoteConnectionError(str(e)) from e
                    time.sleep(0.2)

    def _join(self) -> None:
        line = self._dialled()
        try:
            greeting = _exactly(line, wire.GREETING.size)
            magic, version, nonce = wire.GREETING.unpack(greeting)
            if magic != wire.MAGIC:
                raise RemoteConnectionError(f"{self.address.url}: what answers there is not a votive device.")
            hello = {
                "version": wire.VERSION,
                "proof": wire.proof(self.address.token, nonce).hex(),
                "session": self.session,
            }
            body = wire.packed(hello)
            line.sendall(wire.FRAME.pack(len(body)) + body)
            if version != wire.VERSION:
                raise RemoteConnectionError(
                    f"{self.address.url}: the server speaks version {version} of the protocol, this votive version "
                    f"{wire.VERSION}; use the same votive on both sides."
                )
            line.settimeout(WELCOME)
            welcome = _answer(line)
        except (OSError, ProtocolError) as e:
            line.close()
            raise _Unwelcome(f"{self.address.url}: no session came about ({_why(e)}).") from e
        except BaseException:
            line.close()
            raise
        line.settimeout(None)
        self._begin(line, welcome)

    def _dialled(self) -> socket.socket:
        a = self.address
        try:
            line = socket.create_connection((a.host, a.port), CONNECT)
        except OSError as e:
            raise RemoteConnectionError(
                f"{a.url}: nothing answers there ({_why(e)}); start it with `votive device serve` on that machine."
            ) from e
        keep_alive(line)
        if a.ca is None:
            return line
        try:
            context = ssl.create_default_context(cafile=None if a.ca == "system" else a.ca)
            return context.wrap_socket(line, server_hostname=a.host)
        except (OSError, ssl.SSLError) as e:
            line.close()
            raise RemoteConnectionError(f"{a.url}: TLS failed ({_why(e)}).") from e

    def _begin(self, line: socket.socket, welcome: dict[str, Any]) -> None:
        again = self.session is not None and welcome["session"] == self.session
        done = welcome["frames"] if again else 0  # frames are counted from 0
        self.welcome, self.session = welcome, welcome["session"]
        self._patience = min(FORGOTTEN_BYTES, (welcome["memory"] or 1 << 60) // 64)
        self._socket = line
        self._buffer = bytearray()
        # What the server has not run is as if it had not been sent.
        for told in self.plans:
            plan = told()
            if plan is not None and plan.frame >= done:
                plan.frame = -1
        self.specs = {s: known for s, known in self.specs.items() if known[1] < done}
        self.lost = [n for n, frame in self.live.items() if frame >= done]
        for n in self.lost:
            del self.live[n]
        self.uploaded = {bytes.fromhex(d) for d in welcome.get("contents", ())}
        self.frame = done
        if again:
            gone = set(self.gone)
            self.live = {n: frame for n, frame in self.live.items() if n not in gone}
            kept = sorted(self.live)
            for i in range(0, max(len(kept), 1), 1 << 16):
                part = kept[i : i + (1 << 16)]
                last = b"\1" if i + (1 << 16) >= len(kept) else b"\0"
                self._buffer += wire.message(wire.KEEP, last + b"".join(map(wire.STORAGE.pack, part)))
        self.gone.clear()
        from .rows import add_rows  # which knows connections

        add_rows(welcome["operators"])
        if self._sender is None:
            self._sender = threading.Thread(target=_send_later, args=(weakref.ref(self), self._wake), daemon=True)
            self._sender.start()

    def _drop(self) -> None:
        """Close the line and forget what was gathered; the next use connects again."""
        if self._socket is not None:
            self._socket.close()
        self._socket, self._buffer = None, bytearray()

    def _broke(self, cause: BaseException) -> NoReturn:
        """Close the line, and say once what that means."""
        self._drop()
        count = len(set(self.live) - set(self.gone))
        error = RemoteConnectionError(
            f"{self.address.url}: the connection broke ({_why(cause)}). {count} tensors are there; the server keeps "
            f"them for {self.welcome.get('grace', 0)} s. votive.remote.resume({self.device!r}) connects again and says "
            "which are lost; so does the next use. What votive.remote.save() kept stays as long as the server runs."
        )
        if threading.current_thread() is self._sender:
            self._untold = error
        raise error from cause

    @property
    def device(self) -> str:
        return f"remote:{self.index}"

    @property
    def is_own(self) -> bool:
        """Whether this process made it, not one that it was forked from."""
        return self._process == os.getpid()

    @property
    def is_open(self) -> bool:
        return self._socket is not None

    def close(self, within: float | None = None) -> None:
        """End the session: the server frees what it holds. `within` so many seconds, or it finds out itself."""
        with self.lock:
            if self._socket is not None:
                self._socket.settimeout(within)
                with contextlib.suppress(RemoteError, OSError):
                    self._ask(wire.BYE, b"")
            self._drop()
            self.closed = True
            self._wake.set()

    def number(self) -> int:
        """The number of a new storage; the results of one call are numbered on from there."""
        return next(self._numbers) << 20

    # --- sending ------------------------------------------------------------------------------

    def send(self, data: bytes, *written: int) -> None:
        """Gather a message that writes these storages; sends when enough is gathered."""
        with self.lock:
            if self._socket is None:
                self.open()
            frame = self.frame
            if self.gone_bytes > self._patience or len(self.gone) > FORGOTTEN:
                self._farewells()  # before what comes, so that its memory can be used for that
            for n in written:
                self.live[n] = frame
            self._buffer += data
            self.messages += 1
            if len(self._buffer) > GATHERED or time.perf_counter() - self._flushed > PAUSE:
                self.flush()
            elif not self._wake.is_set():
                self._wake.set()

    def flush(self) -> None:
        """Send what was gathered."""
        with self.lock:
            if self._socket is None:
                return
            if os.getpid() != self._process:
                raise RemoteError(
                    f"{self.address.url}: this process was forked from the one that connected; connect in each process."
                )
            self._farewells()
            if not self._buffer:
                return
            self.frame += 1
            self.sent += len(self._buffer) + 4
            line = self._socket
            try:
                line.sendall(wire.FRAME.pack(len(self._buffer)) + self._buffer)
            except OSError as e:
                self._broke(e)
            except BaseException:  # such as Ctrl-C: part of the frame may have gone
                self._drop()
                raise
            self._buffer = bytearray()
            self._flushed = time.perf_counter()

    def _farewells(self) -> None:
        self.gone_bytes = 0
        for waiting, kind, how in ((self.gone, wire.FREE, "Q"), (self.gone_plans, wire.FORGET, "I")):
            if not waiting:
                continue
            numbers = [waiting.popleft() for _ in range(min(len(waiting), 1 << 16))]
            if kind == wire.FREE:
                numbers = [n for n in numbers if self.live.pop(n, None) is not None]
            if numbers:
                self._buffer += wire.message(kind, struct.pack(f"<{len(numbers)}{how}", *numbers))

    # --- waiting ------------------------------------------------------------------------------

    def ask(self, kind: int, body: bytes, *written: int) -> Any:
        """Send a message and wait for its answer: JSON, or an array of bytes."""
        with self.lock:
            if self._socket is None:
                self.open()
            for n in written:
                self.live[n] = self.frame
            return self._ask(kind, body)

    def _ask(self, kind: int, body: bytes) -> Any:
        self._farewells()
        self._buffer += wire.message(kind, body)
        self.messages += 1
        self.flush()
        self.waits += 1
        line = self._socket
        assert line is not None
        try:
            return _answer(line, self)
        except (OSError, ProtocolError) as e:
            self._broke(e)
        except KeyboardInterrupt:
            self._drop()  # the answer would come later, and be taken for that of another question
            raise

    def holds(self, numbers: range) -> None:
        """Remember storages that an answer told of."""
        with self.lock:
            for n in numbers:
                self.live[n] = self.frame - 1

    def wait(self) -> None:
        """Until everything sent was run; raises what went wrong meanwhile."""
        self.ask(wire.WAIT, b"")

    def spec_number(self, spec: Any) -> int:
        """The number of a spec, told to the server at its first use."""
        with self.lock:
            if self._socket is None:
                self.open()
            known = self.specs.get(spec)
            if known is None:
                if len(self.specs) >= SPECS:
                    self.specs.clear()
                    self.spec_numbers = itertools.count(1)  # the same numbers mean others from here on
                number = next(self.spec_numbers)
                self.send(wire.message(wire.SPEC, wire.COUNT.pack(number) + wire.packed(wire.spec_data(spec))))
                known = self.specs[spec] = number, self.frame
            return known[0]

    def told(self, plan: Any) -> None:
        """Remember that a plan was told; of too many the oldest are forgotten on both sides, and told again when they
        are met again.
        """
        self.plans.append(weakref.ref(plan))
        while len(self.plans) > PLANS:
            old = self.plans.popleft()()
            if old is not None and old is not plan:
                old.forget()

    def status(self) -> dict[str, Any]:
        """What `votive.remote.status` shows."""
        w = self.welcome
        return {
            "url": self.address.url,
            "connected": self.is_open,
            "device": w.get("device"),
            "version": w.get("votive"),
            "memory_limit": w.get("memory"),
            "tensors": len(self.live),
            "round_trips": self.waits,
            "messages": self.messages,
            "bytes_sent": self.sent,
            "bytes_received": self.received,
        }


def _why(e: BaseException) -> str:
    return str(e) or type(e).__name__


def _exactly(line: socket.socket, count: int) -> bytearray:
    """So many bytes of the line."""
    data = bytearray(count)
    view, at = memoryview(data), 0
    while at < count:
        got = line.recv_into(view[at:], min(count - at, 1 << 20))
        if not got:
            raise ConnectionResetError("the server closed the line")
        at += got
    return data


def _answer(line: socket.socket, counted: Connection | None = None) -> Any:
    """One answer: what JSON says, bytes, or the error that it describes raised."""
    (length,) = wire.FRAME.unpack(_exactly(line, 4))
    if not 1 <= length <= wire.FRAME_LIMIT:
        raise ProtocolError(f"an answer of {length} bytes")
    data = _exactly(line, length)
    if counted is not None:
        counted.received += length + 4
    kind, body = data[0], memoryview(data)[1:]
    if kind == wire.OK:
        return wire.unpacked(body)
    if kind == wire.ERROR:
        raise raised(wire.unpacked(body))
    if kind != wire.VALUES or len(body) < 8:
        raise ProtocolError("an answer of no known kind")
    (total,) = wire.STORAGE.unpack(body[:8])
    if len(body) - 8 == total:
        return data[9:]
    whole = bytearray(total)
    at = len(body) - 8
    whole[:at] = body[8:]
    view = memoryview(whole)
    while at < total:
        got = line.recv_into(view[at:], min(total - at, 1 << 20))
        if not got:
            raise ConnectionResetError("the server closed the line in the midst of an answer")
        at += got
    if counted is not None:
        counted.received += total
    return whole


def _send_later(of: weakref.ref[Connection], wake: threading.Event) -> None:
    """The thread behind a connection: what was gathered goes soon, also when nobody asks for anything."""
    while True:
        wake.wait()
        time.sleep(PAUSE)
        wake.clear()
        connection = of()
        if connection is None or connection.closed:
            return
        with contextlib.suppress(RemoteError, OSError):  # the next use finds the line closed, and says so
            connection.flush()
        del connection
