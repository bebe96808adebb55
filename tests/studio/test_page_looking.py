"""Looking into a model in the studio's page, in a real browser: debugger, edits, lens, maps."""

from __future__ import annotations

from .browser import Window

LAYER = "model.layers.2"


def where(window: Window) -> str:
    """Where the debugger stands."""
    return " ".join(window.text("#debug-where").split())


def stands(window: Window, text: str) -> None:
    reply = "(document.querySelector('#debug-where').innerText + ' ').replace(/\\s+/g, ' ')"
    window.until(f"{reply}.includes({text!r})")


def test_a_run_stops_at_a_breakpoint_and_is_walked_through(window: Window) -> None:
    window.step_into(LAYER)
    window.page.keyboard.press("F8")
    stands(window, "event 0")
    window.page.keyboard.press("F8")
    stands(window, f"enter {LAYER}")
    here = where(window)
    window.page.keyboard.press("F11")
    stands(window, f"{LAYER}.input_layernorm")
    window.page.keyboard.press("F10")
    stands(window, "leave")
    assert f"{LAYER}.input_layernorm" in where(window)
    window.page.keyboard.press("Shift+F11")
    stands(window, f"leave {LAYER} ")
    index = int(where(window).split()[1])
    window.page.keyboard.press("Shift+F10")
    stands(window, f"event {index - 1}")
    window.click("#debug-start")
    stands(window, "event 0")
    window.click("#debug-run")
    stands(window, f"enter {LAYER}")
    assert where(window) == here
    assert window.page.locator(".stack-row.here").get_attribute("data-address") == LAYER
    window.click("#debug-stop")
    stands(window, "No run")


def test_a_value_that_is_changed_at_a_stop_changes_what_the_model_says(window: Window) -> None:
    window.step_into(LAYER)
    window.click("#debug-start")
    stands(window, "event 0")
    window.click("#debug-run")
    stands(window, f"enter {LAYER}")
    window.rest()
    mean = window.text('[data-stat="mean"]')
    window.click("#stop-zero")
    window.until(f"document.querySelector('[data-stat=mean]').textContent !== {mean!r}")
    assert window.text('[data-stat="norm"]') == "0"
    window.click("#debug-run")
    stands(window, "The run has ended")
    assert "With 1 change it says" in where(window)
    assert "before" in where(window)


def test_one_cell_of_a_value_can_be_replaced(window: Window) -> None:
    window.step_into(LAYER)
    window.click("#debug-start")
    window.click("#debug-run")
    stands(window, f"enter {LAYER}")
    window.rest()
    window.page.locator("#value-heat").focus()
    for key in ("ArrowDown", "ArrowRight", "Enter"):
        window.page.keyboard.press(key)
    window.until("document.querySelector('.value-tools').innerText.includes('cell [1, 1]')")
    window.page.fill("#edit-value", "123")
    window.click("#stop-replace")
    window.until("document.querySelector('[data-stat=max]').textContent === '123'")
    assert "·upon" in window.text("#value-readout")


def test_an_ablation_changes_the_output_and_has_a_receipt_and_can_be_removed(window: Window) -> None:
    before = window.top()
    window.click(f'.stack-row[data-address="{LAYER}"]')
    window.rest()
    window.click("#edit-zero")
    window.click("#ablate-anyway")
    window.page.locator(f'.stack-row[data-address="{LAYER}"] .badge').wait_for()
    after = window.top()
    assert after != before
    assert window.page.locator(".bar-ghost").count() > 0
    window.click("#tab-edits")
    assert "made in 1 call" in window.text(".edits")
    assert window.text('[data-stat="zeros"]') == str(5 * 64)
    window.click('[aria-label="Remove zero at model.layers.2"]')
    window.page.locator(".edits li").wait_for(state="detached")
    assert window.top() == before


def test_a_layer_is_swapped_for_another_and_skipped(window: Window) -> None:
    before = window.top()
    window.click(f'.stack-row[data-address="{LAYER}"]')
    window.rest()
    window.page.select_option("#swap-with", "model.layers.0")
    window.click("#edit-swap")
    window.page.locator(f'.stack-row[data-address="{LAYER}"] .badge').wait_for()
    swapped = window.top()
    assert swapped != before
    window.click("#tab-edits")
    assert "for model.layers.0" in window.text(".edits")
    window.page.select_option("#swap-with", "identity")
    window.click("#edit-swap")
    window.until("document.querySelector('.edits').innerText.includes('skip')")
    assert window.top() not in (before, swapped)


