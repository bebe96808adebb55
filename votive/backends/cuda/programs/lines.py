"""Elements of any ordered dtype as integers in the same order, and tensors as lines along a
dimension. Knows no operators.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from ....core import dtype as dt
from ....core.layout import Layout, Spec
from ...common.slot import Slot
from ..device.math import key_of, sought
from ..runtime.views import View, empty
from .layouts import contiguous, last, row_stride
from .program import Program

# Triton's integers in which elements are compared.
_WIDE = (dt.float64, dt.int64)
ORDERED = frozenset(
    [dt.bool_, dt.uint8, dt.int8, dt.int16, dt.int32, dt.int64, dt.float16, dt.bfloat16, dt.float32, dt.float64]
)


def ordered(x: Slot | Spec) -> bool:
    """Whether elements of this dtype can be compared here."""
    return x.dtype in ORDERED


def key_type(dtype: dt.dtype) -> dt.dtype:
    """The integers that keys of a dtype are."""
    return dt.int64 if dtype in _WIDE else dt.int32


@dataclass(frozen=True)
class Lines:
    """A tensor seen as lines along one dimension."""

    rows: int
    n: int

    def of(self, v: View, dim: int) -> tuple[View, int]:
        """(the values, in lines that lie dense; the distance between lines)."""
        spec = last(v.spec, dim) if v.spec.ndim else v.spec.like((1,))
        moved = View(v.ptr, spec, v.storage)
        stride = row_stride(spec)
        if stride is not None:
            return moved, stride
        return contiguous(moved), self.n

    def even(self, spec: Spec, dim: int) -> bool:
        """Whether all lines begin at multiples of 16."""
        stride = row_stride(last(spec, dim)) if spec.ndim else None
        return (self.n if stride is None else stride) % 16 == 0


def lines(x: Slot | Spec, dim: int) -> Lines:
    """The lines of a tensor; a 0-d one is a line of one element."""
    if x.ndim == 0:
        return Lines(1, 1)
    n = x.shape[dim]
    return Lines(x.numel // n if n else 0, n)


def cut(n: int, parts: int) -> tuple[int, int]:
    """(how long parts are, how many): parts begin at multiples of 16."""
    part = (n + parts - 1) // parts
    part += -part % 16
    return part, -(-n // part)


@cache
def _shared(
    fn: Callable[..., Any], types: tuple[str, ...], constants: tuple[Any, ...], even: tuple[int, ...], options: Any
) -> Program:
    made = Program(fn, types, dict(constants), **dict(options))
    made.divisible = even
    return made


def shared_program(
    fn: Callable[..., Any], types: list[str], constants: dict[str, Any], even: tuple[int, ...] = (), **options: Any
) -> Program:
    """A program that other plans with the same types and constants use too. `even`: which of its
    numbers are multiples of 16.
    """
    return _shared(fn, tuple(types), tuple(constants.items()), even, tuple(options.items()))


def scratch(like: Spec, count: int, dtype: dt.dtype) -> View:
    """Memory for some elements beside a tensor."""
    return empty(Spec(Layout((count,)), dtype, like.device))


__all__ = ["Lines", "cut", "key_of", "key_type", "lines", "ordered", "scratch", "shared_program", "sought"]
