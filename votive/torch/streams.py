"""`torch.Stream` and `torch.Event`: streams and events of whatever device; on the CPU everything is done in order."""

from __future__ import annotations

import time
from typing import Any

import votive

from ..core.device import DeviceLike
from ..core.device import device as Device


def _device(device: DeviceLike) -> Device:
    if device is not None:
        return Device(device)
    return Device("cuda" if votive.cuda.is_available() else "cpu")


class Stream:
    """A queue of work; on a GPU that of `torch.cuda.Stream`."""

    stream_id = 0

    def __new__(cls, device: DeviceLike = None, *, priority: int = 0) -> Any:
        place = _device(device)
        if place.type == "cuda":
            return votive.cuda.Stream(place, priority)
        made = object.__new__(cls)
        made.device = place
        return made

    device: Device

    def query(self) -> bool:
        """Whether all is done: on the CPU always."""
        return True

    def synchronize(self) -> None:
        """Wait until all is done."""

    def wait_stream(self, stream: Any) -> None:
        """Wait for another stream."""
        stream.synchronize()

    def wait_event(self, event: Any) -> None:
        """Wait for an event."""
        event.synchronize()

    def record_event(self, event: Any = None) -> Any:
        """Mark this place in the queue."""
        made = Event(self.device) if event is None else event
        made.record(self)
        return made

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *error: object) -> None: ...

    def __repr__(self) -> str:
        return f"torch.Stream device_type={self.device.type}, device_index=-1, stream_id=0"


class Event:
    """A place in a queue; on a GPU that of `torch.cuda.Event`."""

    event_id = 0

    def __new__(
        cls,
        device: DeviceLike = None,
        *,
        enable_timing: bool = False,
        blocking: bool = False,
        interprocess: bool = False,
    ) -> Any:
        place = _device(device)
        if place.type == "cuda":
            return votive.cuda.Event(enable_timing, blocking, interprocess)
        made = object.__new__(cls)
        made.device, made._at, made._timed = place, None, enable_timing
        return made

    device: Device
    _at: float | None
    _timed: bool

    def record(self, stream: Any = None) -> None:
        """Mark the place where the queue is now."""
        if stream is not None:
            stream.synchronize()
        self._at = time.perf_counter()

    def query(self) -> bool:
        """Whether the place was passed: on the CPU always."""
        return True

    def synchronize(self) -> None:
        """Wait until the place was passed."""

    def wait(self, stream: Any = None) -> None:
        """Let a stream wait for this place."""
        if stream is not None:
            stream.synchronize()

    def elapsed_time(self, other: Event) -> float:
        """Milliseconds from this event to another."""
        if not self._timed or self._at is None or other._at is None:
            raise RuntimeError("elapsed_time: both events must be made with enable_timing=True and recorded.")
        return (other._at - self._at) * 1e3

    def __repr__(self) -> str:
        return f"torch.Event device_type={self.device.type}, device_index=-1, event_flag=0, event_id=0"
