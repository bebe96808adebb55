"""A page without a browser: connects, asks, waits for answers."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from votive.studio import demo
from votive.studio.models import Loaded
from votive.studio.protocol import unpack
from votive.studio.server import Studio


def loaded(**sizes: Any) -> Loaded:
    """The demo model as a studio holds it."""
    return Loaded("demo", demo.model(**sizes), demo.tokenizer())


class Awake(threading.Thread):
    """A clock that stands still while the whole process does: a machine may stop it for minutes."""

    def __init__(self) -> None:
        super().__init__(name="awake", daemon=True)
        self.now = 0.0
        self.stopped = 0.0  # seconds that were lost
        self.start()

    def run(self) -> None:
        before = time.monotonic()
        while True:
            time.sleep(0.1)
            now = time.monotonic()
            passed, before = now - before, now
            self.now += min(passed, 1.0)
            self.stopped += max(0.0, passed - 1.0)


AWAKE = Awake()


class Refused(Exception):
    """An error that the server reply."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(f"{error['type']}: {error['message']}")
        self.error = error


class Cancelled(Exception):
    """A request that was cancelled."""


class Page:
    """One connection; replies are matched with requests, events are kept."""

    def __init__(self, studio: Studio, *, workspace: str | None = None, **options: Any) -> None:
        origin = f"http://127.0.0.1:{studio.port}"
        cookie = f"votive_studio_{studio.port}={studio.token}"
        options.setdefault("additional_headers", {"cookie": cookie})
        self._closing = ExitStack()
        opened = connect(
            f"ws://127.0.0.1:{studio.port}/ws",
            origin=origin,
            max_size=None,
            proxy=None,
            compression=None,
            close_timeout=2,
            **options,
        )
        self.socket = self._closing.enter_context(opened)
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.replies: dict[Any, tuple[dict[str, Any], dict[str, Any]]] = {}
        self.bytes = 0
        self._next = 0
        self.socket.send(json.dumps({"workspace": workspace}))
        self.hello = self.event("hello")
        self.workspace = self.hello["workspace"]

    def send(self, do: str, args: dict[str, Any] | None = None, slot: str | None = None) -> int:
        """Ask without waiting; gives the id."""
        self._next += 1
        said = {"id": self._next, "do": do, "args": args or {}, "slot": slot}
        self.socket.send(json.dumps(said))
        return self._next

    def take(self, timeout: float = 60.0) -> None:
        """Read one frame."""
        end = AWAKE.now + timeout
        while True:
            try:
                frame = self.socket.recv(min(1.0, timeout))
                break
            except TimeoutError:
                if AWAKE.now >= end:
                    raise
        self.bytes += len(frame)
        header, blobs = unpack(frame)
        if "event" in header:
            self.events.append((header["event"], header["data"]))
        else:
            self.replies[header["id"]] = (header, blobs)

    def event(self, name: str, timeout: float = 60.0) -> dict[str, Any]:
        """The next event of a name; those before it are dropped."""
        end = AWAKE.now + timeout
        while True:
            while self.events:
                got, data = self.events.pop(0)
                if got == name:
                    return data
            self.take(max(0.0, end - AWAKE.now))

    def wait(self, id: Any, timeout: float = 60.0) -> dict[str, Any]:
        """The data of a reply, with its blobs; events in between do not make it wait longer."""
        end = AWAKE.now + timeout
        while id not in self.replies:
            self.take(max(0.0, end - AWAKE.now))
        header, blobs = self.replies.pop(id)
        if header.get("cancelled"):
            raise Cancelled
        if not header["ok"]:
            raise Refused(header["error"])
        return {**header["data"], **blobs}

    def ask(self, do: str, **args: Any) -> dict[str, Any]:
        """Ask and wait; more slowly when that is asked for."""
        while True:
            try:
                return self.wait(self.send(do, args))
            except Refused as e:
                if e.error["type"] != "SlowDown":
                    raise
                time.sleep(0.3)

    def raw(self, frame: str | bytes) -> dict[str, Any]:
        """Send anything, and give the error that is told."""
        self.socket.send(frame)
        before = set(self.replies)
        while not set(self.replies) - before:
            self.take()
        (id,) = set(self.replies) - before
        header, _ = self.replies.pop(id)
        return header

    def close(self) -> None:
        self._closing.close()

    def __enter__(self) -> Page:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


@contextmanager
def studio(folder: Any, model: Any = None, **options: Any) -> Iterator[Studio]:
    """A studio in a thread, on the demo model."""
    before = rooms_at_work()
    with Studio(loaded() if model is None else model, folder=folder, **options) as one:
        yield one
    assert rooms_at_work() <= before, "threads are left"


def rooms_at_work() -> set[threading.Thread]:
    """The threads of workspaces."""
    return {t for t in threading.enumerate() if t.name.startswith("workspace ")}


__all__ = ["Cancelled", "ConnectionClosed", "Page", "Refused", "loaded", "rooms_at_work", "studio"]