def test_scaling_one_position_keeps_the_others(window: Window) -> None:
    window.page.locator(".token").nth(1).click()
    window.click(f'.stack-row[data-address="{LAYER}"]')
    window.rest()
    window.page.select_option("#edit-where", "position")
    window.page.fill("#edit-value", "0")
    window.click("#edit-scale")
    window.click("#tab-edits")
    window.until("document.querySelector('.edits').innerText.includes('positions 1')")
    window.until("document.querySelector('[data-stat=zeros]').textContent === '64'")


def test_the_lens_and_the_other_views_share_one_selection(window: Window) -> None:
    window.click("#tab-lens")
    window.rest()
    grid = window.page.locator("#lens-grid")
    grid.focus()
    window.page.keyboard.press("ArrowUp")
    window.until("document.querySelector('#lens-cell').innerText.includes('After model.layers.2')")
    window.page.keyboard.press("ArrowLeft")
    window.page.keyboard.press("Enter")
    window.until("document.querySelector('.token.locked')?.textContent === '·time'")
    window.until("document.querySelector('#attention-layer').value === '2'")
    window.until("document.querySelectorAll('#lens-cell .chip').length === 8")
    box = grid.bounding_box()
    window.page.mouse.move(box["x"] + 100, box["y"] + 35)
    window.until("document.querySelector('.token.hovered')?.textContent === 'Once'")
    window.page.mouse.move(10, 10)
    window.until("!document.querySelector('.token.hovered')")
    window.page.select_option("#lens-shade", "entropy")
    assert "nats" in window.text("#view-lens .ramp")


def test_the_lens_follows_a_target_that_is_given_as_a_word(window: Window) -> None:
    window.click("#tab-lens")
    window.rest()
    assert window.page.locator("#lens-shade option[value=rank]").is_disabled()
    window.page.fill("#lens-target", "king")
    window.page.keyboard.press("Enter")
    window.until("document.querySelector('#lens-goal').textContent.startsWith('·king, token')")
    window.rest()
    for shade, legend in (("rank", "the best"), ("target_p", "100%"), ("kl", "nats")):
        window.page.select_option("#lens-shade", shade)
        assert legend in window.text("#view-lens .ramp")
    assert "rank" in window.text("#lens-cell")
    assert window.page.locator("#lens-chart .series").count() == 3
    window.page.fill("#lens-target", "a giraffe")
    window.page.keyboard.press("Enter")
    window.until("document.querySelector('#lens-goal').textContent.startsWith('first of')")
    window.page.fill("#lens-target", "99999")
    window.page.keyboard.press("Enter")
    window.page.locator("#view-lens .state.error").wait_for()
    assert "There is no token 99999" in window.text("#view-lens .state.error")
    window.page.fill("#lens-target", "")
    window.page.keyboard.press("Enter")
    window.page.locator("#view-lens .state.error").wait_for(state="hidden")


def test_attention_is_shown_as_links_and_as_a_matrix_for_each_head(window: Window) -> None:
    window.page.select_option("#attention-layer", "1")
    window.rest()
    rows = window.page.locator(".link-svg .hit")
    assert rows.count() == 5
    rows.nth(2).click()
    window.until("document.querySelector('.token.locked')?.textContent === '·a'")
    readout = "document.querySelector('#attention-readout').textContent"
    window.until(f"{readout}.startsWith('·a at 2 looks most at')")
    links = window.page.locator(".link-svg .link").count()
    assert 1 <= links <= 3
    mean = window.page.locator(".link-svg").inner_html()
    window.click('.head[data-head="2"]')
    window.page.locator('.head[data-head="2"][aria-pressed="true"]').wait_for()
    window.rest()
    window.until(f"document.querySelector('.link-svg').innerHTML !== {mean!r}")
    window.click("#attention-matrix")
    window.page.locator("#attention-map").focus()
    window.page.keyboard.press("ArrowDown")
    window.until("document.querySelector('#attention-readout').textContent.includes('→')")
    window.click("#attention-heads")
    window.rest()
    # Keys go nowhere until the scores are there.
    window.until("""(() => {
      const c = document.querySelector('#attention-overview canvas.base');
      const all = c?.width ? c.getContext('2d').getImageData(0, 0, c.width, c.height).data : [];
      return all.some(Boolean);
    })()""")
    window.page.locator("#attention-overview").focus()
    window.page.keyboard.press("ArrowDown")
    window.page.keyboard.press("Enter")
    window.until("document.querySelector('#attention-readout').textContent.includes('induction')")


