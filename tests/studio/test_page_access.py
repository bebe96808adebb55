"""The studio's page for hands, eyes and ears: names, focus, contrast, keys, narrow windows."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from .browser import NARROW, Window

CENTRE = ("lens", "layers", "profile", "debugger")
RIGHT = ("edits", "explain", "console", "attention")

NAMELESS = """() => [...document.querySelectorAll(
  'button, input, select, textarea, a[href], [tabindex], [role=option], [role=treeitem], canvas')]
  .filter(e => e.checkVisibility() && !e.closest('[aria-hidden=true]') && e.tagName !== 'CANVAS'
    && !(e.getAttribute('aria-label') || e.textContent.trim() || e.labels?.length
      || e.getAttribute('aria-labelledby')))
  .map(e => e.outerHTML.slice(0, 120))"""

# Text whose contrast with what lies behind it is below 4.5 to 1, or 3 to 1 for large text.
PALE = """() => {
  const pen = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });
  const rgba = (text) => {
    pen.clearRect(0, 0, 1, 1); pen.fillStyle = text; pen.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = pen.getImageData(0, 0, 1, 1).data; return [r, g, b, a / 255];
  };
  const light = (c) => { const [r, g, b] = c.slice(0, 3).map(v => v / 255)
    .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const behind = (e) => {
    let out = null;
    for (let at = e; at; at = at.parentElement) {
      const c = rgba(getComputedStyle(at).backgroundColor);
      out = out === null ? c : out.map((v, i) => i === 3 ? v + c[3] * (1 - v)
        : (v * out[3] + c[i] * c[3] * (1 - out[3])) / Math.max(1e-6, out[3] + c[3] * (1 - out[3])));
      if (out[3] > 0.999) break;
    }
    return out;
  };
  const found = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const e = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || !e.checkVisibility({ opacityProperty: true,
      visibilityProperty: true })) continue;
    if (e.closest('svg, :disabled, .said, [hidden], select, .inverse, option')) continue;
    if (e.closest('label')?.querySelector(':disabled')) continue;
    const style = getComputedStyle(e);
    const [a, b] = [light(rgba(style.color)), light(behind(e))].sort((x, y) => y - x);
    const large = parseFloat(style.fontSize) >= 18;
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < (large ? 3 : 4.5)) found.add(`${ratio.toFixed(2)} ${e.className || e.tagName}: `
      + walker.currentNode.textContent.trim().slice(0, 30));
  }
  return [...found];
}"""


def test_everything_that_can_be_used_has_a_name(window: Window) -> None:
    for tab in (*CENTRE, *RIGHT):
        window.click(f"#tab-{tab}")
        window.rest()
        assert window.page.evaluate(NAMELESS) == [], tab
    for button in ("#files-button", "#model-button", "#help"):
        window.click(button)
        assert window.page.evaluate(NAMELESS) == [], button
        window.page.keyboard.press("Escape")


def test_the_tree_of_names_tells_the_regions_and_their_controls(window: Window) -> None:
    window.rest()
    reply = window.page.locator("body").aria_snapshot()
    for part in (
        'region "Text"',
        'region "Model"',
        'region "Views"',
        'textbox "Prompt"',
        'listbox "Tokens"',
        'slider "Temperature"',
        'tree "Branches"',
        'tree "Modules"',
        'toolbar "Debugger"',
        'tab "Logit lens"',
        'group "Most probable next tokens"',
    ):
        assert part in reply, part


def test_the_focus_follows_the_reading_order_and_can_be_seen(window: Window) -> None:
    script = """() => {
      const e = document.activeElement;
      if (!e || e === document.body) return null;
      const box = e.getBoundingClientRect();
      const style = getComputedStyle(e);
      const column = ['left', 'centre', 'right'].findIndex(id => e.closest('#' + id));
      const line = style.outlineStyle !== 'none' ? parseFloat(style.outlineWidth) : 0;
      return { what: e.id || e.className || e.tagName, x: box.x, y: box.y, line,
        column: e.closest('header, .jump') ? -1 : column };
    }"""
    window.page.evaluate("document.activeElement.blur()")
    seen: list[Any] = []
    for _ in range(90):
        window.page.keyboard.press("Tab")
        at = window.page.evaluate(script)
        if at is None or (seen and at["what"] == seen[0]["what"]):
            break
        seen.append(at)
    assert len(seen) > 40
    columns = [s["column"] for s in seen]
    assert columns == sorted(columns)
    assert set(columns) == {-1, 0, 1, 2}
    assert [s["what"] for s in seen if s["line"] < 2] == []
    for a, b in pairwise(seen):
        if a["column"] == b["column"] >= 0:
            # The next one is further down, or further right in the same row.
            assert b["y"] > a["y"] - 30, (a, b)
            assert b["y"] > a["y"] + 12 or b["x"] > a["x"], (a, b)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_all_text_can_be_read_in_light_and_in_dark(window: Window, theme: str) -> None:
    window.page.evaluate("theme => { document.documentElement.dataset.theme = theme; }", theme)
    window.page.locator('.token[data-at="2"]').click()
    window.click('.stack-row[data-address="model.layers.2"] .breakpoint')
    for tab in (*CENTRE, *RIGHT):
        window.click(f"#tab-{tab}")
        window.rest()
        assert window.page.evaluate(PALE) == [], tab


def test_keys_move_the_selection_and_open_the_views(window: Window) -> None:
    press = window.page.locator("body").press
    press(",")
    window.until("document.querySelector('.token.locked')?.dataset.at === '3'")
    press(",")
    press(".")
    window.until("document.querySelector('.token.locked')?.dataset.at === '3'")
    press("[")
    window.until("document.querySelector('#attention-layer').value === '2'")
    press("]")
    window.until("document.querySelector('#attention-layer').value === '3'")
    for key, tab in zip("lnmdexca", (*CENTRE, *RIGHT), strict=True):
        press(key)
        assert window.page.locator(f"#tab-{tab}").get_attribute("aria-selected") == "true"
    press("Escape")
    window.until("!document.querySelector('.token.locked')")
    press("w")
    assert window.page.locator("#panel-topk").is_hidden()
    press("w")
    press("?")
    assert window.page.locator("#shortcuts").is_visible()
    assert "F10" in window.text("#shortcuts")
    window.page.keyboard.press("Escape")
    theme = window.page.evaluate("getComputedStyle(document.body).backgroundColor")
    press("t")
    assert window.page.evaluate("getComputedStyle(document.body).backgroundColor") != theme
    window.page.fill("#prompt-text", "s?t")  # what is typed is no shortcut
    assert window.count() == 5


def test_tokens_branches_and_modules_are_walked_through_with_the_arrows(window: Window) -> None:
    keys = window.page.keyboard
    at = "document.activeElement.dataset"
    window.page.locator('.token[tabindex="0"]').focus()
    keys.press("Home")
    keys.press("ArrowRight")
    window.until(f"{at}.at === '1'")
    keys.press("Enter")
    window.until("document.querySelector('.token.locked')?.dataset.at === '1'")
    window.page.locator('.stack-row[tabindex="0"]').focus()
    keys.press("End")
    window.until(f"{at}.address === 'lm_head'")
    keys.press("ArrowUp")
    keys.press(" ")
    window.until("document.querySelector('.breakpoint[aria-pressed=true]')")
    window.until(f"{at}.address === 'model.rotary_emb'")
    window.page.locator('.chain[tabindex="0"]').focus()
    keys.press("ArrowLeft")
    window.grow(4)


def test_a_narrow_window_has_pages_and_nothing_sticks_out(browser: Any, the_studio: Any) -> None:
    window = Window(browser, the_studio.url, size=NARROW)
    wide = """() => [...document.querySelectorAll('body *')].filter(e => e.checkVisibility()
      && e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(
      '.tabs, .code, .grid-scroll, .heads, .console, .jump, svg'))
      .map(e => e.outerHTML.slice(0, 100))"""
    try:
        window.begun()
        assert window.page.evaluate(wide) == []
        for column, tabs in (("centre", CENTRE), ("right", RIGHT)):
            window.click(f'#bottom [data-column="{column}"]')
            for tab in tabs:
                window.click(f"#tab-{tab}")
                window.rest()
                assert window.page.evaluate(wide) == [], tab
                assert window.page.evaluate("document.documentElement.scrollWidth") <= 390
        window.click('#bottom [data-column="left"]')
        window.click("#step-token")
        window.grow(6)
        assert window.faults == []
    finally:
        window.close()


def test_the_first_visit_has_a_tour_that_can_be_left(browser: Any, the_studio: Any) -> None:
    window = Window(browser, the_studio.url, tour=True)
    try:
        window.begun()
        seen = [window.text("#tour-title")]
        while window.text("#tour-next") != "Done":
            window.click("#tour-next")
            seen.append(window.text("#tour-title"))
        assert len(set(seen)) == len(seen) == 10
        window.click("#tour-next")
        assert window.page.locator(".tour").is_hidden()
        window.page.reload()
        window.until("document.querySelectorAll('.token').length > 0")
        assert window.page.locator(".tour").is_hidden()
        window.click("#help")
        window.click("#tour-again")
        window.page.keyboard.press("Escape")
        assert window.page.locator(".tour").is_hidden()
        assert window.faults == []
    finally:
        window.close()
