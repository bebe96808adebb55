"""What an asynchronous collective gives back. Knows threads, not what is sent."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from ..futures import Future
from .errors import DistBackendError
from .store import seconds
from .transports.base import Request

# After so long it is said who is missing; after the group's timeout it is an error.
SAID_AFTER = 2.0


class Work:
    """A collective or a message that is under way.

    >>> from votive.distributed.work import Work
    >>> done = Work.of(None)
    >>> done.wait(), done.is_completed(), done.is_success()
    (True, True, True)
    """

    def __init__(self, limit: float = 1800.0) -> None:
        self._ended = threading.Event()
        self._error: BaseException | None = None
        self._limit = limit
        self._result: Any = None
        self._behind: list[Callable[[], None]] = []
        self._lock = threading.Lock()

    @classmethod
    def of(cls, result: object) -> Work:
        """One that is done."""
        made = cls()
        made.finish(result)
        return made

    def finish(self, result: object, error: BaseException | None = None) -> None:
        """Say how it ended."""
        with self._lock:
            self._result, self._error = result, error
            self._ended.set()
            behind, self._behind = self._behind, []
        for call in behind:
            call()

    def then(self, call: Callable[[], None]) -> None:
        """Call something when it has ended, at once if it has."""
        with self._lock:
            if not self._ended.is_set():
                self._behind.append(call)
                return
        call()

    def wait(self, timeout: timedelta | float | None = None) -> bool:
        """Return when it is done; raises what went wrong."""
        limit = self._limit + 5 if not timeout else seconds(timeout)
        if not self._ended.wait(limit):
            raise DistBackendError(f"wait: not done after {limit:.1f} seconds.")
        if self._error is not None:
            raise self._error
        return True

    def is_completed(self) -> bool:
        """Whether it has ended, well or not."""
        return self._ended.is_set()

    def is_success(self) -> bool:
        """Whether it ended well."""
        return self._ended.is_set() and self._error is None

    def exception(self) -> BaseException | None:
        """What went wrong, if anything did."""
        return self._error

    def result(self) -> Any:
        """The tensors that it wrote."""
        self.wait()
        return self._result

    def synchronize(self) -> None:
        """The same as `wait`."""
        self.wait()

    def get_future(self) -> Future[Any]:
        """A future of its tensors."""
        found: Future[Any] = Future()

        def end() -> None:
            if self._error is None:
                found.set_result(self._result)
            else:
                found.set_exception(self._error)

        self.then(end)
        return found


class Message(Work):
    """A message: nothing runs beside it, so waiting and asking move it on."""

    def __init__(
        self,
        request: Request,
        limit: float,
        after: Callable[[Request], object],
        failure: Callable[[], str | None],
        shown: str,
    ) -> None:
        super().__init__(limit)
        self._request, self._after, self._failure, self._shown = request, after, failure, shown

    def is_completed(self) -> bool:
        if not self._ended.is_set():
            try:
                if self._request.done():
                    self.finish(self._after(self._request))
            except Exception as e:
                self.finish(None, e)
        return self._ended.is_set()

    def wait(self, timeout: timedelta | float | None = None) -> bool:
        limit = self._limit if not timeout else seconds(timeout)
        start, pause, said = time.monotonic(), 0.0, False
        while not self.is_completed():
            wrong, now = self._failure(), time.monotonic()
            if wrong:
                self.finish(None, DistBackendError(f"{self._shown}: {wrong}."))
            elif now > start + limit:
                raise DistBackendError(f"{self._shown}: Timed out after {limit:.1f} seconds.")
            elif now > start + SAID_AFTER and not said:
                from .check import level_of_caller

                said, text = True, f"{self._shown} has waited {SAID_AFTER:.0f} seconds."
                warnings.warn(text, RuntimeWarning, stacklevel=level_of_caller())
            time.sleep(pause)
            pause = min(pause + 2e-5, 1e-3)
        return super().wait()

    def _source_rank(self) -> int:
        return self._request.source
