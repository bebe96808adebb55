"""What a profiler recorded: events, sums of events, and lists of them with tables and traces. Measures nothing."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple

from . import table as tables


class Interval(NamedTuple):
    """When something began and ended, in microseconds since the profiler started."""

    start: float
    end: float

    def elapsed_us(self) -> float:
        """How long it took."""
        return self.end - self.start


class _Times:
    """Times of an event, or of several, in microseconds."""

    count: int
    cpu_time_total: float
    self_cpu_time_total: float
    device_time_total: float
    self_device_time_total: float

    @property
    def cpu_time(self) -> float:
        """The mean time on the CPU of one call."""
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def device_time(self) -> float:
        """The mean time on the GPU of one call."""
        return self.device_time_total / self.count if self.count else 0.0

    cuda_time = device_time

    @property
    def cuda_time_total(self) -> float:
        return self.device_time_total

    @property
    def self_cuda_time_total(self) -> float:
        return self.self_device_time_total

    @property
    def cpu_time_str(self) -> str:
        return tables.time_text(self.cpu_time)

    @property
    def cpu_time_total_str(self) -> str:
        return tables.time_text(self.cpu_time_total)

    @property
    def self_cpu_time_total_str(self) -> str:
        return tables.time_text(self.self_cpu_time_total)

    @property
    def device_time_str(self) -> str:
        return tables.time_text(self.device_time)

    @property
    def device_time_total_str(self) -> str:
        return tables.time_text(self.device_time_total)

    @property
    def self_device_time_total_str(self) -> str:
        return tables.time_text(self.self_device_time_total)


class FunctionEvent(_Times):
    """One call: of an operator, of a node of the backward pass, of a module, or of a `record_function` block.

    >>> with votive.profiler.profile() as prof:
    ...     y = votive.ones(3) + 1
    >>> event = [e for e in prof.events() if e.name == "aten::add"][0]
    >>> event.count, event.cpu_time_total > 0
    (1, True)
    """

    count = 1
    is_async = is_remote = is_legacy = False
    node_id = -1

    def __init__(self, id: int, name: str, kind: str, start: float, thread: int) -> None:
        self.id, self.name, self.kind, self.thread = id, name, kind, thread
        self.time_range = Interval(start, start)
        self.cpu_children: list[FunctionEvent] = []
        self.cpu_parent: FunctionEvent | None = None
        self.input_shapes: list[list[int]] = []
        self.concrete_inputs: list[Any] = []
        self.stack: list[str] = []
        self.module = ""
        self.use_device: str | None = None
        self.device_own = 0.0  # microseconds on the GPU of this call itself
        self.cpu_own = self.device_bytes = 0  # bytes that this call itself made
        self.flops = 0
        self.details: dict[str, Any] = {}
        self.row = ""  # where it is shown, if not among what its thread did
        self.sequence_nr = -1
        self.is_user_annotation = kind == "user_annotation"

    @property
    def key(self) -> str:
        return self.name

    @property
    def cpu_time_total(self) -> float:  # type: ignore[override]
        return self.time_range.elapsed_us()

    @property
    def self_cpu_time_total(self) -> float:  # type: ignore[override]
        return max(0.0, self.cpu_time_total - sum(c.cpu_time_total for c in self.cpu_children))

    @property
    def self_device_time_total(self) -> float:  # type: ignore[override]
        return self.device_own

    @property
    def device_time_total(self) -> float:  # type: ignore[override]
        return self.device_own + sum(c.device_time_total for c in self.cpu_children)

    @property
    def self_cpu_memory_usage(self) -> int:
        return self.cpu_own

    @property
    def cpu_memory_usage(self) -> int:
        return self.cpu_own + sum(c.cpu_memory_usage for c in self.cpu_children)

    @property
    def self_device_memory_usage(self) -> int:
        return self.device_bytes

    @property
    def device_memory_usage(self) -> int:
        return self.device_bytes + sum(c.device_memory_usage for c in self.cpu_children)

    def __repr__(self) -> str:
        return (
            f"<FunctionEvent id={self.id} name={self.name} cpu_time={self.cpu_time_str} "
            f"start_us={self.time_range.start:.3f} end_us={self.time_range.end:.3f} "
            f"cpu_children={[c.id for c in self.cpu_children]} thread={self.thread} input_shapes={self.input_shapes}>"
        )


SUMS = (
    "count",
    "cpu_time_total",
    "self_cpu_time_total",
    "device_time_total",
    "self_device_time_total",
    "cpu_memory_usage",
    "self_cpu_memory_usage",
    "device_memory_usage",
    "self_device_memory_usage",
    "flops",
)


class FunctionEventAvg(_Times):
    """The sums of events of one name.

    >>> with votive.profiler.profile() as prof:
    ...     x = votive.ones(3) + 1 + 2
    >>> [(row.key, row.count) for row in prof.key_averages() if "add" in row.key]
    [('aten::add', 2)]
    """

    cpu_memory_usage: int
    self_cpu_memory_usage: int
    device_memory_usage: int
    self_device_memory_usage: int
    flops: int

    def __init__(self, key: str = "Total") -> None:
        self.key = key
        self.input_shapes: list[list[int]] = []
        self.stack: list[str] = []
        self.use_device: str | None = None
        self.is_user_annotation = False
        for name in SUMS:
            setattr(self, name, 0)

    def add(self, other: FunctionEvent | FunctionEventAvg) -> FunctionEventAvg:
        """Count one more event, or the sums of several."""
        for name in SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.use_device = self.use_device or other.use_device
        self.is_user_annotation = other.is_user_annotation
        return self

    __iadd__ = add

    def __repr__(self) -> str:
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} "
            f"cpu_time={self.cpu_time_str} count={self.count} input_shapes={self.input_shapes} "
            f"cpu_memory_usage={self.cpu_memory_usage}>"
        )


class EventList(list[Any]):
    """Events, or sums of them, with tables, traces and stacks.

    >>> with votive.profiler.profile() as prof:
    ...     y = votive.ones(3).exp()
    >>> print(prof.key_averages().table(sort_by="count", row_limit=1).splitlines()[1].split()[0])
    Name
    """

    def __init__(self, events: Iterable[Any] = (), *, profile_memory: bool = False, with_flops: bool = False) -> None:
        super().__init__(events)
        self._profile_memory, self._with_flops = profile_memory, with_flops

    @property
    def self_cpu_time_total(self) -> float:
        return float(sum(event.self_cpu_time_total for event in self))

    def key_averages(
        self, group_by_input_shapes: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """Sums by name, and by shapes of arguments and the innermost lines of the program if asked for."""
        found: dict[Any, FunctionEventAvg] = {}
        for event in self:
            key: tuple[Any, ...] = (event.key, event.is_user_annotation)
            if group_by_input_shapes:
                key += (str(event.input_shapes),)
            if group_by_stack_n:
                key += tuple(event.stack[:group_by_stack_n])
            if key not in found:
                made = found[key] = FunctionEventAvg(event.key)
                made.input_shapes = event.input_shapes if group_by_input_shapes else []
                made.stack = event.stack[:group_by_stack_n] if group_by_stack_n else []
            found[key].add(event)
        return EventList(found.values(), profile_memory=self._profile_memory, with_flops=self._with_flops)

    def total_average(self) -> FunctionEventAvg:
        """The sums over all events; times that include others are those of the events themselves."""
        total = FunctionEventAvg()
        for event in self:
            total.add(event)
        total.key = "Total"
        return total

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:
        """A table, the largest of `sort_by` first: "cpu_time_total", "self_cpu_time_total", "cpu_memory_usage",
        "count" …
        """
        return tables.table(
            self,
            sort_by,
            row_limit,
            (max_name_column_width, max_shapes_column_width, max_src_column_width),
            header,
            top_level_events_only,
            time_unit,
            self._profile_memory,
            self._with_flops,
        )

    def __str__(self) -> str:
        return self.table()

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Write the events for chrome://tracing and Perfetto."""
        with open(path, "w", encoding="utf-8") as file:
            json.dump(chrome_trace(self), file)

    def supported_export_stacks_metrics(self) -> list[str]:
        return ["self_cpu_time_total", "self_cuda_time_total", "self_xpu_time_total", "self_privateuse1_time_total"]

    def export_stacks(self, path: str | os.PathLike[str], metric: str) -> None:
        """Write "outermost;…;innermost microseconds" lines, from which flame graphs are drawn."""
        if metric not in self.supported_export_stacks_metrics():
            raise ValueError("metric should be one of: " + str(self.supported_export_stacks_metrics()))
        if metric not in ("self_cpu_time_total", "self_cuda_time_total"):
            metric = "self_device_time_total"
        sums: dict[str, int] = defaultdict(int)
        for event in self:
            value = int(getattr(event, metric))
            if event.stack and value > 0:
                frames = [*reversed(event.stack), event.name]
                sums[";".join(f.replace(";", ",").replace(" ", "_") for f in frames)] += value
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(f"{frames} {value}\n" for frames, value in sums.items())


