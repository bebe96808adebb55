"""Marks that users set on tensors: which of their sizes may change. Names are those of `torch._dynamo`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.layout import wrap_dim

_NAME = "_compiler_marks"


def _mark(op: str, t: Any, index: int | Sequence[int], kind: str) -> None:
    marks = t.__dict__.setdefault(_NAME, {})
    for d in index if isinstance(index, (list, tuple)) else (index,):
        marks[wrap_dim(op, d, t.ndim, t._spec.shape)] = kind


def mark_dynamic(t: Any, index: int | Sequence[int]) -> None:
    """Let a size of a tensor be a symbol wherever it is an argument of a compiled program; an error where it cannot.

    >>> x = votive.ones(3, 4)
    >>> votive.compiler.mark_dynamic(x, 0)
    >>> double = votive.compile(lambda x: x * 2)
    >>> double(x).shape, double(votive.ones(5, 4)).shape
    (votive.Size([3, 4]), votive.Size([5, 4]))
    """
    _mark("mark_dynamic", t, index, "must")


def maybe_mark_dynamic(t: Any, index: int | Sequence[int]) -> None:
    """As `mark_dynamic`, where the program allows it.

    >>> votive.compiler.maybe_mark_dynamic(votive.ones(3, 4), (0, 1))
    """
    _mark("maybe_mark_dynamic", t, index, "may")


def mark_static(t: Any, index: int | Sequence[int] | None = None) -> None:
    """Keep a size of a tensor, or all of them, from becoming a symbol.

    >>> votive.compiler.mark_static(votive.ones(3, 4))
    """
    _mark("mark_static", t, range_of(t) if index is None else index, "static")


def range_of(t: Any) -> tuple[int, ...]:
    """All dimensions."""
    return tuple(range(t.ndim))


def marks_of(t: Any) -> dict[int, str]:
    """What was marked: dimension -> "must", "may" or "static"."""
    found: dict[int, str] = getattr(t, "__dict__", {}).get(_NAME, {})
    return found
