"""A studio on a tiny model, shared by the tests of a file, and a page of it for each test."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("uvicorn")
pytest.importorskip("starlette")
pytest.importorskip("websockets")


@pytest.fixture(scope="module")
def the_studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from .client import studio

    with studio(tmp_path_factory.mktemp("sessions")) as one:
        yield one


@pytest.fixture
def page(the_studio: Any) -> Iterator[Any]:
    from .client import Page

    with Page(the_studio) as one:
        yield one
