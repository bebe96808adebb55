"""Reductions of complex tensors that are not sums of pairs: what reduces a formula's real values,
and variances. Knows the real rows, has no kernels.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .....core import dtype as dt
from .....core.layout import Spec, reduced_shape
from .....formula import Formula, const, var, where
from .....formula.expr import Expr, apply
from ....common.slot import Slot
from ...programs.complex_pointwise import pairs_of
from ...programs.pointwise import compile_formula
from ...programs.reduction import reducer, row_reducer
from ...programs.types import Run
from ...rows import cuda
from ...runtime.views import View, empty
from .. import masked, reduction, vector_norm
from .products import elementwise
from .rows import is_complex, last

_X, _TOP = var("x"), var("t")


def mapped(body: Expr, spec: Spec, to: dt.dtype) -> tuple[Slot, Callable[[View], View]]:
    """(slot, function) of a formula's values on a complex tensor."""
    out = spec.dense_like().like(dtype=to)
    formula = Formula("of_pairs", ("x",), body)
    roles = [(spec.dtype, spec.dtype, None)]
    compute, _ = compile_formula(formula, ["x"], roles, [spec], out, empty)
    return Slot(0, out), lambda v: compute(v)[1]


def _through(op: str, fn: Callable[..., Any], body: Expr, to: Callable[[dt.dtype], dt.dtype]) -> None:
    """Let a real row serve what comes first through a formula."""

    @cuda(op, accepts=is_complex, priority=20)
    def arrange(x: Slot, *static: Any) -> Any:
        slot, of = mapped(body, x.spec, to(x.dtype))
        run = fn(slot, *static)
        return run and (lambda outs, x: run(outs, of(x)))


_NONZERO = apply("ne", _X, const(0))
for _op, _fn in (
    ("all", reduction.all_),
    ("any", reduction.any_),
    ("_nonzero", masked.nonzero),
    ("count_nonzero", reduction.count_nonzero),
):
    _through(_op, _fn, _NONZERO, lambda kind: dt.bool_)
_through("_vector_norm", vector_norm.vector_norm, apply("abs", _X), lambda kind: kind.to_real())


_AWAY = apply("sub", _X, var("k"))


def _spread_of(x: Slot, dim: tuple[int, ...], correction: float, root: bool) -> Any:
    """The squares of both parts' distances from the mean. The first element is subtracted before
    anything is added up: values that lie close together keep their digits.
    """
    if not x.numel:
        return None
    seen, kind = last(x.spec), x.dtype.to_real()
    dims = tuple(dim) if x.ndim else (0,)
    steps = tuple(0 if d in dims else s for d, s in enumerate(seen.strides))
    one = seen.like(seen.shape, strides=steps)
    mean = seen.like(tuple(1 if d in dims else n for d, n in enumerate(seen.shape)))
    n = math.prod(seen.shape[d] for d in dims)
    role = (kind, kind, None)
    average = Formula("average", ("x",), apply("div", _X, const(float(n))))
    middle = reducer(
        "mean",
        "sum",
        kind,
        Formula("shifted", ("x", "k"), _AWAY),
        ["x", "k"],
        [role] * 2,
        [seen, one],
        seen.shape,
        dims,
        kind,
        average,
    )
    total = apply("div", _X, const(max(float(n - correction), 0.0)))
    run = reducer(
        "spread",
        "sum",
        kind,
        Formula("away", ("x", "k", "mean"), apply("square", apply("sub", _AWAY, var("mean")))),
        ["x", "k", "mean"],
        [role] * 3,
        [seen, one, mean],
        seen.shape,
        (*dims, seen.ndim - 1),
        kind,
        Formula("finish", ("x",), apply("sqrt", total) if root else total),
    )

    def launch(outs: list[View], x: View) -> None:
        m = empty(mean)
        middle(m.ptr, x.ptr, x.ptr)
        run(outs[0].ptr, x.ptr, x.ptr, m.ptr)

    return launch


@cuda("_var", accepts=is_complex, priority=20)
def variance(x: Slot, dim: tuple[int, ...], correction: float, keepdim: bool) -> Run:
    return _spread_of(x, dim, correction, False)


@cuda("_std", accepts=is_complex, priority=20)
def deviation(x: Slot, dim: tuple[int, ...], correction: float, keepdim: bool) -> Run:
    return _spread_of(x, dim, correction, True)


@cuda("logsumexp", accepts=is_complex, priority=20)
def logsumexp(x: Slot, dim: tuple[int, ...], keepdim: bool) -> Run:
    """Shifted by the largest real part, so that no exponential overflows."""
    if not x.numel or not x.ndim:
        return None
    real, dims = x.dtype.to_real(), tuple(dim)
    kept = reduced_shape(x.shape, dims, True)
    values, result = x.spec.like(x.shape), x.spec.like(kept)
    tops = result.like(dtype=real)
    halves = x.spec.like(dtype=real, strides=tuple(2 * s for s in x.strides))
    largest = row_reducer(Slot(0, halves), dims, real, "max")
    top = where(apply("isinf", _TOP), const(0.0), _TOP)  # an infinite one is no help
    away = elementwise(apply("exp", _X - top), "xt", [x.spec, tops], values)
    total: Any = reduction.sum_(Slot(0, pairs_of(values)), dims, True, real)
    back = elementwise(apply("log", _X) + top, "xt", [result, tops], result)

    def run(outs: list[View], x: View) -> None:
        t, y = empty(tops), empty(values)
        largest([t], View(x.ptr, halves, x.storage))
        away([x, t], y)
        to = View(outs[0].ptr, result, outs[0].storage)
        total([View(to.ptr, pairs_of(result), to.storage)], View(y.ptr, pairs_of(values), y.storage))
        back([to, t], to)

    return run
