"""Results of the glass engine show themselves: in notebooks, as pages and as pictures."""

from __future__ import annotations

import inspect
import json
import re
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import votive
from votive import glass, studio
from votive.glass import pictures
from votive.glass.display import Displayable, live
from votive.glass.heatmap import Heatmap
from votive.studio import results as results_json

from .results import EVIL, RESULTS, captured, ids, session

# Exported classes that are no results: names, errors, parts of results, and what is done with them.
NO_RESULTS = {
    "Address",
    "BadValue",
    "Breakpoint",
    "Console",
    "Cost",
    "Event",
    "FactoredMatrix",
    "Frame",
    "NoMatch",
    "Parts",
    "Pattern",
    "Probe",
    "Reading",
    "SessionMismatch",
    "Span",
    "TunedLens",
    "Unread",
    "Weights",
    "WrongSite",
}
VIEW = "application/vnd.jupyter.widget-view+json"


@cache
def result(name: str) -> Any:
    return RESULTS[name]()


@pytest.fixture(scope="module", autouse=True)
def forgetting() -> Iterator[None]:
    """Runs that stand still are closed at the end."""
    yield
    result("Debugger").close()
    result.cache_clear()


def test_every_result_of_the_glass_engine_has_pictures() -> None:
    classes = {n for n in glass.__all__ if inspect.isclass(getattr(glass, n))}
    shown = {n for n in classes if issubclass(getattr(glass, n), Displayable)}
    assert classes - shown == NO_RESULTS
    assert shown <= set(RESULTS)
    assert all(type(result(n)).__name__ == n for n in shown)


@pytest.mark.parametrize("name", RESULTS)
def test_every_picture_is_a_valid_svg_document(name: str, tmp_path: Path) -> None:
    thing = result(name)
    for picture in list(thing.pictures())[:6]:
        thing.save_svg(tmp_path / "x.svg", picture)
        root = ET.parse(tmp_path / "x.svg").getroot()
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        kinds = {e.tag.rpartition("}")[2] for e in root.iter()}
        assert kinds <= {"svg", "rect", "path", "text", "title", "style", "g", "image"}
        width, height = float(root.get("width", 0)), float(root.get("height", 0))
        assert 10 < width < 3000
        assert 10 < height < 6000
        places = [float(e.get("x", 0)) for e in root.iter("{http://www.w3.org/2000/svg}rect")]
        assert all(-1 <= x <= width for x in places)


class _Tags(HTMLParser):
    """The tags of a document, and attributes that could do something."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.sources: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.sources += [value or "" for name, value in attrs if name in ("src", "href")]


@pytest.mark.parametrize("name", RESULTS)
def test_what_a_notebook_keeps_runs_nothing_and_needs_nothing(name: str) -> None:
    bundle = result(name)._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html"}  # there is no kernel here
    found = _Tags()
    found.feed(bundle["text/html"])
    found.close()
    assert found.tags <= {"div", "p", "b", "small", "img", "table", "thead", "tbody", "tr", "th", "td"}
    assert found.attributes <= {"style", "alt", "src"}
    assert all(s.startswith(("data:image/svg+xml;", "data:image/png;")) for s in found.sources)
    assert len(bundle["text/html"]) < 1_500_000
    json.dumps(bundle)


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_is_told_in_plain_values(name: str) -> None:
    said = results_json.result_json(result(name), whole=True)
    json.dumps(said, allow_nan=False)
    assert list(said["pictures"]) == said["names"]
    assert all(figures for figures in said["pictures"].values())


# Whether something is drawn: canvases and pictures have colours, tables have rows.
DRAWN = """() => {
  const view = document.querySelector('#view');
  if (!view.textContent.trim() || view.querySelector('[aria-busy=true]')) return false;
  if (view.querySelector('.state.error:not([hidden]), .result-empty')) return true;
  if (!view.querySelector('.result')) return view.querySelectorAll('.token').length > 3;
  const shapes = view.querySelectorAll('tbody, .result-bar, svg rect, svg polyline').length
    + [...view.querySelectorAll('img.pixels')].filter((i) => i.naturalWidth > 0).length;
  const canvases = [...view.querySelectorAll('canvas.base')];
  return shapes + canvases.length > 0 && canvases.every((c) => {
    const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
    const first = d.slice(0, 4).join();
    for (let i = 0; i < d.length; i += 4) if (d.slice(i, i + 4).join() !== first) return true;
    return false;
  });
}"""


@pytest.mark.parametrize("name", RESULTS)
def test_a_saved_page_draws_from_a_file_without_network(name: str, offline: Any, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    thing = result(name)
    thing.save_html(path)
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"""(src|href)\s*=\s*["']?(https?:)?//""", text)
    offline.trouble.clear()
    offline.goto(path.as_uri())
    offline.wait_for_function(DRAWN)
    assert offline.title() == f"votive: {'session' if name == 'Session' else type(thing).__name__}"
    assert offline.locator(".state:not([hidden]):not(.empty)").all_inner_texts() == []
    assert offline.trouble == []


