"""Large texts and small windows: lines that can be drawn, the whole in small, sizes of letters, what is live."""

from __future__ import annotations

from typing import Any

import pytest

from .browser import NARROW, Window

SMALL = {"width": 900, "height": 700}
TABS = ("picture", "debugger", "lens", "layers", "profile", "attention", "edits", "explain", "console")

# Letters below 12 pixels, in the page and in pictures.
TINY = """() => {
  const found = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const e = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || !e.checkVisibility({ visibilityProperty: true })) continue;
    const shrunk = e.ownerSVGElement ? e.getScreenCTM()?.a ?? 1 : 1;
    const size = parseFloat(getComputedStyle(e).fontSize) * (e.closest('.chart') ? 1 : Math.min(1, shrunk));
    if (size < 11.9) found.add(`${size} ${e.getAttribute('class') || e.tagName}: ${e.textContent.slice(0, 20)}`);
  }
  return [...found];
}"""

# Controls whose box is cut off by what they lie in, where that cannot be scrolled.
CLIPPED = """() => [...document.querySelectorAll('button, input, select, textarea')].filter(e => e.checkVisibility())
  .filter(e => {
    const box = e.getBoundingClientRect();
    for (let at = e.parentElement; at && at !== document.body; at = at.parentElement) {
      const style = getComputedStyle(at), seen = at.getBoundingClientRect();
      const free = (o) => o === 'auto' || o === 'scroll';
      if (style.overflowX === 'hidden' && (box.right > seen.right + 1 || box.left < seen.left - 1)) return true;
      if (style.overflowY === 'hidden' && (box.bottom > seen.bottom + 1 || box.top < seen.top - 1)) return true;
      if (free(style.overflowX) || free(style.overflowY)) return false;
    }
    return box.right > innerWidth + 1;
  }).map(e => e.outerHTML.slice(0, 90))"""


def width(window: Window, element: str) -> float:
    return float(window.page.locator(element).bounding_box()["width"])


def test_lines_between_the_columns_are_moved_and_remembered(window: Window) -> None:
    before = width(window, "#left")
    window.page.locator("#split-left").focus()
    for _ in range(3):
        window.page.keyboard.press("ArrowRight")
    assert width(window, "#left") == pytest.approx(before + 48, abs=2)
    box = window.page.locator("#split-right").bounding_box()
    right = width(window, "#right")
    window.page.mouse.move(box["x"] + 3, box["y"] + 200)
    window.page.mouse.down()
    window.page.mouse.move(box["x"] - 57, box["y"] + 210, steps=4)
    window.page.mouse.up()
    assert width(window, "#right") == pytest.approx(right + 60, abs=3)
    window.page.goto(window.url)
    window.begun()
    assert width(window, "#left") == pytest.approx(before + 48, abs=2)
    assert width(window, "#right") == pytest.approx(right + 60, abs=3)
    window.page.locator("#split-left").dblclick()
    assert width(window, "#left") == pytest.approx(before, abs=2)
    height = window.page.locator(".stack").bounding_box()["height"]
    window.page.locator("#split-stack").focus()
    window.page.keyboard.press("ArrowUp")
    window.page.keyboard.press("ArrowUp")
    assert window.page.locator(".stack").bounding_box()["height"] < height


@pytest.mark.parametrize("size", [SMALL, NARROW], ids=["900", "390"])
def test_no_letter_is_tiny_and_nothing_is_cut_off(browser: Any, the_studio: Any, size: dict[str, int]) -> None:
    window = Window(browser, the_studio.url, size=size).begun()
    try:
        for tab in TABS:
            window.page.evaluate(f"""() => {{ const t = document.querySelector('#tab-{tab}');
              document.body.dataset.column = t.closest('.column').id; t.click(); }}""")
            window.rest()
            assert window.page.evaluate(TINY) == [], tab
            assert window.page.evaluate(CLIPPED) == [], tab
            assert window.page.evaluate("document.documentElement.scrollWidth") <= size["width"], tab
    finally:
        window.close()


def test_a_small_picture_of_the_whole_leads_through_a_long_lens(window: Window) -> None:
    window.click("#tab-lens")
    window.rest()
    assert window.page.locator(".minimap").is_hidden(), "all of a short text is in view"
    window.page.fill("#auto-count", "60")
    window.click("#generate")
    window.finished()
    window.page.locator(".minimap").wait_for()
    at = "document.querySelector('#lens-grid').scrollLeft"
    end = window.page.evaluate(at)
    assert end > 1000
    box = window.page.locator(".minimap").bounding_box()
    window.page.mouse.click(box["x"] + 4, box["y"] + 10)
    window.until(f"{at} === 0")
    window.until("parseFloat(document.querySelector('.minimap-view').style.left) === 0")
    window.page.locator(".minimap").focus()
    window.page.keyboard.press("End")
    window.until(f"{at} >= {end} - 2")


def test_all_heads_are_seen_at_once_and_one_is_opened(window: Window) -> None:
    window.click("#attention-all")
    window.until("document.querySelector('.thumbs').dataset.count === '16'")
    window.until("document.querySelectorAll('.thumb').length > 0")
    window.page.locator('.thumb[data-layer="1"][data-head="2"]').click()
    window.until("document.querySelector('#attention-layer').value === '1'")
    assert window.page.get_attribute("#attention-matrix", "aria-pressed") == "true"
    window.page.locator('.head[data-head="2"][aria-pressed="true"]').wait_for()


def test_while_it_generates_the_bars_follow_and_the_rate_is_told(window: Window) -> None:
    window.page.evaluate("""() => {
      window.seen = { live: 0, rate: false };
      new MutationObserver(() => {
        const { live } = document.querySelector('#view-topk .bars').dataset;
        window.seen.live = Math.max(window.seen.live, Number(live ?? 0));
        if (/\\d tokens\\/s/.test(document.querySelector('#session-line').textContent)) window.seen.rate = true;
      }).observe(document.body, { subtree: true, childList: true, characterData: true, attributes: true });
    }""")
    window.page.fill("#auto-count", "40")
    window.click("#generate")
    window.finished()
    assert window.page.evaluate("window.seen.live") > 1
    assert window.page.evaluate("window.seen.rate")
    assert window.text("#session-line").startswith("45 of"), "the count stands there again"
