"""Cholesky factors by cuSOLVER, and what they solve. Without the libraries: the CPU's."""

from __future__ import annotations

from typing import Any

from ....core import dtype as dt
from ....core.layout import Spec
from ....formula import Formula, const, var, where
from ....formula.expr import apply
from ...common.slot import Slot
from ..libraries.cusolver import LETTER, LOWER, UPPER, Batch, P, library, takes
from ..programs.copy import copy_view
from ..programs.pointwise import compile_formula
from ..programs.reduction import row_reducer
from ..programs.types import Run
from ..rows import cuda
from ..runtime.views import View, empty
from . import diagonal
from .linalg_small import plans
from .linalg_steps import addresses, identity, parted, ready, stretched
from .linalg_triangular import solve_in

_I, _C = var("i"), var("c")


@cuda("_cholesky", accepts=takes)
def cholesky(x: Slot, upper: bool) -> Run:
    few = plans.cholesky_factor(x, upper)
    if few is not None or not ready(x):
        return few
    n, letter = x.shape[-1], LETTER[x.dtype]
    keep = diagonal.triu if upper else diagonal.tril
    side = LOWER if upper else UPPER  # the triangle's name in columns
    finish = None if x.dtype.is_complex else plans.cholesky_finish(x, upper)
    if finish is None:
        clean = parted(keep, x.spec.like(x.shape))
        notice = _not_numbers(x.spec.like(x.shape))

    def run(outs: list[View], x: View) -> None:
        out, info = outs
        copy_view(out, x)
        m = Batch(out)
        if m.count > 1:
            _alive, where, _ = addresses(out, out)
            library.solve(f"{letter}potrfBatched", side, n, P(where), n, P(info.ptr), m.count)
        else:
            work, size = library.work(f"{letter}potrf", out.spec, side, n, P(out.ptr), n)
            library.solve(f"{letter}potrf", side, n, P(out.ptr), n, P(work.ptr), size, P(info.ptr))
        if finish is not None:
            finish(out, info)
            return
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
    count = row_reducer(Slot(0, pivots), (len(batch),), dt.int64, "sum", apply("isnan", var("x")))
    bad = apply("logical_and", apply("eq", _I, const(0)), apply("gt", _C, const(0)))
    formula = Formula("not_numbers", ("i", "c"), where(bad, n + 1 - _C, _I))
    roles = [(dt.int32, dt.int64, None), (dt.int64, dt.int64, None)]
    mark = compile_formula(formula, ["i", "c"], roles, [info, counts], info, empty)[1]

    def run(factors: View, info: View) -> None:
        found = empty(counts)
        count([found], View(factors.ptr, pivots, factors.storage))
        mark([info, found], info)

    return run


def _through(x: View, factor: View, upper: bool) -> None:
    """`L L^H X = B` (or `U^H U X = B`) in two steps, in place."""
    for adjoint in (True, False) if upper else (False, True):
        solve_in(x, factor, upper, False, adjoint)


@cuda("_cholesky_solve", accepts=takes)
def cholesky_solve(b: Slot, factor: Slot, upper: bool) -> Run:
    few = plans.triangle(factor, b, upper, False, twice=True)
    if few is not None:
        return lambda outs, b, factor: few(outs[0], factor, b)
    if not library.load():
        return None

    def run(outs: list[View], b: View, factor: View) -> None:
        copy_view(outs[0], stretched(b, outs[0].spec))
        _through(outs[0], factor, upper)

    return run


@cuda("_cholesky_inverse", accepts=takes)
def cholesky_inverse(factor: Slot, upper: bool) -> Run:
    few = plans.cholesky_inverse(factor, upper)
    if few is not None or not library.load():
        return few

    def run(outs: list[View], factor: View) -> None:
        if outs[0].spec.numel:
            identity(outs[0])
            _through(outs[0], factor, upper)

    return run
