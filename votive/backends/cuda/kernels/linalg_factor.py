"""Cholesky and LU factors by cuSOLVER and cuBLAS, and what follows from them: systems, inverses,
determinants. Without the libraries: the CPU's.
"""

from __future__ import annotations

import ctypes as c
import math
from typing import Any

import numpy as np
import triton
import triton.language as tl

from ....core import dtype as dt
from ....core.layout import Layout, Spec
from ....formula import Formula, const, var, where
from ....formula.expr import apply
from ...cpu.native.rows import Slot
from ..libraries.cusolver import (
    LETTER,
    LOWER,
    PLAIN,
    TOGETHER,
    TRANSPOSED,
    UPPER,
    Batch,
    P,
    copied,
    ints,
    library,
    listed,
    moved,
    takes,
    turned,
)
from ..programs.copy import copy_view
from ..programs.pointwise import compile_formula
from ..programs.program import Program
from ..rows import cuda
from ..runtime.faults import faults
from ..runtime.views import View, empty
from . import diagonal
from .linalg_triangular import identity, offsets, stretched
from .reduction import _row, reducer

_D, _P, _I, _C = (var(n) for n in "dpic")


def ready(*slots: Any) -> bool:
    """Whether there is something to compute, and the libraries to do it."""
    return all(s.numel for s in slots) and library.load()


@cuda("_cholesky", accepts=takes)
def cholesky(x: Any, upper: bool) -> Any:
    if not ready(x):
        return None
    n, letter = x.shape[-1], LETTER[x.dtype]
    keep = diagonal.triu if upper else diagonal.tril
    side = LOWER if upper else UPPER  # the triangle's name in columns
    clean = parted(keep, x.spec.like(x.shape))
    notice = _not_numbers(x.spec.like(x.shape))

    def run(outs: list[View], x: View) -> None:
        out, info = outs
        copy_view(out, x)
        m = Batch(out)
        if m.count > 1:
            where = listed(m.places(), out.spec)
            library.solve(f"{letter}potrfBatched", side, n, P(where.ptr), n, P(info.ptr), m.count)
        else:
            work, size = library.work(f"{letter}potrf", out.spec, side, n, P(out.ptr), n)
            library.solve(f"{letter}potrf", side, n, P(out.ptr), n, P(work.ptr), size, P(info.ptr))
        clean(out)
        notice(out, info)

    return run


def _not_numbers(spec: Spec) -> Any:
    """`run(factors, info)`: a pivot that is no number is not positive, and all that follow it are
    none either; the library may let them pass.
    """
    *batch, n, _ = spec.shape
    step = 2 if spec.dtype.is_complex else 1
    strides = (*(step * s for s in spec.strides[:-2]), step * (n + 1))
    pivots = spec.like((*batch, n), dtype=spec.dtype.to_real(), strides=strides)
    counts, info = (spec.like(tuple(batch), dtype=kind) for kind in (dt.int64, dt.int32))
    count = _row(Slot(0, pivots), (len(batch),), dt.int64, "sum", apply("isnan", var("x")))
    bad = apply("logical_and", apply("eq", _I, const(0)), apply("gt", _C, const(0)))
    formula = Formula("not_numbers", ("i", "c"), where(bad, n + 1 - _C, _I))
    roles = [(dt.int32, dt.int64, None), (dt.int64, dt.int64, None)]
    mark = compile_formula(formula, ["i", "c"], roles, [info, counts], info, empty)[1]

    def run(factors: View, told: View) -> None:
        found = empty(counts)
        count([found], View(factors.ptr, pivots, factors.storage))
        mark([told, found], told)

    return run


def parted(keep: Any, spec: Spec) -> Any:
    """`run(view)`: one triangle stays, in place."""
    if spec.dtype is dt.complex128:
        from .complex.rows import first

        seen = first(spec)
        run = keep(Slot(0, seen), 0)
        return lambda v: run([View(v.ptr, seen, v.storage)], View(v.ptr, seen, v.storage))
    run = keep(Slot(0, spec), 0)
    return lambda v: run([v], v)


def in_columns(a: View) -> View:
    """The same matrices in columns, in memory of their own.

    Row-major memory would be factored as it is, for the transpose: but rounding then hides that
    two rows are alike, and a singular matrix has no zero pivot.
    """
    return copied(turned(a))


def factored(a: View, pivots: View, info: View, shown: bool = False) -> None:
    """LU factors of matrices in columns (`a` holds their transposes, row-major), in place.

    `shown`: somebody sees the pivots. cuBLAS ranks complex ones by modulus, cuSOLVER, as LAPACK
    does, by |re| + |im|.
    """
    m = Batch(a)
    cols, rows = m.rows, m.cols
    letter, k = LETTER[a.spec.dtype], min(m.rows, m.cols)
    if m.count > 1 and rows == cols <= TOGETHER and not (shown and a.spec.dtype.is_complex):
        where = listed(m.places(), a.spec)
        library.multiply(f"{letter}getrfBatched", rows, P(where.ptr), rows, P(pivots.ptr), P(info.ptr), m.count)
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
        left, right = listed(m.places(), lu.spec), listed(b.places(), lu.spec)
        fault = c.c_int()  # of the arguments, on the host
        library.multiply(
            f"{letter}getrsBatched",
            trans,
            n,
            k,
            P(left.ptr),
            n,
            P(pivots.ptr),
            P(right.ptr),
            n,
            c.byref(fault),
            b.count,
        )
        return
    fault_at = ints(lu.spec, 1)
    for i, j in enumerate(chosen.tolist()):
        library.solve(f"{letter}getrs", trans, n, k, m.at(j), n, P(pivots.ptr + 4 * n * j), b.at(i), n, P(fault_at.ptr))


