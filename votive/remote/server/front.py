"""The front of a device server: listens, checks who comes, and hands each line to the process of its session."""

from __future__ import annotations

import contextlib
import hmac
import json
import os
import secrets
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...backends.remote import wire
from ...backends.remote.address import keep_alive
from ...backends.remote.wire import ProtocolError
from ...core.errors import DeviceError
from .relay import relay
from .session import tell
from .store import Store
from .worker import HANDED

# Seconds for a client to say who it is, and how many may be about to at once.
HELLO_TIME = 10.0
ARRIVING = 32


@dataclass
class Settings:
    """What a device server is started with. Limits are in bytes, times in seconds."""

    host: str = "127.0.0.1"
    port: int = 7070
    device: str = "cpu"
    token: str = ""
    certificate: str | None = None
    key: str | None = None
    memory: int | None = None  # of each client
    clients: int = 8
    grace: float = 600.0
    store: str | None = None  # a folder; otherwise one that goes with the server
    store_limit: int = 8 << 30
    threads: int | None = None


@dataclass
class _Worker:
    process: subprocess.Popen[bytes]
    control: socket.socket
    given: int = 0  # lines that were handed over
    ended: int = 0  # of them
    lock: threading.Lock = field(default_factory=threading.Lock)


class DeviceServer:
    """Listens until `close`. `votive device serve` is this.

    >>> from votive.remote.server.front import DeviceServer, Settings
    >>> with DeviceServer(Settings(port=0)) as server:
    ...     server.url.startswith("remote://127.0.0.1:")
    True
    """

    def __init__(self, settings: Settings) -> None:
        if not hasattr(socket, "send_fds"):
            raise DeviceError("votive device serve: a session is a process that is handed its line, which needs Unix.")
        self.settings = settings
        if not self.is_local and len(settings.token) < 16:
            raise ValueError(
                f"votive device serve: {settings.host} can be reached by others, so give a --token of at least 16 "
                "characters."
            )
        self._tls = _context(settings)
        self._own = None if settings.store else tempfile.mkdtemp(prefix="votive-device-")
        self._folder = Path(settings.store or str(self._own))
        self.store = Store(self._folder, settings.store_limit)
        self._workers: dict[str, _Worker] = {}
        self._lock = threading.Lock()
        self._arriving = threading.BoundedSemaphore(ARRIVING)
        self._closed = threading.Event()
        try:
            family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
            self._listener = socket.create_server((settings.host, settings.port), family=family, backlog=64)
        except OSError as e:
            self._forget()
            raise OSError(
                f"votive device serve: cannot listen on {settings.host}:{settings.port} ({e.strerror})."
            ) from e
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach it."""
        return self.settings.host in ("127.0.0.1", "::1", "localhost")

    @property
    def port(self) -> int:
        """The port that it listens on, also where 0 was asked for."""
        return int(self._listener.getsockname()[1])

    @property
    def url(self) -> str:
        """What clients connect to."""
        host = self.settings.host
        return f"remote://{f'[{host}]' if ':' in host else host}:{self.port}"

    def __enter__(self) -> DeviceServer:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def wait(self) -> None:
        """Until `close`, or Ctrl-C."""
        self._closed.wait()

    def close(self) -> None:
        """End all sessions and stop listening."""
        if self._closed.is_set():
            return
        self._closed.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            workers, self._workers = list(self._workers.values()), {}
        for w in workers:
            w.control.close()
            w.process.kill()
        for w in workers:
            w.process.wait()
        self._thread.join(10)
        self._forget()

    def _forget(self) -> None:
        if self._own is not None:
            shutil.rmtree(self._own, ignore_errors=True)

    # --- who comes ----------------------------------------------------------------------------

    def _listen(self) -> None:
        while not self._closed.is_set():
            try:
                line, _ = self._listener.accept()
            except OSError:
                return
            if not self._arriving.acquire(blocking=False):
                line.close()  # too many at once that have not said who they are
                continue
            threading.Thread(target=self._come_in, args=(line,), daemon=True).start()

    def _come_in(self, line: socket.socket) -> None:
        try:
            try:
                line, session = self._known(line)
            finally:
                self._arriving.release()
            if session is not None:
                self._hand_over(line, session or None)
        except (OSError, ProtocolError):
            pass
        finally:
            line.close()

    def _known(self, line: socket.socket) -> tuple[socket.socket, str | None]:
        """The line, with TLS where that is asked for, and the session that is wanted ("" for a new one); None when
        the client was refused.
        """
        line.settimeout(HELLO_TIME)
        keep_alive(line)
        if self._tls is not None:
            line = self._tls.wrap_socket(line, server_side=True)
        nonce = secrets.token_bytes(32)
        line.sendall(wire.GREETING.pack(wire.MAGIC, wire.VERSION, nonce))
        hello = _hello(line)
        if hello.get("version") != wire.VERSION:
            _refuse(line, f"this server speaks version {wire.VERSION} of the protocol")
            return line, None
        given = hello.get("proof")
        if self.settings.token:
            wanted = wire.proof(self.settings.token, nonce).hex()
            if not isinstance(given, str) or not hmac.compare_digest(given.encode(), wanted.encode()):
                _refuse(line, "the token is wrong; set VOTIVE_REMOTE_TOKEN, or pass token= to votive.remote.connect()")
                return line, None
        session = hello.get("session")
        return line, session if isinstance(session, str) and len(session) <= 64 else ""

    # --- processes ----------------------------------------------------------------------------

    def _hand_over(self, line: socket.socket, wanted: str | None) -> None:
        worker = self._worker(wanted)
        for _ in range(40):  # one that has said goodbye needs a moment to end
            if worker is not None or self._closed.wait(0.05):
                break
            worker = self._worker(wanted)
        if worker is None:
            _refuse(line, f"{self.settings.clients} clients are connected, which is the limit; try again later")
            return
        line.settimeout(None)
        if not isinstance(line, ssl.SSLSocket):
            self._give(worker, line)
            return
        ours, theirs = socket.socketpair()
        with ours:
            with theirs:
                self._give(worker, theirs)
            relay(line, ours)

    def _give(self, worker: _Worker, line: socket.socket) -> None:
        try:
            with worker.lock:
                worker.given += 1
                socket.send_fds(worker.control, [HANDED], [line.fileno()])
        except OSError:  # it has just ended
            worker.process.wait()
            raise

    def _worker(self, wanted: str | None) -> _Worker | None:
        """The process of a session, a new one unless it is still there; None when there are too many."""
        with self._lock:
            if self._closed.is_set():
                return None
            for name, w in list(self._workers.items()):
                if w.process.poll() is not None:
                    w.control.close()
                    del self._workers[name]
            if wanted in self._workers:
                return self._workers[wanted]
            if not self._workers:
                self.store.forget_contents()
            if len(self._workers) >= self.settings.clients and not self._make_room():
                return None
            name = secrets.token_hex(16)
            made = self._workers[name] = self._start(name)
            return made

    def _make_room(self) -> bool:
        """End the oldest session that nobody is connected to; whether there was one."""
        for name, w in self._workers.items():
            with contextlib.suppress(OSError), w.lock:
                w.ended += len(w.control.recv(1 << 12, socket.MSG_DONTWAIT))
            if w.given and w.ended == w.given:
                w.process.kill()
                w.process.wait()
                w.control.close()
                del self._workers[name]
                return True
        return False

    def _start(self, name: str) -> _Worker:
        s = self.settings
        ours, theirs = socket.socketpair()
        told = {
            "name": name,
            "device": s.device,
            "memory": s.memory,
            "grace": s.grace,
            "store": str(self._folder),
            "store_limit": s.store_limit,
            "threads": s.threads,
        }
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-m", "votive.remote.server.worker", str(theirs.fileno()), json.dumps(told)],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is for the front, which ends its processes
                env={k: v for k, v in os.environ.items() if k != "VOTIVE_REMOTE_TOKEN"},
            )
        return _Worker(process, ours)


def _context(settings: Settings) -> ssl.SSLContext | None:
    if settings.certificate is None:
        if settings.key is not None:
            raise ValueError("votive device serve: --tls-key goes with --tls-cert.")
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(settings.certificate, settings.key)
    return context


def _hello(line: socket.socket) -> dict[str, Any]:
    """The first frame of a client, which must be short."""
    until = time.monotonic() + HELLO_TIME
    (length,) = wire.FRAME.unpack(_read(line, wire.FRAME.size, until))
    if not 0 < length <= wire.HELLO_LIMIT:
        raise ProtocolError("a first frame of that size")
    hello = wire.unpacked(_read(line, length, until))
    if not isinstance(hello, dict):
        raise ProtocolError("a first frame that is no object")
    return hello


def _read(line: socket.socket, count: int, until: float) -> bytes:
    data = b""
    while len(data) < count:
        line.settimeout(max(until - time.monotonic(), 0.001))
        part = line.recv(count - len(data))
        if not part:
            raise ConnectionResetError("the client left")
        data += part
    return data


def _refuse(line: socket.socket, why: str) -> None:
    tell(line, wire.ERROR, wire.packed({"type": "RemoteError", "text": f"remote: refused: {why}."}))
