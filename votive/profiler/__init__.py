"""`votive.profiler`: where a program's time and memory go, under torch's names.

It watches calls by votive's observers. An event is a call of an operator, a node of the backward pass, a step of an
optimizer, a call between ranks of `votive.distributed` or a `record_function` block; operators that others are made of
are events themselves. `votive.glass.profile` is the tool for one model, with costs by address.
"""

from __future__ import annotations

import gzip
import json
import os
import socket
import time
import warnings
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any, Self

from .events import EventList, FunctionEvent, FunctionEventAvg, chrome_trace
from .recorder import Recorder, active, record_function
from .schedules import ProfilerAction, schedule

__all__ = [
    "DeviceType",
    "EventList",
    "ExecutionTraceObserver",
    "FunctionEvent",
    "FunctionEventAvg",
    "ProfilerAction",
    "ProfilerActivity",
    "kineto_available",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]


class ProfilerActivity(Enum):
    """What is measured: CPU is the time until a call returns, CUDA the time its kernels take on the GPU.

    >>> votive.profiler.ProfilerActivity.CPU in votive.profiler.supported_activities()
    True
    """

    CPU = 0
    XPU = 1
    MTIA = 2
    CUDA = 3
    HPU = 4
    PrivateUse1 = 5


class DeviceType(Enum):
    """Where something ran.

    >>> votive.profiler.DeviceType.CPU
    <DeviceType.CPU: 0>
    """

    CPU = 0
    CUDA = 1


def supported_activities() -> set[ProfilerActivity]:
    """What can be measured here.

    >>> ProfilerActivity = votive.profiler.ProfilerActivity
    >>> votive.profiler.supported_activities() <= {ProfilerActivity.CPU, ProfilerActivity.CUDA}
    True
    """
    from ..cuda import is_available

    return {ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if is_available() else [])}


def kineto_available() -> bool:
    """Whether torch's library for traces is there: votive writes traces itself.

    >>> votive.profiler.kineto_available()
    False
    """
    return False


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False, use_python_export: bool = False
) -> Callable[[profile], None]:
    """A function for `on_trace_ready` that writes each trace as a file of a folder, under the name TensorBoard's
    plugin looks for: `worker.time.pt.trace.json`.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with votive.profiler.profile(on_trace_ready=votive.profiler.tensorboard_trace_handler(folder, "me")):
    ...         y = votive.ones(3) + 1
    ...     os.listdir(folder)[0].startswith("me.")
    True
    """

    def write(prof: profile) -> None:
        try:
            os.makedirs(dir_name, exist_ok=True)
        except OSError as e:
            raise RuntimeError("Can't create directory: " + dir_name) from e
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        name = f"{worker}.{time.time_ns()}.pt.trace.json" + (".gz" if use_gzip else "")
        prof.export_chrome_trace(os.path.join(dir_name, name))

    return write


def _activities(given: Iterable[Any] | None) -> set[ProfilerActivity]:
    if given is None:
        return supported_activities()
    found: set[ProfilerActivity] = set()
    for one in given:
        found.update(one if isinstance(one, dict) else [one])
    if not found:
        raise AssertionError("No valid profiler activities found")
    for one in found:
        if not isinstance(one, ProfilerActivity):
            raise TypeError(f"profile: activities are ProfilerActivity, got {one!r}.")
    if found - supported_activities():
        names = ", ".join(sorted(one.name for one in found - supported_activities()))
        warnings.warn(f"profile: {names} cannot be measured here and is skipped.", stacklevel=3)
    return found & supported_activities() or {ProfilerActivity.CPU}


