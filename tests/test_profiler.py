"""The profiler under torch's names: what it records, its tables and files; and the counter of operations."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import votive
from tests import docstrings
from votive import nn, profiler
from votive.dispatch.state import state
from votive.profiler import ProfilerActivity, autograd, events, record_function, recorder, schedules
from votive.utils import flop_counter

DOCS = docstrings.examples([profiler, autograd, events, recorder, schedules, flop_counter])


@pytest.mark.parametrize("name", sorted(DOCS))
def test_the_examples_run(name: str) -> None:
    docstrings.run(name, DOCS[name])


def work() -> None:
    net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    step = votive.optim.SGD(net.parameters(), lr=0.1)
    x = votive.ones(3, 8)
    with record_function("forward"):
        loss = net(x).sum()
    loss.backward()
    step.step()


def test_events_are_nested_and_their_times_add_up() -> None:
    with profiler.profile(activities=[ProfilerActivity.CPU], record_shapes=True, profile_memory=True) as prof:
        work()
    found = prof.events()
    by_name = {e.name: e for e in found}
    block = by_name["forward"]
    assert [c.name for c in block.cpu_children] == ["aten::linear", "aten::relu", "aten::linear", "aten::sum"]
    assert block.cpu_children[0].input_shapes == [[3, 8], [16, 8], [16]]
    assert block.cpu_time_total >= sum(c.cpu_time_total for c in block.cpu_children)
    assert block.cpu_memory_usage == 4 * (3 * 16 + 3 * 16 + 3 * 4 + 1)
    assert "Optimizer.step#SGD.step" in by_name
    node = by_name["ReluBackward0"]
    assert any("relu" in c.name for c in node.cpu_children)
    whole = sum(e.self_cpu_time_total for e in found)
    roots = sum(e.cpu_time_total for e in found if e.cpu_parent is None)
    assert whole == pytest.approx(roots, rel=1e-6)
    assert not state.observers
    assert state.watcher is None


def test_tables_are_sorted_cut_and_complete() -> None:
    given: Any = {"record_shapes": True, "profile_memory": True, "with_stack": True, "with_flops": True}
    with profiler.profile(**given) as prof:
        work()
    text = prof.key_averages().table(sort_by="count", row_limit=3)
    lines = text.splitlines()
    assert lines[1].split("  ")[-2].strip() == "Total FLOPs"
    counts = [int(line[lines[1].index("# of Calls") :].split()[0]) for line in lines[3:6]]
    assert counts == sorted(counts, reverse=True)
    assert len(lines) == 8
    by_shape = prof.key_averages(group_by_input_shape=True)
    assert sum(row.key == "aten::linear" for row in by_shape) == 2
    assert "[[3, 8], [16, 8], [16]]" in by_shape.table()
    by_line = prof.key_averages(group_by_stack_n=1)
    assert "test_profiler.py" in by_line.table()
    assert sum(row.flops for row in by_line if row.key == "aten::linear") == 2 * 3 * (8 * 16 + 16 * 4)
    with pytest.raises(AttributeError, match="sort_by must be one of"):
        prof.key_averages().table(sort_by="speed")
    assert prof.key_averages().total_average().key == "Total"
    assert "s" in prof.key_averages().table(time_unit="ms")


def test_traces_and_stacks_are_written(tmp_path: Path) -> None:
    with profiler.profile(with_stack=True, with_modules=True, record_shapes=True) as prof:
        work()
    prof.add_metadata_json("run", '{"n": 1}')
    prof.export_chrome_trace(tmp_path / "t.json")
    prof.export_chrome_trace(str(tmp_path / "t.json.gz"))
    trace = json.loads((tmp_path / "t.json").read_text())
    with gzip.open(tmp_path / "t.json.gz", "rt") as file:
        assert json.load(file) == trace
    rows = {row["name"]: row for row in trace["traceEvents"] if row["ph"] == "X"}
    assert trace["run"] == {"n": 1}
    inner, outer = rows["aten::relu"], rows["forward"]
    assert outer["ts"] <= inner["ts"] <= inner["ts"] + inner["dur"] <= outer["ts"] + outer["dur"]
    assert rows["aten::relu"]["args"]["Module Hierarchy"] == "1"
    prof.export_stacks(tmp_path / "stacks.txt")
    frames, value = (tmp_path / "stacks.txt").read_text().splitlines()[0].rsplit(" ", 1)
    assert "test_profiler.py" in frames
    assert int(value) > 0
    with pytest.raises(ValueError, match="metric should be one of"):
        prof.export_stacks(tmp_path / "stacks.txt", "weight")


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore:Profiler won't be using warmup")
def test_schedules_are_torchs() -> None:
    theirs = pytest.importorskip("torch").profiler.schedule
    for given in (
        {"wait": 1, "warmup": 1, "active": 2, "repeat": 2, "skip_first": 3},
        {"wait": 0, "warmup": 0, "active": 1},
        {"wait": 2, "warmup": 1, "active": 3, "skip_first": 1, "skip_first_wait": 1},
        {"wait": 1, "warmup": 0, "active": 3, "repeat": 1},
    ):
        mine, other = profiler.schedule(**given), theirs(**given)
        assert [mine(i).name for i in range(25)] == [other(i).name for i in range(25)], given


def test_steps_are_recorded_by_schedule() -> None:
    seen: list[list[str]] = []

    def ready(prof: profiler.profile) -> None:
        seen.append([e.name for e in prof.events()])

    plan = profiler.schedule(wait=1, warmup=1, active=2, repeat=2)
    with profiler.profile(schedule=plan, on_trace_ready=ready) as prof:
        for _ in range(9):
            votive.ones(2).exp()
            prof.step()
    steps = [[n for n in names if n.startswith("ProfilerStep")] for names in seen]
    assert steps == [["ProfilerStep#2", "ProfilerStep#3"], ["ProfilerStep#6", "ProfilerStep#7"]]
    assert [names.count("aten::exp") for names in seen] == [2, 2]


def test_an_error_inside_leaves_the_next_events_in_place() -> None:
    with profiler.profile() as prof:
        with pytest.raises(RuntimeError), record_function("fails"):
            votive.ones(2) @ votive.ones(3)
        votive.ones(2).exp()
    assert next(e for e in prof.events() if e.name == "aten::exp").cpu_parent is None


@pytest.mark.parity
def test_operations_are_counted_as_torch_counts_them() -> None:
    torch = pytest.importorskip("torch")
    theirs = pytest.importorskip("torch.utils.flop_counter")
    totals = []
    for lib, counter in ((votive, flop_counter), (torch, theirs)):
        net = lib.nn.Sequential(
            lib.nn.Conv2d(2, 4, 3, stride=2, padding=1),
            lib.nn.ConvTranspose2d(4, 3, 2),
            lib.nn.Flatten(),
            lib.nn.Linear(75, 10),
        )
        x = lib.ones(2, 2, 8, 8, requires_grad=True)
        q = lib.ones(2, 3, 5, 4, requires_grad=True)
        with counter.FlopCounterMode(display=False) as count:
            net(x).sum().backward()
            (q @ q.transpose(-2, -1)).sum().backward()
            lib.baddbmm(lib.ones(3), lib.ones(2, 4, 5), lib.ones(2, 5, 3))
        totals.append(count.get_total_flops())
    assert totals[0] == totals[1]


def test_counts_have_the_paths_of_modules(capsys: pytest.CaptureFixture[str]) -> None:
    net = nn.Sequential(nn.Linear(4, 8), nn.Sequential(nn.Linear(8, 2)))
    with flop_counter.FlopCounterMode() as count:
        net(votive.ones(3, 4))
    found = {place: sum(ops.values()) for place, ops in count.get_flop_counts().items()}
    assert found == {"Global": 288, "Global.0": 192, "Global.1": 96, "Global.1.0": 96}
    assert "66.67%" in capsys.readouterr().out