@cuda("_lu_factor", accepts=takes)
def lu_factor(a: Any) -> Any:
    if not ready(a):
        return None

    def run(outs: list[View], a: View) -> None:
        lu, pivots, info = outs
        columns = in_columns(a)
        factored(columns, pivots, info, shown=True)
        copy_view(lu, turned(columns))

    return run


@cuda("_inv", accepts=takes)
def inv(a: Any) -> Any:
    """Row-major memory of the inverse is its transpose: that is what is solved for."""
    if not ready(a):
        return None
    *batch, n, _ = a.shape

    def run(outs: list[View], a: View) -> None:
        out, info = outs
        lu, pivots = in_columns(a), ints(a.spec, math.prod(batch), n)
        factored(lu, pivots, info)
        identity(out)
        substituted(lu, pivots, out, TRANSPOSED)

    return run


@cuda("_solve", accepts=takes)
def solve(a: Any, b: Any) -> Any:
    if not ready(a):
        return None
    *batch, n, _ = a.shape

    def run(outs: list[View], a: View, b: View) -> None:
        out, info = outs
        lu, pivots = in_columns(a), ints(a.spec, math.prod(batch), n)
        factored(lu, pivots, info)
        if not out.spec.numel:  # whether there would be a solution is still told
            return
        x = in_columns(stretched(b, out.spec))
        which = offsets(lu.spec, tuple(out.spec.shape[:-2])) // (n * n * lu.spec.dtype.itemsize)
        substituted(lu, pivots, x, PLAIN, which)
        copy_view(out, turned(x))

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
def row_order(pivots: Any, rows: int) -> Any:
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


_SWAPPED = apply("where", apply("ne", _P, _I), const(-1.0), const(1.0))


class _Diagonal:
    """The diagonal of LU factors beside the pivots and the places they would have unswapped."""

    def __init__(self, a: Spec) -> None:
        *batch, n, _ = a.shape
        self.spec = a.like((*batch, n), strides=(*a.like(a.shape).strides[:-2], n + 1))
        self.pivots = Spec(Layout((*batch, n)), dt.int32, a.device)
        self.own = self.pivots.like((n,))
        self.n, self.a = n, a.like(a.shape)

    def reduced(self, name: str, kind: str, body: Any) -> Any:
        """`run(out address, d, p, i)`: a formula of each diagonal element, joined."""
        real = self.a.dtype
        roles = [(s.dtype, real, None) for s in (self.spec, self.pivots, self.own)]
        axis = self.spec.ndim - 1
        return reducer(
            name,
            kind,
            real,
            Formula(name, ("d", "p", "i"), body),
            ["d", "p", "i"],
            roles,
            [self.spec, self.pivots, self.own],
            self.spec.shape,
            (axis,),
            real,
        )

    def factor(self, a: View) -> tuple[int, int, int, Any]:
        """Addresses of the diagonal, pivots and places, and what keeps them alive."""
        lu, pivots = in_columns(a), empty(self.pivots)
        info = ints(a.spec, max(lu.spec.numel // self.n**2, 1))
        factored(lu, pivots, info)
        own = moved(np.arange(1, self.n + 1), self.own, dt.int32)
        return lu.ptr, pivots.ptr, own.ptr, (lu, pivots, own)

    def complex(self, body: Any) -> Any:
        """The same for complex numbers: the values first, then their product."""
        from .complex.products import prod

        values = self.spec.like(self.spec.shape)
        specs = [self.spec, self.pivots, self.own]
        roles = [(s.dtype, values.dtype, None) for s in specs]
        formula = Formula("sign", ("d", "p", "i"), body)
        of = compile_formula(formula, ["d", "p", "i"], roles, specs, values, empty)[0]
        run = prod(Slot(0, values), values.ndim - 1, False, values.dtype)

        def launch(out: View, *given: int) -> None:
            run([out], of(*[View(p, s, None) for p, s in zip(given, specs, strict=True)])[1])

        return launch


@cuda("_det", accepts=takes)
def det(a: Any) -> Any:
    if not ready(a):
        return None
    d = _Diagonal(a.spec)
    if a.dtype.is_complex:
        whole = d.complex(_D * _SWAPPED)

        def launch(outs: list[View], a: View) -> None:
            *given, _alive = d.factor(a)
            whole(outs[0], *given)

        return launch
    product = d.reduced("det", "prod", _D * _SWAPPED)

    def run(outs: list[View], a: View) -> None:
        *given, _alive = d.factor(a)
        product(outs[0].ptr, *given)

    return product and run


@cuda("_slogdet", accepts=takes)
def slogdet(a: Any) -> Any:
    if not ready(a):
        return None
    d = _Diagonal(a.spec)
    if a.dtype.is_complex:
        return _complex_slogdet(d)
    sign = d.reduced("sign", "prod", apply("sgn", _D) * _SWAPPED)
    total = d.reduced("logdet", "sum", apply("log", apply("abs", _D)))

    def run(outs: list[View], a: View) -> None:
        *given, _alive = d.factor(a)
        sign(outs[0].ptr, *given)
        total(outs[1].ptr, *given)

    return sign and total and run


def _complex_slogdet(d: _Diagonal) -> Any:
    from .complex.reductions import mapped
    from .reduction import sum_

    sign = d.complex(apply("sgn", _D) * _SWAPPED)
    real = d.a.dtype.to_real()
    slot, logs = mapped(apply("log", apply("abs", var("x"))), d.spec, real)
    total = sum_(slot, (slot.ndim - 1,), False, real)

    def run(outs: list[View], a: View) -> None:
        *given, _alive = d.factor(a)
        sign(outs[0], *given)
        total([outs[1]], logs(View(given[0], d.spec, None)))

    return run