def test_another_picture_is_chosen_in_a_saved_page(offline: Any, tmp_path: Path) -> None:
    result("Capture").save_html(tmp_path / "page.html")
    offline.trouble.clear()
    offline.goto((tmp_path / "page.html").as_uri())
    offline.wait_for_function(DRAWN)
    offline.select_option("select", "model.layers.1.mlp")
    offline.wait_for_function(DRAWN)
    box = offline.locator(".heat").bounding_box()
    offline.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    offline.wait_for_function("document.querySelector('.readout').textContent.includes(':')")
    said = offline.inner_text(".readout")
    place, number = re.fullmatch(r"0, (\d+), (\d+): (.+)", said).groups()[:2], said.split()[-1]
    value = float(result("Capture")["model.layers.1.mlp"][0, int(place[0]), int(place[1])])
    assert float(number.replace("−", "-")) == pytest.approx(value, rel=1e-3)
    assert offline.trouble == []


def test_of_a_large_value_less_is_shown_and_that_is_said() -> None:
    large = votive.zeros(3000, 700)
    large[1, 699] = -9.0
    large[2999, 0] = 5.0
    with glass.capture(votive.nn.Identity(), "^", policy="copy") as seen:
        seen.model(large)
    figures = seen.figures("(model)")
    assert "the first 93 of 3,000 rows" in figures[0].note
    assert max(len(r) for r in figures[0].values) == 700
    canvas = figures[0].canvas()
    assert any("each cell: the largest in size of" in str(s) for s in canvas.shapes)
    assert sum(s[0] == "rectangle" for s in canvas.shapes) <= 10_100
    small = figures[0].within(96, 128)
    assert np.min(small.values) == -9.0
    assert figures[1].rows[4] == ["max", 5.0]  # statistics are those of all


def test_a_large_capture_is_told_without_reading_all_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "MOST_BYTES", 100)
    (table,) = captured().figures()
    assert table.rows[0] == ["model.embed_tokens", "1 x 8 x 64", "float32", *[None] * 5]
    assert re.fullmatch(r"statistics of [\d.]+ KiB are made when a value is chosen", table.note)


def test_a_long_list_of_pictures_fits_a_page_and_the_rest_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results_json, "PAGE", 20_000)
    said = results_json.result_json(result("Capture"), whole=True)
    assert 1 <= len(said["names"]) < len(result("Capture").pictures())
    assert re.fullmatch(r"\d+ of \d+ pictures are not in this page: it would be too large", said["missing"])


def test_a_heat_map_of_one_row_and_of_none_is_drawn() -> None:
    assert "<svg" in Heatmap([[1.0]], ["a"], ["b"]).svg()
    assert "<svg" in Heatmap([], [], []).svg()
    assert results_json.figure_json(Heatmap([], [], []))["rows"] == []


def test_a_name_that_is_no_picture_is_an_error() -> None:
    with pytest.raises(ValueError, match="there is no picture 'x'; there are 'all values'"):
        result("Capture").save_svg("x.svg", "x")


