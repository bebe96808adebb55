"""Views are the same modules in notebooks and saved pages, with answers of the same actions."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from votive import glass, studio
from votive.studio import demo
from votive.studio.bundle import bundle
from votive.studio.widgets import VIEWS

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


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


@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")
@pytest.mark.parametrize("view", ["lens", "attention", "layers", "topk", "timeline", "tree"])
def test_a_saved_page_draws_without_a_kernel_and_without_network(view: str, tmp_path: Path) -> None:
    api = pytest.importorskip("playwright.sync_api")
    path = tmp_path / f"{view}.html"
    made = session()
    made.choose(" </script><script>document.title='evil'</script>")
    studio.save_html(made, path, view)
    with api.sync_playwright() as p:
        browser = p.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            page = browser.new_page()
            trouble: list[str] = []
            page.on("pageerror", lambda e: trouble.append(str(e)))
            page.on("request", lambda r: r.url.startswith("file:") or trouble.append(r.url))
            page.goto(path.as_uri())
            page.wait_for_function("document.querySelector('#view').textContent.length > 3")
            page.wait_for_timeout(300)
            assert page.title() == f"votive: {view}"
            assert not page.query_selector(".state.error:not([hidden])")
            assert trouble == []
        finally:
            browser.close()
