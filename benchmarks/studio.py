"""How long the studio lets people wait, in a real Chromium on the bundled model.

    python -m benchmarks.studio [--starts 3] [--steps 20] [--json FILE]

Three things: from the command `votive studio` to a page that has written its first token; a step at
a context of 200 tokens until text, lens and attention are drawn; and the time between frames while
a text of 500 tokens is scrolled through and hovered over. Needs playwright and Chromium.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
STORY = "The king had a daughter who went into the wood, and there she met an old man who said: "

# Runs in the page before anything else: notes when the first token that was generated is there.
WATCH = """
localStorage.setItem('votive-tour-seen', '1');
new MutationObserver(() => {
  if (!window.firstToken && document.querySelector('.token:not(.given)')) {
    requestAnimationFrame(() => { window.firstToken ??= Date.now(); });
  }
}).observe(document, { childList: true, subtree: true });
"""

# A click on Step, until the text, the lens and the attention all show one token more.
STEP = """() => new Promise(done => {
  const count = () => [document.querySelector('.timeline'), document.querySelector('#lens-grid'),
    document.querySelector('#view-attention')].map(e => Number(e.dataset.count));
  const wanted = count()[0] + 1;
  const start = performance.now();
  document.querySelector('#step-token').click();
  const look = () => (count().every(n => n === wanted)
    ? requestAnimationFrame(() => done(performance.now() - start)) : requestAnimationFrame(look));
  requestAnimationFrame(look);
})"""

FRAMES = """() => {
  window.frames_ = [];
  let last = performance.now();
  const next = (now) => {
    window.frames_?.push(now - last); last = now;
    if (window.frames_) requestAnimationFrame(next);
  };
  requestAnimationFrame(next);
}"""
TAKE = "() => { const found = window.frames_.slice(1); window.frames_ = null; return found; }"


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser that runs already, as it does on a desk."""
    from playwright.sync_api import sync_playwright

    path = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        raise SystemExit(f"studio: none of {', '.join(BROWSERS)} is installed.")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def started(browser: Any) -> Iterator[tuple[Any, float]]:
    """A page of a fresh process, and the seconds until its first token."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    context.add_init_script(WATCH)
    page = context.new_page()
    with tempfile.TemporaryDirectory() as folder:
        begun = time.time()
        command = [sys.executable, "-m", "votive", "studio", "--no-browser", "--folder", folder]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            assert process.stdout is not None
            url = next(w for line in process.stdout for w in line.split() if "token=" in w)
            page.goto(url)
            first = wait(page, "() => window.firstToken")
            yield page, first / 1000 - begun
        finally:
            context.close()
            process.send_signal(signal.SIGINT)
            process.wait(30)


def wait(page: Any, script: str, seconds: float = 120.0) -> Any:
    """What a script gives when it gives something true."""
    end = time.monotonic() + seconds
    while not (found := page.evaluate(script)):
        if time.monotonic() > end:
            raise TimeoutError(script)
        page.wait_for_timeout(20)
    return found


def rest(page: Any) -> None:
    """Wait until no view loads."""
    page.wait_for_timeout(150)
    wait(page, "() => !Number(document.body.dataset.busy) && !document.querySelector('[aria-busy=true]')")


def write(page: Any, tokens: int) -> None:
    """A text of so many tokens."""
    page.fill("#prompt-text", STORY * (tokens // 8))
    ids = page.evaluate(
        """async text => { const { model } = await import('/static/js/page.js');
           return (await model.ask('session.tokenise', { text: text.slice(0, 1000) })).ids.length
             / Math.min(1000, text.length); }""",
        STORY * 10,
    )
    page.fill("#prompt-text", (STORY * 200)[: int(tokens / ids) - 8])
    page.keyboard.press("Control+Enter")
    wait(page, f"() => Number(document.querySelector('.timeline').dataset.count) > {tokens - 24}")
    rest(page)
    count = int(page.locator(".timeline").get_attribute("data-count"))
    if count < tokens:
        page.fill("#auto-count", str(tokens - count))
        page.click("#generate")
        wait(page, "() => document.querySelector('#generate').textContent === 'Generate'")
        rest(page)


def frames(page: Any, do: Callable[[], None]) -> list[float]:
    """Milliseconds between frames while something is done."""
    page.evaluate(FRAMES)
    do()
    found: list[float] = page.evaluate(TAKE)
    return found


def fluidity(page: Any) -> dict[str, list[float]]:
    """Scrolling and hovering in a long text."""

    def over(selector: str, dx: float, dy: float) -> Callable[[], None]:
        box = page.locator(selector).bounding_box()

        def move() -> None:
            for i in range(60):
                at = i / 59
                page.mouse.move(
                    box["x"] + 8 + (box["width"] - 24) * (at if dx else 0.5),
                    box["y"] + 8 + (box["height"] - 24) * (at if dy else 0.5),
                )

        return move

    def scroll(selector: str, dx: int, dy: int) -> Callable[[], None]:
        page.locator(selector).hover()

        def turn() -> None:
            for _ in range(40):
                page.mouse.wheel(dx, dy)
                page.wait_for_timeout(12)

        return turn

    found = {
        "hover over the tokens": frames(page, over(".timeline", 1, 1)),
        "scroll the tokens": frames(page, scroll(".timeline", 0, 40)),
        "hover over the lens": frames(page, over("#lens-grid", 1, 1)),
        "scroll the lens": frames(page, scroll("#lens-grid", 300, 0)),
        "hover over the links": frames(page, over(".links", 0, 1)),
        "scroll the links": frames(page, scroll(".links", 0, 120)),
    }
    page.click("#attention-matrix")
    rest(page)
    found["hover over the matrix"] = frames(page, over("#attention-map", 1, 1))
    return found


def summary(values: list[float]) -> str:
    ordered = sorted(values)
    high = ordered[int(0.95 * (len(ordered) - 1))]
    return f"median {statistics.median(ordered):.0f}, 95% {high:.0f}, most {ordered[-1]:.0f} ms"


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--starts", type=int, default=3)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args(argv)
    starts: list[float] = []
    with chromium() as browser:
        for i in range(given.starts):
            with started(browser) as (page, seconds):
                starts.append(seconds)
                print(f"first token in the page after {seconds:.2f} s", flush=True)
                if i < given.starts - 1:
                    continue
                page.click("#tab-lens")
                write(page, 200)
                steps = [page.evaluate(STEP) for _ in range(given.steps)]
                print(f"a step with lens and attention from 200 tokens on: {summary(steps)}")
                write(page, 500)
                smooth = fluidity(page)
                for name, values in smooth.items():
                    print(f"500 tokens, {name}: frames {summary(values)}")
    print(
        f"wanted: first token <= 5 s (worst {max(starts):.2f} s), step <= 300 ms "
        f"(median {statistics.median(steps):.0f} ms)"
    )
    if given.json:
        given.json.write_text(json.dumps({"starts": starts, "steps": steps, "frames": smooth}))


if __name__ == "__main__":
    main()
