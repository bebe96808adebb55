"""Where time and memory go."""

from __future__ import annotations

import json
import time
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

import votive
from votive import glass, nn
from votive.glass.flame import flame

from .session_models import KINDS, model

SVG = "{http://www.w3.org/2000/svg}"


class Slow(nn.Module):
    """Takes its time."""

    def forward(self, x: Any) -> Any:
        time.sleep(0.02)
        return x + 1


def net() -> Any:
    return nn.Sequential(nn.Linear(256, 256), Slow(), nn.Sequential(Slow(), Slow()))


def test_times_are_those_of_the_calls_and_their_own() -> None:
    found = glass.profile(net(), votive.ones(4, 256), repeat=2)
    assert found["1"].own >= 0.02
    assert found["2"].seconds >= 0.04
    inner = found["2.0"].seconds + found["2.1"].seconds
    assert found["2"].own == pytest.approx(found["2"].seconds - inner)
    assert found[""].seconds >= 0.06
    assert found["1/add#0"].calls == 1
    # Own times are parts of the whole: together they are all of it.
    total = sum(c.own for c in found.costs)
    assert total == pytest.approx(found.seconds, rel=1e-6)
    assert found.rows("seconds")[0].address == ""
    with pytest.raises(KeyError, match="nothing ran at 'nowhere'"):
        found["nowhere"]
    with pytest.raises(ValueError, match="sort must be"):
        found.rows("size")


def test_bytes_are_those_of_new_results_and_views_cost_none() -> None:
    class Parts(nn.Module):
        def forward(self, x: Any) -> Any:
            big = x.repeat(8, 1)
            return big.t().sum()

    found = glass.profile(Parts(), votive.ones(64, 256))
    whole = 8 * 64 * 256 * 4
    assert found["/t#0"].allocated == 0
    assert whole <= found[""].allocated < 1.1 * whole
    assert whole <= found[""].peak < 1.2 * whole
    bare = glass.profile(Parts(), votive.ones(64, 256), memory=False)
    assert bare[""].allocated == 0


def test_shared_modules_are_counted_by_call() -> None:
    shared = nn.Linear(4, 4)

    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.part = shared

        def forward(self, x: Any) -> Any:
            return self.part(self.part(x))

    found = glass.profile(Twice(), votive.ones(1, 4))
    assert found["part"].calls == 1
    assert found["part#1"].calls == 1


@pytest.mark.parametrize("kind", KINDS)
def test_forward_and_backward_are_measured_and_leave_no_trace(kind: str) -> None:
    made = model(kind)
    ids = votive.tensor([[5, 17, 3, 42]])
    found = glass.profile(made, ids, labels=ids, loss=lambda out: out.loss, repeat=1)
    assert all(p.grad is None for p in made.parameters())
    steps = [c for c in found.costs if c.kind == "grad"]
    assert len(steps) > 20
    first = "transformer.h.0" if kind == "gpt2" else "model.layers.0"
    assert found.grad(first).seconds > 0
    assert found.grad(first).allocated > 0
    assert found[first].seconds > 0
    below = [c for c in steps if c.address.startswith(f"{first}.") and "/" in c.address]
    assert found.grad(first).seconds >= max(c.seconds for c in below)
    forward = glass.profile(made, ids, repeat=1, ops=False)
    assert not any(c.kind != "module" for c in forward.costs)


def test_each_run_begins_from_the_same_state() -> None:
    dropout = nn.Sequential(nn.BatchNorm1d(3), nn.Dropout(0.5))
    votive.manual_seed(3)
    glass.profile(dropout, votive.rand(8, 3), repeat=2)
    after = votive.rand(1)
    votive.manual_seed(3)
    votive.rand(8, 3)
    assert votive.equal(after, votive.rand(1))
    assert int(dropout[0].num_batches_tracked) == 0


