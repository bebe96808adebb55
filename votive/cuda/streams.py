"""Streams and events. Knows the driver's handles, not tensors."""

from __future__ import annotations

import threading
from typing import Any

from ..backends.cuda import runtime as rt
from ..backends.cuda.runtime.faults import faults
from ..core.device import DeviceLike
from . import _here, _index


class Event:
    """A mark in a stream, to wait for or to measure by; it belongs to the device of the stream that
    it is first recorded in. `blocking`: a thread that waits for it sleeps instead of asking again
    and again; other Python threads run either way.

    >>> if votive.cuda.is_available():
    ...     begin, end = (votive.cuda.Event(enable_timing=True) for _ in range(2))
    ...     begin.record()
    ...     y = votive.ones(8, device="cuda") * 2
    ...     end.record()
    ...     end.synchronize()
    ...     assert begin.elapsed_time(end) >= 0
    """

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        if interprocess:
            raise NotImplementedError("Event: interprocess events are not supported.")
        _here()
        self._driver = rt.runtime.driver
        self._handle = 0
        self._index = -1
        self._timed, self._blocking = enable_timing, blocking

    @property
    def device(self) -> Any:
        """Where the event was recorded; None before that."""
        from ..core.device import device

        return None if self._index < 0 else device("cuda", self._index)

    @property
    def cuda_event(self) -> int:
        """The driver's handle; 0 before the event is recorded."""
        return self._handle

    def record(self, stream: Stream | None = None) -> None:
        """Set the mark after the work that was given to the stream so far."""
        here = _here()
        index = here.device if stream is None else stream._index
        handle = here.stream if stream is None else stream.cuda_stream
        with self._driver.on(index):
            if not self._handle:
                self._index, self._handle = (index, self._driver.new_event(self._timed, self._blocking))
            if index != self._index:
                raise RuntimeError(
                    f"Event.record: the event belongs to cuda:{self._index}, the stream to "
                    f"cuda:{index}; use an event for each device."
                )
            self._driver.record(self._handle, handle)

    def wait(self, stream: Stream | None = None) -> None:
        """Let a stream wait for the mark; nothing to wait for before it is recorded."""
        here = _here()
        if self._handle:
            with self._driver.on(here.device if stream is None else stream._index):
                self._driver.hold(_handle(stream), self._handle)

    def query(self) -> bool:
        """Whether the device has come past the mark."""
        if not self._handle:
            return True
        with self._driver.on(self._index):
            return bool(self._driver.event_done(self._handle))

    def synchronize(self) -> None:
        """Wait until the device has come past the mark."""
        if self._handle:
            with self._driver.on(self._index):  # the thread may have no device of its own
                self._driver.wait_event(self._handle)
            faults.check()

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this mark to another."""
        if not (self._timed and end_event._timed):
            raise ValueError("elapsed_time: both events must be created with argument 'enable_timing=True'.")
        if not (self._handle and end_event._handle):
            raise ValueError("elapsed_time: both events must be recorded before calculating elapsed time.")
        if self._index != end_event._index:
            raise ValueError(
                f"elapsed_time: the events are of cuda:{self._index} and cuda:{end_event._index}; "
                "only events of one device can be compared."
            )
        with self._driver.on(self._index):
            return float(self._driver.elapsed(self._handle, end_event._handle))

    def __repr__(self) -> str:
        return f"<votive.cuda.Event {self._handle:#x}>" if self._handle else "<votive.cuda.Event>"

    def __del__(self) -> None:
        if getattr(self, "_handle", 0) and rt is not None and not rt.runtime.forked:
            with self._driver.on(self._index):  # garbage is collected in any thread
                self._driver.end_event(self._handle)


# Streams that a thread has entered by `with`: one stream may be entered again, and by any thread.
_entered = threading.local()
SHARED = 32  # streams of a device and priority, which are handed out in turns as in torch
_queues: dict[tuple[int, int], list[int]] = {}
_turns: dict[tuple[int, int], int] = {}


def _taken(index: int, priority: int) -> int:
    """The driver's stream for a new `Stream`: programs may make any number of those."""
    driver = rt.runtime.driver
    with rt.runtime.lock, driver.on(index):
        least, greatest = driver.priorities()
        key = (index, min(max(priority, greatest), least))
        queues = _queues.setdefault(key, [])
        turn = _turns[key] = _turns.get(key, -1) + 1
        if turn < SHARED:
            queues.append(driver.new_stream(key[1]))
        return queues[turn % SHARED]


