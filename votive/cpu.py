"""`votive.cpu`: the memory of the CPU device."""

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


def __getattr__(name: str) -> Any:
    if name == "amp":  # mixed precision brings the optimizers with it; most programs need neither
        import_module("votive.amp")
        return globals()["amp"]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
