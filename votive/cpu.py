"""`votive.cpu`: the memory of the CPU device, and the questions that programs ask of any device."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from .core.storage import cpu_allocator


def memory_allocated() -> int:
    """Bytes held by tensors now (blocks under 1 KiB are left to malloc and not counted).

    >>> x = votive.zeros(1000)
    >>> votive.cpu.memory_allocated() >= 4000
    True
    """
    return cpu_allocator.stats()["allocated_bytes"]


def max_memory_allocated() -> int:
    """The most bytes tensors held at once.

    >>> votive.cpu.max_memory_allocated() >= votive.cpu.memory_allocated()
    True
    """
    return cpu_allocator.stats()["peak_bytes"]


def reset_peak_memory_stats() -> None:
    """Start counting the peak anew.

    >>> votive.cpu.reset_peak_memory_stats()
    """
    cpu_allocator.reset_peak()


def memory_reserved() -> int:
    """Bytes held by tensors and by the cache.

    >>> votive.cpu.memory_reserved() >= votive.cpu.memory_allocated()
    True
    """
    stats = cpu_allocator.stats()
    return stats["allocated_bytes"] + stats["cached_bytes"]


def memory_stats() -> dict[str, int]:
    """Bytes allocated, at peak and cached, and how often the cache could serve.

    >>> sorted(votive.cpu.memory_stats())
    ['allocated_bytes', 'cached_bytes', 'hits', 'misses', 'peak_bytes']
    """
    return cpu_allocator.stats()


def empty_cache() -> None:
    """Give cached blocks back to the system.

    >>> votive.cpu.empty_cache()
    >>> votive.cpu.memory_stats()["cached_bytes"]
    0
    """
    cpu_allocator.empty_cache()


def set_cache_limit(nbytes: int | None) -> None:
    """Let the cache hold at most this many bytes; None removes the limit.

    >>> votive.cpu.set_cache_limit(None)
    """
    cpu_allocator.limit = nbytes


def is_available() -> bool:
    """Whether there is a CPU.

    >>> votive.cpu.is_available()
    True
    """
    return True


def is_initialized() -> bool:
    """Whether it was started.

    >>> votive.cpu.is_initialized()
    True
    """
    return True


def device_count() -> int:
    """How many CPU devices there are; cores belong to one.

    >>> votive.cpu.device_count()
    1
    """
    return 1


def current_device() -> str:
    """The name of the device in use.

    >>> votive.cpu.current_device()
    'cpu'
    """
    return "cpu"


def set_device(device: Any) -> None:
    """There is one device, so nothing changes.

    >>> votive.cpu.set_device("cpu")
    """


def synchronize(device: Any = None) -> None:
    """Calls on the CPU have done their work when they return, so there is nothing to wait for.

    >>> votive.cpu.synchronize()
    """


class Stream:
    """The order of calls on the CPU, of which there is one.

    >>> votive.cpu.Stream().synchronize()
    """

    def __init__(self, priority: int = -1) -> None:
        self.priority = priority

    def synchronize(self) -> None:
        """There is nothing to wait for."""

    def wait_stream(self, stream: Any) -> None:
        """There is nothing to wait for."""

    def record_event(self) -> None:
        """There is nothing to record."""

    def wait_event(self, event: Any) -> None:
        """There is nothing to wait for."""


class Event:
    """A point in the order of calls on the CPU; it is always reached.

    >>> votive.cpu.Event().query()
    True
    """

    def query(self) -> bool:
        return True

    def record(self, stream: Any = None) -> None:
        """There is nothing to record."""

    def synchronize(self) -> None:
        """There is nothing to wait for."""

    def wait(self, stream: Any = None) -> None:
        """There is nothing to wait for."""


class StreamContext:
    """A block whose calls go to a stream.

    >>> with votive.cpu.StreamContext(votive.cpu.Stream()):
    ...     pass
    """

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc: object) -> None:
        return None


def stream(stream: Any) -> StreamContext:
    """A block whose calls go to a stream.

    >>> with votive.cpu.stream(votive.cpu.current_stream()):
    ...     pass
    """
    return StreamContext(stream)


def current_stream(device: Any = None) -> Stream:
    """The stream of the CPU.

    >>> isinstance(votive.cpu.current_stream(), votive.cpu.Stream)
    True
    """
    return _stream


_stream = Stream()


def __getattr__(name: str) -> Any:
    if name == "amp":  # mixed precision brings the optimizers with it; most programs need neither
        import_module("votive.amp")
        return globals()["amp"]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