class Stream:
    """A queue of work on a device; work in different streams may overlap. Lower numbers are higher
    priorities.

    >>> if votive.cuda.is_available():
    ...     side = votive.cuda.Stream()
    ...     side.wait_stream(votive.cuda.current_stream())
    ...     with votive.cuda.stream(side):
    ...         y = votive.ones(3, device="cuda") + 1
    ...     votive.cuda.current_stream().wait_stream(side)
    ...     y.record_stream(votive.cuda.current_stream())
    """

    def __init__(self, device: DeviceLike = None, priority: int = 0, *, _existing: int | None = None) -> None:
        self._index = _index(device)
        rt.runtime.check(self._index)
        self.cuda_stream = _taken(self._index, priority) if _existing is None else _existing

    @staticmethod
    def priority_range() -> tuple[int, int]:
        """(least, greatest) priority of the current device's streams."""
        _here()
        return rt.runtime.driver.priorities()

    @property
    def priority(self) -> int:
        """How urgent the stream's work is: negative numbers come first."""
        with rt.runtime.driver.on(self._index):
            return int(rt.runtime.driver.priority(self.cuda_stream))

    @property
    def device(self) -> Any:
        from ..core.device import device

        return device("cuda", self._index)

    @property
    def device_index(self) -> int:
        return self._index

    @property
    def stream_id(self) -> int:
        return self.cuda_stream

    def synchronize(self) -> None:
        """Wait for all work of the stream."""
        with rt.runtime.driver.on(self._index):
            rt.runtime.driver.wait_stream(self.cuda_stream)
        faults.check()

    def query(self) -> bool:
        """Whether all work of the stream is done."""
        with rt.runtime.driver.on(self._index):
            return bool(rt.runtime.driver.stream_done(self.cuda_stream))

    def record_event(self, event: Event | None = None) -> Event:
        """Set a mark."""
        event = event or Event()
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Let later work of this stream wait for a mark."""
        event.wait(self)

    def wait_stream(self, stream: Stream) -> None:
        """Let later work of this stream wait for what another was given so far."""
        self.wait_event(stream.record_event())

    def __enter__(self) -> Stream:
        context = StreamContext(self)
        context.__enter__()
        _entered.stack = [*getattr(_entered, "stack", ()), context]
        return self

    def __exit__(self, *exc: object) -> None:
        _entered.stack.pop().__exit__(*exc)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and (self._index, self.cuda_stream) == (other._index, other.cuda_stream)

    def __hash__(self) -> int:
        return hash((self._index, self.cuda_stream))

    def __repr__(self) -> str:
        return f"<votive.cuda.Stream device=cuda:{self._index} cuda_stream={self.cuda_stream:#x}>"


class ExternalStream(Stream):
    """A stream of another library, by its handle; whoever made it keeps it alive.

    >>> if votive.cuda.is_available():
    ...     mine = votive.cuda.Stream()
    ...     assert votive.cuda.ExternalStream(mine.cuda_stream) == mine
    """

    def __init__(self, stream_ptr: int, device: DeviceLike = None) -> None:
        super().__init__(device, _existing=int(stream_ptr))


def get_stream_from_external(data_ptr: int, device: DeviceLike = None) -> Stream:
    """A stream of another library as a `Stream`.

    >>> if votive.cuda.is_available():
    ...     mine = votive.cuda.Stream()
    ...     assert votive.cuda.get_stream_from_external(mine.cuda_stream) == mine
    """
    return ExternalStream(data_ptr, device)


def _handle(stream: Stream | None) -> int:
    return int(_here().stream if stream is None else stream.cuda_stream)


def current_stream(device: DeviceLike = None) -> Stream:
    """The stream that this thread's work goes to.

    >>> if votive.cuda.is_available():
    ...     assert votive.cuda.current_stream() == votive.cuda.default_stream()
    """
    index = _index(device)
    return Stream(index, _existing=_here().stream_of(index))


def default_stream(device: DeviceLike = None) -> Stream:
    """The stream that work goes to when no other was chosen.

    >>> votive.cuda.default_stream().cuda_stream if votive.cuda.is_available() else 0
    0
    """
    return Stream(_index(device), _existing=0)


def set_stream(stream: Stream | None) -> None:
    """Let this thread's work go to a stream from now on; None changes nothing.

    >>> if votive.cuda.is_available():
    ...     votive.cuda.set_stream(votive.cuda.default_stream())
    """
    if stream is None:
        return
    here = _here()
    here.set_device(stream._index)
    here.set_stream(stream.cuda_stream)


class StreamContext:
    """`with votive.cuda.stream(s):` lets the work inside go to `s`; None changes nothing.

    >>> with votive.cuda.StreamContext(None):
    ...     y = votive.ones(2) + 1
    """

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        if self.stream is None:
            return
        here = _here()
        self._before = (here.device, here.stream_of(self.stream._index))
        set_stream(self.stream)

    def __exit__(self, *exc: object) -> None:
        if self.stream is None:
            return
        here = _here()
        here.set_device(self.stream._index)
        here.set_stream(self._before[1])
        here.set_device(self._before[0])


def stream(stream: Stream | None) -> StreamContext:
    """A context in which work goes to a stream.

    >>> with votive.cuda.stream(None):
    ...     y = votive.ones(2) + 1
    """
    return StreamContext(stream)


def synchronize(device: DeviceLike = None) -> None:
    """Wait for all work of a device; errors that kernels found are raised here.

    >>> if votive.cuda.is_available():
    ...     votive.cuda.synchronize()
    """
    _here()
    index = _index(device)
    rt.runtime.check(index)
    with rt.runtime.driver.on(index):
        rt.runtime.driver.synchronize()
    faults.check()


_MODES = {"default": 0, "warn": 1, "error": 2}


def set_sync_debug_mode(debug_mode: int | str) -> None:
    """What happens when an operation makes the host wait: "default" nothing, "warn", "error".

    >>> if votive.cuda.is_available():
    ...     votive.cuda.set_sync_debug_mode("default")
    """
    _here()
    mode = _MODES.get(debug_mode, -1) if isinstance(debug_mode, str) else debug_mode
    if mode not in (0, 1, 2):
        raise RuntimeError(f"set_sync_debug_mode: expected one of `default`, `warn`, `error`, got {debug_mode!r}.")
    rt.runtime.sync_mode = mode


def get_sync_debug_mode() -> int:
    """What `set_sync_debug_mode` said: 0, 1 or 2.

    >>> votive.cuda.get_sync_debug_mode() if votive.cuda.is_available() else 0
    0
    """
    _here()
    return rt.runtime.sync_mode
