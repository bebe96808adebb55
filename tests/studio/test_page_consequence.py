"""What a change does, as the page shows it: values before and after, tokens and texts old and new, what is kept."""

from __future__ import annotations

from .browser import Window
from .test_page_looking import LAYER, stands

MLP = f"{LAYER}.mlp"


def choose(window: Window, address: str) -> None:
    window.click(f'.stack-row[data-address="{address}"]')
    window.rest()


def unfold(window: Window) -> None:
    window.click(f'.stack-row[data-address="{LAYER}"] .fold')
    choose(window, MLP)


def shown(window: Window) -> None:
    """Bring what changed into view, and wait until it is there."""
    window.until("!document.querySelector('#panel-consequence').hidden")
    window.page.evaluate("document.querySelector('#panel-consequence').scrollIntoView()")
    window.until("document.querySelector('#consequence-words').textContent")
    window.rest()


def test_an_edit_shows_the_value_the_tokens_and_the_text_before_and_after(window: Window) -> None:
    unfold(window)
    old = window.top()
    window.click("#edit-zero")
    shown(window)
    assert "100% of its 5 × 64 numbers differ" in window.text("#consequence-words")
    rows = [r.split() for r in window.page.locator("#view-consequence tbody tr").all_inner_texts()]
    assert {r[1] for r in rows} >= {old[0][1]}, "the old probability stands beside the new one"
    assert {r[2] for r in rows} >= {window.top()[0][1]}
    assert window.page.locator(".goes").count() == 2
    maps = """[...document.querySelectorAll('.three canvas.base')].map(c => {
      const d = c.getContext('2d').getImageData(8, 8, c.width - 16, c.height - 16).data;
      const seen = new Set();
      for (let i = 0; i < d.length; i += 4) seen.add(d.slice(i, i + 3).join());
      return seen.size; })"""
    before, after, difference = window.page.evaluate(f"() => {maps}")
    assert after == 1, "zero has one colour"
    assert min(before, difference) > 20
    window.page.locator(f'.stack-row[data-address="{LAYER}"]').scroll_into_view_if_needed()
    choose(window, "model.layers.0")
    shown(window)
    window.until("document.querySelector('#consequence-words').textContent.startsWith('Nothing differs here')")
    window.click("#consequence-last")
    window.until("document.querySelector('#consequence-words').textContent.includes('numbers differ')")
    window.click("#consequence-undo")
    window.until("document.querySelector('#panel-consequence').hidden")
    assert window.top() == old


def test_ablating_a_whole_layer_is_explained_and_skip_is_offered(window: Window) -> None:
    choose(window, LAYER)
    window.click("#edit-zero")
    assert "residual stream" in window.text("#ablate-warning")
    assert window.page.locator(".stack-row .badge").count() == 0
    window.click("#ablate-skip")
    window.page.locator(f'.stack-row[data-address="{LAYER}"] .badge').wait_for()
    assert window.text(f'.stack-row[data-address="{LAYER}"] .badge') == "skip"
    shown(window)


def test_a_change_at_a_stop_is_shown_and_kept_as_an_edit(window: Window) -> None:
    window.step_into(LAYER)
    window.click("#debug-start")
    stands(window, "event 0")
    window.click("#debug-run")
    stands(window, f"enter {LAYER}")
    window.rest()
    window.page.fill("#edit-value", "0.5")
    window.click("#stop-scale")
    shown(window)
    assert "the difference is 50.0% of its norm" in window.text("#consequence-words")
    window.click("#debug-run")
    stands(window, "The run has ended")
    told = window.text("#debug-outcome .chip").split()
    window.click("#debug-keep")
    stands(window, "No run")
    window.click("#tab-edits")
    window.until("document.querySelector('.edits').innerText.includes('model.layers.2:in')")
    assert [told[0], told[1].rstrip(",")] in [list(r) for r in window.top()[:2]]


def test_rows_columns_and_parts_are_chosen_and_edited(window: Window) -> None:
    unfold(window)
    window.page.evaluate("document.querySelector('#panel-value').scrollIntoView()")
    box = window.page.locator("#value-heat").bounding_box()
    window.page.mouse.click(box["x"] + 20, box["y"] + 40)  # the name of a row
    window.until("document.querySelector('#edit-where').value === 'region'")
    text = "document.querySelector('#edit-where').selectedOptions[0].text"
    assert window.page.evaluate(text).startswith("position ")
    window.page.locator("#value-heat").focus()
    window.page.keyboard.press("Enter")  # lets the row go
    for _ in range(2):
        window.page.keyboard.press("Shift+ArrowRight")
    window.page.keyboard.press("Shift+ArrowDown")
    window.until(f"{text}.startsWith('positions ') && {text}.includes('features ')")
    window.click("#edit-zero")
    window.click("#tab-edits")
    window.until("document.querySelector('.edits').innerText.includes('features')")
    shown(window)
    assert "differ" in window.text("#consequence-words")


def test_one_head_is_ablated_by_choosing_it(window: Window) -> None:
    choose(window, LAYER)
    window.click('.head[data-head="1"]')
    window.until("[...document.querySelector('#edit-where').options].some(o => o.value === 'head')")
    window.page.select_option("#edit-where", "head")
    window.click("#edit-zero")
    window.click("#tab-edits")
    window.until("document.querySelector('.edits').innerText.includes('heads 1')")
    assert "layers.2.attn.z" in window.text(".edits")
