"""The first call of a program by its graph, too: the trace is undone and the graph run; each call rounds alike."""

from __future__ import annotations

from typing import Any

from ..core.mode import mode
from .entry import Entry
from .graph import Value
from .watch import Watch


class Kept:
    """What tensors from outside hold before the first call that may write into them."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self.before: dict[Value, Any] = {}
        name, watch.tracer.unknown = watch.tracer.unknown, self.unknown  # type: ignore[method-assign]
        self.name = name
        self.call, watch.tracer.before = watch.tracer.before, self.called  # type: ignore[method-assign]

    def unknown(self, tensor: Any) -> Any:
        """As the watch says; with a copy of what is there."""
        value = self.name(tensor)
        if not tensor._rg:
            self._keep(value, tensor)
        return value

    def _keep(self, value: Value, tensor: Any) -> None:
        mode.unobserved += 1
        try:
            self.before[value] = tensor.detach().clone()
        finally:
            mode.unobserved -= 1

    def called(self, call: Any) -> None:
        """Before a call: weights are copied only if it writes them."""
        self.call(call)
        tracer = self.watch.tracer
        if tracer.broken:
            return
        args = dict(zip(call.op.schema.names, call.args, strict=True))
        found = [call.into] if call.into is not None else [args[name] for name in call.op.mutates]
        for t in [t for v in found for t in (v if v.__class__ in (tuple, list) else (v,))]:
            value = tracer.named.get(id(t))
            if value is not None and value.leaf and value not in self.before:
                self._keep(value, t)

    def run(self, entry: Entry, flat: tuple[Any, ...], result: object) -> Any:
        """The result by the graph; that of the trace where somebody has seen it, or something is in the way."""
        redo = None if self.watch.events else self.watch.effects.undo()
        if redo is None:
            return result
        tensors = entry.check(flat)
        written = entry.graph.written()
        if tensors is None or any(v in written and v not in self.before for v in entry.graph.inputs):
            redo()
            return result
        grad, mode.grad = mode.grad, False
        try:
            for v, t in zip(entry.graph.inputs, tensors, strict=True):
                if v in written:
                    t.copy_(self.before[v])
        finally:
            mode.grad = grad
        for generator, (_, offset) in self.watch.tracer.generators.items():
            generator._offset = offset
        return entry.run(tensors)
