"""Choosing a model on the page: folders, paths, dropped files and errors, all in the dialog."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from votive.studio import demo

from .browser import Window
from .client import loaded, studio


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("models")
    for name, hidden in (("fox", 16), ("bear", 32)):
        demo.model(layers=1, hidden=hidden, heads=2).save_pretrained(root / name)
        demo.tokenizer().save_pretrained(root / name)
    return root


@pytest.fixture(scope="module")
def shelf_tab(browser: Any, folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Window]:
    with studio(tmp_path_factory.mktemp("sessions"), loaded(), models=[folder]) as one:
        window = Window(browser, one.url).begun()
        yield window
        assert window.faults == []
        window.close()


@pytest.fixture
def dialog(shelf_tab: Window) -> Window:
    if not shelf_tab.page.locator("#models[open]").count():
        shelf_tab.click("#model-button")
    shelf_tab.page.fill("#model-find", "")
    shelf_tab.page.locator(".model-list .file").first.wait_for()
    return shelf_tab


def test_models_are_listed_with_their_sizes_and_found_by_a_part_of_their_name(dialog: Window) -> None:
    assert {"fox", "bear", "demo"} <= set(dialog.page.locator(".model-list .grow").all_inner_texts())
    assert "KB" in dialog.page.locator('.model-list [data-name="fox"]').inner_text()
    dialog.page.fill("#model-find", "BEA")
    dialog.until("document.querySelectorAll('.model-list .file').length === 1")
    dialog.page.fill("#model-find", "wolf")
    dialog.until("document.querySelector('#models').innerText.includes('No model has this in its name')")


def test_errors_stand_in_the_dialog_which_stays(dialog: Window, folder: Path, tmp_path: Path) -> None:
    dialog.page.fill("#model-name", str(tmp_path))
    dialog.click("#model-open")
    dialog.until("document.querySelector('#model-fault').innerText.includes('outside the folders')")
    dialog.page.fill("#model-name", str(folder / "wolf"))
    dialog.page.keyboard.press("Enter")
    dialog.until("document.querySelector('#model-fault').innerText.includes('There is no file or folder')")
    dialog.page.fill("#model-name", "no repository")
    dialog.click("#model-download")
    dialog.until("document.querySelector('#model-fault').innerText.includes('not the name of a repository')")
    assert dialog.page.locator("#models[open]").count() == 1
    assert dialog.page.locator(".notice").count() == 0


def test_a_model_is_opened_by_its_path_and_is_recent_then(dialog: Window, folder: Path) -> None:
    dialog.page.fill("#model-name", str(folder / "bear"))
    dialog.page.keyboard.press("Enter")
    dialog.until("document.querySelector('#model-name-text').textContent === 'bear'")
    dialog.begun()
    dialog.click("#model-button")
    dialog.until("document.querySelector('.model-list .file').dataset.name === 'bear'")
    assert "recent" in dialog.page.locator('.model-list [data-name="bear"]').inner_text()


def test_a_file_that_is_dropped_on_the_page_is_opened(shelf_tab: Window, folder: Path) -> None:
    if shelf_tab.page.locator("#models[open]").count():
        shelf_tab.page.keyboard.press("Escape")
    size = (folder / "fox" / "model.safetensors").stat().st_size
    drop = """([name, size, uri]) => {
      const data = new DataTransfer();
      if (uri) data.setData('text/uri-list', uri);
      else data.items.add(new File([new Uint8Array(size)], name));
      const how = { dataTransfer: data, bubbles: true, cancelable: true };
      document.querySelector('main').dispatchEvent(new DragEvent('drop', how));
    }"""
    shelf_tab.page.evaluate(drop, ["model.safetensors", size + 1, None])
    shelf_tab.until("document.querySelector('#model-fault').innerText.includes('does not tell where')")
    shelf_tab.page.keyboard.press("Escape")
    shelf_tab.page.evaluate(drop, ["model.safetensors", size, None])
    shelf_tab.until("document.querySelector('#model-name-text').textContent === 'fox'")
    shelf_tab.begun()
    shelf_tab.page.evaluate(drop, ["", 0, f"file://{folder}/bear/model.safetensors"])
    shelf_tab.until("document.querySelector('#model-name-text').textContent === 'bear'")
    shelf_tab.begun()


def test_what_is_too_large_is_marked(shelf_tab: Window) -> None:
    script = """async () => {
      const { fit } = await import('/static/js/model_dialog.js');
      const memory = { available: 4e9, total: 8e9 };
      return [fit(1e9, memory).ok, fit(4e9, memory).text, fit(null, memory)];
    }"""
    assert shelf_tab.page.evaluate(script) == [True, "needs about 5 GB, 4 GB are free", None]
