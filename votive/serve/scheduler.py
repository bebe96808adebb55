"""The thread that owns the models: it steps their engines in turn, and does other work with them in between."""

from __future__ import annotations

import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any, TypeVar

from .engine import Engine
from .events import Busy, Closing

Result = TypeVar("Result")


class Scheduler:
    """Steps engines while there is anything to do. Probes of glass are attached in this thread alone.

    >>> from votive.serve.scheduler import Scheduler
    >>> with Scheduler([]) as scheduler:
    ...     scheduler.call(lambda: 2).result()
    2
    """

    def __init__(self, engines: Iterable[Engine]) -> None:
        self.engines = list(engines)
        self._calls: deque[tuple[Callable[[], Any], Future[Any]]] = deque()
        self._ready = threading.Condition()
        self._asked = False
        self._ending = False
        for engine in self.engines:
            engine.wake = self.wake
        self._thread = threading.Thread(target=self._run, name="votive serve", daemon=True)

    def start(self) -> Scheduler:
        """Begin."""
        self._thread.start()
        return self

    def wake(self) -> None:
        """Say that there is something to do."""
        with self._ready:
            self._asked = True
            self._ready.notify()

    def call(self, work: Callable[[], Result], most: int = 64) -> Future[Result]:
        """Do something else with a model, between steps; `Busy` where too much waits."""
        found: Future[Result] = Future()
        with self._ready:
            if self._ending:
                raise Closing
            if len(self._calls) >= most:
                raise Busy(f"{len(self._calls)} requests wait already; ask again later.", 2)
            self._calls.append((work, found))
            self._asked = True
            self._ready.notify()
        return found

    def close(self, timeout: float = 10.0) -> None:
        """End all that is under way, and the thread."""
        with self._ready:
            self._ending = True
            self._ready.notify()
        if self._thread.is_alive():
            self._thread.join(timeout)

    def __enter__(self) -> Scheduler:
        return self.start()

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _run(self) -> None:
        while self._wait():
            self.step()
            self._one_call()
        for engine in self.engines:
            engine.close()
        while self._calls:
            self._calls.popleft()[1].cancel()

    def _wait(self) -> bool:
        """Wait for something to do; False at the end."""
        with self._ready:
            while not (self._ending or self._asked or self._calls or any(e.busy for e in self.engines)):
                self._ready.wait()
            self._asked = False
            return not self._ending

    def step(self) -> None:
        """Step all engines once; in the thread that owns them, for whoever does long work there."""
        for engine in self.engines:
            try:
                engine.step()
            except Exception as error:  # what no request is to blame for
                traceback.print_exc(file=sys.stderr)
                engine.fail_all(error)

    @property
    def ending(self) -> bool:
        """Whether everything is to end."""
        return self._ending

    def _one_call(self) -> None:
        with self._ready:
            if not self._calls:
                return
            work, found = self._calls.popleft()
        if not found.set_running_or_notify_cancel():
            return
        try:
            found.set_result(work())
        except BaseException as error:
            found.set_exception(error)
