"""Ranges of device memory, and marks in the streams that use them. Hands out nothing itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .allocator import Pool


class Block:
    """A range of device memory. `before` and `after` are its neighbours in the same segment."""

    __slots__ = ("after", "before", "free", "nbytes", "pool", "ptr", "segment", "streams", "wanted")

    def __init__(self, ptr: int, nbytes: int, segment: Segment, pool: Pool) -> None:
        self.ptr, self.nbytes, self.segment, self.pool = ptr, nbytes, segment, pool
        self.before: Block | None = None
        self.after: Block | None = None
        self.free = True
        self.wanted = 0
        self.streams: set[tuple[int, int]] | None = None  # others that used it: (device, stream)

    def __lt__(self, other: Block) -> bool:
        return (self.nbytes, self.ptr) < (other.nbytes, other.ptr)


class Segment:
    """Memory that the driver gave in one piece."""

    __slots__ = ("first", "nbytes", "small")

    def __init__(self, nbytes: int, small: bool) -> None:
        self.nbytes, self.small = nbytes, small
        self.first: Block | None = None


class Marks:
    """How far some streams had come: events in each of them, on the device it belongs to."""

    __slots__ = ("driver", "events")

    def __init__(self, driver: Any, streams: set[tuple[int, int]]) -> None:
        self.driver = driver
        self.events: list[tuple[int, int]] = []
        for device, stream in streams:
            with driver.on(device):
                event = driver.new_event(False)
                driver.record(event, stream)
            self.events.append((device, event))

    @staticmethod
    def possible(driver: Any, streams: set[tuple[int, int]]) -> bool:
        """Whether none of the streams is being captured: marks in a graph cannot be asked."""
        for device, stream in streams:
            with driver.on(device):
                if driver.capturing(stream):
                    return False
        return True

    def reached(self) -> bool:
        """Whether the devices are past all of them; the events end then."""
        while self.events:
            device, event = self.events[-1]
            with self.driver.on(device):
                if not self.driver.event_done(event):
                    return False
                self.driver.end_event(event)
            self.events.pop()
        return True
