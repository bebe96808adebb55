"""Runs as Chrome traces, which chrome://tracing and Perfetto open.

The format is the "Trace Event Format" of the Chromium project: complete events ("X") and metadata
("M").
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .profile import Span


_THREADS = {"module": 1, "op": 1, "grad": 2}
_NAMES = {1: "forward", 2: "backward"}


def chrome_trace(root: Span) -> dict[str, Any]:
    """The calls below `root` as the object that a trace file holds.

    >>> from votive.glass.profile import Span
    >>> from votive.glass.trace_export import chrome_trace
    >>> run = Span("", "run", "module", children=[Span("a", "Linear", "module", wall=0.25)])
    >>> chrome_trace(run)["traceEvents"][-1]["dur"]
    250000.0
    """
    events: list[dict[str, Any]] = [
        _meta("process_name", 0, "votive"),
        *(_meta("thread_name", thread, name) for thread, name in _NAMES.items()),
    ]
    for child in root.children:
        for span in child.walk():
            # Groups of the backward pass have no time of their own: its steps lie in any order.
            if span.kind != "grad" or not span.children:
                events.append(_event(span))
    return {"traceEvents": events, "displayTimeUnit": "ms"}


def _meta(what: str, thread: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": 1, "tid": thread, "args": {"name": name}}


def _event(span: Span) -> dict[str, Any]:
    return {
        "ph": "X",
        "name": span.address or "(model)",
        "cat": span.kind,
        "pid": 1,
        "tid": _THREADS.get(span.kind, 1),
        "ts": span.start * 1e6,
        "dur": span.wall * 1e6,
        "args": {
            "class": span.name,
            "seconds": span.seconds,
            "own_seconds": span.own,
            "allocated": span.allocated,
            "peak": span.peak,
        },
    }
