"""Products of complex matrices: cuBLASLt where it is, else four real products of their parts; and
products along a dimension.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .....core import dtype as dt
from .....core.layout import Spec
from .....formula import Formula, var
from .....formula.expr import Expr
from ....common.slot import Slot
from ...programs.copy import copy_view
from ...programs.index_space import window
from ...programs.pointwise import compile_formula
from ...programs.types import Run
from ...rows import cuda
from ...runtime.views import View, empty, zero
from ..matmul.kernels import Plain, Side
from ..matmul.plan import Planned, stretched, transposed


def _part(s: Side) -> Side:
    """One part of a complex operand: every other number."""
    kind = s.dtype.to_real()
    return replace(s, dtype=kind, row=2 * s.row, col=2 * s.col, batch=2 * s.batch)


class Four:
    """Any complex product as four real ones."""

    def __init__(self, a: Side, b: Side, out: Side, count: int) -> None:
        sides = _part(a), _part(b), _part(out)
        self.size = sides[0].dtype.itemsize
        self.fresh = Plain(*sides, count)
        self.more = Plain(*sides, count, add=True)

    def __call__(self, a: int, b: int, out: int, **other: Any) -> None:
        i = self.size
        self.fresh(a, b, out)
        self.more(a + i, b + i, out, add=out, alpha=-1.0, beta=1.0)
        self.fresh(a, b + i, out + i)
        self.more(a + i, b, out + i, add=out + i, alpha=1.0, beta=1.0)


def _complex(*specs: Spec) -> bool:
    kind = specs[0].dtype
    return kind.is_complex and all(s.dtype is kind for s in specs)


@cuda("matmul", accepts=_complex, priority=20)
def matmul(a: Slot, b: Slot) -> Run:
    if not a.numel or not b.numel:
        return lambda outs, a, b: zero(outs[0])
    plan = Planned(a.spec, b.spec, a.spec)
    return lambda outs, a, b: plan(outs[0], a, b)


_X, _P = var("x"), var("p")


def elementwise(body: Expr, names: str, specs: list[Any], out: Spec) -> Any:
    """`run(values, out)` of a formula of complex tensors and numbers (None)."""
    roles = [(None if s is None else s.dtype, out.dtype, None) for s in specs]
    formula = Formula("complex_products", tuple(names), body)
    return compile_formula(formula, list(names), roles, specs, out, empty)[1]


@cuda("linear", accepts=_complex, priority=20)
def linear(x: Slot, weight: Slot, bias: Slot | None) -> Run:
    if not x.numel or not weight.numel:
        return None
    right = transposed(weight.spec)
    plan = Planned(x.spec, right, x.spec)
    lead = x.shape[:-1]
    out = x.spec.like(lead if weight.ndim == 1 else (*lead, weight.shape[0]))
    add = None if bias is None else elementwise(_X + _P, "xp", [bias.spec, out], out)

    def run(outs: list[View], x: View, weight: View, bias: View | None) -> None:
        plan(outs[0], x, View(weight.ptr, right, weight.storage))
        if add is not None:
            add([bias, outs[0]], outs[0])

    return run


@cuda("_addmm", accepts=_complex, priority=20)
def addmm(x: Slot, a: Slot, b: Slot, beta: Slot, alpha: Slot) -> Run:
    if not a.numel or not b.numel:
        return None
    plan = Planned(a.spec, b.spec, a.spec)
    known: dict[Spec, Any] = {}

    def run(outs: list[View], x: View, a: View, b: View, beta: Any, alpha: Any) -> None:
        out = outs[0]
        add = known.get(out.spec)
        if add is None:
            specs = [stretched(x, out.spec).spec, out.spec, None, None]
            body = var("b") * _X + var("a") * _P
            scale = elementwise(var("a") * _P, "pa", [out.spec, None], out.spec)
            add = known[out.spec] = elementwise(body, "xpba", specs, out.spec), scale
        plan(out, a, b)
        if beta:
            add[0]([stretched(x, out.spec), out, beta, alpha], out)
        elif alpha != 1:
            add[1]([out, alpha], out)

    return run


@cuda("prod", accepts=lambda x: x.dtype.is_complex, priority=20)
def prod(x: Slot, dim: int | None, keepdim: bool, dtype: dt.dtype) -> Run:
    """Halves are multiplied with each other until one is left."""
    if not dtype.is_complex or not x.numel:
        return None
    at = dim if dim is not None and x.ndim else 0
    shape = x.shape if dim is not None and x.ndim else (x.numel,)
    before, after = shape[:at], shape[at + 1 :]
    begin = x.spec.like(shape, dtype=dtype)
    step = begin.strides[at]
    halvings, n = [], shape[at]
    while n > 1:
        half = begin.like((*before, n // 2, *after), strides=begin.strides)
        halvings.append((n, half, elementwise(_X * _P, "xp", [half, half], half)))
        n -= n // 2
    first = begin.like((*before, *after), strides=(*begin.strides[:at], *begin.strides[at + 1 :]))

    def run(outs: list[View], x: View) -> None:
        line = empty(begin)
        copy_view(View(line.ptr, x.spec.like(x.spec.shape, dtype=dtype), line.storage), x)
        for n, half, times in halvings:
            # The upper half meets the lower one; an odd one in the middle waits.
            low = View(line.ptr, half, line.storage)
            times([low, window(line, half.shape, half.strides, (n - n // 2) * step)], low)
        to = outs[0].spec.like(first.shape)
        copy_view(View(outs[0].ptr, to, outs[0].storage), View(line.ptr, first, line.storage))

    return run
