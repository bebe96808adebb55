"""LDL factors by the pivoting of Bunch and Kaufman, one matrix after another. Knows arrays only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...base import kernel
from ..arrays import Array

# Bounds the growth of elements over a step of size 1 and two of size 2 alike: Bunch, Kaufman, "Some
# stable methods for calculating inertia and solving symmetric linear systems" (1977), section 2.
ALPHA = (1 + 17**0.5) / 8


def _size(x: Array) -> Any:
    """LAPACK ranks complex pivots by |re| + |im|; so do we, to choose the same ones."""
    return np.abs(x.real) + np.abs(x.imag)


def _pivot(a: Array, k: int) -> tuple[int, int]:
    """The row to exchange, and the size of the block: 0 where a whole column is zero."""
    here, below = _size(a[k, k]), _size(a[k + 1 :, k])
    largest = below.max(initial=0)
    if not max(here, largest) > 0:
        return k, 0
    if here >= ALPHA * largest:
        return k, 1
    row = k + 1 + int(below.argmax())
    across = np.concatenate([_size(a[row, k:row]), _size(a[row + 1 :, row])]).max()
    if here * across >= ALPHA * largest * largest:
        return k, 1
    return row, 1 if _size(a[row, row]) >= ALPHA * across else 2


def _exchange(a: Array, k: int, at: int, row: int, flip: Callable[[Array], Array]) -> None:
    """Swap rows and columns `at` and `row` of what is left of a lower triangle."""
    a[[at, row], k:at] = a[[row, at], k:at]
    a[row + 1 :, [at, row]] = a[row + 1 :, [row, at]]
    between = a[at + 1 : row, at].copy()
    a[at + 1 : row, at] = flip(a[row, at + 1 : row])
    a[row, at + 1 : row] = flip(between)
    a[at, at], a[row, row] = a[row, row], a[at, at]
    a[row, at] = flip(a[row, at])


def _factor(a: Array, flip: Callable[[Array], Array]) -> tuple[Any, int]:
    """Factor one lower triangle in place; `flip` conjugates for Hermitian matrices."""
    n = len(a)
    pivots, info, k = np.zeros(n, np.int64), 0, 0
    while k < n:
        row, size = _pivot(a, k)
        step = max(size, 1)
        at = k + step - 1
        if row != at:
            _exchange(a, k, at, row, flip)
        pivots[k : k + step] = row + 1 if step == 1 else -(row + 1)
        if size == 0:
            info = info or k + 1
        else:
            block, rest = slice(k, k + step), slice(k + step, n)
            d = np.tril(a[block, block])
            d = d + flip(np.tril(d, -1).T)
            low = np.linalg.solve(d.T, a[rest, block].T).T
            a[rest, rest] -= np.tril(low @ flip(a[rest, block].T))
            a[rest, block] = low
        k += step
    return pivots, info


def _flip(hermitian: bool) -> Any:
    return np.conj if hermitian else np.asarray


@kernel("_ldl_factor")
def ldl_factor(a: Array, hermitian: bool) -> tuple[Any, Any, Any]:
    flip = _flip(hermitian)
    ld = np.tril(a)
    if hermitian and ld.dtype.kind == "c":
        diagonal = np.arange(a.shape[-1])
        ld[..., diagonal, diagonal] = ld[..., diagonal, diagonal].real
    pivots, info = np.zeros(a.shape[:-1], np.int64), np.zeros(a.shape[:-2], np.int64)
    for i in np.ndindex(a.shape[:-2]):
        pivots[i], info[i] = _factor(ld[i], flip)
    return ld, pivots, info


def _blocks(pivots: Array) -> list[tuple[int, int, int]]:
    """(first row, size, row exchanged with the block's last one) of each block of D."""
    found, k = [], 0
    while k < len(pivots):
        size = 1 if pivots[k] > 0 else 2
        found.append((k, size, abs(int(pivots[k])) - 1))
        k += size
    return found


@kernel("_ldl_solve")
def ldl_solve(ld: Array, pivots: Array, b: Array, hermitian: bool) -> Array:
    flip = _flip(hermitian)
    batch = np.broadcast_shapes(ld.shape[:-2], b.shape[:-2])
    x = np.broadcast_to(b, (*batch, *b.shape[-2:])).copy()
    ld = np.broadcast_to(ld, (*batch, *ld.shape[-2:]))
    pivots = np.broadcast_to(pivots, (*batch, pivots.shape[-1]))
    for i in np.ndindex(batch):
        one, y = ld[i], x[i]
        blocks = _blocks(pivots[i])
        for k, size, row in blocks:
            last, block, rest = k + size - 1, slice(k, k + size), slice(k + size, None)
            y[[last, row]] = y[[row, last]]
            y[rest] -= one[rest, block] @ y[block]
            d = np.tril(one[block, block])
            y[block] = np.linalg.solve(d + flip(np.tril(d, -1).T), y[block])
        for k, size, row in reversed(blocks):
            last, block, rest = k + size - 1, slice(k, k + size), slice(k + size, None)
            y[block] -= flip(one[rest, block].T) @ y[rest]
            y[[last, row]] = y[[row, last]]
    return x
