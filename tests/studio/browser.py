"""A real Chromium in front of a studio, for the tests of the page. Knows the page by its ids."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
WIDE, NARROW = {"width": 1280, "height": 800}, {"width": 390, "height": 844}
# Seconds: a machine may have much else to do; whoever looks for a fault wants to wait less.
PATIENCE = float(os.environ.get("VOTIVE_PATIENCE", "60"))
TOUR = "localStorage.setItem('votive-tour-seen', '1')"


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser; skips the test where there is none."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright drives the browser")
    path = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip(f"no browser: none of {', '.join(NAMES)} is installed, and CHROMIUM is not set")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


class Window:
    """A tab on a studio's page; what the browser complains about is kept in `faults`."""

    def __init__(
        self, browser: Any, url: str, *, size: dict[str, int] = WIDE, tour: bool = False, **options: Any
    ) -> None:
        self.context = browser.new_context(viewport=size, reduced_motion="reduce", **options)
        if not tour:
            self.context.add_init_script(TOUR)
        self.url = url
        self.page = self.context.new_page()
        self.page.set_default_timeout(1000 * PATIENCE)
        self.faults: list[str] = []
        self.page.on("pageerror", lambda e: self.faults.append(str(e)))
        self.page.on("console", self._said)
        self.page.goto(url)

    def renewed(self) -> Window:
        """The same tab, as if it were opened for the first time."""
        self.page.evaluate("sessionStorage.clear(); localStorage.clear()")
        self.page.goto(self.url)
        self.faults.clear()
        return self.begun()

    def _said(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.faults.append(message.text)

    def begun(self, tab: str | None = "debugger") -> Window:
        """Wait until the page has begun by itself and written its first token; show a tab, not the picture."""
        self.page.locator("#generate:not([disabled])").wait_for()
        self.until("[...document.querySelectorAll('.token:not(.given)')].length > 0")
        if tab is not None:
            self.page.evaluate(f"document.querySelector('#tab-{tab}').click()")
        self.rest()  # what is drawn anew under the pointer cannot be clicked
        return self

    def until(self, expression: str, *, seconds: float = PATIENCE) -> None:
        """Wait until an expression is true in the page.

        Asked from outside: a function that the page itself polls is code from text, which its
        security policy forbids.
        """
        end = time.monotonic() + seconds
        while not self.page.evaluate(f"() => Boolean({expression})"):
            if time.monotonic() > end:
                reply = self.page.evaluate("document.body.innerText.slice(0, 1500)")
                raise AssertionError(f"after {seconds} s still not: {expression}; {self.faults}; it says\n{reply}")
            self.page.wait_for_timeout(30)

    def click(self, selector: str) -> None:
        self.page.click(selector)

    def text(self, selector: str) -> str:
        return str(self.page.locator(selector).first.inner_text())

    def tokens(self) -> list[str]:
        """The tokens of the timeline."""
        found: list[str] = self.page.eval_on_selector_all(".token", "all => all.map(t => t.textContent)")
        assert len(found) == self.count(), "a long text is in the page only where it is seen"
        return found

    def count(self) -> int:
        """How many tokens there are, in view or not."""
        return int(self.page.locator(".timeline").get_attribute("data-count") or 0)

    def grow(self, count: int) -> None:
        """Wait until the timeline has so many tokens, and the page is at rest."""
        self.until(f"document.querySelector('.timeline').dataset.count === '{count}'")
        self.rest()

    def rest(self) -> None:
        """Wait until what was begun is done: frames are drawn, timers have run, no view loads."""
        frames = """() => new Promise(done => requestAnimationFrame(
          () => setTimeout(() => requestAnimationFrame(done), 80)))"""
        for _ in range(2):
            # In the page's own thread: a slow machine makes all of it slow, and keeps the order.
            self.page.evaluate(frames)
            self.until("!document.querySelector('[aria-busy=true]') && !Number(document.body.dataset.busy)")

    def finished(self) -> None:
        """Wait until it has generated what it was asked for."""
        self.until("document.querySelector('#generate').textContent === 'Generate'")
        self.rest()

    def quiet(self) -> None:
        """Let what is told for a while be gone."""
        self.page.evaluate("document.querySelector('#notices').replaceChildren()")

    def top(self) -> list[tuple[str, str]]:
        """The rows of the next token: text and the model's probability."""
        self.rest()
        script = """all => all.map(b => [b.querySelector('.bar-label').textContent,
                                      b.querySelector('.bar-number').textContent])"""
        return [tuple(r) for r in self.page.eval_on_selector_all(".bar-row", script)]

    def step_into(self, address: str) -> None:
        """Set a breakpoint at a module and run there."""
        for cut in range(1, address.count(".") + 1):
            up = ".".join(address.split(".")[:cut])
            row = self.page.locator(f'.stack-row[data-address="{up}"]')
            if row.get_attribute("aria-expanded") == "false":
                row.locator(".fold").click()
        self.click(f'.stack-row[data-address="{address}"] .breakpoint')
        self.until(f"""document.querySelector('.stack-row[data-address="{address}"] .breakpoint')
                       .getAttribute('aria-pressed') === 'true'""")

    def close(self) -> None:
        self.context.close()
