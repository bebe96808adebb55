"""Writing in the studio's page, in a real browser: step, undo, choose, branch, save, come back."""

from __future__ import annotations

from typing import Any

from .browser import NARROW, Window


def moves(window: Window) -> int:
    """How many moves can be undone, as the server says."""
    found = window.page.evaluate("""async () => {
      const { model } = await import('/static/js/page.js');
      return (await model.ask('session.state', {})).undo;
    }""")
    return int(found)


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
    window.until("Number(document.querySelector('.timeline').dataset.count) > 20")
    assert window.text("#generate") == "Stop"
    window.click("#generate")
    window.finished()
    count = window.count()
    assert 20 < count < 2000
    window.page.wait_for_timeout(300)
    assert window.count() == count
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
    window.rest()
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
    window.until("document.querySelectorAll('.diff-side').length === 2")
    assert "divergence" in window.text(".diff")
    sides = window.page.locator(".diff-side .diff-text").all_inner_texts()
    assert len(set(sides)) == 2
    window.page.locator(".chain .node").first.click()
    window.grow(4)


def test_settings_of_the_sampler_hold_at_once(window: Window) -> None:
    before = window.page.locator(".bar-number.after").first.inner_text()
    slider = window.page.locator("#set-temperature")
    slider.focus()
    for _ in range(12):
        window.page.keyboard.press("ArrowLeft")
    window.until("document.querySelector('output[for=set-temperature]').textContent === '0.4'")
    window.until(f"document.querySelector('.bar-number.after').textContent !== {before!r}")
    window.page.locator("#do-sample").uncheck()
    window.until("document.querySelector('.bar-number.after').textContent === '100%'")
    assert slider.is_disabled()


def test_drawing_a_slider_is_one_move_and_shows_what_it_would_do(window: Window) -> None:
    first = ".bar-number.after"
    before, undo = window.page.locator(first).first.inner_text(), moves(window)
    box = window.page.locator("#set-temperature").bounding_box()
    y = box["y"] + box["height"] / 2
    window.page.mouse.move(box["x"] + box["width"] * 0.5, y)
    window.page.mouse.down()
    for share in (0.4, 0.3, 0.2, 0.12):
        window.page.mouse.move(box["x"] + box["width"] * share, y, steps=4)
        window.rest()
    drawn = window.page.locator(first).first.inner_text()
    assert drawn != before
    assert moves(window) == undo
    window.page.mouse.up()
    window.rest()
    assert moves(window) == undo + 1
    assert window.page.locator(first).first.inner_text() == drawn
    window.click("#undo")
    window.until(f"document.querySelector('{first}').textContent === {before!r}")
    assert window.text("output[for=set-temperature]") == "1"


def test_two_sliders_moved_one_after_the_other_are_both_set(window: Window) -> None:
    undo = moves(window)
    for name in ("temperature", "top_p", "min_p"):
        window.page.locator(f"#set-{name}").focus()
        window.page.keyboard.press("ArrowRight" if name == "min_p" else "ArrowLeft")
    window.page.keyboard.press("s")  # at once: what was set holds for this token
    window.grow(6)
    assert moves(window) == undo + 4
    shown = [window.text(f"output[for=set-{n}]") for n in ("temperature", "top_p", "min_p")]
    assert shown == ["0.95", "0.99", "0.005"]
    script = "() => document.querySelector('#undo').click()"
    for _ in range(4):
        window.page.evaluate(script)
        window.rest()
    assert window.text("output[for=set-min_p]") == "off"


def test_a_node_under_the_pointer_is_looked_at_in_passing(window: Window) -> None:
    window.page.fill("#auto-count", "4")
    window.click("#generate")
    window.grow(9)
    rows, words = window.top(), window.text("#tree-passing")
    window.page.locator(".chain .node").nth(1).hover()
    window.until(f"document.querySelector('#tree-passing').innerText !== {words!r}")
    window.until("document.querySelector('#view-topk').innerText.includes('position 4')")
    assert window.top() != rows
    window.page.mouse.move(5, 5)
    window.until("document.querySelector('#view-topk').innerText.includes('position 8')")
    assert window.top() == rows


def test_what_the_model_expected_inside_of_the_prompt_is_shown(window: Window) -> None:
    window.page.locator('.token[data-at="1"]').click()
    window.until("document.querySelector('#view-topk').innerText.includes('in the prompt')")
    rows = window.top()
    window.click(".bar-row >> nth=4")
    window.until("document.querySelectorAll('.token.given').length === 3")
    window.rest()
    assert window.tokens() == ["Once", "·upon", rows[4][0]]


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


def test_two_tabs_have_sessions_of_their_own(window: Window, browser: Any, the_studio: Any) -> None:
    other = Window(browser, the_studio.url, size=NARROW)
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
