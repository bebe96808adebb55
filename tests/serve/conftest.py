"""A server that the tests of a file share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("uvicorn")
pytest.importorskip("starlette")


@pytest.fixture(scope="module")
def the_server() -> Iterator[Any]:
    from .client import serving

    with serving() as one:
        yield one
