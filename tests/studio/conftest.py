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


@pytest.fixture(scope="module")
def offline() -> Iterator[Any]:
    """A page of a browser that has no network."""
    from .browser import chromium

    with chromium() as browser:
        context = browser.new_context(offline=True, viewport={"width": 900, "height": 700})
        page = context.new_page()
        page.set_default_timeout(45_000)
        page.trouble = []
        page.on("pageerror", lambda e: page.trouble.append(str(e)))
        page.on("console", lambda m: m.type == "error" and page.trouble.append(m.text))
        page.on("request", lambda r: r.url.startswith(("file:", "data:", "blob:"))
                or page.trouble.append(r.url))  # fmt: skip
        yield page