def test_the_table_shows_the_largest_first() -> None:
    calls = [glass.Span(str(i), "Part", "module", seconds=s) for i, s in enumerate((2, 9, 1, 5))]
    fast = glass.Span("", "run", "module", seconds=17, children=calls)
    slow = glass.Span("", "run", "module", seconds=40)
    found = glass.Profile([slow, fast], None)
    assert found.seconds == 17
    lines = found.table(limit=3).splitlines()
    assert "own ms" in lines[0]
    assert [line.split()[0] for line in lines[1:]] == ["1", "3", "0"]
    assert lines[1].split()[4:7] == ["9000.000", "9000.000", "52.9"]


def test_the_flame_graph_is_an_svg_with_boxes_as_wide_as_their_time(tmp_path: Path) -> None:
    found = glass.profile(net(), votive.ones(4, 256))
    root = ET.fromstring(found.flame(tmp_path / "flame.svg", width=1000))
    boxes = {g.find(f"{SVG}title").text.split(" (")[0]: g for g in root.findall(f"{SVG}g")}
    assert (tmp_path / "flame.svg").read_text().startswith("<svg")
    width = float(boxes["2"].find(f"{SVG}rect").get("width"))
    assert width == pytest.approx(1000 * found["2"].seconds / found.seconds, rel=1e-3)
    inner = float(boxes["2.0"].find(f"{SVG}rect").get("x"))
    assert inner == pytest.approx(float(boxes["2"].find(f"{SVG}rect").get("x")), abs=0.02)
    assert "ms" in boxes["2"].find(f"{SVG}title").text
    # Nothing is fetched from elsewhere.
    text = found.flame()
    assert "href" not in text
    assert "<script" not in text


def test_names_in_a_flame_graph_are_escaped() -> None:
    odd = glass.Span("a<b>&\"c'", "<i>", "op", 0.0, 1.0)
    text = flame(glass.Span("", "run", "module", 0.0, 1.0, children=[odd]))
    assert "<b>" not in text
    titles = [t.text for t in ET.fromstring(text).iter(f"{SVG}title")]
    assert any(t.startswith("a<b>&\"c' (<i>)") for t in titles)
    with pytest.raises(ValueError, match="width must be at least 100"):
        flame(odd, width=10)


def test_the_trace_has_the_form_that_viewers_read(tmp_path: Path) -> None:
    made = model("llama")
    ids = votive.tensor([[5, 17, 3, 42]])
    found = glass.profile(made, ids, labels=ids, loss=lambda out: out.loss, repeat=1)
    found.trace(tmp_path / "run.json")
    result = json.loads((tmp_path / "run.json").read_text())
    assert result["displayTimeUnit"] in ("ms", "ns")
    events = result["traceEvents"]
    names = {e["args"]["name"] for e in events if e["ph"] == "M"}
    assert {"votive", "forward", "backward"} <= names
    timed = [e for e in events if e["ph"] == "X"]
    assert len(timed) + 3 == len(events)
    for event in timed:
        assert {"name", "cat", "pid", "tid", "ts", "dur", "args"} <= event.keys()
        assert event["ts"] >= 0
        assert event["dur"] >= 0
    assert {e["cat"] for e in timed} == {"module", "op", "grad"}
    # On a track, calls lie inside one another or apart; viewers refuse what overlaps in part.
    for track in (1, 2):
        ends: list[float] = []
        for e in sorted((e for e in timed if e["tid"] == track), key=lambda e: (e["ts"], -e["dur"])):
            while ends and ends[-1] <= e["ts"]:
                ends.pop()
            assert not ends or e["ts"] + e["dur"] <= ends[-1] + 1.0, e
            ends.append(e["ts"] + e["dur"])


def test_an_error_inside_the_model_leaves_nothing_attached() -> None:
    class Broken(nn.Module):
        def forward(self, x: Any) -> Any:
            return x @ votive.ones(7, 7)

    from votive.dispatch.state import state

    with pytest.raises(RuntimeError):
        glass.profile(Broken(), votive.ones(2, 2), warmup=0)
    assert not state.observers
    assert state.watcher is None
    with pytest.raises(ValueError, match="repeat must be positive"):
        glass.profile(Broken(), votive.ones(2, 2), repeat=0)
