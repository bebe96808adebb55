"""Running the studio: a port, a token, a server that ends cleanly. Knows no actions."""

from __future__ import annotations

import asyncio
import errno
import os
import secrets
import socket
import sys
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from .app import STATIC, Gate, build
from .models import ModelLibrary
from .protocol import READ
from .shelf import Shelf
from .workspaces import GRACE, Workspaces

FOLDER = "votive-sessions"
# Connections of any kind, and seconds in which one must have asked for something.
OPEN, PATIENCE = 256, 10.0


class _Patient(H11Protocol):
    """HTTP that drops whoever connects and does not ask, or is one too many."""

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._began = self.loop.time()
        if len(self.connections) > OPEN and not self._freed_slot():
            transport.abort()
            return
        self._late = self.loop.call_later(PATIENCE, self._drop)

    def _freed_slot(self) -> bool:
        """Whether one that has asked for nothing yet could be dropped for this one.

        Else whoever opens many and says nothing would keep the owner out.
        """
        open_ = [c for c in self.connections if isinstance(c, _Patient)]
        silent = [c for c in open_ if c is not self and c.cycle is None]
        if not silent:
            return False
        oldest = min(silent, key=lambda c: c._began)
        oldest.transport.abort()
        self.connections.discard(oldest)
        return True

    def _cancel_timer(self) -> None:
        timer, self._late = self._late, None
        if timer is not None:
            timer.cancel()

    def _drop(self) -> None:
        if not self.transport.is_closing() and self.cycle is None:
            self.transport.abort()

    def handle_events(self) -> None:
        super().handle_events()
        if self.cycle is not None:
            self._cancel_timer()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self.transport.is_closing() and self._late is None:
            # The next request on this connection must come whole in time, too.
            self._late = self.loop.call_later(PATIENCE, self._drop_idle)

    def _drop_idle(self) -> None:
        self._late = None
        if not self.transport.is_closing() and (self.cycle is None or self.cycle.response_complete):
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_timer()
        super().connection_lost(exc)

    def handle_websocket_upgrade(self, event: Any) -> None:
        self._cancel_timer()
        super().handle_websocket_upgrade(event)


class Studio:
    """A studio on a port of this machine.

    >>> from votive.studio.server import Studio
    >>> studio = Studio("demo")
    >>> studio.url.startswith("http://127.0.0.1:"), len(studio.token)
    (True, 43)
    >>> studio.close()
    """

    def __init__(
        self,
        model: Any = None,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        folder: str | Path | None = None,
        token: str | None = None,
        grace: float = GRACE,
        static: Path = STATIC,
        autosave: bool = True,
        models: Iterable[str | os.PathLike[str]] | None = None,
    ) -> None:
        shelf = Shelf(models)  # an error before a port is taken
        self.host = host
        self.token = secrets.token_urlsafe(32) if token is None else token
        self.folder = Path(FOLDER if folder is None else folder).absolute()
        self._socket = _bound(host, port)
        self.port = int(self._socket.getsockname()[1])
        self.library = ModelLibrary(self.folder, model, shelf)
        self.workspaces = Workspaces(self.library, self.folder, grace, autosave=autosave)
        self.app = build(Gate(self.token, self.port, host), self.workspaces, static=static)
        config = uvicorn.Config(
            self.app,
            http=_Patient,
            ws="websockets-sansio",
            ws_max_size=READ,
            ws_max_queue=8,
            ws_ping_interval=20.0,
            ws_ping_timeout=20.0,
            ws_per_message_deflate=False,
            log_level="critical",
            access_log=False,
            server_header=False,
            date_header=False,
            timeout_keep_alive=5,
            timeout_graceful_shutdown=2,
            h11_max_incomplete_event_size=16384,
            lifespan="on",
        )
        self.server = uvicorn.Server(config)
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """The address of the page, with the token."""
        name = "127.0.0.1" if self.host in ("0.0.0.0", "::", "") else self.host
        name = f"[{name}]" if ":" in name else name
        return f"http://{name}:{self.port}/?token={self.token}"

    def run(self) -> None:
        """Serve until `stop`, or until the process is asked to end."""
        try:
            self.server.run(sockets=[self._socket])
        except KeyboardInterrupt:  # how it is meant to end
            print("\nStopped by Ctrl-C.", file=sys.stderr)
        self.close()

    def start(self) -> Studio:
        """Serve in a thread of its own."""
        self._thread = threading.Thread(target=self.run, name="studio", daemon=True)
        self._thread.start()
        while not self.server.started and self._thread.is_alive():
            time.sleep(0.005)
        return self

    def stop(self) -> None:
        """End, and wait for it."""
        self.server.should_exit = True
        if self._thread is not None:
            self._thread.join(15)

    def close(self) -> None:
        """Give the port back."""
        self._socket.close()

    def __enter__(self) -> Studio:
        return self.start()

    def __exit__(self, *exc: object) -> None:
        self.stop()


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Only sockets that say TCP send small frames at once.
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((host, port))
        made.listen(128)  # who comes before the server is up waits, and is not refused
    except OSError as e:
        made.close()
        if isinstance(e, socket.gaierror):
            text = f"this machine does not know the address {host!r}; leave out --host"
        elif e.errno == errno.EADDRINUSE:
            text = (
                f"port {port} is in use, perhaps by another studio; choose another with "
                "--port, or leave it out to take a free one"
            )
        else:
            text = f"port {port} of {host} cannot be opened ({e.strerror}); leave out --port"
        raise OSError(f"studio: {text}.") from None
    return made
