"""Triangular systems by cuBLAS, and what Cholesky factors solve. Without the library: the CPU's.

A row-major X with `A X = B` is, in columns, X' with `X' A' = B'`: solved from the right, in the
memory of the result, without transposing anything.
"""

from __future__ import annotations

import ctypes as c
from functools import lru_cache
from typing import Any

import numpy as np

from ....core.layout import Spec, broadcast_strides
from ...common.slot import Slot
from ..libraries.cusolver import (
    ADJOINT,
    LETTER,
    LOWER,
    PLAIN,
    RIGHT,
    TOGETHER,
    TRANSPOSED,
    UPPER,
    P,
    copied,
    library,
    takes,
)
from ..programs.copy import copy_view
from ..programs.types import Run
from ..rows import cuda
from ..runtime.views import View
from .linalg_small import plans
from .linalg_steps import addresses, even, stretched

_ONE: dict[str, Any] = {"S": c.c_float * 2, "D": c.c_double * 2, "C": c.c_float * 2, "Z": c.c_double * 2}


def _leading(spec: Spec) -> int | None:
    """The distance of rows in row-major matrices, or None when they do not lie so."""
    rows, cols = spec.shape[-2:]
    row, col = spec.strides[-2:]
    if col != 1 and cols > 1:
        return None
    return max(row, cols) if rows > 1 and row >= cols else cols if rows == 1 else None


@lru_cache(256)
def offsets(spec: Spec, batch: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Bytes from the first matrix to each of a batch that the matrices broadcast to."""
    steps = broadcast_strides(spec.shape[:-2], spec.strides[:-2], batch)
    at = np.zeros(batch, np.int64)
    for d, (n, s) in enumerate(zip(batch, steps, strict=True)):
        line = np.arange(n, dtype=np.int64) * s
        at += line.reshape([-1 if e == d else 1 for e in range(len(batch))])
    return at.reshape(-1) * spec.dtype.itemsize


def solve_in(x: View, a: View, upper: bool, unit: bool, adjoint: bool = False) -> None:
    """Overwrite row-major B with X, `A X = B`, or `A^H X = B`; one triangle of A is read."""
    spec, letter = x.spec, LETTER[x.spec.dtype]
    *batch, n, k = spec.shape
    if not spec.numel:
        return
    a = even(a, tuple(batch))
    lead = _leading(a.spec)
    other = None if lead is not None else _leading_transposed(a.spec)
    if lead is None and other is None:
        a = copied(a)
        lead = n
    # To the library the memory is A', whose other triangle is filled, or A itself.
    own = upper if lead is None else not upper
    op = TRANSPOSED if lead is None else PLAIN
    if adjoint and not spec.dtype.is_complex:
        op = PLAIN if lead is None else TRANSPOSED
    elif adjoint:
        if lead is None:  # conjugates of A itself are nothing the library can read
            a, lead, own = copied(a), n, not upper
        op = ADJOINT
    lda = lead if lead is not None else other
    one = _ONE[letter](1.0, 0.0)
    count = spec.numel // (n * k)
    how = (RIGHT, UPPER if own else LOWER, op, int(unit), k, n, c.byref(one))
    if count == 1 or n > TOGETHER:
        for i, p in enumerate(offsets(a.spec, tuple(batch)).tolist()):
            to = x.ptr + i * n * k * spec.dtype.itemsize
            library.multiply(f"{letter}trsm_v2", *how, P(a.ptr + p), lda, P(to), k)
        return
    _alive, left, right = addresses(a, x)
    library.multiply(f"{letter}trsmBatched", *how, P(left), lda, P(right), k, count)


def _leading_transposed(spec: Spec) -> int | None:
    """The distance of columns in column-major matrices, or None."""
    swapped = (*spec.shape[:-2], spec.shape[-1], spec.shape[-2])
    strides = (*spec.strides[:-2], spec.strides[-1], spec.strides[-2])
    return _leading(spec.like(swapped, strides=strides))


@cuda("_solve_triangular", accepts=takes)
def solve_triangular(a: Slot, b: Slot, upper: bool, unit: bool) -> Run:
    few = plans.triangle(a, b, upper, unit)
    if few is not None:
        return lambda outs, a, b: few(outs[0], a, b)
    if not library.load():
        return None

    def run(outs: list[View], a: View, b: View) -> None:
        copy_view(outs[0], stretched(b, outs[0].spec))
        solve_in(outs[0], a, upper, unit)

    return run
