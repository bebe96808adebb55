"""Views are the same modules in notebooks and saved pages, with answers of the same actions."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from votive import glass, studio
from votive.studio import demo
from votive.studio.bundle import bundle
from votive.studio.html_export import VIEWS


def session() -> Any:
    made = glass.Session(demo.model(), demo.tokenizer(), "Once upon a time", do_sample=True)
    made.step(3)
    return made


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_becomes_one_script_without_imports(view: str) -> None:
    text = bundle(f"views/{view}.js")
    assert not re.search(r"^\s*(import|export)\s", text, re.M)
    order = re.findall(r"^modules\['([^']+)'\] = ", text, re.M)
    used = re.findall(r"= modules\['([^']+)'\];", text)
    assert set(used) <= set(order)
    assert order[-1] == f"views/{view}.js"


def test_a_line_that_is_not_understood_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.js").write_text('import x from "./b.js";\n')
    with pytest.raises(ValueError, match="not understood"):
        bundle("a.js", root=tmp_path)
    (tmp_path / "a.js").write_text('import { x } from "./a.js";\n')
    with pytest.raises(ValueError, match="circle"):
        bundle("a.js", root=tmp_path)


def test_a_widget_answers_its_view() -> None:
    pytest.importorskip("anywidget")
    made = session()
    view = studio.widget(made, "lens")
    sent: list[Any] = []
    view.send = lambda content, buffers=None: sent.append((content, buffers))
    view._asked(view, {"id": "a", "do": "lens.grid", "args": {}}, [])
    view._asked(view, {"id": "b", "do": "no.such", "args": {}}, [])
    view._asked(view, "garbage", [])
    (grid, buffers), (wrong, _) = sent
    assert (grid["id"], grid["ok"]) == ("a", True)
    p = np.frombuffer(buffers[0], np.float32).reshape(grid["blobs"][0]["shape"])
    assert p.shape == (5, len(made.tokens))
    assert wrong["ok"] is False


@pytest.mark.parametrize("view", VIEWS)
def test_a_saved_view_draws_without_a_kernel_and_without_network(view: str, offline: Any, tmp_path: Path) -> None:
    path = tmp_path / f"{view}.html"
    made = session()
    made.choose(" </script><script>document.title='evil'</script>")
    studio.save_html(made, path, view)
    show(offline, path)
    assert offline.title() == f"votive: {view}"
    assert offline.locator(".state.error:not([hidden])").all_inner_texts() == []
    assert offline.trouble == []


def show(page: Any, path: Path) -> None:
    page.trouble.clear()
    page.goto(path.as_uri())
    page.wait_for_function("document.querySelector('#view').textContent.length > 3")
    page.wait_for_timeout(200)
    page.wait_for_function("!document.querySelector('[aria-busy=true]')")


def test_in_a_saved_page_all_layers_and_heads_can_be_chosen(offline: Any, tmp_path: Path) -> None:
    studio.save_html(session(), tmp_path / "x.html", "attention", layer=2)
    show(offline, tmp_path / "x.html")
    assert offline.locator("select").first.input_value() == "2"
    for layer in ("0", "3"):
        offline.locator("select").first.select_option(layer)
        offline.locator("[data-head='1']").click()
        offline.wait_for_timeout(100)
        assert offline.locator(".state.error:not([hidden])").all_inner_texts() == []
    assert offline.trouble == []
    with pytest.raises(TypeError, match="attention takes layer and head, got 'query'"):
        studio.save_html(session(), tmp_path / "y.html", "attention", query=2)
    with pytest.raises(TypeError, match="the view 'tree' takes no 'layer'"):
        studio.save_html(session(), tmp_path / "y.html", "tree", layer=2)