def chrome_trace(events: Iterable[FunctionEvent], metadata: dict[str, Any] | None = None) -> dict[str, Any]:
    """Events in the "Trace Event Format" of the Chromium project."""
    pid = os.getpid()
    rows: list[dict[str, Any]] = [{"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": "python"}}]
    threads: dict[int | str, int] = {}
    for event in events:
        place = event.row or event.thread
        if place not in threads:
            # Small numbers are no threads.
            threads[place] = len(threads) + 1 if event.row else event.thread
            args: dict[str, Any] = {"name": event.row or f"thread {event.thread} (python)"}
            rows.append({"ph": "M", "name": "thread_name", "pid": pid, "tid": threads[place], "args": args})
        args = {"External id": event.id, **event.details}
        if event.input_shapes:
            args.update({"Input Dims": event.input_shapes, "Concrete Inputs": event.concrete_inputs})
        if event.module:
            args["Module Hierarchy"] = event.module
        if event.stack:
            args["Call stack"] = ";".join(event.stack)
        if event.flops:
            args["flops"] = event.flops
        if event.cpu_own:
            args["Bytes"] = event.cpu_own
        if event.device_own:
            args["device_us"] = event.device_own
        rows.append(
            {
                "ph": "X",
                "cat": event.kind,
                "name": event.name,
                "pid": pid,
                "tid": threads[place],
                "ts": event.time_range.start,
                "dur": event.time_range.elapsed_us(),
                "args": args,
            }
        )
    return {"schemaVersion": 1, "displayTimeUnit": "ms", "traceEvents": rows, **(metadata or {})}
