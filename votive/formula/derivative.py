"""The derivative of each primitive and of whole expressions. Knows expressions only.

Complex values follow Wirtinger calculus: each derivative is a pair, by x and by the conjugate of x.
For real formulas the second part is zero and vanishes while it is built.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from . import special
from .expr import Expr, Operand, add, apply, conj, const, is_const, lift, mul, substitute, var, walk, where

Rule = Callable[..., tuple[Operand | None, ...]]

LN2 = math.log(2.0)
LN10 = math.log(10.0)


def f(op: str) -> Callable[..., Expr]:
    """A primitive as a function."""
    return lambda *args: apply(op, *args)


exp, log, sin, cos, sinh, cosh = (f(n) for n in ("exp", "log", "sin", "cos", "sinh", "cosh"))
sqrt, rsqrt, tanh, trunc = (f(n) for n in ("sqrt", "rsqrt", "tanh", "trunc"))
sgn, sigmoid = f("sgn"), f("sigmoid")


def _tie(a: Expr, b: Expr, lower: bool) -> tuple[Expr, Expr]:
    """Maximum/minimum: the loser gets nothing, a tie splits evenly; NaN loses to nothing."""
    a_loses, b_loses = (a > b, a < b) if lower else (a < b, a > b)
    share = where(a.eq(b), 0.5, 1.0)
    return where(a_loses, 0.0, share), where(b_loses, 0.0, share)


def _pow(y: Expr, a: Expr, b: Expr) -> tuple[Operand, ...]:
    if is_const(b):
        n = b.value
        return (const(0) if n == 0 else n * a ** (n - 1), 0)
    by_a = where(b.eq(0), 0, b * a ** (b - 1))
    if is_const(a) and a.value != 0:
        return (by_a, y * log(a))
    # 0^b has slope 0 for b >= 0, where log(0) would give nan.
    return (by_a, where(a.eq(0) & (b >= 0), 0, y * log(a)))


def _gate(keep: Operand) -> Expr:
    return where(keep, 1.0, 0.0)


def _atan2(a: Expr, b: Expr) -> tuple[Expr, Expr]:
    square = a * a + b * b
    return where(square.eq(0), 0, b / square), where(square.eq(0), 0, -a / square)


# Partial derivatives by each argument, from the value y and the arguments, None where none is
# known. Writing them with y where possible is what lets backward keep only the output.
RULES: dict[str, Rule] = {
    **special.RULES,
    "add": lambda y, a, b: (1, 1),
    "sub": lambda y, a, b: (1, -1),
    "mul": lambda y, a, b: (b, a),
    "div": lambda y, a, b: (1 / b, -a / (b * b) if is_const(a) else -y / b),
    "neg": lambda y, a: (-1,),
    "pow": _pow,
    "square": lambda y, a: (2 * a,),
    "sqrt": lambda y, a: (0.5 / y,),
    "rsqrt": lambda y, a: (-0.5 * (y * (y * y)),),
    "reciprocal": lambda y, a: (-(y * y),),
    "exp": lambda y, a: (y,),
    "exp2": lambda y, a: (y * LN2,),
    "expm1": lambda y, a: (y + 1,),
    "log": lambda y, a: (1 / a,),
    "log2": lambda y, a: (1 / (a * LN2),),
    "log10": lambda y, a: (1 / (a * LN10),),
    "log1p": lambda y, a: (1 / (a + 1),),
    "sin": lambda y, a: (cos(a),),
    "cos": lambda y, a: (-sin(a),),
    "tan": lambda y, a: (1 + y * y,),
    "asin": lambda y, a: (rsqrt(1 - a * a),),
    "acos": lambda y, a: (-rsqrt(1 - a * a),),
    "atan": lambda y, a: (1 / (a * a + 1),),
    "sinh": lambda y, a: (cosh(a),),
    "cosh": lambda y, a: (sinh(a),),
    "tanh": lambda y, a: (1 - y * y,),
    "asinh": lambda y, a: (rsqrt(a * a + 1),),
    "atanh": lambda y, a: (1 / (1 - a * a),),
    "sigmoid": lambda y, a: (y * (1 - y),),
    "atan2": lambda y, a, b: _atan2(a, b),
    "hypot": lambda y, a, b: (a / y, b / y),
    "xlogy": lambda y, a, b: (where(a.eq(0) & (b <= 0), 0, log(b)), a / b),
    "xlog1py": lambda y, a, b: (where(a.eq(0) & (b <= -1), 0, apply("log1p", b)), a / (b + 1)),
    # Not exp(a - y): that is NaN where a is infinite.
    "logaddexp": lambda y, a, b: (sigmoid(a - b), sigmoid(b - a)),
    "logaddexp2": lambda y, a, b: (sigmoid((a - b) * LN2), sigmoid((b - a) * LN2)),
    "copysign": lambda y, a, b: (where(a.eq(0), 0, y / a), 0),
    "remainder": lambda y, a, b: (1, -apply("floor_divide", a, b)),
    "fmod": lambda y, a, b: (1, -trunc(a / b)),
    "maximum": lambda y, a, b: _tie(a, b, lower=False),
    "minimum": lambda y, a, b: _tie(a, b, lower=True),
    "fmax": lambda y, a, b: (_gate((a >= b) | apply("isnan", b)), _gate(~((a >= b) | apply("isnan", b)))),
    "fmin": lambda y, a, b: (_gate((a <= b) | apply("isnan", b)), _gate(~((a <= b) | apply("isnan", b)))),
    "floor": lambda y, a: (0,),
    "ceil": lambda y, a: (0,),
    "trunc": lambda y, a: (0,),
    "round": lambda y, a: (0,),
    "floor_divide": lambda y, a, b: (0, 0),
    "trunc_divide": lambda y, a, b: (0, 0),
    "ldexp": lambda y, a, b: (apply("exp2", b), y * LN2),
    "nextafter": lambda y, a, b: (None, None),
    "sign": lambda y, a: (0,),
}

# Primitives that are not holomorphic: derivative by x and by its conjugate.
PAIR_RULES: dict[str, Callable[[Expr, Expr, bool], tuple[Operand, Operand]]] = {
    "abs": lambda y, a, c: (conj(sgn(a)) * 0.5, sgn(a) * 0.5) if c else (sgn(a), 0),
    # For real numbers one root does; for complex ones it would leave the branch of acosh.
    # Subtracting -1 keeps the sign of a zero imaginary part, adding 1 would not.
    "acosh": lambda y, a, c: (rsqrt(a - 1) * rsqrt(a - -1) if c else rsqrt(a * a - 1), 0),
    "real": lambda y, a, c: (0.5, 0.5) if c else (1, 0),
    "imag": lambda y, a, c: (-0.5j, 0.5j) if c else (0, 0),
    "angle": lambda y, a, c: (where(a.eq(0), 0, -0.5j / a), where(a.eq(0), 0, 0.5j / conj(a))) if c else (0, 0),
    "sgn": lambda y, a, c: (
        (where(a.eq(0), 0, 0.5 / apply("abs", a)), where(a.eq(0), 0, -0.5 * (y * y) / apply("abs", a))) if c else (0, 0)
    ),
}


def times(a: Expr, b: Expr) -> Expr:
    """A product in the chain rule. A select stays outside, so that what it hides never meets 0 *
    inf.
    """
    for p, q in ((a, b), (b, a)):
        if p.op == "where":
            c, yes, no = p.args
            if is_const(yes, 0) or is_const(no, 0):
                return where(c, times(yes, q), times(no, q))
    return mul(a, b)


class NotDifferentiable(Exception):
    """A primitive on the path has no derivative by this argument."""


def derivative(root: Expr, by: Expr, is_complex: bool = False) -> tuple[Expr, Expr]:
    """Derivatives of `root` by the variable `by` and by its conjugate."""
    zero = const(0)
    d: dict[int, tuple[Expr, Expr]] = {}
    for e in walk(root):
        if e is by:
            d[e.id] = (const(1), zero)
        elif not e.args or e.is_bool or all(d[a.id] == (zero, zero) for a in e.args):
            d[e.id] = (zero, zero)
        elif e.op == "where":
            c, a, b = e.args
            (da, abar), (db, bbar) = d[a.id], d[b.id]
            d[e.id] = (where(c, da, db), where(c, abar, bbar))
        elif e.op == "annotated":
            d[e.id] = _annotated(e, d, is_complex)
        elif e.op == "conj":
            da, abar = d[e.args[0].id]
            d[e.id] = (conj(abar), conj(da)) if is_complex else (da, zero)
        elif e.op in PAIR_RULES:
            (a,) = e.args
            p, q = (lift(x) for x in PAIR_RULES[e.op](e, a, is_complex))
            da, abar = d[a.id]
            if is_complex:
                d[e.id] = (add(times(p, da), times(q, conj(abar))), add(times(p, abar), times(q, conj(da))))
            else:
                d[e.id] = (times(p, da), zero)
        else:
            d[e.id] = _chain(e, d)
    return d[root.id]


def _chain(e: Expr, d: dict[int, tuple[Expr, Expr]]) -> tuple[Expr, Expr]:
    rule = RULES.get(e.op)
    if rule is None:
        raise NotDifferentiable(e.op)
    total, total_bar = const(0), const(0)
    for partial, a in zip(rule(e, *e.args), e.args, strict=True):
        da, abar = d[a.id]
        if is_const(da, 0) and is_const(abar, 0):
            continue
        if partial is None:
            raise NotDifferentiable(e.op)
        p = lift(partial)
        total = add(total, times(p, da))
        total_bar = add(total_bar, times(p, abar))
    return total, total_bar


def _annotated(e: Expr, d: dict[int, tuple[Expr, Expr]], is_complex: bool) -> tuple[Expr, Expr]:
    """A formula used inside another keeps its hand-given gradients: chain them through its
    inputs.
    """
    body, *args = e.args
    inner = e.value
    given = {var(n): a for n, a in zip(inner.params, args, strict=True)}
    total, total_bar = const(0), const(0)
    for name, a in zip(inner.params, args, strict=True):
        da, abar = d[a.id]
        if is_const(da, 0) and is_const(abar, 0):
            continue
        if name in inner.grads:
            given_all = {**given, var(inner.incoming): const(1.0), var(inner.result): body}
            p, q = substitute(inner.grads[name], given_all), const(0)
        else:
            p, q = (substitute(x, given) for x in derivative(inner.body, var(name), is_complex))
        total = add(total, add(times(p, da), times(q, conj(abar))))
        total_bar = add(total_bar, add(times(p, abar), times(q, conj(da))))
    return total, total_bar
