"""Whether anything of a result is computed from an edited value. Knows memory and operators.

The memory of an edited value is marked, and each operator that reads marked memory marks what it
writes. What bears the mark when the outermost call ends has been reached. Whole numbers and truth
values weaken a mark: an index or a comparison may come out the same although its input changed.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from . import values
from .stage import STAGE

Key = tuple[int, str]  # the number of an edit, and the address where it was made
Marks = frozenset[tuple[Key, bool]]  # with whether all on the way were real or complex numbers
_NONE: Marks = frozenset()


class Unread(LookupError):
    """An edit of a value from which nothing of the model's result is computed.

    >>> net = votive.nn.Sequential(votive.nn.Linear(2, 2))
    >>> with votive.glass.patch(net, {"0/linear:in.bias": 1.0}) as receipt:
    ...     _ = net(votive.ones(1, 2))
    >>> receipt.sites["0/linear#0"].reached
    True
    """


@dataclass
class Fate:
    """What became of an edited value: whether the result was reached, and if not, why not.

    `reached` is None where that is not known.
    """

    reached: bool | None = None
    why: str = "no run has ended since"
    wrong: bool = False  # the model itself has no use for the value
    instead: str = ""  # the address that counts


class Reach:
    """Follows the values of a patch's edits through the operators of a run."""

    def __init__(self, owner: Any) -> None:
        self.owner = owner
        self.fates: dict[Key, Fate] = {}
        self._marks: weakref.WeakKeyDictionary[Any, Marks] = weakref.WeakKeyDictionary()
        self._open: set[Key] = set()  # those not yet seen in a result
        self._cut: dict[Key, str] = {}
        self._numbers: set[Key] = set()
        self._following = False

    @property
    def blind(self) -> bool:
        return bool(self.owner.blind)

    # --- what the stage tells -----------------------------------------------------------------

    def marks_of(self, value: Any) -> Marks:
        """The edits that a value is computed from."""
        found = _NONE
        if self._marks:
            for _, t in values.tensors(value):
                found |= _weakened(self._marks.get(t._storage, _NONE), t)
        return found

    def keys_of(self, value: Any) -> frozenset[Key]:
        """The edits that a value is computed from, by whatever way."""
        return frozenset(key for key, _ in self.marks_of(value))

    def spread(self, sources: Any, results: Any) -> None:
        """Something was computed."""
        marks = self.marks_of(sources)
        if marks:
            self._mark(results, marks)

    def _mark(self, value: Any, marks: Marks) -> None:
        for _, t in values.tensors(value):
            self._marks[t._storage] = self._marks.get(t._storage, _NONE) | _weakened(marks, t)

    def cut(self, marks: Iterable[Key], at: str) -> None:
        """A value was replaced by one that is not computed from it."""
        for key in marks:
            self._cut.setdefault(key, at)

    def read(self, tensor: Any) -> None:
        """A tensor's numbers went to Python, where they cannot be followed."""
        self._numbers |= self.keys_of(tensor)

    # --- what the patch tells -----------------------------------------------------------------

    def begin(self, key: Key, new: Any) -> None:
        """Follow a value that was just edited."""
        if self.is_known(key):
            return
        self.fates.setdefault(key, Fate())
        self._open.add(key)
        if not self._following:
            self._following = True
            STAGE.follow(self)
        self._mark(new, frozenset([(key, True)]))

    def is_known(self, key: Key) -> bool:
        """Whether it need not be followed any more."""
        fate = self.fates.get(key)
        return fate is not None and bool(fate.reached)

    def settle(self, key: Key, fate: Fate) -> None:
        """Say what became of a value that need not be followed."""
        if not self.is_known(key):
            self.fates[key] = fate

    def ended(self, result: Any) -> None:
        """An outermost call gave its result."""
        if not self._open:
            return
        there = self.marks_of(result)
        held = {key for marks in self._marks.values() for key, _ in marks}
        for key in list(self._open):
            self.fates[key] = self._fate(key, there, key in held)
            if self.fates[key].reached:
                self._open.discard(key)
        if not self._open:
            self.end()

    def _fate(self, key: Key, there: Marks, held: bool) -> Fate:
        if (key, True) in there:
            return Fate(True, "")
        if (key, False) in there:
            return Fate(True, "only through whole numbers or truth values, which may hide a change")
        if key in self._numbers:
            return Fate(None, "it was read as Python numbers, which cannot be followed")
        if key in self._cut:
            at = self._cut[key] or "(model)"
            return Fate(False, f"what was computed from it was replaced at {at}")
        if held:
            return Fate(None, "it is kept outside of the result")
        return Fate(False, "nothing of the result is computed from it", True)

    def end(self) -> None:
        """Follow nothing any more."""
        self._open.clear()
        self._marks.clear()
        if self._following:
            self._following = False
            STAGE.unfollow(self)


def _weakened(marks: Marks, t: Any) -> Marks:
    """Marks as they are on a tensor."""
    if not marks or t.is_floating_point() or t.is_complex():
        return marks
    return frozenset((key, False) for key, _ in marks)
