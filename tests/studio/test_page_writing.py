"""Writing in the studio's page, in a real browser: step, undo, choose, branch, save, come back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytest.importorskip("websockets")

from votive.studio.serving import Studio

from .browser import NARROW, Window, chromium
from .client import loaded

TOKEN = "t" * 43


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def studio(tmp_path_factory: Any) -> Iterator[Studio]:
    with Studio(loaded(), folder=tmp_path_factory.mktemp("sessions")) as made:
        yield made


@pytest.fixture(scope="module")
def tab(browser: Any, studio: Studio) -> Iterator[Window]:
    made = Window(browser, studio.url)
    yield made
    made.close()


@pytest.fixture
def window(tab: Window) -> Iterator[Window]:
    yield tab.renewed()
    assert tab.faults == []


def test_a_page_that_is_opened_begins_by_itself_and_hides_its_token(window: Window) -> None:
    assert window.tokens()[:4] == ["Once", "·upon", "·a", "·time"]
    assert len(window.tokens()) == 5
    assert "token=" not in window.page.url
    assert window.text("#model-name-text") == "demo"


def test_steps_are_taken_back_and_made_again(window: Window) -> None:
    window.click("#step-token")
    window.grow(6)
    written = window.tokens()
    window.page.keyboard.press("Control+z")
    window.grow(5)
    assert window.tokens() == written[:5]
    window.page.keyboard.press("Control+y")
    window.grow(6)
    assert window.tokens() == written


def test_generating_shows_tokens_as_they_come_and_can_be_stopped(window: Window) -> None:
    window.page.fill("#auto-count", "8")
    window.click("#generate")
    window.grow(13)
    assert window.text("#generate") == "Generate"
    window.page.fill("#auto-count", "2000")
    window.click("#generate")
    window.until("document.querySelectorAll('.token').length > 20")
    assert window.text("#generate") == "Stop"
    window.click("#generate")
    window.until("document.querySelector('#generate').textContent === 'Generate'")
    count = len(window.tokens())
    assert 20 < count < 2000
    window.page.wait_for_timeout(300)
    assert len(window.tokens()) == count
    assert "Generated:" in window.page.locator(".said").first.text_content()


def test_another_prompt_begins_again_and_keeps_the_old_text_in_the_tree(window: Window) -> None:
    window.page.fill("#prompt-text", "The king of the wood")
    window.page.keyboard.press("Control+Enter")
    window.until("document.querySelector('.token').textContent === 'The'")
    window.grow(len(window.tokens()))
    assert window.page.locator(".chain").count() == 2


def test_choosing_another_token_makes_a_branch_that_can_be_left_again(window: Window) -> None:
    window.click("#undo")
    window.grow(4)
    rows = window.top()
    window.click(".bar-row >> nth=3")
    window.grow(5)
    assert window.tokens()[4] == rows[3][0]
    window.click("#undo")
    window.grow(4)
    window.click(".bar-row >> nth=5")
    window.grow(5)
    assert window.tokens()[4] == rows[5][0]
    chains = window.page.locator(".chain")
    assert chains.count() == 4  # the prompt, the token drawn first, and two that were chosen
    chains.nth(2).locator(".chain-text").click()
    window.until(f"document.querySelectorAll('.token')[4].textContent === {rows[3][0]!r}")
    assert chains.nth(2).get_attribute("aria-selected") == "true"


def test_text_of_ones_own_goes_on_with_all_its_tokens(window: Window) -> None:
    window.page.fill("#own-token", " little fox")
    window.page.keyboard.press("Enter")
    window.until("document.querySelectorAll('.token').length > 5")
    window.rest()
    assert "".join(window.tokens()[5:]).replace("·", " ") == " little fox"


def test_a_branch_draws_anew_and_two_branches_are_compared(window: Window) -> None:
    window.page.fill("#auto-count", "6")
    window.click("#generate")
    window.grow(11)
    first = window.tokens()
    window.page.locator(".token").nth(4).click()
    window.click("#branch")
    window.grow(5)
    window.click("#generate")
    window.grow(11)
    assert window.tokens()[:5] == first[:5]
    assert window.tokens() != first
    window.click("#compare")
    window.until("document.querySelectorAll('.diff-row').length === 3")
    assert "KL(a‖b)" in window.text(".diff")
    window.page.locator(".chain .node").first.click()
    window.grow(4)


def test_settings_of_the_sampler_hold_at_once(window: Window) -> None:
    before = window.page.locator(".bar-number.after").first.inner_text()
    slider = window.page.locator("#set-temperature")
    slider.focus()
    for _ in range(12):
        window.page.keyboard.press("ArrowLeft")
    window.until("document.querySelector('output[for=set-temperature]').textContent === '0.4'")
    window.until(
        f"document.querySelector('.bar-number.after').textContent !== {before!r}"
    )  # fmt: skip
    window.page.locator("#do-sample").uncheck()
    window.until("document.querySelector('.bar-number.after').textContent === '100%'")
    assert slider.is_disabled()


def test_a_session_is_saved_and_opened_again(window: Window) -> None:
    window.click("#step-token")
    window.grow(6)
    written = window.tokens()
    window.click("#files-button")
    window.page.fill("#save-name", "fox-1")
    window.click("#save-session")
    window.page.locator('.file[data-name="fox-1"]').wait_for()
    window.page.fill("#save-name", "../fox")
    window.click("#save-session")
    window.page.locator(".notice.error").wait_for()
    window.page.keyboard.press("Escape")
    window.click("#undo")
    window.grow(5)
    window.click("#files-button")
    window.click('.file[data-name="fox-1"]')
    window.grow(6)
    assert window.tokens() == written


def test_a_page_that_is_loaded_again_finds_its_session(window: Window) -> None:
    window.click("#step-token")
    window.grow(6)
    written = window.tokens()
    window.page.reload()
    window.grow(6)
    assert window.tokens() == written
    assert not window.page.locator("#undo").is_disabled()


def test_two_tabs_have_sessions_of_their_own(
    window: Window, browser: Any, studio: Studio
) -> None:  # fmt: skip
    other = Window(browser, studio.url, size=NARROW)
    try:
        other.begun()
        other.click("#step-token")
        other.grow(6)
        assert len(window.tokens()) == 5
        assert other.faults == []
    finally:
        other.close()


def test_text_of_a_model_is_never_markup(window: Window) -> None:
    text = "<img src=x onerror=window.hacked=1><script>window.hacked=1</script>"
    window.page.fill("#own-token", text)
    window.page.keyboard.press("Enter")
    window.until("document.querySelectorAll('.token').length > 10")
    window.rest()
    window.click("#tab-lens")
    window.rest()
    assert "".join(window.tokens()[5:]).replace("·", " ") == text
    assert window.page.evaluate("window.hacked") is None
    assert window.page.locator("img").count() == 0


def test_a_page_comes_back_after_the_server_was_started_again(browser: Any, tmp_path: Any) -> None:
    model = loaded()
    first = Studio(model, folder=tmp_path, token=TOKEN).start()
    window = Window(browser, first.url)
    try:
        window.begun()
        window.click("#step-token")
        window.grow(6)
        written = window.tokens()
        first.stop()
        window.page.locator("#offline:not([hidden])").wait_for()
        assert "does not answer" in window.text("#offline-text")
        assert window.tokens() == written
        assert window.page.locator("#step-token").is_disabled()
        with Studio(model, folder=tmp_path, token=TOKEN, port=first.port):
            window.click("#reconnect")
            window.page.locator("#offline").wait_for(state="hidden")
            window.until("document.querySelector('#step-token:not([disabled])')")
            window.grow(6)
            assert window.tokens() == written
            window.click("#step-token")
            window.grow(7)
    finally:
        window.close()
        first.stop()


def test_the_first_visit_has_a_tour_that_can_be_left(browser: Any, studio: Studio) -> None:
    window = Window(browser, studio.url, tour=True)
    try:
        window.begun()
        seen = [window.text("#tour-title")]
        for _ in range(5):
            window.click("#tour-next")
            seen.append(window.text("#tour-title"))
        assert len(set(seen)) == 6
        window.click("#tour-next")
        assert window.page.locator(".tour").is_hidden()
        window.page.reload()
        window.until("document.querySelectorAll('.token').length > 0")
        assert window.page.locator(".tour").is_hidden()
        assert window.faults == []
    finally:
        window.close()
