"""Streams and events. Knows the driver's handles, not tensors."""

from __future__ import annotations

from typing import Any

from ..backends.cuda import runtime as rt
from ..backends.cuda.faults import faults
from . import _here, _index


class Event:
    """A mark in a stream, to wait for or to measure by. `blocking` is accepted as torch does:
    waiting always lets other threads run.
    """

    def __init__(
        self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
    ) -> None:
        if interprocess:
            raise NotImplementedError("Event: interprocess events are not supported.")
        _here()
        self._driver = rt.runtime.driver
        self._handle = self._driver.new_event(enable_timing)
        self._timed = enable_timing

    def record(self, stream: Stream | None = None) -> None:
        """Set the mark after the work that was given to the stream so far."""
        self._driver.record(self._handle, _handle(stream))

    def wait(self, stream: Stream | None = None) -> None:
        """Let a stream wait for the mark."""
        self._driver.hold(_handle(stream), self._handle)

    def query(self) -> bool:
        """Whether the device has come past the mark."""
        return bool(self._driver.event_done(self._handle))

    def synchronize(self) -> None:
        """Wait until the device has come past the mark."""
        self._driver.wait_event(self._handle)
        faults.check()

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this mark to another."""
        if not (self._timed and end_event._timed):
            raise ValueError("elapsed_time: both events must be made with enable_timing=True.")
        return float(self._driver.elapsed(self._handle, end_event._handle))

    def __del__(self) -> None:
        handle = getattr(self, "_handle", None)
        if handle is not None and rt is not None and rt.runtime.driver is not None:
            self._driver.end_event(handle)


class Stream:
    """A queue of work on a device; work in different streams may overlap."""

    def __init__(
        self, device: Any = None, priority: int = 0, *, _existing: int | None = None
    ) -> None:
        self._index = _index(device)
        self._own = _existing is None
        if _existing is not None:
            self.cuda_stream = _existing
            return
        here = _here()
        before = here.device
        here.set_device(self._index)
        try:
            self.cuda_stream = rt.runtime.driver.new_stream(priority)
        finally:
            here.set_device(before)

    @property
    def device(self) -> Any:
        from ..core.device import device

        return device("cuda", self._index)

    def synchronize(self) -> None:
        """Wait for all work of the stream."""
        rt.runtime.driver.wait_stream(self.cuda_stream)
        faults.check()

    def query(self) -> bool:
        """Whether all work of the stream is done."""
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
        self._context = StreamContext(self)
        self._context.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self._context.__exit__(*exc)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and (self._index, self.cuda_stream) == (
            other._index,
            other.cuda_stream,
        )

    def __hash__(self) -> int:
        return hash((self._index, self.cuda_stream))

    def __repr__(self) -> str:
        return f"<votive.cuda.Stream device=cuda:{self._index} cuda_stream={self.cuda_stream:#x}>"


def _handle(stream: Stream | None) -> int:
    return int(_here().stream if stream is None else stream.cuda_stream)


def current_stream(device: Any = None) -> Stream:
    """The stream that this thread's work goes to."""
    index = _index(device)
    return Stream(index, _existing=_here().streams.get(index, 0))


def default_stream(device: Any = None) -> Stream:
    """The stream that work goes to when no other was chosen."""
    return Stream(_index(device), _existing=0)


def set_stream(stream: Stream) -> None:
    """Let this thread's work go to a stream from now on."""
    here = _here()
    here.set_device(stream._index)
    here.set_stream(stream.cuda_stream)


class StreamContext:
    """`with votive.cuda.stream(s):` lets the work inside go to `s`; None changes nothing."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        if self.stream is None:
            return
        here = _here()
        self._before = (here.device, here.streams.get(self.stream._index, 0))
        set_stream(self.stream)

    def __exit__(self, *exc: object) -> None:
        if self.stream is None:
            return
        here = _here()
        here.set_stream(self._before[1])
        here.set_device(self._before[0])


def stream(stream: Stream | None) -> StreamContext:
    """A context in which work goes to a stream."""
    return StreamContext(stream)


def synchronize(device: Any = None) -> None:
    """Wait for all work of a device; errors that kernels found are raised here."""
    here = _here()
    index, before = _index(device), here.device
    here.set_device(index)
    try:
        rt.runtime.driver.synchronize()
    finally:
        here.set_device(before)
    faults.check()
