"""The derivative of each primitive and of whole expressions. Knows expressions only.

Complex values follow Wirtinger calculus: each derivative is a pair, by x and by the conjugate of x.
For real formulas the second part is zero and vanishes while it is built.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from .expr import (
    Expr,
    Operand,
    add,
    apply,
    conj,
    const,
    is_const,
    lift,
    mul,
    substitute,
    var,
    walk,
    where,
)

Rule = Callable[..., tuple[Operand, ...]]

SQRT_PI = math.sqrt(math.pi)
LN2 = math.log(2.0)
LN10 = math.log(10.0)


def f(op: str) -> Callable[..., Expr]:
    """A primitive as a function."""
    return lambda *args: apply(op, *args)


exp, log, sin, cos, sinh, cosh = (f(n) for n in ("exp", "log", "sin", "cos", "sinh", "cosh"))
sqrt, rsqrt, tanh, trunc = (f(n) for n in ("sqrt", "rsqrt", "tanh", "trunc"))
digamma, sgn, i0, i0e, i1, i1e = (f(n) for n in ("digamma", "sgn", "i0", "i0e", "i1", "i1e"))


def _tie(a: Expr, b: Expr, lower: bool) -> tuple[Expr, Expr]:
    """Maximum/minimum: the winner takes the gradient, a tie splits it evenly."""
    win_a = where(a < b, 1.0, 0.0) if lower else where(a < b, 0.0, 1.0)
    win_b = where(a > b, 1.0, 0.0) if lower else where(a > b, 0.0, 1.0)
    if lower:  # NaN compares false: both sides keep the gradient, as in torch
        win_a, win_b = where(a > b, 0.0, 1.0), where(a < b, 0.0, 1.0)
    return where(a.eq(b), 0.5, win_a), where(a.eq(b), 0.5, win_b)


def _pow(y: Expr, a: Expr, b: Expr) -> tuple[Operand, ...]:
    if is_const(b):
        n = b.value
        return (const(0) if n == 0 else n * a ** (n - 1), 0)
    if is_const(a, 0):
        return (0, where(b >= 0, 0, y * log(a)))
    by_a = where(b.eq(0), 0, b * a ** (b - 1))
    by_b = where(a.eq(0) & b.eq(0), 0, y * log(a))
    return (by_a, where(a.eq(0) & (b >= 0), 0, by_b) if not is_const(a) else y * log(a))


def _gate(keep: Operand) -> Expr:
    return where(keep, 1.0, 0.0)


def _gamma_density(a: Expr, x: Expr) -> Expr:
    return exp((a - 1) * log(x) - x - apply("lgamma", a))


# Partial derivatives by each argument, from the value y and the arguments. Writing them with y where
# possible is what lets backward keep only the output.
RULES: dict[str, Rule] = {
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
    "acosh": lambda y, a: (rsqrt(a - 1) * rsqrt(a + 1),),
    "atanh": lambda y, a: (1 / (1 - a * a),),
    "sigmoid": lambda y, a: (y * (1 - y),),
    "erf": lambda y, a: (2 / SQRT_PI * exp(-(a * a)),),
    "erfc": lambda y, a: (-2 / SQRT_PI * exp(-(a * a)),),
    "erfinv": lambda y, a: (SQRT_PI / 2 * exp(y * y),),
    "erfcx": lambda y, a: (2 * a * y - 2 / SQRT_PI,),
    "ndtri": lambda y, a: (math.sqrt(2 * math.pi) * exp(0.5 * (y * y)),),
    "log_ndtr": lambda y, a: (
        1 / (math.sqrt(math.pi / 2) * apply("erfcx", -a * math.sqrt(0.5))),
    ),
    "lgamma": lambda y, a: (digamma(a),),
    "digamma": lambda y, a: (apply("polygamma", 1, a),),
    "polygamma": lambda y, n, a: (0, apply("polygamma", n + 1, a)),
    "i0": lambda y, a: (i1(a),),
    "i0e": lambda y, a: (i1e(a) - sgn(a) * y,),
    "i1": lambda y, a: (where(a.eq(0), 0.5, i0(a) - y / a),),
    "i1e": lambda y, a: (where(a.eq(0), 0.5, i0e(a) - y * (sgn(a) + 1 / a)),),
    "sinc": lambda y, a: (
        where(a.eq(0), 0, (math.pi * a * cos(math.pi * a) - sin(math.pi * a)) / (math.pi * a * a)),
    ),
    "bessel_j0": lambda y, a: (-apply("bessel_j1", a),),
    "bessel_j1": lambda y, a: (where(a.eq(0), 0.5, apply("bessel_j0", a) - y / a),),
    "bessel_y0": lambda y, a: (-apply("bessel_y1", a),),
    "bessel_y1": lambda y, a: (apply("bessel_y0", a) - y / a,),
    "modified_bessel_k0": lambda y, a: (-apply("modified_bessel_k1", a),),
    "modified_bessel_k1": lambda y, a: (-apply("modified_bessel_k0", a) - y / a,),
    "scaled_modified_bessel_k0": lambda y, a: (y - apply("scaled_modified_bessel_k1", a),),
    "scaled_modified_bessel_k1": lambda y, a: (
        y - apply("scaled_modified_bessel_k0", a) - y / a,
    ),
    "spherical_bessel_j0": lambda y, a: (where(a.eq(0), 0, (cos(a) - y) / a),),
    "gammainc": lambda y, a, x: (None, _gamma_density(a, x)),  # type: ignore[dict-item, return-value]
    "gammaincc": lambda y, a, x: (None, -_gamma_density(a, x)),  # type: ignore[dict-item, return-value]
    "zeta": lambda y, s, q: (None, -s * apply("zeta", s + 1, q)),  # type: ignore[dict-item, return-value]
    "atan2": lambda y, a, b: (b / (a * a + b * b), -a / (a * a + b * b)),
    "hypot": lambda y, a, b: (a / y, b / y),
    "xlogy": lambda y, a, b: (
        where(a.eq(0) & (b <= 0), 0, log(b)), a / b,
    ),
    "xlog1py": lambda y, a, b: (
        where(a.eq(0) & (b <= -1), 0, apply("log1p", b)), a / (b + 1),
    ),
    "logaddexp": lambda y, a, b: (exp(a - y), exp(b - y)),
    "logaddexp2": lambda y, a, b: (apply("exp2", a - y), apply("exp2", b - y)),
    "copysign": lambda y, a, b: (where(a.eq(0), 0, y / a), 0),
    "remainder": lambda y, a, b: (1, -apply("floor_divide", a, b)),
    "fmod": lambda y, a, b: (1, -trunc(a / b)),
    "maximum": lambda y, a, b: _tie(a, b, lower=False),
    "minimum": lambda y, a, b: _tie(a, b, lower=True),
    "fmax": lambda y, a, b: (
        _gate((a >= b) | apply("isnan", b)), _gate(~((a >= b) | apply("isnan", b))),
    ),
    "fmin": lambda y, a, b: (
        _gate((a <= b) | apply("isnan", b)), _gate(~((a <= b) | apply("isnan", b))),
    ),
    "ldexp": lambda y, a, b: (apply("exp2", b), y * LN2),
    "floor": lambda y, a: (0,),
    "ceil": lambda y, a: (0,),
    "trunc": lambda y, a: (0,),
    "round": lambda y, a: (0,),
    "floor_divide": lambda y, a, b: (0, 0),
    "nextafter": lambda y, a, b: (None, None),  # type: ignore[dict-item, return-value]
    "sign": lambda y, a: (0,),
}  # fmt: skip

# Primitives that are not holomorphic: derivative by x and by its conjugate.
PAIR_RULES: dict[str, Callable[[Expr, Expr, bool], tuple[Operand, Operand]]] = {
    "abs": lambda y, a, c: (conj(sgn(a)) * 0.5, sgn(a) * 0.5) if c else (sgn(a), 0),
    "real": lambda y, a, c: (0.5, 0.5) if c else (1, 0),
    "imag": lambda y, a, c: (-0.5j, 0.5j) if c else (0, 0),
    "angle": lambda y, a, c: (
        (where(a.eq(0), 0, -0.5j / a), where(a.eq(0), 0, 0.5j / conj(a))) if c else (0, 0)
    ),
    "sgn": lambda y, a, c: (
        (where(a.eq(0), 0, 0.5 / apply("abs", a)),
         where(a.eq(0), 0, -0.5 * (y * y) / apply("abs", a))) if c else (0, 0)
    ),
}  # fmt: skip


def times(a: Expr, b: Expr) -> Expr:
    """A product in the chain rule. A select stays outside, so that what it hides never meets 0 * inf."""
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
    """A formula used inside another keeps its hand-given gradients: chain them through its inputs."""
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
