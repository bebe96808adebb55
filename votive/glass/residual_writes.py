"""Who writes into the stream: which calls inside a layer are added to it. Knows no model class.

A layer adds to its stream what some of the modules in it give. They are found by trying: the calls
whose results together make up the layer's output less its input.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import votive

from . import values
from .capture import input_at
from .parts import Parts
from .probe import Frame, Probe


@dataclass
class Call:
    """One call inside a layer, with what went in and came out."""

    address: str
    module: Any
    given: Any
    output: Any
    depth: int
    attends: int = 0  # heads of the attention that ran inside
    inner: list[Call] = field(default_factory=list)


@dataclass
class Layer:
    """One call of a layer: its stream, and the calls in it."""

    name: str
    before: Any
    after: Any = None
    calls: list[Call] = field(default_factory=list)


class WriteRecorder(Probe):
    """Tells of each layer that has run, and keeps what goes into the last norm and out of the head.

    The calls inside a layer are dropped once `on_layer` has seen it: they are large.
    """

    def __init__(self, parts: Parts, on_layer: Callable[[Layer], None]) -> None:
        super().__init__(parts.model, ops=True)
        self.parts, self.on_layer = parts, on_layer
        self.ids = {id(m) for m in parts.layers}
        self.last: Layer | None = None
        self.head: Any = None
        self.end: Any = None  # what goes into the last norm, or into the head without one
        self.normed: Any = None  # what comes out of the norm
        self.scored: Any = None  # what goes into the head
        self.between: list[str] = []  # modules that run between the last layer and the last norm
        self._open: list[tuple[Frame, Any]] = []

    def entered(self, frame: Frame) -> None:
        if not frame.is_module:
            return
        last = self.parts.head if self.parts.norm is None else self.parts.norm
        if last is not None and frame.subject is last:
            self.end = values.first((frame.args, frame.kwargs))
        if self.parts.head is not None and frame.subject is self.parts.head:
            self.scored = values.first((frame.args, frame.kwargs))
        elif self.last is not None and self.end is None and not self._open:
            if any(True for _ in frame.subject.parameters(recurse=False)):
                self.between.append(str(frame.address))
        if id(frame.subject) in self.ids:
            self.between.clear()
            given = input_at(frame, ())
            if not isinstance(given, votive.Tensor):
                given = values.first((frame.args, frame.kwargs))
            self._open = [(frame, Layer(str(frame.address), given))]
        elif self._open:
            given = values.first((frame.args, frame.kwargs))
            call = Call(str(frame.address), frame.subject, given, None, len(self._open))
            holder = self._open[-1][1]
            (holder.calls if isinstance(holder, Layer) else holder.inner).append(call)
            self._open.append((frame, call))

    def left(self, frame: Frame) -> None:
        if not frame.is_module:
            if frame.address.op == "attention" and self._open:
                for _, holder in self._open[1:]:
                    holder.attends = frame.args[0].shape[1]
            elif frame.address.op == "softmax" and frame.output.dim() == 4:
                for _, holder in self._open[1:]:
                    holder.attends = holder.attends or frame.output.shape[1]
            return
        if frame.subject is self.parts.norm:
            self.normed = values.first(frame.output)
        if frame.subject is self.parts.head:
            self.head = values.first(frame.output)
        if not self._open or self._open[-1][0] is not frame:
            return
        _, holder = self._open.pop()
        found = values.first(frame.output)
        if isinstance(holder, Layer):
            holder.after = found
            self.last = holder
            with self.muted():
                self.on_layer(holder)
            holder.calls = []
        else:
            holder.output = found


@dataclass
class Write:
    """Something added to the stream: the call it came from, and a norm that it went through."""

    source: Call
    value: Any
    norm: Call | None = None


def writes_of(layer: Layer) -> list[Write] | None:
    """The calls whose results a layer adds to its stream, or None when none add up."""
    stream = layer.after.shape
    calls = [c for c in layer.calls if c.output is not None and c.output.shape == stream]
    used = {id(c.given) for c in layer.calls}
    change = layer.after.double() - layer.before.double()
    # The stream itself is large beside what is added: its rounding is what sums differ by.
    slack = 4 * votive.finfo(layer.after.dtype).eps * float(layer.after.double().abs().max())
    loose = [c for c in calls if id(c.output) not in used]
    others = [c for c in calls if c not in loose]
    tries = [loose, *_subsets(loose), *_subsets([*loose, *others][:8])]
    for chosen in tries:
        if chosen:
            total = sum(c.output.double() for c in chosen)
            if float((total - change).abs().max()) <= slack:
                return [_write(c, layer.calls) for c in chosen]
    return None


def _subsets(calls: list[Call]) -> list[list[Call]]:
    return [list(s) for n in range(len(calls), 0, -1) for s in combinations(calls, n)]


def _write(call: Call, calls: list[Call]) -> Write:
    """A call that only norms another one's result is that one's norm."""
    before = next((c for c in calls if c.output is not None and c.output is call.given), None)
    if before is not None and not call.inner and getattr(call.module, "weight", None) is not None:
        if call.module.weight.ndim == 1:
            return Write(before, call.output, call)
    return Write(call, call.output)
