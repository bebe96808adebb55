"""`votive.autograd.profiler`: the older names of the profiler."""

from __future__ import annotations

from typing import Any, Self

from ..dispatch.observe import Call, Observer
from . import ProfilerActivity
from . import profile as _profile
from .events import EventList, FunctionEvent, FunctionEventAvg, Interval
from .recorder import record_function

__all__ = [
    "EventList",
    "FunctionEvent",
    "FunctionEventAvg",
    "Interval",
    "emit_itt",
    "emit_nvtx",
    "load_nvprof",
    "profile",
    "record_function",
]


class profile:
    """Record the calls of a block: `votive.profiler.profile` without steps, whose list of events it has as its own.

    >>> with votive.autograd.profiler.profile() as prof:
    ...     y = votive.ones(3) + 1
    >>> "aten::add" in [event.name for event in prof.function_events]
    True
    """

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cuda: bool = False,
        use_device: str | None = None,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
        use_kineto: bool = False,
        use_cpu: bool = True,
        experimental_config: Any = None,
        acc_events: bool = False,
        **rest: Any,
    ) -> None:
        if rest:
            raise TypeError(f"profile: unexpected arguments {', '.join(sorted(rest))}.")
        self.enabled = enabled
        asked = {ProfilerActivity.CPU}
        if use_cuda or use_device == "cuda":
            asked.add(ProfilerActivity.CUDA)
        self._inner = _profile(
            activities=asked,
            record_shapes=record_shapes,
            with_flops=with_flops,
            profile_memory=profile_memory,
            with_stack=with_stack,
            with_modules=with_modules,
            acc_events=acc_events,
        )

    def __enter__(self) -> Self:
        if self.enabled:
            self._inner.start()
        return self

    def __exit__(self, *exc: object) -> None:
        if self.enabled:
            self._inner.stop()

    @property
    def function_events(self) -> EventList:
        """The events."""
        if not self.enabled:
            raise RuntimeError("Profiler didn't finish running")
        return self._inner.events()

    def key_averages(self, *args: Any, **kwargs: Any) -> EventList:
        """Sums by name."""
        return self.function_events.key_averages(*args, **kwargs)

    def table(self, *args: Any, **kwargs: Any) -> str:
        """The events as a table."""
        return self.function_events.table(*args, **kwargs)

    def export_chrome_trace(self, path: Any) -> None:
        """Write the events for chrome://tracing and Perfetto."""
        self._inner.export_chrome_trace(path)

    def export_stacks(self, path: Any, metric: str = "self_cpu_time_total") -> None:
        """Write the lines of the program with their times."""
        self._inner.export_stacks(path, metric)

    def total_average(self) -> FunctionEventAvg:
        """The sums over all events."""
        return self.function_events.total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds on the CPU."""
        return self.function_events.self_cpu_time_total

    def __repr__(self) -> str:
        return repr(self._inner) if self.enabled else "<unfinished torch.autograd.profile>"

    def __str__(self) -> str:
        return self.table() if self.enabled else repr(self)


class emit_nvtx(Observer):
    """Mark each call of an operator for NVIDIA's tools.

    >>> if votive.cuda.is_available():
    ...     with votive.autograd.profiler.emit_nvtx():
    ...         y = votive.ones(3, device="cuda") + 1
    """

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled, self.record_shapes = enabled, record_shapes

    def __enter__(self) -> Self:
        if self.enabled:
            super().__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        if self.enabled:
            super().__exit__(*exc)

    def before(self, call: Call) -> None:
        from ..cuda import nvtx

        shapes = f", sizes = {[list(getattr(a, 'shape', ())) for a in call.args]}" if self.record_shapes else ""
        nvtx.range_push(f"aten::{call.op.name}{shapes}")

    def after(self, call: Call) -> None:
        from ..cuda import nvtx

        nvtx.range_pop()

    def failed(self, call: Call, error: Exception) -> None:
        self.after(call)


class emit_itt:
    """Marks for Intel's tools, which votive does not make."""

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        if enabled:
            raise NotImplementedError("emit_itt: votive makes no marks for VTune; use votive.profiler.profile.")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        return None


def load_nvprof(path: str) -> EventList:
    """Reads a file of nvprof, which NVIDIA no longer has."""
    raise NotImplementedError("load_nvprof: nvprof is gone; use votive.profiler.profile, or Nsight Systems.")