# --- in a notebook --------------------------------------------------------------------------------


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A shell with a kernel, as far as it is asked for one."""
    pytest.importorskip("anywidget")
    ipython = pytest.importorskip("IPython")
    events: dict[str, list[Any]] = {"post_run_cell": []}
    shell = SimpleNamespace(
        kernel=object(),
        events=SimpleNamespace(
            register=lambda name, fn: events[name].append(fn), unregister=lambda name, fn: events[name].remove(fn)
        ),
    )
    monkeypatch.setattr(ipython, "get_ipython", lambda: shell)
    return events


@pytest.mark.parametrize("name", RESULTS)
def test_in_a_notebook_a_result_is_a_widget(name: str, notebook: Any) -> None:
    bundle = result(name)._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html", VIEW}
    assert bundle[VIEW]["model_id"]


def test_where_no_widget_can_be_made_the_rest_is_shown_and_why(notebook: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> Any:
        raise LookupError("no <layers>")

    monkeypatch.setattr("votive.studio.widget", fails)
    bundle = result("Lens")._repr_mimebundle_()
    assert VIEW not in bundle
    assert "No widget: no &lt;layers&gt;" in bundle["text/html"]


def test_marimo_is_given_the_widget_itself() -> None:
    pytest.importorskip("anywidget")
    assert type(result("Lens")._display_()).__name__ == "ResultWidget"


def test_widgets_can_be_declined(notebook: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert live()
    monkeypatch.setenv("VOTIVE_WIDGETS", "0")
    assert VIEW not in result("Lens")._repr_mimebundle_()


def test_without_anywidget_there_is_the_static_form(notebook: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "anywidget", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert VIEW not in result("Lens")._repr_mimebundle_()
    with pytest.raises(ImportError, match="pip install anywidget"):
        result("Lens").widget()


def test_the_widget_of_a_result_gives_pictures_that_are_asked_for(notebook: Any) -> None:
    widget = captured().widget()
    assert list(widget.result["pictures"]) == ["all values"]
    sent: list[Any] = []
    widget.send = lambda content, buffers=None: sent.append(content)
    widget._asked(widget, {"id": 1, "do": "picture", "args": {"name": "model.layers.0.mlp"}}, [])
    widget._asked(widget, {"id": 2, "do": "picture", "args": {"name": "nothing"}}, [])
    widget._asked(widget, {"id": 3, "do": "session.step", "args": {}}, [])
    widget._asked(widget, {"id": 4, "do": "picture", "args": "garbage"}, [])
    widget._asked(widget, None, [])
    assert [m["ok"] for m in sent] == [True, False, False, False]
    assert sent[0]["data"]["figures"][0]["kind"] == "heatmap"
    assert "there is no picture" in sent[1]["error"]["message"]


def test_the_widget_of_a_debugger_moves_it_and_follows_what_cells_do(notebook: Any) -> None:
    with votive.debug(votive.nn.Sequential(votive.nn.Tanh(), votive.nn.ReLU()), votive.ones(2)) as d:
        widget = d.widget()
        sent: list[Any] = []
        widget.send = lambda content, buffers=None: sent.append(content)
        assert widget.result["moves"] == ["run", "over", "step", "out", "back"]
        widget._asked(widget, {"id": 1, "do": "move", "args": {"name": "step"}}, [])
        assert str(d.address) == "0"
        assert "enter 0" in sent[-1]["data"]["result"]["pictures"]["where it stands"][0]["title"]
        d.over()
        (ran,) = notebook["post_run_cell"]
        ran(None)
        assert "leave 0" in widget.result["pictures"]["where it stands"][0]["title"]
        d.finish()
        for wrong in ("close", "run", "__class__"):
            widget._asked(widget, {"id": 2, "do": "move", "args": {"name": wrong}}, [])
            assert sent[-1]["ok"] is False
        widget._asked(widget, {"id": 3, "do": "move", "args": {"name": "back"}}, [])
        assert sent[-1]["ok"]
        assert not d.ended


def test_the_widget_of_a_session_follows_what_cells_do(notebook: Any) -> None:
    made = glass.Session(session().model, session().tokenizer, "Once upon")
    widget = made.widget()
    sent: list[Any] = []
    widget.send = lambda content, buffers=None: sent.append(content)
    made.step()
    (ran,) = notebook["post_run_cell"]
    ran(None)
    assert sent == [{"event": "changed"}]
    widget._asked(widget, {"id": 1, "do": "session.step", "args": {}}, [])
    assert len(made.nodes) == 3
    widget.close()
    del widget
    ran(None)
    assert notebook["post_run_cell"] == []


def test_what_has_no_pictures_or_views_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="no pictures of a int"):
        studio.save_html(3, tmp_path / "x.html")
    with pytest.raises(TypeError, match="has no views"):
        studio.save_html(result("Lens"), tmp_path / "x.html", "attention")
    with pytest.raises(TypeError, match="no pictures of a int"):
        studio.widget(3)
    assert not list(tmp_path.iterdir())


def test_text_that_is_markup_stays_text(tmp_path: Path) -> None:
    assert EVIL in session().text
    for thing in (session(), captured(), glass.logit_lens(session().model, ids())):
        assert "<script" not in thing._repr_mimebundle_()["text/html"]
    session().save_html(tmp_path / "x.html")
    text = (tmp_path / "x.html").read_text()
    assert text.count("</script>") == 2
