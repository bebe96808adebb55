"""Determinants by LU factors, and cofactors."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core import dtype as dt
from ....core.layout import Layout, Spec
from ....formula import Formula, const, var, where
from ....formula.expr import Expr, apply, conj
from ...common.slot import Slot
from ..libraries.cusolver import fetched, ints, moved, takes, transposed
from ..programs.copy import copy_view
from ..programs.pointwise import compile_formula
from ..programs.reduction import reducer
from ..programs.types import Run
from ..rows import cuda
from ..runtime.views import View, empty
from . import linalg_solve, reduction
from .linalg_lu import factored, in_columns
from .linalg_small import plans
from .linalg_steps import across, adjoint_of, called, each, largest_column, product, ready, reduced, with_last
from .linalg_svd import decomposed

_D, _P, _I = (var(n) for n in "dpi")
_A, _B, _S, _X = (var(n) for n in "absx")
_SWAPPED = apply("where", apply("ne", _P, _I), const(-1.0), const(1.0))


class _Diagonal:
    """The diagonal of LU factors beside the pivots and the places they would have unswapped."""

    def __init__(self, a: Spec) -> None:
        *batch, n, _ = a.shape
        self.spec = a.like((*batch, n), strides=(*a.like(a.shape).strides[:-2], n + 1))
        self.pivots = Spec(Layout((*batch, n)), dt.int32, a.device)
        self.own = self.pivots.like((n,))
        self.n, self.a = n, a.like(a.shape)

    def reduced(self, name: str, kind: str, body: Expr) -> Any:
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

    def complex(self, body: Expr) -> Any:
        """The same for complex numbers: the values first, then their product."""
        from .complex.products import prod

        values = self.spec.like(self.spec.shape)
        specs = (self.spec, self.pivots, self.own)
        roles = [(s.dtype, values.dtype, None) for s in specs]
        formula = Formula("sign", ("d", "p", "i"), body)
        of = compile_formula(formula, ["d", "p", "i"], roles, [*specs], values, empty)[0]
        run: Any = prod(Slot(0, values), values.ndim - 1, False, values.dtype)

        def launch(out: View, *given: int) -> None:
            run([out], of(*[View(p, s, None) for p, s in zip(given, specs, strict=True)])[1])

        return launch


@cuda("_det", accepts=takes)
def det(a: Slot) -> Run:
    few = plans.determinant(a, False)
    if few is not None or not ready(a):
        return few
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
def slogdet(a: Slot) -> Run:
    few = plans.determinant(a, True)
    if few is not None or not ready(a):
        return few
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
    total: Any = sum_(slot, (slot.ndim - 1,), False, real)

    def run(outs: list[View], a: View) -> None:
        *given, _alive = d.factor(a)
        sign(outs[0], *given)
        total([outs[1]], logs(View(given[0], d.spec, None)))

    return run


@cuda("_cofactor", accepts=takes)
def cofactor(a: Slot) -> Run:
    few = plans.cofactor(a)
    if few is None and not ready(a):
        return None
    n, eps = a.shape[-1], float(dt.finfo(a.dtype).eps)

    def determinant(v: View) -> View:
        made = empty(v.spec.like(v.spec.shape[:-2]))
        called(det, [made], v, static=())
        return with_last(with_last(made))

    def by_singular_values(a: View) -> View:
        """`det U det V^H  U* diag(products of other singular values) V^T`, right for any rank."""
        u, s, vh = decomposed(a)
        away = moved(np.eye(n), a.spec, s.spec.dtype)
        others = each(where(_X.ne(0.0), const(1.0), _S), s=across(s), x=away)
        rest = across(reduced(_products, others, False, s.spec.dtype))
        phase = each(_A * _B, a=determinant(u), b=determinant(vh))
        scaled = each((conj(_X) if u.spec.dtype.is_complex else _X) * _S * _A, x=u, s=rest, a=phase)
        return product(scaled, transposed(adjoint_of(vh)))

    def corrected(a: View, result: View, poor: np.ndarray[Any, Any]) -> View:
        where_ = moved(poor[..., None, None].astype(float), a.spec, a.spec.dtype.to_real())
        return each(where(_S.ne(0.0), _X, _A), x=by_singular_values(a), s=where_, a=result)

    def run(outs: list[View], a: View) -> None:
        if few is not None:
            found = ints(a.spec, *a.spec.shape[:-2])
            few(outs[0], found, a)
            poor = fetched(found)
            if poor.any():
                copy_view(outs[0], corrected(a, outs[0], poor))
            return
        inverse, info = empty(a.spec.like(a.spec.shape)), ints(a.spec, *a.spec.shape[:-2])
        called(linalg_solve.inv, [inverse, info], a, static=())
        result = each(_X * _A, x=transposed(inverse), a=determinant(a))
        # With less than half of the digits right the two do not fit together any more.
        norms = largest_column(a), largest_column(inverse)
        with np.errstate(all="ignore"):
            poor = ~(norms[0] * norms[1] < eps**-0.5) & np.isfinite(norms[0])
        copy_view(outs[0], corrected(a, result, poor) if poor.any() else result)

    return run


def _products(slot: Any, dims: tuple[int, ...], keepdim: bool, dtype: dt.dtype) -> Any:
    return reduction.prod(slot, dims[0], keepdim, dtype)
