"""What all ranks did when, in one file. Knows the profiler's events, not how they are recorded."""

from __future__ import annotations

import gzip
import json
import os
import time
from typing import TYPE_CHECKING, Any

from .check import Call, line_of_caller
from .objects import gather_object
from .world import group_of

if TYPE_CHECKING:
    from ..profiler import profile


def export_timeline(prof: profile, path: str | os.PathLike[str], group: Any = None) -> None:
    """Write the recordings of all ranks of a group, which all call this, for chrome://tracing and Perfetto.

    The first rank of the group writes the file, packed if the name ends in .gz. Each rank is a process there. Clocks
    are compared at a barrier, so machines may differ; they agree as well as ranks leave it together.

    >>> import json, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "timeline.json")
    >>> def work():
    ...     with votive.profiler.profile() as prof:
    ...         votive.distributed.all_reduce(votive.ones(3))
    ...     votive.distributed.export_timeline(prof, path)
    >>> _ = votive.distributed.simulate(work, 2)
    >>> events = json.loads(path.read_text())["traceEvents"]
    >>> sorted(e["pid"] for e in events if e["name"] == "dist::all_reduce")
    [0, 1]
    """
    from ..profiler.events import chrome_trace

    if prof.acc_events:
        raise ValueError("export_timeline: several recordings (acc_events=True) have no common clock.")
    g = group_of(group)
    rows = chrome_trace(prof.events())["traceEvents"]
    now = 0.0

    def meet() -> None:
        nonlocal now
        for _ in range(3):  # the first ones bring ranks together that came one after the other
            g.transport.barrier()
        now = time.perf_counter()

    g.run(Call("export_timeline", where=line_of_caller()), 0, meet, False)
    rank = g.ranks[g.rank()]
    for row in rows:
        row["pid"] = rank
        if row["name"] == "process_name":
            row["args"] = {"name": f"rank {rank}"}
        if "ts" in row:
            row["ts"] += (prof.begin - now) * 1e6
    rows.append({"ph": "M", "name": "process_sort_index", "pid": rank, "tid": 0, "args": {"sort_index": rank}})
    every: list[Any] | None = [None] * g.size() if g.rank() == 0 else None
    gather_object(rows, every, group=g, group_dst=0)
    if every is None:
        return
    joined = [row for part in every for row in part]
    first = min((row["ts"] for row in joined if "ts" in row), default=0.0)
    for row in joined:
        if "ts" in row:
            row["ts"] -= first
    about = {"backend": g.backend, "world_size": g.size()}
    text = json.dumps({"displayTimeUnit": "ms", "distributedInfo": about, "traceEvents": joined})
    if str(path).endswith(".gz"):
        with gzip.open(path, "wt", encoding="utf-8") as packed:
            packed.write(text)
    else:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
