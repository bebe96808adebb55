"""Which edits are made at which positions of a text, and how they are told apart. Runs nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import votive

from ..tensor import Tensor
from .edits import Edit, Edits, edits_of


@dataclass(frozen=True, eq=False)
class TimedEdit:
    """An edit that is made in parts of a text which begin at `since` or later, before `until`.

    `key` is equal for edits that do the same: those with equal values, or the same code.
    """

    edit: Edit
    key: Any
    since: int = 0
    until: int | None = None

    def during(self, start: int, stop: int) -> bool:
        """Whether it does something while positions `start` to `stop` are fed."""
        if start < self.since or (self.until is not None and start >= self.until):
            return False
        positions, pattern = self.edit.positions, self.edit.pattern
        # Operators may be given the whole text again, as attention is its keys and values.
        first = 0 if pattern.wants_ops else start
        return positions is None or any(first <= p < stop for p in positions)

    @property
    def in_force(self) -> bool:
        """Whether it is made in what is yet to come."""
        return self.until is None


EditPlan = tuple[TimedEdit, ...]


def begin(edits: Edits, since: int = 0) -> EditPlan:
    """Edits from a position on; those with positions of their own hold for these, wherever."""
    return tuple(_live(e, since) for e in edits_of(edits)) if edits else ()


def change(plan: EditPlan, edits: Edits, since: int) -> EditPlan:
    """The plan with other edits in force from `since` on.

    Before that, nothing changes and edits are made in the same order, except for what new edits
    with positions do there. Edits that are given again go on.
    """
    given = list(begin(edits, since))
    out: list[TimedEdit] = []
    for old in plan:
        at = next((i for i, n in enumerate(given) if n.key == old.key), None)
        if old.in_force and at is not None and not _comes_later(plan, old, given[:at]):
            out += [*given[:at], old]  # it goes on, after the new ones that were put before it
            del given[: at + 1]
        elif not old.in_force:
            out.append(old)
        elif old.since < since:
            out.append(replace(old, until=since))
    # What was made until some position, and is given again, must not be made twice before it.
    ended = {one.key: one.until for one in out if one.until is not None}
    return tuple(
        replace(n, since=max(n.since, ended[n.key])) if n.in_force and n.key in ended else n for n in (*out, *given)
    )


def _comes_later(plan: EditPlan, old: TimedEdit, given: Sequence[TimedEdit]) -> bool:
    """Whether one of the given edits goes on from a place behind `old`."""
    behind = {p.key for p in plan[plan.index(old) + 1 :] if p.in_force}
    return any(n.key in behind for n in given)


def in_force(plan: EditPlan) -> list[Edit]:
    """The edits that are made from now on."""
    return [one.edit for one in plan if one.in_force]


def key_of(plan: EditPlan) -> tuple[Any, ...]:
    """Equal for plans that do the same."""
    return tuple((one.key, one.since, one.until) for one in plan)


def _live(edit: Edit, since: int) -> TimedEdit:
    if edit.runs is not None:
        raise ValueError(
            f"Session: the edit at {edit.at!r} counts runs, but how often a session runs the model "
            "is up to the session; use positions= instead."
        )
    if edit.positions is not None and any(p < 0 for p in edit.positions):
        raise ValueError(
            f"Session: the positions {list(edit.positions)} of the edit at {edit.at!r} count from "
            "an end that moves; count from the beginning of the text."
        )
    value = edit.value
    if edit.do in ("mean", "resample") and value is None:
        raise ValueError(
            f"Session: {edit.do!r} at {edit.at!r} is about several samples, but a session writes "
            "one text; give the mean over a data set, as glass.means finds it."
        )
    if isinstance(value, votive.Tensor):
        # A copy, so that writing to the caller's tensor cannot change what was computed.
        edit = replace(edit, value=value.detach().clone())
    return TimedEdit(edit, _key(edit), 0 if edit.positions is not None else since)


def _key(edit: Edit) -> Any:
    plain = (edit.at, edit.do, edit.positions, edit.features, edit.samples, edit.heads, edit.seed)
    return (*plain, _value_key(edit.value))


def _value_key(value: object) -> Any:
    if isinstance(value, votive.Tensor):
        return (str(value.dtype), tuple(value.shape), digest(value))
    if isinstance(value, (list, tuple)):
        return (type(value).__name__, *map(_value_key, value))
    if value is None or isinstance(value, (bool, int, float, complex, str)):
        return (type(value).__name__, value)
    # Code and modules are the same only if they are one object; the edit keeps it alive.
    return ("object", id(value))


def digest(tensor: Tensor) -> str:
    """A short text that differs for tensors whose bytes differ.

    >>> from votive.glass.edit_plan import digest
    >>> digest(votive.zeros(2)) == digest(votive.zeros(2)), len(digest(votive.ones(2)))
    (True, 32)
    """
    found = hashlib.blake2b(digest_size=16)
    found.update(raw(tensor))
    return found.hexdigest()


def raw(tensor: Tensor) -> memoryview:
    """The bytes of a tensor, in the order of its elements."""
    plain = tensor.detach().to("cpu").contiguous()
    return memoryview(plain.numpy().reshape(-1).view("uint8").data)


def plan_to_data(plan: Sequence[TimedEdit]) -> list[dict[str, Any]]:
    """Plain values and tensors, for a file; code is refused."""
    return [{"edit": one.edit.to_dict(), "since": one.since, "until": one.until} for one in plan]


def plan_from_data(data: Sequence[dict[str, Any]]) -> EditPlan:
    """What `plan_to_data` gave."""
    out = []
    for item in data:
        (timed,) = begin([Edit.from_dict(item["edit"])])
        out.append(replace(timed, since=item["since"], until=item["until"]))
    return tuple(out)
