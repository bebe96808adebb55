"""One tab's connection: reads requests, keeps their order and limits, writes what comes back.

Runs in the event loop; the work itself is done in the workspace's thread. Knows no actions by name.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from starlette.websockets import WebSocket, WebSocketDisconnect

from .._version import __version__
from . import protocol
from .actions import actions
from .jobs import Job
from .workspace import Workspace, error_json
from .workspaces import Workspaces

if TYPE_CHECKING:
    from .protocol import Blobs


# A page that draws all its views for each token of a small model asks for some hundred things a second.
REQUESTS_A_SECOND, BYTES_A_SECOND = 150, 20 << 20
# Requests that wait, and bytes that a page has not read yet: then it is too slow to be kept.
WAITING, BACKLOG = 200, 64 << 20
# Seconds in which a page says who it is, and in which it takes a frame.
FIRST, SLOW = 5.0, 30.0


class Rate:
    """How often something may happen: at most `count` in any second.

    >>> from votive.studio.connection import Rate
    >>> rate = Rate(2)
    >>> [rate.take(now) for now in (0.0, 0.1, 0.2, 1.05)]
    [True, True, False, True]
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self._times: deque[float] = deque()

    def take(self, now: float | None = None) -> bool:
        now = time.monotonic() if now is None else now
        while self._times and self._times[0] <= now - 1.0:
            self._times.popleft()
        if len(self._times) >= self.count:
            return False
        self._times.append(now)
        return True


