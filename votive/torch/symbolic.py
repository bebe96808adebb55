"""`torch.sym_*` and the classes of symbolic numbers: here sizes are Python's numbers, so these are its functions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

__all__ = [
    "SymBool",
    "SymFloat",
    "SymInt",
    "sym_constrain_range",
    "sym_constrain_range_for_size",
    "sym_float",
    "sym_fresh_size",
    "sym_int",
    "sym_ite",
    "sym_max",
    "sym_min",
    "sym_not",
    "sym_sqrt",
    "sym_sum",
]


class _Symbol:
    def __init__(self, node: object) -> None:
        raise NotImplementedError("Sizes are plain numbers here: there is nothing that a symbol would stand for.")


class SymInt(_Symbol):
    """A size that is not known yet; none exists here."""


class SymFloat(_Symbol):
    """A number that is not known yet; none exists here."""


class SymBool(_Symbol):
    """A condition that is not known yet; none exists here."""


def sym_not(a: Any) -> bool:
    """Logical negation."""
    return not a


def sym_float(a: Any) -> float:
    """The number as a float."""
    return float(a)


def sym_int(a: Any) -> int:
    """The number without what stands behind its point."""
    return math.ceil(a) if a < 0 else math.floor(a)


def sym_max(a: Any, b: Any) -> Any:
    """The larger of two numbers, a float if one of them is."""
    return float(max(a, b)) if isinstance(a, float) or isinstance(b, float) else max(a, b)


def sym_min(a: Any, b: Any) -> Any:
    """The smaller of two numbers, a float if one of them is."""
    return float(min(a, b)) if isinstance(a, float) or isinstance(b, float) else min(a, b)


def sym_ite(b: Any, t: Any, f: Any) -> Any:
    """One of two numbers, by a condition."""
    return t if b else f


def sym_sqrt(a: Any) -> float:
    """The square root."""
    return math.sqrt(a)


def sym_sum(args: Sequence[Any]) -> Any:
    """The sum of numbers."""
    return sum(args)


def sym_fresh_size(expr: Any) -> Any:
    """A size as it is."""
    return expr


def sym_constrain_range(size: Any, *, min: int | None = None, max: int | None = None) -> None:
    """Check that a size lies in a range."""
    if (min is not None and size < min) or (max is not None and size > max):
        raise RuntimeError(f"Invalid value range for {size} between [{min}, {max}].")


def sym_constrain_range_for_size(size: Any, *, min: int | None = None, max: int | None = None) -> None:
    """Check that a size lies in a range."""
    sym_constrain_range(size, min=0 if min is None else min, max=max)
