"""Nothing that a test attaches stays attached when it ends."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from .attached import attached


@pytest.fixture(autouse=True)
def nothing_stays_attached() -> Iterator[None]:
    before = attached()
    yield
    if attached() - before:
        gc.collect()  # what a failed test holds in a cycle
    assert attached() <= before, "the test left hooks or observers behind"
