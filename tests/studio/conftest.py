"""A studio on a tiny model, shared by the tests of a file; for each test a page without a browser,
or a window of a real one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
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


@pytest.fixture(scope="session")
def whisper(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a Whisper with random weights, whose window is half a second."""
    from tests.speech import small

    return small.written(tmp_path_factory.mktemp("models") / "whisper")


@pytest.fixture(scope="module")
def speech_studio(whisper: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A studio on it."""
    from .client import studio

    with studio(tmp_path_factory.mktemp("sessions"), model=str(whisper)) as one:
        yield one


@pytest.fixture
def page(the_studio: Any) -> Iterator[Any]:
    from .client import Page

    with Page(the_studio) as one:
        yield one


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from .browser import chromium

    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def tab(browser: Any, the_studio: Any) -> Iterator[Any]:
    from .browser import Window

    made = Window(browser, the_studio.url).begun()
    yield made
    made.close()


@pytest.fixture
def window(tab: Any) -> Iterator[Any]:
    yield tab.renewed()
    assert tab.faults == []


@pytest.fixture(scope="module")
def offline(browser: Any) -> Iterator[Any]:
    """A page of a browser that has no network."""
    context = browser.new_context(offline=True, viewport={"width": 900, "height": 700})
    page = context.new_page()
    page.set_default_timeout(45_000)
    page.trouble = []
    page.on("pageerror", lambda e: page.trouble.append(str(e)))
    page.on("console", lambda m: m.type == "error" and page.trouble.append(m.text))
    page.on("request", lambda r: r.url.startswith(("file:", "data:", "blob:")) or page.trouble.append(r.url))
    yield page
    context.close()
