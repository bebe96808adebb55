"""The laboratory on the page, with the bundled model: features, steering, graph, sweep and probes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import votive
from votive import glass
from votive.models.checkpoint import bundled

from .browser import Window
from .client import studio

pytestmark = pytest.mark.skipif("tales" not in bundled(), reason="the bundled model is not part of this installation")
PROMPT = "He walked all day and all"


@pytest.fixture(scope="module")
def lab_tab(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Window]:
    with studio(tmp_path_factory.mktemp("sessions"), model="tales") as one:
        window = Window(browser, one.url).begun(tab="laboratory")
        window.page.fill("#prompt-text", PROMPT)
        window.click("#begin")
        window.grow(6)
        yield window
        assert window.faults == []
        window.close()


@pytest.fixture
def lab(lab_tab: Window) -> Window:
    lab_tab.click("#tab-laboratory")
    return lab_tab


def runs(window: Window) -> None:
    """Copy as Python gives lines that run as they are."""
    window.until("!document.querySelector('#lab-copy').disabled")
    text = window.page.get_attribute("#view-laboratory", "data-python")
    model = votive.models.AutoModelForCausalLM.from_pretrained("tales").eval()
    tokenizer = votive.text.Tokenizer.from_pretrained("tales")
    session = glass.Session(model, tokenizer, PROMPT)
    session.tokens_of = lambda node: tokenizer.encode(PROMPT)
    names = {"votive": votive, "glass": glass, "model": model, "tokenizer": tokenizer, "session": session}
    exec(compile(text or "", "<copied>", "exec"), names)


def test_a_feature_is_found_opened_and_steered_by(lab: Window) -> None:
    lab.click("#lab-features")
    lab.until("document.querySelectorAll('.feature-row').length > 3")
    runs(lab)
    lab.page.locator('[data-feature="1293"]').first.click()
    lab.until("document.querySelector('#feature-detail').innerText.includes('dawn')")
    assert lab.page.locator(".example").count() >= 3
    before = dict(lab.top())
    lab.click("#feature-steer")
    slider = lab.page.locator("#steer-1293")
    slider.focus()
    for _ in range(12):
        lab.page.keyboard.press("ArrowRight")
    lab.until("document.querySelector('#feature-sliders').dataset.steered === '{\"1293\":6}'")
    lab.rest()
    assert dict(lab.top()) != before
    runs(lab)
    lab.click("#tab-edits")
    lab.until("document.querySelector('.edits').innerText.includes('model.layers.4')")
    lab.click("#steer-off")
    lab.until("document.querySelector('#feature-sliders').dataset.steered === '{}'")
    lab.rest()
    assert dict(lab.top()) == before


def test_a_graph_is_traced_pruned_opened_and_hidden(lab: Window) -> None:
    lab.click("#lab-graph")
    lab.click("#graph-run")
    lab.until("document.querySelectorAll('.graph-node').length > 10")
    runs(lab)
    count = lab.page.locator(".graph-node").count
    many = count()
    lab.page.locator("#graph-keep").focus()
    lab.page.keyboard.press("Home")
    few = count()
    assert few < many
    lab.click("#graph-open")
    lab.until(f"document.querySelectorAll('.graph-node').length > {few}")
    assert lab.page.locator(".graph-edge.lit").count() > 0
    shown = count()
    lab.page.locator(".graph-node.neuron, .graph-node.feature").first.press("Enter")
    lab.until("!document.querySelector('#graph-hide').disabled")
    lab.click("#graph-hide")
    lab.until(f"document.querySelectorAll('.graph-node').length === {shown - 1}")
    lab.click("#graph-all")
    lab.until(f"document.querySelectorAll('.graph-node').length === {few}")


def test_a_sweep_links_back_to_the_text(lab: Window) -> None:
    lab.click("#lab-sweep")
    lab.click("#sweep-run")
    lab.until("document.querySelector('#lab-fault').innerText.includes('Write the word')")
    lab.page.select_option("#sweep-position", "3")
    lab.page.fill("#sweep-word", "king")
    lab.page.keyboard.press("Enter")
    lab.until("document.querySelector('#lab-view-sweep').dataset.sweep === '8x6'")
    assert "·king in the place of ·day" in lab.text("#sweep-words")
    runs(lab)
    lab.page.locator("#sweep-map").focus()
    lab.page.keyboard.press("ArrowDown")
    lab.page.keyboard.press("ArrowRight")
    lab.page.keyboard.press("Enter")
    lab.until("document.querySelector('.token.locked')?.dataset.at === '1'")
    lab.page.select_option("#sweep-site", "heads")
    lab.click("#sweep-run")
    lab.until("document.querySelector('#lab-view-sweep').dataset.sweep === '8x8'")


def test_probes_are_curves_over_layers(lab: Window) -> None:
    lab.click("#lab-probe")
    lab.click("#probe-run")
    lab.page.locator("#probe-chart .chart").wait_for()
    assert lab.page.locator("#probe-chart .series").count() == 3
    assert "of the held-out texts" in lab.text("#probe-words")
    runs(lab)
    lab.page.fill("#probe-first", "one")
    lab.click("#probe-run")
    lab.until("document.querySelector('#lab-fault').innerText.includes('at least four')")
