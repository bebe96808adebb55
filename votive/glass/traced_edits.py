"""Which edits can be parts of compiled programs, and how these are told apart. Runs nothing."""

from __future__ import annotations

from typing import Any

from .edits import Edit


def traceable(edit: Edit) -> bool:
    """Whether an edit can be a part of a compiled program."""
    known = edit.do in ("replace", "add", "scale", "zero", "call") or (edit.do == "mean" and edit.value is not None)
    return (
        known
        and edit.runs is None
        and edit.pattern.predicate is None
        and not edit.pattern.wants_ops
        and not edit.pattern.wants_sites
    )


def key_of(edit: Edit) -> Any:
    """What tells edits apart that are parts of compiled programs."""
    value = edit.value
    plain = value is None or isinstance(value, (bool, int, float, complex))
    told = (type(value), repr(value)) if plain else _Same(value)
    return edit.at, edit.do, told, edit.positions, edit.features, edit.samples, edit.heads


class _Same:
    """An object, equal to nothing but itself."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)