def test_statistics_and_profile_are_shown_for_each_layer(window: Window) -> None:
    window.click("#tab-layers")
    row = "[data-row]"
    window.until(f"document.querySelectorAll('#view-layers {row}').length === 12")
    window.page.locator(f"#view-layers {row}").nth(4).click()
    window.until("document.querySelector('#attention-layer').value === '1'")
    window.page.keyboard.press("ArrowDown")
    window.page.keyboard.press("ArrowDown")
    window.page.keyboard.press("Enter")
    window.until("document.querySelector('#attention-layer').value === '2'")
    window.click("#tab-profile")
    window.click("#profile-run")
    window.until(f"document.querySelectorAll('#view-profile {row}').length === 7")
    shares = window.page.locator("#view-profile .share-text").all_inner_texts()
    assert all(not s.startswith("0 ") for s in shares)
    window.click("#profile-operators")
    rows = int(window.page.locator("#view-profile [role=grid]").get_attribute("aria-rowcount"))
    assert rows > 60
    assert window.page.locator(f"#view-profile {row}").count() < rows  # the others are not made
    window.page.locator(f"#view-profile {row} button").first.click()
    window.page.locator(".explained h3").wait_for()


def test_an_operator_is_explained_by_name_and_at_a_stop(window: Window) -> None:
    window.click("#tab-explain")
    window.page.fill("#explain-name", "silu")
    window.page.keyboard.press("Enter")
    window.until("document.querySelector('.explained h3')?.textContent === 'silu'")
    titles = window.page.locator(".explained h4, .explained summary").all_inner_texts()
    assert any("Formula" in t for t in titles)
    assert any("Gradient" in t for t in titles)
    window.page.fill("#explain-name", "no_such_operator")
    window.page.keyboard.press("Enter")
    window.page.locator(".explained .error").wait_for()
    window.click("#debug-start")
    stands(window, "event 0")
    for _ in range(3):
        index = int(where(window).split()[1])
        window.click("#debug-into")
        stands(window, f"event {index + 1}")
    window.click("#explain-here")
    window.until("document.querySelector('.explained h3')?.textContent === 'embedding'")


def test_each_action_is_a_line_of_python(window: Window) -> None:
    window.click("#tab-console")
    window.click("#step-token")
    window.grow(6)
    window.until("document.querySelector('.console').innerText.includes('session.step()')")
    assert "glass.Session(model, tokenizer, 'Once upon a time'" in window.text(".console")
    assert "session.hidden" not in window.text(".console")
    window.page.locator("#console-looks").check()
    assert "session.hidden" in window.text(".console")
    window.click("#console-script")
    window.until("document.querySelector('#console-program').textContent.includes('session')")


def test_a_long_text_is_drawn_only_where_it_is_seen(window: Window) -> None:
    window.page.fill("#prompt-text", "the fox and the bear went to the river " * 50)
    window.page.keyboard.press("Control+Enter")
    window.until("Number(document.querySelector('.timeline').dataset.count) > 450", seconds=60)
    assert window.page.locator(".token").count() < 200
    window.click("#tab-lens")
    window.rest()
    sizes = window.page.evaluate("""() => [...document.querySelectorAll('canvas')]
      .map(c => [c.width, c.height])""")
    assert max(w * h for w, h in sizes) <= 1280 * 800
    scrolled = window.page.evaluate("document.querySelector('#lens-grid').scrollWidth")
    assert scrolled > 450 * 60
    window.click("#tab-debugger")
    window.rest()
    assert window.text('[data-stat="nan"]') == "0"
