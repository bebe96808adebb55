"""What a traced program leaves behind beside its result: gradients of leaves, entries of tables that were there before,
calls of functions that only handle Python numbers. Everything happens while it is traced; afterwards what has become
of it is compared with what was there, and each run of the graph does the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..dispatch import state
from .guards import Place
from .places import Below
from .trace import Untraceable

Found = tuple[Any, ...]


@dataclass(eq=False)
class _Slot:
    """`.grad` of a tensor that was there before."""

    tensor: Any
    place: Place
    before: Any
    read: bool = False


@dataclass(eq=False)
class _Entry:
    """An entry of a table that belongs to a tensor: `table()[tensor][key]`."""

    tensor: Any
    table: Callable[[], Any]
    key: Any
    value: Any


class Effects:
    """Of one trace. `watch` knows where tensors were found."""

    def __init__(self, watch: Any) -> None:
        self.watch = watch
        self.slots: dict[int, _Slot] = {}
        self.entries: list[_Entry] = []
        self.calls: list[Callable[[], Any]] = []
        self.late: dict[int, Any] = {}  # objects that calls have changed: what is read there now is not what will be

    # --- gradients -------------------------------------------------------------------------------

    def slot(self, tensor: Any, read: bool = True) -> bool:
        """Take note that `.grad` of a tensor is read, or set without being read; False where nobody knows it."""
        known = self.watch.tensors.get(id(tensor))
        if known is None or self.watch.tracer.broken:
            return False
        slot = self.slots.get(id(tensor))
        if slot is None:
            slot = self.slots[id(tensor)] = _Slot(tensor, Below(known[1], "attr", "_grad"), tensor._grad)
            slot.read = False
            if read:
                self._read(slot)
        return True

    def _read(self, slot: _Slot) -> None:
        slot.read = True
        if slot.before is None:
            self.watch.guards.equal(slot.place, None)
        else:
            self.watch._hold(slot.before, slot.place)
            self.watch.guards.form(slot.place, slot.before)

    # --- entries and calls -----------------------------------------------------------------------

    def entry(self, tensor: Any, table: Callable[[], Any], key: object, value: object) -> None:
        """Take note that an entry has become another tensor."""
        self.entries.append(_Entry(tensor, table, key, value))

    def call(self, fn: Callable[[], Any], changes: list[Any]) -> None:
        """Take note of a call that each run makes after the graph, and of the objects that it changes."""
        self.calls.append(fn)
        self.late.update({id(o): o for o in changes})

    # --- after the trace -------------------------------------------------------------------------

    def wrap(self, build: Callable[[Found], Any], tensors: list[Any]) -> Callable[[Found], Any]:
        """What builds a result, and then does what the program did; tensors that it needs are appended to `tensors`."""

        def index(t: Any) -> int:
            for i, known in enumerate(tensors):
                if known is t:
                    return i
            tensors.append(t)
            return len(tensors) - 1

        grads: list[tuple[int, int | None]] = []
        for slot in self.slots.values():
            now = slot.tensor._grad
            if slot.read and now is slot.before:
                continue
            if now is not None and now._rg:
                raise Untraceable("it leaves a gradient that has a gradient itself in .grad")
            if now is not None and not isinstance(now, state.tensor):
                raise Untraceable("it sets .grad to something that is not a tensor")
            grads.append((index(slot.tensor), None if now is None else index(now)))
        entries = [(index(e.tensor), e.table, e.key, index(e.value)) for e in self.entries]
        calls = list(self.calls)
        if not (grads or entries or calls):
            return build

        def run(found: Found) -> Any:
            for i, j in grads:
                found[i]._grad = None if j is None else found[j]
            for i, table, key, j in entries:
                table()[found[i]][key] = found[j]
            for call in calls:
                call()
            return build(found)

        return run

    def overwritten(self) -> list[Any]:
        """The tensors whose gradients nobody reads before they are set: these need not live as long as a run does."""
        return [s.tensor for s in self.slots.values() if not s.read]

    def described(self) -> list[str]:
        """What it does, in words."""
        known = [s for s in self.slots.values() if not (s.read and s.tensor._grad is s.before)]
        places = [self.watch.tensors[id(s.tensor)][1] for s in known]
        ends = [" to None" if s.tensor._grad is None else "" for s in known]
        lines = [f"sets grad of {place}{end}" for place, end in zip(places, ends, strict=True)]
        lines += [f"makes {e.key} of {self.watch.tensors[id(e.tensor)][1]}" for e in self.entries]
        return lines + [f"calls {getattr(c, '__qualname__', c)}" for c in self.calls]

    def undo(self) -> Callable[[], None] | None:
        """Put things back as they were before the trace, but for what tensors hold; gives what does it all again, or
        None where it is not known how.
        """
        if self.calls:
            return None
        now = [(s.tensor, s.tensor._grad) for s in self.slots.values()]
        for s in self.slots.values():
            s.tensor._grad = s.before
        for e in self.entries:
            e.table()[e.tensor].pop(e.key, None)

        def redo() -> None:
            for tensor, grad in now:
                tensor._grad = grad
            for e in self.entries:
                e.table()[e.tensor][e.key] = e.value

        return redo
