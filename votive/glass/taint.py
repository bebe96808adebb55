"""Whether anything of a result is computed from an edited value. Knows memory and operators.

The memory of an edited value is marked, and each operator that reads marked memory marks what it
writes; what is overwritten loses its mark. What bears the mark when the outermost call ends has
been reached. Whole numbers and truth values weaken a mark: an index or a comparison may come out
the same although its input changed. Element by element, marks go through operators that compute so
and through copies; of all others that read marked elements among others, it is known only that
something in their result depends on these.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

import votive

from ..dispatch.observe import Call
from ..ops.registry import Op
from ..tensor import Tensor
from . import values
from .probe import unobserved
from .probe_hub import HUB, mutated
from .taint_memory import ALL, MAYBE, NONE, SOME, Marked

if TYPE_CHECKING:
    from .probe import Probe


Key = tuple[int, str]  # the number of an edit, and the address where it was made
Mark = tuple[Key, bool]  # with whether all on the way were real or complex numbers
_KEPT = "it is kept outside of the result"


class Unread(LookupError):
    """An edit of a value from which nothing of the model's result is computed.

    >>> net = votive.nn.Sequential(votive.nn.Linear(2, 2))
    >>> with votive.glass.patch(net, {"0/linear:in.bias": 1.0}) as receipt:
    ...     _ = net(votive.ones(1, 2))
    >>> receipt.sites["0/linear#0"].reached
    True
    """


@dataclass
class Outcome:
    """What became of an edited value: whether the result was reached, and if not, why not.

    `reached` is None where that is not known.
    """

    reached: bool | None = None
    why: str = "no run has ended since"
    wrong: bool = False  # the model itself has no use for the value
    counts: str = ""  # the address that counts


class TaintTracker:
    """Follows the values of a patch's edits through the operators of a run."""

    def __init__(self, owner: Probe) -> None:
        self.owner = owner
        self.outcomes: dict[Key, Outcome] = {}
        self._marks: weakref.WeakKeyDictionary[Any, dict[Mark, Marked]] = weakref.WeakKeyDictionary()
        self._open: set[Key] = set()  # those not yet seen in a result
        self._cut: dict[Key, str] = {}
        self._numbers: set[Key] = set()
        self._following = False

    @property
    def inactive(self) -> bool:
        return bool(self.owner.inactive)

    # --- what the stage tells -----------------------------------------------------------------

    def marks_of(self, value: object) -> dict[Mark, int]:
        """The edits that a value is computed from, with how surely."""
        found: dict[Mark, int] = {}
        if self._marks:
            for _, t in values.tensors(value):
                for mark, marked in self._marks.get(t._storage.root, {}).items():
                    state = marked.state(t)
                    if state:
                        mark = _weakened(mark, t)
                        found[mark] = max(found.get(mark, NONE), state)
        return found

    def keys_of(self, value: object) -> frozenset[Key]:
        """The edits that a value is computed from, by whatever way."""
        return frozenset(key for key, _ in self.marks_of(value))

    def computed(self, call: Call) -> None:
        """An operator has run."""
        op, args = call.op, call.args
        if not self._marks or op.kind == "view":
            return  # a view is the same memory
        sources = args[1:] if op.overwrites else args
        written = [t for _, t in values.tensors(call.into)]
        if op.name == "_transfer_":
            written = [args[0]]
        results = [t for _, t in values.tensors(call.result)]
        held = {t._storage.root for _, t in values.tensors(args)}
        into = {t._storage.root for t in written}
        # A result in the memory of an argument is that argument, or a view of it.
        fresh = [t for t in results if t._storage.root not in held | into]
        by_element = op.kind == "pointwise" or op.elementwise
        exact = self._exact(op, args) if op.moves else {}
        if op.rowwise:
            # What is beside an element in its row counts for it.
            exact = {
                mark: np.broadcast_to(m.elements(t).any(args[1], keepdims=True), tuple(t.shape))
                for mark, m, t in self._found(args[0])
                if not m.vague(t)
            }
        self._pass_on(op, sources, [*fresh, *written], by_element, written, exact)
        self._add(mutated(call) if op.name != "_transfer_" else (), self._some(sources))

    def moved(self, source: object, target: object) -> None:
        """A value will be written into other memory."""
        to = [t for _, t in values.tensors(target)]
        here = storage_roots(source)
        if to and not any(t._storage.root in here for t in to):
            self._pass_on(None, source, to, True, to)

    def spread(self, sources: object, results: object, keep: np.ndarray | None = None) -> None:
        """Something was computed, in a way that is not known; of `keep`, element by element."""
        to = [t for _, t in values.tensors(results)]
        if keep is None:
            self._pass_on(None, sources, to, False, [])
            return
        for mark, marked, t in self._found(sources):
            self._mark(to[0], mark, ALL, marked.elements(t) & keep)
            self._mark(to[0], mark, min(marked.vague(t), MAYBE))

    def _found(self, value: object) -> list[tuple[Mark, Marked, Any]]:
        return [
            (mark, marked, t)
            for _, t in values.tensors(value)
            for mark, marked in list(self._marks.get(t._storage.root, {}).items())
            if marked.state(t)
        ]

    def _some(self, sources: object) -> dict[Mark, int]:
        return {mark: min(state, SOME) for mark, state in self.marks_of(sources).items()}

    def _exact(self, op: Op, args: tuple[Any, ...]) -> dict[Mark, Any]:
        """By mark, which elements of a result bear it, found by moving the marks themselves."""
        data = op.moves
        moving = [args[i] for i in data]
        rest = self.marks_of([a for i, a in enumerate(args) if i not in data])
        vague = {mark for mark, marked, t in self._found(moving) if marked.vague(t)}
        found = {}
        for mark in {mark for mark, _, _ in self._found(moving)} - vague - set(rest):

            def shown(t: Tensor, mark: Mark = mark) -> Any:
                marked = self._marks.get(t._storage.root, {}).get(mark, Marked())
                return votive.tensor(marked.elements(t), dtype=votive.float32, device=t.device)

            given = list(args)
            for i in data:  # numbers bear no mark
                tensors = values.first(args[i]) is not None
                given[i] = values.mapped(args[i], shown) if tensors else 0.0
            with unobserved(), votive.no_grad():
                found[mark] = (Op.apply(op, tuple(given)) != 0).cpu().numpy()
        return found

    def _pass_on(
        self,
        op: Op | None,
        sources: object,
        to: list[Any],
        by_element: bool,
        written: list[Any],
        exact: dict[Mark, Any] | None = None,
    ) -> None:
        """Mark what was computed from sources, after what was there before is gone."""
        new: list[tuple[Any, Mark, int, Any]] = []
        for mark, marked, source in self._found(sources):
            state = marked.state(source)
            for i, t in enumerate(to):
                now, bears = state, _weakened(mark, source)
                if exact and mark in exact:
                    new.append((t, bears, ALL, exact[mark]))
                    continue
                if op is not None and op.moves:
                    now = min(state, SOME)
                if op is not None and (op.moves or op.skips_elements) and state == SOME:
                    now = MAYBE
                elif state == SOME and by_element:
                    new.append((t, bears, ALL, _shaped(marked.elements(source), t.shape)))
                    now = marked.vague(source)
                elif state == SOME and i:
                    now = MAYBE  # of several results, any one may lack it
                new.append((t, bears, now, None))
        for t in written:
            for marked in self._marks.get(t._storage.root, {}).values():
                marked.overwrite(t)
        for t, mark, state, where in new:
            self._mark(t, mark, state, where)

    def _add(self, to: Iterable[object], marks: dict[Mark, int]) -> None:
        for _, t in values.tensors(list(to)):
            for mark, state in marks.items():
                self._mark(t, mark, state)

    def _mark(self, t: Tensor, mark: Mark, state: int, where: np.ndarray | None = None) -> None:
        here = self._marks.setdefault(t._storage.root, {})
        here.setdefault(_weakened(mark, t), Marked()).add(t, state, where)

    def cut(self, marks: Iterable[Key], at: str) -> None:
        """A value was replaced by one that is not computed from it."""
        for key in marks:
            self._cut.setdefault(key, at)

    def read(self, tensor: Tensor) -> None:
        """A tensor's numbers went to Python, where they cannot be followed."""
        self._numbers |= self.keys_of(tensor)

    # --- what the patch tells -----------------------------------------------------------------

    def begin(self, key: Key, new: object, where: np.ndarray | None = None) -> None:
        """Follow a value that was just edited, all of it or elements of it."""
        if self.is_known(key):
            return
        self.outcomes.setdefault(key, Outcome())
        self._open.add(key)
        if not self._following:
            self._following = True
            HUB.track(self)
        for _, t in values.tensors(new):
            self._mark(t, (key, True), ALL, where)

    def is_known(self, key: Key) -> bool:
        """Whether it need not be followed any more."""
        fate = self.outcomes.get(key)
        return fate is not None and bool(fate.reached)

    def settle(self, key: Key, fate: Outcome) -> None:
        """Say what became of a value that need not be followed."""
        if not self.is_known(key):
            self.outcomes[key] = fate

    def ended(self, result: object) -> None:
        """An outermost call gave its result."""
        if not self._open:
            return
        there = self.marks_of(result)
        given = storage_roots(result)
        held: dict[Key, str] = {}
        for root, marks in self._marks.items():
            why = "it lies beside the result, in the same memory" if root in given else _KEPT
            held |= {key: why for (key, _), m in marks.items() if m and held.get(key) != _KEPT}
        for key in list(self._open):
            self.outcomes[key] = self._fate(key, there, held.get(key, ""))
            if self.outcomes[key].reached:
                self._open.discard(key)
        if not self._open:
            self.end()

    def _fate(self, key: Key, there: dict[Mark, int], held: str) -> Outcome:
        if there.get((key, True), NONE) >= SOME:
            return Outcome(True, "")
        if there.get((key, False), NONE) >= SOME:
            return Outcome(True, "only through whole numbers or truth values, which may hide a change")
        if key in self._numbers:
            return Outcome(None, "it was read as Python numbers, which cannot be followed")
        if (key, True) in there or (key, False) in there:
            return Outcome(None, "only a part of what was computed from it is read")
        if key in self._cut:
            at = self._cut[key] or "(model)"
            return Outcome(False, f"what was computed from it was replaced at {at}")
        if held:
            return Outcome(None, held)
        return Outcome(False, "nothing of the result is computed from it", True)

    def end(self) -> None:
        """Follow nothing any more."""
        self._open.clear()
        self._marks.clear()
        if self._following:
            self._following = False
            HUB.untrack(self)


def _weakened(mark: Mark, t: Tensor) -> Mark:
    """A mark as it is on a tensor."""
    return mark if t.is_floating_point() or t.is_complex() else (mark[0], False)


def _shaped(where: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """An array stretched to a shape, as operators do with their arguments."""
    return np.broadcast_to(where, tuple(shape))


def storage_roots(value: object) -> set[Any]:
    """The memory of all tensors in a value, whoever counts its versions."""
    return {t._storage.root for _, t in values.tensors(value)}
