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

    def unknown(self, tensor: Any) -> Any:
        """As the watch says; with a copy of what is there."""
        value = self.name(tensor)
        if not tensor._rg:
            mode.unobserved += 1
            try:
                self.before[value] = tensor.detach().clone()
            finally:
                mode.unobserved -= 1
        return value

    def run(self, entry: Entry, flat: tuple[Any, ...], result: Any) -> Any:
        """The result by the graph; that of the trace where somebody has seen it, or something is in the way."""
        tensors = entry.check(flat)
        if tensors is None or self.watch.events:
            return result
        written = entry.graph.written()
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
