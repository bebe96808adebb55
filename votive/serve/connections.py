"""Connections that do not ask are dropped, and there is a bound on how many there are."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

OPEN, PATIENCE = 1024, 15.0


class Patient(H11Protocol):
    """HTTP that drops whoever connects and does not ask in time, or is one too many."""

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._began = self.loop.time()
        if len(self.connections) > OPEN and not self._freed_slot():
            transport.abort()
            return
        self._wait()

    def _freed_slot(self) -> bool:
        """Whether one that has asked for nothing could be dropped for this one."""
        silent = [c for c in self.connections if isinstance(c, Patient) and c is not self and c._idle()]
        if not silent:
            return False
        oldest = min(silent, key=lambda c: c._began)
        oldest.transport.abort()
        self.connections.discard(oldest)
        return True

    def _idle(self) -> bool:
        return self.cycle is None or bool(self.cycle.response_complete)

    def _wait(self) -> None:
        self._stop()
        self._late = self.loop.call_later(PATIENCE, self._drop)

    def _stop(self) -> None:
        timer, self._late = self._late, None
        if timer is not None:
            timer.cancel()

    def _drop(self) -> None:
        self._late = None
        if not self.transport.is_closing() and self._idle():
            self.transport.abort()

    def handle_events(self) -> None:
        super().handle_events()
        if not self._idle():
            self._stop()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self.transport.is_closing() and self._idle():
            self._wait()  # the next request on this connection must come whole in time, too

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        super().connection_lost(exc)
