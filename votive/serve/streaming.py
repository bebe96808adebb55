"""Passing an engine's events on to a connection: as they come, or when all are there; gone clients end their work."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from .errors import of_request
from .events import Done, Event, Failed
from .request_parsing import Asked
from .text import Ticket

STALLED = 30.0  # seconds in which a client must take what it has asked for


class Gone(Exception):
    """The client has closed its connection."""


class Following:
    """A request on its way, as an asynchronous iterator of events; leaving it ends the request."""

    def __init__(self, asked: Asked) -> None:
        self._loop = asyncio.get_running_loop()
        self._events: asyncio.Queue[Event] = asyncio.Queue()
        self._asked = asked
        self.ticket: Ticket | None = None

    def begin(self) -> None:
        """Hand the request to the engine; may be called from another thread."""
        self.ticket = self._asked.writer.engine.submit(self._asked.request, self._hear)

    def _hear(self, event: Event) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended, and with it whoever would listen
            self._loop.call_soon_threadsafe(self._events.put_nowait, event)

    async def next(self) -> Event:
        """The next event."""
        return await self._events.get()

    def cancel(self) -> None:
        """Want no more of it."""
        if self.ticket is not None:
            self.ticket.cancel()


async def until_gone(request: Request) -> None:
    """Wait until the client has closed its connection."""
    while True:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            return


async def unless_gone(request: Request, work: Awaitable[Any]) -> Any:
    """The result of some work, or `Gone`."""
    task, gone = asyncio.ensure_future(work), asyncio.ensure_future(until_gone(request))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise Gone
        return task.result()
    finally:
        for one in (task, gone):
            one.cancel()
        await asyncio.gather(task, gone, return_exceptions=True)


def failure(event: Failed) -> Exception:
    """The error of a request that has failed; a text of which nothing can be chosen is its own request's matter."""
    return of_request(event.error) if isinstance(event.error, ValueError) else event.error


async def gathered(following: Following, asked: Asked) -> None:
    """Take all events; raises the error of a request that has failed."""
    while True:
        event = await following.next()
        if isinstance(event, Failed):
            raise failure(event)
        asked.answer.take(event)
        if isinstance(event, Done):
            return


class EventStream:
    """A response whose parts are sent as they come; a client that is gone, or takes nothing, ends the work.

    An ASGI application: `parts` are texts, `closed` is called when it is over, whatever the reason.
    """

    def __init__(
        self,
        parts: AsyncIterator[str],
        closed: Callable[[], None],
        media_type: str = "text/event-stream",
        headers: dict[str, str] | None = None,
        stalled: float = STALLED,
    ) -> None:
        self.parts, self.closed, self.stalled = parts, closed, stalled
        told = {"content-type": f"{media_type}; charset=utf-8", "cache-control": "no-store", **(headers or {})}
        self.headers = [(k.encode("latin-1"), v.encode("latin-1")) for k, v in told.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        sending = asyncio.ensure_future(self._send(send))
        gone = asyncio.ensure_future(until_gone(Request(scope, receive)))
        try:
            await asyncio.wait({sending, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.closed()
            for one in (sending, gone):
                one.cancel()
            await asyncio.gather(sending, gone, return_exceptions=True)

    async def _send(self, send: Send) -> None:
        async def sent(message: dict[str, Any]) -> None:
            await asyncio.wait_for(send(message), self.stalled)

        await sent({"type": "http.response.start", "status": 200, "headers": self.headers})
        async for part in self.parts:
            await sent({"type": "http.response.body", "body": part.encode("utf-8", "replace"), "more_body": True})
        await sent({"type": "http.response.body", "body": b"", "more_body": False})


def sse(data: Any) -> str:
    """An event of a stream, as text.

    >>> from votive.serve.streaming import sse
    >>> sse({"a": 1})
    'data: {"a":1}\\n\\n'
    """
    return f"data: {json.dumps(data, ensure_ascii=False, separators=(',', ':'), allow_nan=False)}\n\n"
