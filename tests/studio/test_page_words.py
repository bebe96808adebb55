"""What the page says and keeps: tooltips, errors where they are caused, a reload, and the tour to a discovery."""

from __future__ import annotations

from typing import Any

import pytest

from votive.models.checkpoint import bundled
from votive.studio.workspace import error_json

from .browser import Window
from .client import studio

TABS = ("picture", "debugger", "lens", "layers", "compare", "profile", "compiled", "quantization")
TABS += ("attention", "edits", "explain", "console")  # type: ignore[assignment]
SILENT = """() => [...document.querySelectorAll('button, input, select, textarea')]
  .filter(e => e.checkVisibility() && !e.closest('[title]')).map(e => e.outerHTML.slice(0, 120))"""


def test_every_control_has_a_tooltip(window: Window) -> None:
    for tab in TABS:
        window.click(f"#tab-{tab}")
        window.rest()
        assert window.page.evaluate(SILENT) == [], tab
    for button in ("#files-button", "#model-button", "#help"):
        window.click(button)
        window.rest()
        assert window.page.evaluate(SILENT) == [], button
        window.page.keyboard.press("Escape")


@pytest.mark.parametrize(
    ("raised", "said"),
    [
        (ValueError("session.auto: the text is long."), "the text is long."),
        (IndexError("attention: there is no layer 9."), "there is no layer 9."),
        (KeyError("edits.swap: there is no module 'x'."), "there is no module 'x'."),
        (ValueError("the text: a colon"), "the text: a colon"),
    ],
)
def test_messages_begin_with_no_name_of_a_function(raised: Exception, said: str) -> None:
    assert error_json(raised)["message"] == said


def test_an_error_stands_where_it_was_caused_and_only_once(window: Window) -> None:
    window.page.fill("#auto-count", "99999")
    for _ in range(3):
        window.click("#generate")
        window.until("document.querySelector('#panel-prompt .notice.error')")
        window.rest()
    assert window.page.locator(".notice.error").count() == 1
    told = window.text("#panel-prompt .notice.error")
    assert told.startswith("Generate takes 1 to 10,000 tokens; you asked for 99,999."), told
    window.page.locator("#auto-count").click()
    window.until("!document.querySelector('.notice.error')")


def test_f5_loads_the_page_again_and_all_stands_as_it_was(window: Window) -> None:
    window.click("#tab-lens")
    window.click("#tab-edits")
    window.page.fill("#auto-count", "7")
    window.page.locator(".token").nth(2).click()
    window.page.fill("#lens-target", "king")
    window.page.keyboard.press("Enter")
    window.rest()
    with window.page.expect_navigation():
        # As the browser does it: the page itself takes no F5.
        assert window.page.evaluate("""() => document.body.dispatchEvent(
          new KeyboardEvent('keydown', { key: 'F5', bubbles: true, cancelable: true }))""")
        window.page.reload()
    window.begun(tab=None)
    window.until("document.querySelector('#tab-lens').getAttribute('aria-selected') === 'true'")
    window.until("document.querySelector('#tab-edits').getAttribute('aria-selected') === 'true'")
    window.until("document.querySelector('.token.locked')?.dataset.at === '2'")
    assert window.page.locator("#auto-count").input_value() == "7"
    window.until("document.querySelector('#lens-goal').textContent.startsWith('·king')")


def test_empty_views_say_what_to_do_next(browser: Any, the_studio: Any) -> None:
    window = Window(browser, the_studio.url)
    try:
        window.begun()
        window.click("#tab-edits")
        assert "Choose a module" in window.text("#view-edits")
        window.click("#tab-compare")
        window.rest()
        assert window.page.locator("#view-compare .state.empty:visible").count() == 0
    finally:
        window.close()


@pytest.mark.skipif("tales" not in bundled(), reason="the bundled model is not part of this installation")
def test_the_tour_leads_to_the_head_that_copies_names(browser: Any, tmp_path: Any) -> None:
    with studio(tmp_path, model="tales") as one:
        window = Window(browser, one.url, tour=True)
        try:
            window.begun(tab=None)
            for _ in range(4):
                window.click("#tour-next")
            window.click("#tour-do")
            window.until("document.querySelectorAll('.token.given').length === 12")
            window.rest()
            window.click("#tour-next")
            window.until("/prince has [0-9.]+%/.test(document.querySelector('.tour .found').textContent)")
            before = window.text(".tour .found")
            window.click("#tour-next")
            window.click("#tour-do")
            window.rest()
            window.page.select_option("#attention-layer", "2", force=True)
            window.click("#attention-links")
            window.click('.head[data-head="2"]')
            window.until("document.querySelector('.tour .found').textContent.includes('head 2 of layer 2')")
            window.click("#tour-next")
            window.rest()
            window.page.select_option("#edit-where", "head")
            window.click("#edit-zero")
            window.until("document.querySelector('.tour .found').textContent.startsWith('Without head 2 of layer 2')")
            share = [float(t.split("has ")[1].split("%")[0]) for t in (before, window.text(".tour .found"))]
            assert share[1] < 0.8 * share[0], "it copies the name"
            assert window.faults == []
        finally:
            window.close()