class Connection:
    """One WebSocket and the workspace behind it."""

    def __init__(self, socket: WebSocket, workspaces: Workspaces) -> None:
        self.socket, self.workspaces = socket, workspaces
        self.workspace: Workspace | None = None
        self._loop = asyncio.get_running_loop()
        self._jobs: dict[int, Job] = {}
        self._slots: dict[str, int] = {}
        self._rate = Rate(REQUESTS_A_SECOND)
        self._out: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._backlog = 0
        self._ended = False

    async def serve(self, first: str | bytes | None = None) -> None:
        """Read and write until either side ends; `first` is a frame that was read already."""
        writer = asyncio.create_task(self._write())
        try:
            await self._read(first)
        except WebSocketDisconnect:
            pass
        finally:
            self._ended = True
            for job in self._jobs.values():
                job.cancel()
            if self.workspace is not None and getattr(self.workspace, "connection", None) is self:
                self.workspace.connection = None
                self.workspaces.leave(self.workspace)
            self._out.put_nowait(None)
            writer.cancel()
            await asyncio.gather(writer, return_exceptions=True)

    # --- reading ------------------------------------------------------------------------------

    async def _read(self, first: str | bytes | None) -> None:
        frame = first
        if frame is None:
            # A page says first which workspace it had, or that it had none. On a busy machine that may
            # take a while, and who is given a new workspace meanwhile has lost the old one.
            try:
                frame = await asyncio.wait_for(receive(self.socket), FIRST)
            except TimeoutError:
                self._enter(None)
        while not self._ended:
            if frame is not None:
                self._take(frame)
                # Without this, a page that never stops asking would be the only one heard.
                await asyncio.sleep(0)
            frame = await receive(self.socket)

    def _take(self, frame: str | bytes) -> None:
        try:
            said = protocol.read(frame)
        except protocol.BadFrame as e:
            if self._rate.take():
                self._error(e.id, e)
            else:
                self._slow_down(e.id)
            return
        if isinstance(said, protocol.Enter):
            if self.workspace is None:
                self._enter(said.workspace)
            return
        if self.workspace is None:
            self._enter(None)
        if isinstance(said, protocol.Cancel):
            self._cancel(said.id)
        elif not self._rate.take():
            self._slow_down(said.id)
        else:
            try:
                self._request(said)
            except Exception as e:  # whatever it is, the page stays connected
                self._jobs.pop(said.id, None)
                self._error(said.id, e)

    def _enter(self, id: str | None) -> None:
        workspace, fresh = self.workspaces.enter(id)
        self.workspace = workspace
        before = workspace.connection
        workspace.connection = self
        if before is not None:
            before.bye("This session was opened in another window.")
        loading = workspace.loading if workspace.loading is not None else self.workspaces.library.request()
        loaded = loading.loaded
        self.tell(
            "hello",
            {
                "version": __version__,
                "workspace": workspace.id,
                "fresh": fresh,
                "model": None if loaded is None else {k: v for k, v in loaded.info().items() if k != "tree"},
                "loading": None if loading.finished else loading.to_json(),
                "autosaved": [one.to_json() for one in self.workspaces.autosaves.orphans()],
                "limits": {"requests": REQUESTS_A_SECOND, "bytes": protocol.LARGEST},
            },
        )

    def _request(self, said: protocol.Request) -> None:
        assert self.workspace is not None
        if said.id in self._jobs:
            self._error(said.id, ValueError(f"the request {said.id} is still being worked on."))
            return
        action = actions().get(said.do)
        if action is None:
            self._error(said.id, LookupError(f"there is no action {said.do!r:.100}."))
            return
        if len(self._jobs) >= WAITING:
            self._slow_down(said.id)
            return
        if said.slot is not None:
            older = self._slots.get(said.slot)
            if older is not None:
                self._cancel(older)
            self._slots[said.slot] = said.id
        job = Job(self.workspace, said.do, self.tell_from_thread, said.id)
        self._jobs[said.id] = job

        def answer(header: dict[str, Any], blobs: dict[str, Any] | None) -> None:
            frame = _frame({"id": said.id, **header}, blobs, said.id)
            self._in_loop(lambda: self._answered(said, frame))

        self.workspace.submit(job, action, said.args, answer)

    def _answered(self, said: protocol.Request, frame: bytes) -> None:
        self._jobs.pop(said.id, None)
        if said.slot is not None and self._slots.get(said.slot) == said.id:
            del self._slots[said.slot]
        self._put(frame)

    def _cancel(self, id: int) -> None:
        job = self._jobs.get(id)
        if job is not None:
            job.cancel()

    def _slow_down(self, id: int | None) -> None:
        message = f"Slow down: at most {REQUESTS_A_SECOND} requests a second are answered."
        self._put(
            protocol.write({"id": id, "ok": False, "error": {"type": "SlowDown", "message": message, "address": None}})
        )

    # --- writing ------------------------------------------------------------------------------

    def tell(self, event: str, data: dict[str, Any], blobs: protocol.Blobs | None = None) -> None:
        """Send an event; to be called in the event loop."""
        self._put(protocol.write({"event": event, "data": data}, blobs))

    def bye(self, text: str) -> None:
        """Tell why, and end."""
        self.tell("bye", {"text": text})
        self._out.put_nowait(None)

    def tell_from_thread(self, event: str, data: dict[str, Any], blobs: Blobs | None = None) -> None:
        """Send an event from a workspace's thread."""
        self._in_loop(lambda: self.tell(event, data, blobs))

    def _in_loop(self, call: Callable[[], None]) -> None:
        with contextlib.suppress(RuntimeError):  # of a server that has ended
            self._loop.call_soon_threadsafe(call)

    def _error(self, id: int | None, error: Exception) -> None:
        self._put(protocol.write({"id": id, "ok": False, "error": error_json(error)}))

    def _put(self, frame: bytes) -> None:
        if self._ended:
            return
        self._backlog += len(frame)
        if self._backlog > BACKLOG:
            self._ended = True  # it does not read what it asks for
            self._out.put_nowait(None)
            return
        self._out.put_nowait(frame)

    async def _write(self) -> None:
        """Send frames in order, at most so many bytes a second."""
        allowed, last = float(BYTES_A_SECOND), time.monotonic()
        try:
            while (frame := await self._out.get()) is not None:
                now = time.monotonic()
                allowed = min(BYTES_A_SECOND, allowed + (now - last) * BYTES_A_SECOND)
                last = now
                if allowed < 0:
                    await asyncio.sleep(-allowed / BYTES_A_SECOND)
                allowed -= len(frame)
                await asyncio.wait_for(self.socket.send_bytes(frame), SLOW)
                self._backlog -= len(frame)
        except (TimeoutError, WebSocketDisconnect, RuntimeError, OSError):
            pass
        self._ended = True
        with contextlib.suppress(TimeoutError, RuntimeError, WebSocketDisconnect, OSError):
            await asyncio.wait_for(self.socket.close(1000), 1.0)


async def receive(socket: WebSocket) -> str | bytes:
    """The next frame."""
    message = await socket.receive()
    if message["type"] != "websocket.receive":
        raise WebSocketDisconnect(message.get("code", 1006))
    text = message.get("text")
    return text if text is not None else message.get("bytes") or b""


def _frame(header: dict[str, Any], blobs: dict[str, Any] | None, id: int) -> bytes:
    try:
        return protocol.write(header, blobs)
    except Exception as e:  # a reply that cannot be written must not leave its page waiting
        return protocol.write({"id": id, "ok": False, "error": error_json(e)})
