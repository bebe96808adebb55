"""LU factors by cuSOLVER and cuBLAS, systems solved with them, and the order of rows that pivots mean.
Small matrices: `linalg_small`. Without the libraries: the CPU's.
"""

from __future__ import annotations

import ctypes as c
import math
from typing import Any

import numpy as np
import triton
import triton.language as tl

from ....core import dtype as dt
from ...common.slot import Slot
from ..libraries.cusolver import LETTER, TOGETHER, Batch, P, copied, ints, library, takes, transposed
from ..programs.copy import copy_view
from ..programs.program import Program
from ..programs.types import Run
from ..rows import cuda
from ..runtime.faults import faults
from ..runtime.views import View
from .linalg_small import plans
from .linalg_steps import addresses, ready


def in_columns(a: View) -> View:
    """The same matrices in columns, in memory of their own.

    Row-major memory would be factored as it is, for the transpose: but rounding then hides that
    two rows are alike, and a singular matrix has no zero pivot.
    """
    return copied(transposed(a))


def factored(a: View, pivots: View, info: View, shown: bool = False) -> None:
    """LU factors of matrices in columns (`a` holds their transposes, row-major), in place.

    `shown`: somebody sees the pivots. cuBLAS ranks complex ones by modulus, cuSOLVER, as LAPACK
    does, by |re| + |im|.
    """
    m = Batch(a)
    cols, rows = m.rows, m.cols
    letter, k = LETTER[a.spec.dtype], min(m.rows, m.cols)
    if m.count > 1 and rows == cols <= TOGETHER and not (shown and a.spec.dtype.is_complex):
        _alive, where, _ = addresses(a, a)
        library.multiply(f"{letter}getrfBatched", rows, P(where), rows, P(pivots.ptr), P(info.ptr), m.count)
        return
    work, _ = library.work(f"{letter}getrf", a.spec, rows, cols, m.at(0), rows)
    for i in range(m.count):
        library.solve(
            f"{letter}getrf", rows, cols, m.at(i), rows, P(work.ptr), P(pivots.ptr + 4 * k * i), P(info.ptr + 4 * i)
        )


def substituted(lu: View, pivots: View, x: View, trans: int, which: np.ndarray[Any, Any] | None = None) -> None:
    """Solve with LU factors; `x` holds the transposes of right sides, row-major. `which`: the
    number of the factors for each of them.
    """
    m, b = Batch(lu), Batch(x)
    n, k, letter = m.rows, b.rows, LETTER[lu.spec.dtype]
    chosen = np.arange(b.count) if which is None else which
    same = which is None or (m.count == b.count and bool((chosen == np.arange(b.count)).all()))
    if b.count > 1 and same and n <= TOGETHER:
        _alive, left, right = addresses(lu, x)
        fault = c.c_int()  # of the arguments, on the host
        library.multiply(
            f"{letter}getrsBatched", trans, n, k, P(left), n, P(pivots.ptr), P(right), n, c.byref(fault), b.count
        )
        return
    fault_at = ints(lu.spec, 1)
    for i, j in enumerate(chosen.tolist()):
        library.solve(f"{letter}getrs", trans, n, k, m.at(j), n, P(pivots.ptr + 4 * n * j), b.at(i), n, P(fault_at.ptr))


@cuda("_lu_factor", accepts=takes)
def lu_factor(a: Slot) -> Run:
    few = plans.lu_factor(a)
    if few is not None or not ready(a):
        return few

    def run(outs: list[View], a: View) -> None:
        lu, pivots, info = outs
        columns = in_columns(a)
        factored(columns, pivots, info, shown=True)
        copy_view(lu, transposed(columns))

    return run


@triton.jit
def _order(o, pivots, fault, k, rows, BLOCK: tl.constexpr):
    # Grid: matrices. The order is held in registers, and swaps are made one by one.
    base = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BLOCK)
    order = i.to(tl.int64)
    for step in range(k):
        p = tl.load(pivots + base * k + step) - 1
        bad = (p < 0) | (p >= rows)
        tl.store(fault, 1, mask=bad)
        p = tl.where(bad, step, p)
        here = tl.sum(tl.where(i == step, order, 0), 0)
        there = tl.sum(tl.where(i == p, order, 0), 0)
        order = tl.where(i == step, there, tl.where(i == p, here, order))
    tl.store(o + base * rows + i, order, mask=i < rows)


MOST_ROWS = 8192


@cuda("_row_order", accepts=lambda pivots: pivots.dtype is dt.int32)
def row_order(pivots: Slot, rows: int) -> Run:
    *batch, k = pivots.shape
    count = math.prod(batch)
    if not count or not rows or rows > MOST_ROWS:
        return None
    block = max(1 << (rows - 1).bit_length(), 32)
    program = Program(
        _order, ["*i64", "*i32", "*i32", "i32", "i32"], {"BLOCK": block}, warps=min(max(block // 256, 1), 16)
    )
    fault = faults.place(RuntimeError, f"lu_unpack: pivots must lie in 1..{rows}, as lu_factor gives them.")

    def run(outs: list[View], pivots: View) -> None:
        if not pivots.spec.contiguous:
            pivots = copied(pivots)
        program((count,), outs[0].ptr, pivots.ptr, fault, k, rows)

    return run
