"""What the profiler shows of communication, and the timeline of all ranks."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import votive
import votive.distributed as dist
from votive.distributed.group import OBSERVERS
from votive.profiler import profile


def work() -> profile:
    me, x = dist.get_rank(), votive.ones(6)
    other = 1 - me
    with profile() as prof:
        y = x * 2
        dist.all_reduce(y)
        beside = dist.all_reduce(y, async_op=True)
        assert beside is not None
        beside.wait()
        for one in dist.batch_isend_irecv([dist.P2POp(dist.isend, x, other), dist.P2POp(dist.irecv, y, other)]):
            one.wait()
        pair = dist.new_group([0, 1])
        dist.broadcast(x, 0, group=pair)
    return prof


def test_a_recording_has_what_its_rank_did_with_others() -> None:
    for rank, prof in enumerate(dist.simulate(work, 2)):
        found = [e for e in prof.events() if e.kind == "communication"]
        names = [e.name for e in found if not e.name.endswith(".wait")]
        assert names == ["dist::all_reduce"] * 2 + ["dist::send", "dist::recv", "dist::new_group", "dist::broadcast"]
        first, second, sent = (e for e in found[:5] if not e.name.endswith(".wait"))
        assert first.details["Call"].startswith("all_reduce float32 (6,) SUM at test_timeline.py:")
        assert {k: v for k, v in first.details.items() if k != "Call"} == {
            "Bytes": 24, "Process Group Name": "default_pg", "Process Group Ranks": [0, 1], "Group size": 2,
        }  # fmt: skip
        assert sent.details["Call"].startswith(f"send to rank {1 - rank}, float32 (6,) at test_timeline.py:")
        assert [first.row, second.row, sent.row] == ["", "group default_pg", "messages"]
        assert [c.name for c in first.cpu_children] == ["dist::all_reduce.wait"]
        wait = first.cpu_children[0].time_range
        assert first.time_range.start == wait.start
        assert wait.end <= first.time_range.end
        assert next(e for e in found if e.name == "dist::broadcast").details["Process Group Name"] == "1"
        assert len({e.id for e in prof.events()}) == len(prof.events())
    assert not OBSERVERS


def test_one_recording_around_all_ranks_has_what_all_did() -> None:
    with profile() as prof:
        dist.simulate(lambda: dist.barrier(), 3)
    rows = {e.key: e for e in prof.key_averages()}
    assert rows["dist::barrier"].count == 3


def test_the_timeline_has_a_process_for_each_rank_on_one_clock(tmp_path: Path) -> None:
    def traced() -> None:
        prof = work()
        dist.export_timeline(prof, tmp_path / "timeline.json.gz")

    dist.simulate(traced, 2)
    with gzip.open(tmp_path / "timeline.json.gz", "rt") as file:
        trace: dict[str, Any] = json.load(file)
    assert trace["distributedInfo"] == {"backend": "threads", "world_size": 2}
    events = trace["traceEvents"]
    assert {(e["pid"], e["args"]["name"]) for e in events if e["name"] == "process_name"} == {
        (0, "rank 0"),
        (1, "rank 1"),
    }
    assert {e["args"]["name"] for e in events if e["name"] == "thread_name"} >= {"group default_pg", "messages"}
    assert min(e["ts"] for e in events if "ts" in e) == 0
    for i in (0, 1):
        # Nobody is through before all have come; clocks agree as well as threads wake up together.
        both = [[e for e in events if e["pid"] == r and e["name"] == "dist::all_reduce"][i] for r in (0, 1)]
        assert max(e["ts"] for e in both) < min(e["ts"] + e["dur"] for e in both) + 5e6


def test_what_has_no_common_clock_is_refused() -> None:
    with profile(acc_events=True) as prof:
        votive.ones(1)
    with pytest.raises(ValueError, match="no common clock"):
        dist.simulate(lambda: dist.export_timeline(prof, "x"), 1)
