"""The studio's page when the server goes away, comes back, or has much to do; in a real browser."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from votive.studio import demo
from votive.studio.models import DEFAULT, Loaded
from votive.studio.server import Studio

from .browser import Window
from .client import loaded

TOKEN, OTHER = "t" * 43, "u" * 43


@contextmanager
def opened(browser: Any, studio: Studio) -> Iterator[Window]:
    window = Window(browser, studio.url)
    try:
        yield window.begun()
    finally:
        window.close()
        studio.stop()


def branched(window: Window) -> tuple[list[str], list[str]]:
    """Write a few tokens and a branch; gives the tokens and the texts of the tree."""
    window.click("#step-token")
    window.grow(6)
    window.click("#undo")
    window.grow(5)
    window.click(".bar-row >> nth=4")
    window.grow(6)
    return window.tokens(), tree(window)


def tree(window: Window) -> list[str]:
    window.rest()
    return [str(t) for t in window.page.locator(".chain-text").all_text_contents()]


def test_a_page_comes_back_after_the_server_was_started_again(browser: Any, tmp_path: Any) -> None:
    model = loaded()
    first = Studio(model, folder=tmp_path, token=TOKEN).start()
    with opened(browser, first) as window:
        written = branched(window)
        window.click('.stack-row[data-address="model.layers.2"]')
        window.rest()
        window.click("#edit-zero")
        window.click("#ablate-anyway")
        window.page.locator(".stack-row .badge").wait_for()
        rows = window.top()
        first.stop()
        window.page.locator("#offline:not([hidden])").wait_for()
        assert "does not answer" in window.text("#offline-text")
        assert window.tokens() == written[0]
        for button in ("#step-token", "#edit-zero", "#debug-start", "#profile-run", "#set-top_p"):
            assert window.page.locator(button).is_disabled(), button
        with Studio(model, folder=tmp_path, token=TOKEN, port=first.port):
            # The page may have come back by itself before the button is found.
            window.page.evaluate("document.querySelector('#reconnect').click()")
            window.page.locator("#offline").wait_for(state="hidden")
            window.until("document.querySelector('#step-token:not([disabled])')")
            window.until("document.querySelector('#notices').innerText.includes('written again')")
            window.page.locator(".stack-row .badge").wait_for()
            assert window.tokens() == written[0]
            assert set(written[1]) <= set(tree(window))
            assert window.top() == rows
            window.click("#step-token")
            window.grow(7)
            window.close()


def test_a_server_with_another_token_is_told_and_joined_with_its_address(browser: Any, tmp_path: Any) -> None:
    model = loaded()
    first = Studio(model, folder=tmp_path, token=TOKEN).start()
    with opened(browser, first) as window:
        written = branched(window)
        first.stop()
        window.page.locator("#offline:not([hidden])").wait_for()
        with Studio(model, folder=tmp_path, token=OTHER, port=first.port) as second:
            window.until("document.body.dataset.link === 'refused'")
            assert "another token" in window.text("#offline-text")
            window.page.fill("#offline-address", "http://example.org/?token=" + OTHER)
            window.click("#offline-go")
            assert "not the address of a studio" in window.text("#offline-fault")
            window.page.fill("#offline-address", second.url.replace(OTHER, TOKEN))
            window.click("#offline-go")
            window.until("document.querySelector('#offline-fault').innerText.includes('not take')")
            window.page.fill("#offline-address", second.url)
            window.click("#offline-go")
            window.page.locator("#offline").wait_for(state="hidden")
            window.until("document.querySelector('#notices').innerText.includes('written again')")
            assert (window.tokens(), tree(window)) == written
            window.page.reload()
            window.grow(6)
            window.close()


def test_the_text_goes_along_to_a_server_at_another_address(browser: Any, tmp_path: Any) -> None:
    model = loaded()
    first = Studio(model, folder=tmp_path, token=TOKEN).start()
    with opened(browser, first) as window:
        written = branched(window)
        first.stop()
        window.page.locator("#offline-address").wait_for()  # after it has tried a few times
        assert "does not answer" in window.text("#offline-text")
        with Studio(model, folder=tmp_path) as second:
            window.page.fill("#offline-address", second.url)
            window.page.keyboard.press("Enter")
            window.page.wait_for_url(f"http://127.0.0.1:{second.port}/**")
            window.grow(6)
            assert (window.tokens(), tree(window)) == written
            assert "rebuild=" not in window.page.url
            window.close()


def test_the_end_of_the_context_is_told_and_the_page_goes_on(browser: Any, tmp_path: Any) -> None:
    model = demo.model()
    model.config = dataclasses.replace(model.config, max_position_embeddings=12)
    studio = Studio(Loaded("short", model, demo.tokenizer()), folder=tmp_path).start()
    with opened(browser, studio) as window:
        window.click("#generate")
        window.grow(12)
        window.until("document.querySelector('#notices').innerText.includes('context length of 12')")
        assert "12 of 12 tokens" in window.text("#session-line")
        window.click("#step-token")
        window.page.locator(".notice.error").wait_for()
        assert "context length" in window.text(".notice.error")
        window.click("#undo")
        window.grow(11)
        assert window.faults == []


class Slow:
    """A layer that takes its time; stands around another one."""

    def __init__(self, layer: Any) -> None:
        self.forward = layer.forward
        layer.forward = self
        self.seconds = 0.0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        time.sleep(self.seconds)
        return self.forward(*args, **kwargs)


def test_the_page_says_what_the_server_is_doing_and_lets_it_be_cancelled(browser: Any, tmp_path: Any) -> None:
    model = demo.model()
    slow = [Slow(layer) for layer in model.model.layers]
    studio = Studio(Loaded("slow", model, demo.tokenizer()), folder=tmp_path).start()
    with opened(browser, studio) as window:
        for one in slow:
            one.seconds = 0.6
        window.click("#tab-lens")
        window.until("document.querySelector('#activity-text').innerText.includes('logit lens')")
        assert window.page.locator("#activity").is_visible()
        window.click("#cancel")
        for one in slow:
            one.seconds = 0.0
        window.until("document.querySelector('#activity').hidden")
        window.click("#step-token")
        window.grow(6)


def test_another_model_is_loaded_and_begins(browser: Any, tmp_path: Any) -> None:
    from votive.models.checkpoint import bundled

    if DEFAULT not in bundled():
        pytest.skip("the bundled model is not part of this installation")
    studio = Studio(loaded(), folder=tmp_path).start()
    with opened(browser, studio) as window:
        window.click("#model-button")
        window.click(f'.file[data-name="{DEFAULT}"]')
        window.until(f"document.querySelector('#model-name-text').textContent === '{DEFAULT}'")
        window.until("document.querySelector('.timeline').dataset.count === '5'")
        window.rest()
        assert window.page.locator('.stack-row[data-address="model.layers.7"]').count() == 1
        assert window.page.locator("#activity").is_hidden()
        assert window.faults == []


def test_a_model_call_that_fails_is_a_message(browser: Any, tmp_path: Any) -> None:
    model = demo.model()
    slow = Slow(model.model.layers[2])
    studio = Studio(Loaded("odd", model, demo.tokenizer()), folder=tmp_path).start()
    with opened(browser, studio) as window:
        forward, slow.forward = slow.forward, None
        window.click("#step-token")
        window.page.locator(".notice.error").wait_for()
        slow.forward = forward
        window.quiet()
        window.click("#step-token")
        window.grow(6)
        assert window.faults == []


def test_what_was_not_saved_is_offered_and_recovered(
    browser: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("votive.studio.autosave.EVERY", 0.05)
    with opened(browser, Studio(loaded(), folder=tmp_path).start()) as window:
        assert window.page.locator("#recover").is_hidden()
        written = branched(window)
    with opened(browser, Studio(loaded(), folder=tmp_path).start()) as window:
        offer = window.text("#recover-text")
        assert "A session that you did not save is still here: “Once upon" in offer
        assert "tokens, just now" in offer
        window.click("#recover-later")
        assert window.page.locator("#recover").is_hidden()
        # Under Sessions it stays, and goes on from there.
        window.click("#files-button")
        window.click("#autosaved .file")
        window.until("!document.querySelector('#sessions').open")
        assert (window.tokens(), tree(window)) == written
        assert "Recovered" in window.text("#notices")
        assert window.faults == []
    with opened(browser, Studio(loaded(), folder=tmp_path).start()) as window:
        window.click("#recover-go")
        window.until("document.querySelector('#recover').hidden")
        assert (window.tokens(), tree(window)) == written
        window.click("#files-button")
        window.click("#save-session")
        window.page.locator('.file[data-name="session"]').wait_for()
        window.page.keyboard.press("Escape")
    with opened(browser, Studio(loaded(), folder=tmp_path).start()) as window:
        assert window.page.locator("#recover").is_hidden()  # it was saved


def test_what_was_kept_can_be_discarded_on_the_page(
    browser: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("votive.studio.autosave.EVERY", 0.05)
    with opened(browser, Studio(loaded(), folder=tmp_path).start()) as window:
        branched(window)
    with opened(browser, Studio(loaded(), folder=tmp_path).start()) as window:
        window.click("#recover-discard")
        window.until("document.querySelector('#recover').hidden")
        window.until("!Number(document.body.dataset.busy)")
        assert list((tmp_path / "autosave").glob("*")) == []


def test_a_disk_that_is_full_is_a_message_on_the_page(
    browser: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from votive.glass.session import Session

    def full(self: Any, path: Any) -> None:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr("votive.studio.autosave.EVERY", 0.05)
    monkeypatch.setattr(Session, "save", full)
    with opened(browser, Studio(loaded(), folder=tmp_path).start()) as window:
        window.click("#step-token")
        window.page.locator(".notice.error").wait_for()
        assert "Autosave failed: No space left" in window.text(".notice.error")
