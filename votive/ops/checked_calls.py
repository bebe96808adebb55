"""Calls that passed all their checks, remembered: a small operator on a GPU takes less time than checking it. Knows
specs and plain arguments, no operator.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .types import Tensor

Given = tuple[Any, ...]
MOST = 4096


def _whole(value: Any) -> bool:
    if value.__class__ is tuple:
        return all(v.__class__ is int for v in value)
    return value.__class__ in (int, str)


class CheckedCalls:
    """By a name, the specs of tensors and plain arguments as they were given: what the call came down to."""

    def __init__(self) -> None:
        self.calls: dict[Given, tuple[Given, Given]] = {}

    def find(self, op: str, given: Given, x: Tensor, weight: Tensor, bias: Tensor | None) -> tuple[Given | None, Any]:
        """(the key to remember the call by, what it comes down to); either may be None."""
        try:
            key = (op, x._spec, weight._spec, None if bias is None else bias._spec, *given)
            found = self.calls.get(key)
        except (AttributeError, TypeError):  # no tensors, or lists
            return None, None
        if found is None:
            return key, None
        # True and 1.0 are found where 1 was given, and are no integers.
        if all(map(operator.is_, given, found[0])) or all(map(_whole, given)):
            return key, found[1]
        return None, None

    def keep(self, key: Given | None, given: Given, comes_to: Given) -> None:
        """Remember a call that passed."""
        if key is not None and all(map(_whole, given)):
            if len(self.calls) >= MOST:
                self.calls.clear()
            self.calls[key] = given, comes_to
