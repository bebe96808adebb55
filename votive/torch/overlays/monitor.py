"""`torch.monitor`: events, handlers that get them, and statistics that log themselves at the end of each window."""

from __future__ import annotations

import enum
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

__all__ = [
    "Aggregation",
    "COUNT",
    "Event",
    "EventHandlerHandle",
    "MAX",
    "MEAN",
    "MIN",
    "STAT_EVENT",
    "SUM",
    "Stat",
    "TYPE_CHECKING",
    "TensorboardEventHandler",
    "VALUE",
    "data_value_t",
    "log_event",
    "register_event_handler",
    "unregister_event_handler",
]

STAT_EVENT = "torch.monitor.Stat"
TYPE_CHECKING = False


class Aggregation(enum.Enum):
    """What is told of the values of a window."""

    VALUE = 1
    MEAN = 2
    COUNT = 3
    SUM = 4
    MAX = 5
    MIN = 6


VALUE, MEAN, COUNT = Aggregation.VALUE, Aggregation.MEAN, Aggregation.COUNT
SUM, MAX, MIN = Aggregation.SUM, Aggregation.MAX, Aggregation.MIN


class data_value_t:
    """The kind of values in an event: text, whole numbers, floats. It names them and is not made."""

    def __new__(cls) -> data_value_t:
        """Refuse."""
        raise TypeError("data_value_t: no constructor defined.")


@dataclass
class Event:
    """Something that happened: a name, a time and values."""

    name: str
    timestamp: datetime
    data: dict[str, Any]

    def __post_init__(self) -> None:
        plain = isinstance(self.data, Mapping) and all(
            isinstance(k, str) and isinstance(v, (str, int, float)) for k, v in self.data.items()
        )
        if not (isinstance(self.name, str) and isinstance(self.timestamp, datetime) and plain):
            raise TypeError(
                "Event: expected name: str, timestamp: datetime, data: a mapping from str to str, int or float, got "
                f"{self.name!r}, {self.timestamp!r}, {self.data!r}."
            )
        self.data = {k: float(v) if isinstance(v, bool) else v for k, v in self.data.items()}


class EventHandlerHandle:
    """What `register_event_handler` gives, for `unregister_event_handler`."""

    def __init__(self, handler: Callable[[Event], None]) -> None:
        self._handler = handler


_handlers: list[EventHandlerHandle] = []


def register_event_handler(callback: Callable[[Event], None]) -> EventHandlerHandle:
    """Call a function with every event from now on."""
    if not callable(callback):
        raise TypeError(f"register_event_handler: expected a function, got {type(callback).__name__}.")
    _handlers.append(EventHandlerHandle(callback))
    return _handlers[-1]


def unregister_event_handler(handler: EventHandlerHandle) -> None:
    """End what `register_event_handler` began."""
    if handler in _handlers:
        _handlers.remove(handler)


def log_event(event: Event) -> None:
    """Give an event to all handlers."""
    if not isinstance(event, Event):
        raise TypeError(f"log_event: expected an Event, got {type(event).__name__}.")
    for handle in list(_handlers):
        handle._handler(event)


class Stat:
    """Statistics of values in windows of time; each is logged as an event when it ends."""

    def __init__(
        self, name: str, aggregations: Sequence[Aggregation], window_size: timedelta, max_samples: int = (1 << 63) - 1
    ) -> None:
        if not isinstance(window_size, timedelta) or not all(isinstance(a, Aggregation) for a in aggregations):
            raise TypeError("Stat: expected name, a sequence of Aggregation, and a timedelta.")
        self.name, self._kinds = name, tuple(dict.fromkeys(aggregations))
        self._window, self._most = window_size.total_seconds(), max_samples
        self._lock = threading.Lock()
        self._last = dict.fromkeys(self._kinds, 0.0)
        self._values: list[float] = []
        self._full = False
        self._number = self._now()

    def _now(self) -> int:
        return int(time.monotonic() / self._window) if self._window > 0 else 0

    def add(self, v: float) -> None:
        """One more value; beyond `max_samples` values of a window are left out."""
        with self._lock:
            self._roll()
            if self._full:
                return
            self._values.append(float(v))
            if len(self._values) >= self._most:
                self._full = True
                self._close()

    @property
    def count(self) -> int:
        """How many values the open window has."""
        with self._lock:
            self._roll()
            return len(self._values)

    def get(self) -> dict[Aggregation, float]:
        """The statistics of the last window that ended, zeros before."""
        with self._lock:
            self._roll()
            return dict(self._last)

    def _roll(self) -> None:
        now = self._now()
        if now != self._number:
            self._number, self._full = now, False
            if self._values:
                self._close()

    def _close(self) -> None:
        v = self._values
        known = {VALUE: v[-1], MEAN: sum(v) / len(v), COUNT: float(len(v)), SUM: sum(v), MAX: max(v), MIN: min(v)}
        self._last, self._values = {k: known[k] for k in self._kinds}, []
        told = {f"{self.name}.{k.name.lower()}": value for k, value in self._last.items()}
        log_event(Event(STAT_EVENT, datetime.now(), told))

    def __del__(self) -> None:
        if getattr(self, "_values", None):
            self._close()


class TensorboardEventHandler:
    """Writes statistics as curves of a SummaryWriter."""

    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def __call__(self, event: Event) -> None:
        if event.name == STAT_EVENT:
            for name, value in event.data.items():
                self._writer.add_scalar(name, value, walltime=event.timestamp.timestamp())
