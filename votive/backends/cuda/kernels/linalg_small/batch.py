"""How programs find their matrix in a batch, and which matrices are small. Knows layouts only.

Matrices are read by any strides; batches of any shape become two counts, or are copied first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from .....core import dtype as dt
from .....core.layout import Spec, broadcast_strides
from ...programs.layouts import expanded, next_power_of_two
from ...runtime.views import View

LARGEST = 64  # rows or columns of a matrix that a program holds


def small(dtype: dt.dtype, *sizes: int) -> bool:
    """Whether matrices of these rows and columns are for the programs here."""
    return dtype in (dt.float32, dt.float64) and min(sizes) > 0 and max(sizes) <= LARGEST


def block(n: int) -> int:
    """Rows or columns of registers for n."""
    return max(next_power_of_two(n), 8)


def held(dtype: dt.dtype, rows: int, cols: int) -> bool:
    """Whether a program can hold one such matrix, and nothing else."""
    few = block(rows) * block(cols) <= (2 * LARGEST) ** 2
    return few and dtype in (dt.float32, dt.float64) and min(rows, cols) > 0


def warps(nbytes: int, alone: int = 2048) -> int:
    """How many warps hold so many bytes in registers; a single one, up to `alone`, needs no barriers."""
    return 1 if nbytes <= alone else 4 if nbytes <= 16384 else 8 if nbytes <= 65536 else 16


def _coalesced(batch: tuple[int, ...], strides: Sequence[tuple[int, ...]]) -> list[tuple[int, tuple[int, ...]]]:
    """(size, strides) of the dimensions left when neighbours that lie evenly are one."""
    found: list[tuple[int, tuple[int, ...]]] = []
    for size, *steps in zip(batch, *strides, strict=True):
        if size == 1:
            continue
        if found and all(a == size * b for a, b in zip(found[-1][1], steps, strict=True)):
            found[-1] = (found[-1][0] * size, tuple(steps))
        else:
            found.append((size, tuple(steps)))
    return found


class Places:
    """Where each program's operands begin: `inner` and, for each, what a step outside and inside of it adds.

    `specs`: operands with so many dimensions of their own (2: matrices, 1: vectors, 0: numbers) that broadcast.
    """

    def __init__(self, batch: tuple[int, ...], *specs: tuple[Spec, int]) -> None:
        self.batch, self.count, self.copied = batch, math.prod(batch), False
        steps = [broadcast_strides(s.shape[: s.ndim - own], s.strides[: s.ndim - own], batch) for s, own in specs]
        dims = _coalesced(batch, steps)
        if len(dims) > 2:  # nothing to walk by two counts: operands become dense
            self.copied = True
            dims = [(self.count, tuple(math.prod(s.shape[s.ndim - own :]) for s, own in specs))]
        none = (1, (0,) * len(specs))
        (_, outer), (self.inner, inner) = [*[none] * (2 - len(dims)), *dims]
        self.steps = [(int(a), int(b)) for a, b in zip(outer, inner, strict=True)]

    def matrix(self, k: int, spec: Spec) -> tuple[int, int, int, int]:
        """Steps of a matrix operand: outside, inside, from row to row, from column to column."""
        row, col = (spec.shape[-1], 1) if self.copied else spec.strides[-2:]
        return (*self.steps[k], row, col)

    def placed(self, v: View, own: int = 2) -> View:
        """An operand as the programs read it."""
        return expanded(v, (*self.batch, *v.spec.shape[-own:])) if self.copied else v
