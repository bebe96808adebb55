"""Marks for NVIDIA's profilers (Nsight): ranges and points with names. Without the library, which
comes with CUDA, they cost one test and mark nothing.
"""

from __future__ import annotations

import ctypes as c
import glob
import importlib.util
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any


@cache
def _library() -> Any:
    """NVIDIA's library of marks, or None."""
    names = ["libnvToolsExt.so.1", "libnvtx3interop.so", "libnvToolsExt.so"]
    found = list(names)
    spec = importlib.util.find_spec("nvidia")
    for root in spec.submodule_search_locations or () if spec is not None else ():
        for name in names:
            found += glob.glob(os.path.join(root, "*", "lib", name))
    for path in found:
        try:
            lib = c.CDLL(path)
            for name in ("nvtxRangePushA", "nvtxMarkA", "nvtxRangeStartA"):
                getattr(lib, name).argtypes = [c.c_char_p]
            lib.nvtxRangeStartA.restype = c.c_uint64
            lib.nvtxRangeEnd.argtypes = [c.c_uint64]
            return lib
        except (OSError, AttributeError):
            continue
    return None


def is_available() -> bool:
    """Whether there is a library to mark with.

    >>> isinstance(votive.cuda.nvtx.is_available(), bool)
    True
    """
    return _library() is not None


def range_push(msg: str) -> int:
    """Begin a range inside those that this thread has begun; gives its depth.

    >>> _ = votive.cuda.nvtx.range_push("forward")
    >>> _ = votive.cuda.nvtx.range_pop()
    """
    lib = _library()
    return -1 if lib is None else int(lib.nvtxRangePushA(str(msg).encode()))


def range_pop() -> int:
    """End the range that was begun last; gives its depth.

    >>> _ = votive.cuda.nvtx.range_push("backward")
    >>> _ = votive.cuda.nvtx.range_pop()
    """
    lib = _library()
    return -1 if lib is None else int(lib.nvtxRangePop())


def range_start(msg: str) -> int:
    """Begin a range that may end in another thread; gives what ends it.

    >>> votive.cuda.nvtx.range_end(votive.cuda.nvtx.range_start("copy"))
    """
    lib = _library()
    return 0 if lib is None else int(lib.nvtxRangeStartA(str(msg).encode()))


def range_end(range_id: int) -> None:
    """End what `range_start` began.

    >>> votive.cuda.nvtx.range_end(votive.cuda.nvtx.range_start("copy"))
    """
    lib = _library()
    if lib is not None:
        lib.nvtxRangeEnd(range_id)


def mark(msg: str) -> None:
    """Mark a point in time.

    >>> votive.cuda.nvtx.mark("epoch")
    """
    lib = _library()
    if lib is not None:
        lib.nvtxMarkA(str(msg).encode())


@contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """A range around a block, or around a function as a decorator; `msg` is formatted with the
    rest.

    >>> with votive.cuda.nvtx.range("step {}", 3):
    ...     y = votive.ones(2) + 1
    """
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()
