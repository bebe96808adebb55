"""An emulated GPU that works late: what was given to a stream is done when the host waits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from votive.backends.cuda import runtime as rt

from .device import EMULATED

emulated = pytest.mark.skipif(not EMULATED, reason="a real GPU does not wait to be told")


@contextmanager
def late() -> Iterator[None]:
    """Inside the block nothing is done before somebody waits for it."""
    driver = rt.runtime.driver
    driver.late = True
    try:
        yield
    finally:
        driver.flush()
        driver.late = False


@contextmanager
def no_waits() -> Iterator[None]:
    """The host must not wait for a device inside the block."""
    before = rt.runtime.driver.waits
    yield
    assert rt.runtime.driver.waits == before, "the host waited"
