"""The picture of the model on the page: the first view, nearer and nearer, and into the other views."""

from __future__ import annotations

from typing import Any

import pytest

from .browser import Window

ZOOM = "document.querySelector('#view-picture').dataset.zoom"


@pytest.fixture
def picture(window: Window) -> Window:
    """The page as one first sees it."""
    window.click("#tab-picture")
    window.page.locator(".flow").wait_for()
    window.rest()
    return window


def test_the_picture_is_the_first_view_with_a_column_for_each_layer(browser: Any, the_studio: Any) -> None:
    window = Window(browser, the_studio.url).begun(tab=None)
    try:
        window.page.locator(".flow").wait_for()
        assert window.page.get_attribute("#tab-picture", "aria-selected") == "true"
        window.until("document.querySelectorAll('.flow-layer').length === 4")
        assert window.page.locator(".flow-head").count() == 16
        window.until("document.querySelectorAll('.flow-word').length === 6")
        words = window.page.locator(".flow-word .start").all_text_contents()
        top = [t for t, _ in window.top()]
        assert words[0] == top[0][: len(words[0])]
        assert window.faults == []
    finally:
        window.close()


def test_one_goes_nearer_from_the_whole_to_a_head_and_back(picture: Window) -> None:
    picture.page.locator('.flow-layer[data-layer="2"] .flow-box').first.click(position={"x": 5, "y": 5})
    picture.until(f"{ZOOM} === 'layer'")
    assert picture.page.locator(".inside-head").count() == 4
    picture.page.locator('.inside-head[data-head="1"]').click()
    picture.until(f"{ZOOM} === 'head'")
    picture.until("document.querySelector('.head[data-head=\"1\"]').getAttribute('aria-pressed') === 'true'")
    sums = picture.text(".arithmetic tfoot").split()
    assert sums[:2] == ["sum", "100%"]
    picture.page.locator(".arithmetic button").first.focus()
    picture.page.keyboard.press("Escape")
    picture.until(f"{ZOOM} === 'layer'")
    picture.page.locator(".crumbs button").first.click()
    picture.until(f"{ZOOM} === 'whole'")


def test_the_picture_leads_to_the_debugger_the_lens_and_attention(picture: Window) -> None:
    picture.page.locator('.flow-head[aria-label^="Head 3 of layer 1"]').click()
    picture.until(f"{ZOOM} === 'head'")
    picture.click("text=Attention of this head")
    picture.until("document.querySelector('#attention-layer').value === '1'")
    picture.page.locator('.head[data-head="3"][aria-pressed="true"]').wait_for()
    picture.page.locator(".crumbs button").nth(1).click()
    picture.until(f"{ZOOM} === 'layer'")
    picture.page.locator(".inside-row button", has_text="lens").first.click()
    assert picture.page.get_attribute("#tab-lens", "aria-selected") == "true"
    picture.click("#tab-picture")
    picture.page.locator(".inside-row", has_text="MLP").last.locator("button").click()
    assert picture.page.get_attribute("#tab-debugger", "aria-selected") == "true"
    picture.until("document.querySelector('.value-title').innerText.includes('model.layers.1.mlp')")


def test_a_step_is_followed_stage_by_stage(picture: Window) -> None:
    stage = picture.page.locator("#picture-stage")
    stage.focus()
    picture.page.keyboard.press("ArrowRight")
    assert "Layer 0: the norm, then attention" in picture.text("#picture-words")
    picture.page.keyboard.press("End")
    assert "likeliest" in picture.text("#picture-words")
    reached = picture.page.locator(".flow-stage.reached").count()
    assert reached == picture.page.locator(".flow-stage").count()
    picture.page.keyboard.press("Home")
    picture.click("#picture-play")
    picture.until("Number(document.querySelector('#picture-stage').value) >= 2")
    picture.click("#picture-play")
    assert picture.text("#picture-play") == "Play a step"


def test_another_token_changes_the_picture_and_everything_is_reached_by_keys(picture: Window) -> None:
    picture.page.locator(".token").nth(1).click()
    picture.until("document.querySelector('#view-picture').dataset.position === '1'")
    assert "Token ·upon at 1" in (picture.page.locator(".flow-tokens .now").get_attribute("data-name") or "")
    picture.page.locator('.flow-layer[data-layer="1"] .flow-box').first.focus()
    picture.page.keyboard.press("ArrowRight")
    picture.until("document.activeElement.closest('.flow-layer')?.dataset.layer === '2'")
    picture.page.locator('.flow-layer[data-layer="2"] .flow-box').first.focus()
    picture.page.keyboard.press("Enter")
    picture.until(f"{ZOOM} === 'layer'")
    assert "at ·upon" in picture.text("#picture-words")
