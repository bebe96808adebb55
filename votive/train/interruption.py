"""Stop signals that wait for the end of a step. Knows signals only."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any


class Deferred:
    """While inside, the first Ctrl-C or SIGTERM is remembered and the second acts at once.

    A step that is broken off half-way has updated some parameters and not others, so nothing that
    could be saved then would resume exactly.

    >>> with votive.train.interruption.Deferred() as stop:
    ...     print(stop.signal)
    None
    """

    def __init__(self) -> None:
        self.signal: int | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Deferred:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                # A program that handles or ignores a signal itself knows better.
                if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
                    self._before[number] = signal.signal(number, self._note)
        return self

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.signal is not None:
            self.__exit__()
            signal.raise_signal(number)
        self.signal = number

    def deliver(self) -> None:
        """Let the remembered signal do what it would have done."""
        number = self.signal
        self.__exit__()
        if number is not None:
            signal.raise_signal(number)

    def __exit__(self, *exc: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before.clear()
