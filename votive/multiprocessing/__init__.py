"""`votive.multiprocessing`: Python's `multiprocessing` with torch's `spawn` beside it.

Tensors that travel through queues and pipes are copies: what one process writes, another does not see. Processes that
are forked after `tensor.share_memory_()` or `module.share_memory()` see each other's writes to them.
"""

from __future__ import annotations

import multiprocessing as _multiprocessing
from typing import Any

from .spawn import (
    ProcessContext,
    ProcessException,
    ProcessExitedException,
    ProcessRaisedException,
    SpawnContext,
    spawn,
    start_processes,
)

__all__ = [
    "ProcessContext",
    "ProcessException",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "get_all_sharing_strategies",
    "get_sharing_strategy",
    "set_sharing_strategy",
    "spawn",
    "start_processes",
    *_multiprocessing.__all__,
]
_strategy = "file_descriptor"


def get_all_sharing_strategies() -> set[str]:
    """torch's ways of sharing memory, for programs that choose one; tensors are copied with either.

    >>> sorted(votive.multiprocessing.get_all_sharing_strategies())
    ['file_descriptor', 'file_system']
    """
    return {"file_descriptor", "file_system"}


def get_sharing_strategy() -> str:
    """What `set_sharing_strategy` set.

    >>> votive.multiprocessing.get_sharing_strategy()
    'file_descriptor'
    """
    return _strategy


def set_sharing_strategy(new_strategy: str) -> None:
    """Keep the name of a strategy; tensors are copied with either, so nothing changes.

    >>> votive.multiprocessing.set_sharing_strategy("file_descriptor")
    """
    global _strategy
    if new_strategy not in get_all_sharing_strategies():
        raise AssertionError(f"Invalid sharing strategy: {new_strategy}")
    _strategy = new_strategy


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_multiprocessing, name)
