"""When NVIDIA's profilers collect: `nsys profile --capture-range=cudaProfilerApi` waits for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..backends.cuda import runtime as rt
from . import _here


def start() -> None:
    """Let the profiler begin to collect.

    >>> if votive.cuda.is_available():
    ...     votive.cuda.profiler.start()
    ...     votive.cuda.profiler.stop()
    """
    _here()
    rt.runtime.driver.profile(True)


def stop() -> None:
    """Let the profiler stop.

    >>> if votive.cuda.is_available():
    ...     votive.cuda.profiler.stop()
    """
    _here()
    rt.runtime.driver.profile(False)


@contextmanager
def profile() -> Iterator[None]:
    """Collect what happens inside the block.

    >>> if votive.cuda.is_available():
    ...     with votive.cuda.profiler.profile():
    ...         y = votive.ones(2, device="cuda") + 1
    """
    start()
    try:
        yield
    finally:
        stop()
