"""Forward mode: how a tangent goes through an operator. Formulas have derivatives; views and linear operators apply to
the tangent itself; everything else goes back and forth through its gradient rule, which is exact.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..autograd.recipes import _backward_op
from ..core.mode import mode
from ..dispatch.arguments import normalise
from ..dispatch.build import find
from ..dispatch.plan import PointwisePlan
from ..formula import NotDifferentiable
from ..ops.operator import Op
from ..ops.registry import F
from .reverse import fresh, leaves_of, pull, settle
from .wrapped import Dual, below, dual

if TYPE_CHECKING:
    pass


def dual_call(op: Op, args: tuple[Any, ...], level: int) -> Any:
    """Values and tangents of a call."""
    args = normalise(op, args)
    primal, tangent = _taken(args, level)
    with below(level):
        out = Op.apply(op, primal)
        if not op.differentiable or all(t is None for t in _flat(tangent)):
            return out
        if op.kind == "view":
            made = dual(out, None, level)
            made._of = (args[0], lambda t: _viewed(op, args[0]._value, t, primal))
            return made
        if op.kind == "pointwise" and op.grad is None:
            made = _formula(op, primal, tangent, out)
            if made is not NotImplemented:
                return out if made is None else dual(out, made, level)
        tangents = _by_parts(op, primal, tangent) if op.multilinear else _through_gradient(op, primal, tangent)
    if out.__class__ is tuple:
        return tuple(o if t is None else dual(o, t, level) for o, t in zip(out, tangents, strict=True))
    return out if tangents[0] is None else dual(out, tangents[0], level)


def _viewed(op: Op, p: Any, t: Any, primal: tuple[Any, ...]) -> Any:
    """The same view of the tangent, which must lie in memory as the value does where the view depends on that."""
    if p._spec.strides != t._spec.strides and p._spec.dense_like().strides == p._spec.strides:
        try:
            if op.name != "_as_strided":
                return Op.apply(op, (t, *primal[1:]))
        except RuntimeError:
            pass
        t = F._copy_as(t, t.dtype, p._spec.strides)
    return Op.apply(op, (t, *primal[1:]))


def _taken(args: tuple[Any, ...], level: int) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Arguments without a level, and the tangents that they had there."""
    primal: list[Any] = []
    tangent: list[Any] = []
    for v in args:
        if v.__class__ in (tuple, list):
            p, t = _taken(tuple(v), level)
            primal.append(p)
            tangent.append(t)
        elif v.__class__ is Dual and v._level == level:
            primal.append(v._value)
            tangent.append(v._tangent)
        else:
            primal.append(v)
            tangent.append(None)
    return tuple(primal), tuple(tangent)


def _flat(values: tuple[Any, ...]) -> list[Any]:
    flat: list[Any] = []
    for v in values:
        flat.extend(v) if v.__class__ is tuple else flat.append(v)
    return flat


def _formula(op: Op, primal: tuple[Any, ...], tangent: tuple[Any, ...], out: Any) -> Any:
    """The sum over inputs of the derivative by each, times its tangent; None for zero."""
    plan, primal = find(op, primal)
    if not isinstance(plan, PointwisePlan) or plan.is_complex:
        return NotImplemented
    formula = plan.formula
    given = dict(zip(op.schema.names, primal, strict=True))
    total: Any = None
    for name, t in zip(op.schema.names, tangent, strict=True):
        if t is None:
            continue
        try:
            step = _backward_op(plan, name)
        except NotDifferentiable:
            return NotImplemented
        if step is None:
            continue
        derivative, sources = step
        here = {**given, formula.incoming: t, formula.result: out}
        if derivative is None:
            term = t
        else:
            term = Op.apply(derivative, tuple(here[s] for s in sources))
        total = term if total is None else total + term
    if total is None:
        return None
    if total.dtype is not out.dtype:
        total = F._to_dtype(total, out.dtype)
    return total if tuple(total.shape) == tuple(out.shape) else F.expand(total, tuple(out.shape))


def _by_parts(op: Op, primal: tuple[Any, ...], tangent: tuple[Any, ...]) -> list[Any]:
    """The sum over arguments in which an operator is linear, each replaced by its tangent."""
    names = op.schema.names
    total: Any = None
    rest = list(tangent)
    for name in op.multilinear:
        i = names.index(name)
        if tangent[i] is None:
            continue
        args = list(primal)
        args[i], rest[i] = tangent[i], None
        if "bias" in names:
            args[names.index("bias")] = None
        term = Op.apply(op, tuple(args))
        total = term if total is None else total + term
    if any(t is not None for t in rest):
        (other,) = _through_gradient(op, primal, tuple(rest))
        total = other if total is None else total if other is None else total + other
    return [total]


def _through_gradient(op: Op, primal: tuple[Any, ...], tangent: tuple[Any, ...]) -> list[Any]:
    """The tangents of all results: the gradient rule gives `J^T v`, which is linear in v; its gradient is `J t`."""
    saved, mode.grad = mode.grad, True
    try:
        xs, ts, args = [], [], []
        for v, t in zip(primal, tangent, strict=True):
            if t.__class__ is tuple:
                row = [v_i if t_i is None else fresh(v_i) for v_i, t_i in zip(v, t, strict=True)]
                xs += [x for x, t_i in zip(row, t, strict=True) if t_i is not None]
                ts += [t_i for t_i in t if t_i is not None]
                args.append(tuple(row))
            elif t is not None:
                args.append(fresh(v))
                xs.append(args[-1])
                ts.append(t)
            else:
                args.append(v)
        out = Op.apply(op, tuple(args))
        outs = out if out.__class__ is tuple else (out,)
        used = [i for i, o in enumerate(outs) if o.dtype.is_inexact and o._rg]
        vs = [fresh(F.zeros_like(outs[i]).detach()) for i in used]
        back = pull([outs[i] for i in used], xs, vs, create_graph=True)
        pairs = [(g, t) for g, t in zip(back, ts, strict=True) if g is not None and g._rg]
        found = pull([g for g, _ in pairs], vs, [t for _, t in pairs], create_graph=saved)
    finally:
        mode.grad = saved
    result: list[Any] = [None] * len(outs)
    own = leaves_of([*xs, *vs])
    for i, t in zip(used, found, strict=True):
        result[i] = None if t is None else settle(t, own, saved)
    return result