class profile:
    """Record the calls of a block, or of some steps of it.

    With a `schedule`, call `step()` after each step of the program; `on_trace_ready(profiler)` is called at the end
    of each recording. `record_shapes` keeps the shapes of arguments, `profile_memory` the bytes of results (which are
    counted where they are made, not where they are freed), `with_stack` the lines of the program, `with_flops` the
    operations of products, convolutions and attention, `with_modules` the path of the module that ran.

    >>> with votive.profiler.profile(record_shapes=True) as prof:
    ...     y = votive.ones(2, 3) @ votive.ones(3, 4)
    >>> row = [r for r in prof.key_averages(group_by_input_shape=True) if r.key == "aten::matmul"][0]
    >>> row.count, row.input_shapes
    (1, [[2, 3], [3, 4]])
    """

    def __init__(
        self,
        *,
        activities: Iterable[Any] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[..., Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        use_cuda: bool | None = None,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
    ) -> None:
        self.activities = _activities(activities)
        if use_cuda is not None:
            warnings.warn("`use_cuda` is deprecated, use `activities` argument instead", FutureWarning, stacklevel=2)
            self.activities -= {ProfilerActivity.CUDA}
            if use_cuda:
                self.activities |= {ProfilerActivity.CUDA} & supported_activities()
        if execution_trace_observer is not None:
            raise NotImplementedError("profile: execution traces are Kineto's; use export_chrome_trace.")
        self.schedule = schedule or (lambda step: ProfilerAction.RECORD)
        self.record_steps = schedule is not None
        self.on_trace_ready = on_trace_ready
        self.record_shapes, self.profile_memory, self.with_stack = record_shapes, profile_memory, with_stack
        self.with_flops, self.with_modules, self.acc_events = with_flops, with_modules, acc_events
        self.custom_trace_id_callback = custom_trace_id_callback
        self.step_num = 0
        self.current_action = self.schedule(0)
        self._recorder: Recorder | None = None
        self._events: list[FunctionEvent] = []
        self._metadata: dict[str, Any] = {}
        self._step: record_function | None = None
        self._recorded = False
        self._on = True
        self.begin = 0.0  # when the recording began, as `time.perf_counter` says it

    # --- running ---

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def start(self) -> None:
        """Begin with the first step."""
        if self.current_action in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE):
            self.start_trace()
        self._open_step()

    def step(self) -> None:
        """The program goes on to its next step."""
        self._close_step()
        before, self.step_num = self.current_action, self.step_num + 1
        self.current_action = now = self.schedule(self.step_num)
        records = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)
        if before is ProfilerAction.RECORD and now not in records:
            warnings.warn("Incorrect schedule: RECORD is not followed by RECORD_AND_SAVE", stacklevel=2)
        if before is ProfilerAction.RECORD_AND_SAVE or (before in records and now not in records):
            self.stop_trace()
            self._ready()
        if now in records and self._recorder is None:
            self.start_trace()
        self._open_step()

    def stop(self) -> None:
        """End with the last step."""
        self._close_step()
        if self._recorder is not None:
            self.stop_trace()
            self._ready()

    def start_trace(self) -> None:
        """Begin a recording; what an earlier one holds is dropped unless `acc_events` was given."""
        recorder = Recorder(
            shapes=self.record_shapes,
            memory=self.profile_memory,
            stacks=self.with_stack,
            flops=self.with_flops,
            modules=self.with_modules,
            device=ProfilerActivity.CUDA in self.activities,
        )
        if not self.acc_events:
            self._events = []
        self._recorder, self._recorded, self.begin = recorder, True, recorder.begin
        if self._on:
            self._watch(True)

    def stop_trace(self) -> None:
        """End the recording."""
        if self._recorder is None:
            return
        if self._on:
            self._watch(False)
        self._events = [*self._events, *self._recorder.events]
        self._recorder = None

    def prepare_trace(self) -> None:
        """There is nothing to prepare; recordings begin at once."""

    def _watch(self, on: bool) -> None:
        assert self._recorder is not None
        if on:
            active.append(self._recorder)
            self._recorder.start()
        else:
            self._recorder.stop()
            active.remove(self._recorder)

    def toggle_collection_dynamic(self, enable: bool, activities: Iterable[ProfilerActivity]) -> None:
        """Pause or go on with a recording; the CPU stands for all activities."""
        if self._recorder is None or bool(enable) == self._on or ProfilerActivity.CPU not in set(activities):
            return
        self._on = bool(enable)
        self._watch(self._on)

    def _open_step(self) -> None:
        if self.record_steps and self._recorder is not None:
            self._step = record_function(f"ProfilerStep#{self.step_num}")
            self._step.__enter__()

    def _close_step(self) -> None:
        if self._step is not None:
            self._step.__exit__()
            self._step = None

    def _ready(self) -> None:
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    # --- results ---

    def events(self) -> EventList:
        """The events of the last recording, or of all with `acc_events`."""
        if not self._recorded:
            raise AssertionError("Profiler must be initialized before getting events: nothing was recorded.")
        now = [] if self._recorder is None else self._recorder.events
        return EventList([*self._events, *now], profile_memory=self.profile_memory, with_flops=self.with_flops)

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """Sums by name, and by shapes of arguments and lines of the program if asked for."""
        return self.events().key_averages(group_by_input_shape, group_by_stack_n)

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Write the recording for chrome://tracing and Perfetto; packed if the name ends in .gz."""
        text = json.dumps(chrome_trace(self.events(), self._metadata))
        if str(path).endswith(".gz"):
            with gzip.open(path, "wt", encoding="utf-8") as file:
                file.write(text)
        else:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)

    def export_stacks(self, path: str | os.PathLike[str], metric: str = "self_cpu_time_total") -> None:
        """Write the lines of the program with their times; needs `with_stack=True`."""
        if not self.with_stack:
            raise AssertionError("export_stacks needs profile(with_stack=True).")
        self.events().export_stacks(path, metric)

    def export_memory_timeline(self, path: str, device: str | None = None) -> None:
        """torch's picture of memory by category; votive keeps no such record."""
        raise NotImplementedError(
            "export_memory_timeline: votive counts bytes per event; use profile_memory=True and key_averages(), "
            "or votive.glass.profile, which knows the peak of each address."
        )

    def add_metadata(self, key: str, value: str) -> None:
        """Write one more entry into the trace file."""
        self._metadata[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """Write one more entry into the trace file, given as JSON."""
        self._metadata[key] = json.loads(value)

    preset_metadata_json = add_metadata_json

    def set_custom_trace_id_callback(self, callback: Callable[[], str]) -> None:
        """Let `callback()` name recordings."""
        self.custom_trace_id_callback = callback

    def get_trace_id(self) -> str | None:
        """The name of the recording, if a callback gives one."""
        return None if self.custom_trace_id_callback is None else self.custom_trace_id_callback()

    def __repr__(self) -> str:
        return str(self.key_averages()) if self._recorded else "<unfinished profile>"


class ExecutionTraceObserver:
    """torch's record of a program for replay, which Kineto writes; votive has none."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError("ExecutionTraceObserver: votive has no execution traces; use export_chrome_trace.")
