"""A server inside the test's own process: the same sessions and lines, without a process for each."""

from __future__ import annotations

import contextlib
import secrets
import socket
import threading
from pathlib import Path
from types import TracebackType
from typing import Any

import votive
from votive.backends.remote import wire
from votive.remote.server.serving import serve, welcome
from votive.remote.server.session import Session
from votive.remote.server.store import Store

VERSION = wire.VERSION


class Ground:
    """Accepts lines like the front does, and runs sessions in threads."""

    def __init__(self, folder: Path, *, limit: int | None = None, grace: float = 600.0) -> None:
        self.folder, self.limit, self.grace = folder, limit, grace
        self.sessions: dict[str, Session] = {}
        self.lines: list[socket.socket] = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"remote://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._listen, daemon=True).start()

    def __enter__(self) -> Ground:
        return self

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, trace: TracebackType | None) -> None:
        self.listener.close()
        self.break_lines()

    def break_lines(self) -> None:
        """What a broken network does."""
        for line in self.lines:
            with contextlib.suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)
        self.lines.clear()

    def connect(self, **options: Any) -> votive.device:
        """A session of its own."""
        return votive.remote.connect(self.url, new=True, **options)

    def _listen(self) -> None:
        while True:
            try:
                line, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(line,), daemon=True).start()

    def _serve(self, line: socket.socket) -> None:
        with line:
            line.sendall(wire.GREETING.pack(wire.MAGIC, VERSION, bytes(32)))
            (size,) = wire.FRAME.unpack(line.recv(4, socket.MSG_WAITALL))
            hello = wire.unpacked(line.recv(size, socket.MSG_WAITALL))
            name = hello["session"]
            if name not in self.sessions:
                name = secrets.token_hex(8)
                self.sessions[name] = Session(votive.device("cpu"), Store(self.folder, 1 << 28), self.limit)
            session = self.sessions[name]
            self.lines.append(line)
            serve(session, line, told=welcome(session, name, self.grace))
            if session.ended:
                del self.sessions[name]
