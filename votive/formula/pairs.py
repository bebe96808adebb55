"""Complex formulas as pairs of real ones, for printers whose language has no complex type. Knows
expressions only.

Values follow NumPy's: a real operand meets a complex one as x + 0i, products and sums are those of
the textbook, so zeros keep their signs and infinities become NaN where they do there.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from .expr import Expr, Operand, apply, const, lift, walk, where

Pair = tuple[Expr, Expr | None]  # the second is None when the value is real
Rule = Callable[[Expr, Expr], tuple[Expr, Expr]]

ZERO, ONE, HALF = const(0.0), const(1.0), const(0.5)
_COMPARED = {"lt": "lt", "le": "lt", "gt": "gt", "ge": "gt"}
_LOGIC = frozenset(["logical_and", "logical_or", "logical_xor", "logical_not"])


class NoPair(Exception):
    """A primitive without complex values."""


def _f(op: str) -> Callable[..., Expr]:
    return lambda *args: apply(op, *args)


exp, log, log1p, sin, cos, sinh, cosh, tan, asinh, absolute = (
    _f(n) for n in ("exp", "log", "log1p", "sin", "cos", "sinh", "cosh", "tan", "asinh", "abs")
)
hypot, atan2, copysign, isinf = (_f(n) for n in ("hypot", "atan2", "copysign", "isinf"))


def _raw(op: str, a: Operand, b: Operand) -> Expr:
    """Arithmetic without simplification: 0 + x and 0 * x are not x and 0 for every float."""
    return Expr(op, (lift(a), lift(b)))


def _add(a: Expr, b: Expr, c: Expr, d: Expr) -> tuple[Expr, Expr]:
    return _raw("add", a, c), _raw("add", b, d)


def _sub(a: Expr, b: Expr, c: Expr, d: Expr) -> tuple[Expr, Expr]:
    return _raw("sub", a, c), _raw("sub", b, d)


def _mul(a: Expr, b: Expr, c: Expr, d: Expr) -> tuple[Expr, Expr]:
    re = _raw("sub", _raw("mul", a, c), _raw("mul", b, d))
    return re, _raw("add", _raw("mul", a, d), _raw("mul", b, c))


def _div(a: Expr, b: Expr, c: Expr, d: Expr) -> tuple[Expr, Expr]:
    """Smith, "Algorithm 116: Complex division" (1962): no overflow on the way."""
    if d is ZERO:
        return a / c, b / c
    wide = absolute(c) >= absolute(d)
    big, small = where(wide, c, d), where(wide, d, c)
    ratio = small / big
    under = big + small * ratio
    re = where(wide, a + b * ratio, a * ratio + b) / under
    im = where(wide, b - a * ratio, b * ratio - a) / under
    none = c.eq(0.0) & d.eq(0.0)
    return where(none, _raw("div", a, absolute(c)), re), where(none, _raw("div", b, absolute(c)), im)


def _exp(x: Expr, y: Expr) -> tuple[Expr, Expr]:
    e = exp(x)
    gone = x.eq(-math.inf)  # nothing has no direction
    return where(gone, ZERO, e * cos(y)), where(y.eq(0.0), y, where(gone, ZERO, e * sin(y)))


def _expm1(x: Expr, y: Expr) -> tuple[Expr, Expr]:
    s = sin(y * HALF)
    return apply("expm1", x) * cos(y) - 2.0 * (s * s), exp(x) * sin(y)


def _modulus(x: Expr, y: Expr) -> Expr:
    """log |z|. Near 1 the distance from 1 is what counts, and a square root would round it off."""
    h = hypot(x, y)
    a, b = absolute(x), absolute(y)
    m, n = where(a >= b, a, b), where(a >= b, b, a)
    near = log1p((m - 1.0) * (m + 1.0) + n * n) * HALF
    return where((h > 0.5) & (h < 2.0), near, log(h))


def _log(x: Expr, y: Expr) -> tuple[Expr, Expr]:
    return _modulus(x, y), atan2(y, x)


def _log1p(x: Expr, y: Expr) -> tuple[Expr, Expr]:
    near = log1p(x * (x + 2.0) + y * y) * HALF
    small = (absolute(x) < 0.5) & (absolute(y) < 0.5)
    return where(small, near, _modulus(x + 1.0, y)), atan2(y, x + 1.0)


def _scaled(rule: Rule, factor: float) -> Rule:
    def run(x: Expr, y: Expr) -> tuple[Expr, Expr]:
        a, b = rule(x, y)
        return a * factor, b * factor

    return run


def _sqrt(x: Expr, y: Expr) -> tuple[Expr, Expr]:
    t = apply("sqrt", absolute(x) * HALF + hypot(x, y) * HALF)
    other = y / (t + t)
    re = where(x >= 0.0, t, absolute(other))
    im = where(x >= 0.0, other, copysign(t, y))
    endless, none = isinf(y), t.eq(0.0)
    re = where(endless, const(math.inf), where(none, ZERO, re))
    return re, where(endless | none, y, im)


def _sinh(x: Expr, y: Expr) -> tuple[Expr, Expr]:
    # An angle of 0 stays 0 beside an infinite size.
    return sinh(x) * cos(y), where(y.eq(0.0), y, cosh(x) * sin(y))


def _cosh(x: Expr, y: Expr) -> tuple[Expr, Expr]:
    return cosh(x) * cos(y), where(y.eq(0.0), y * copysign(ONE, x), sinh(x) * sin(y))


def _cos(x: Expr, y: Expr) -> tuple[Expr, Expr]:
    return _cosh(-y, x)


def _tanh(x: Expr, y: Expr) -> tuple[Expr, Expr]:
    """Kahan, "Branch cuts for complex elementary functions" (1987)."""
    far = absolute(x) > 20.0  # e^-40 beside 1
    u = where(far, ZERO, x)
    t, s = tan(y), sinh(u)
    b = 1.0 + t * t
    under = 1.0 + b * (s * s)
    re = b * apply("sqrt", 1.0 + s * s) * s / under
    rest = 4.0 * sin(y) * cos(y) * exp(-2.0 * absolute(x))
    return where(far, copysign(ONE, x), re), where(far, rest, t / under)


def _asin(x: Expr, y: Expr) -> tuple[Expr, Expr]:
    # Branch cuts by signed zeros: 1 - z turns the sign of a zero imaginary part over.
    a, b = _sqrt(1.0 - x, -y)
    c, d = _sqrt(1.0 + x, y)
    endless = isinf(x) | isinf(y)
    re = where(endless, atan2(x, absolute(y)), atan2(x, a * c - b * d))
    return re, where(endless, copysign(const(math.inf), y), asinh(a * d - b * c))


def _acos(x: Expr, y: Expr) -> tuple[Expr, Expr]:
    a, b = _sqrt(1.0 - x, -y)
    c, d = _sqrt(1.0 + x, y)
    endless = isinf(x) | isinf(y)
    re = where(endless, atan2(absolute(y), x), 2.0 * atan2(a, c))
    return re, where(endless, copysign(const(math.inf), -y), asinh(c * b - d * a))


def _acosh(x: Expr, y: Expr) -> tuple[Expr, Expr]:
    a, b = _sqrt(x - 1.0, y)
    c, d = _sqrt(x + 1.0, y)
    endless = isinf(x) | isinf(y)
    re = where(endless, const(math.inf), asinh(a * c + b * d))
    return re, where(endless, atan2(y, x), 2.0 * atan2(b, c))


def _atanh(x: Expr, y: Expr) -> tuple[Expr, Expr]:
    far = absolute(x) + absolute(y) > 1e9  # where 1/z is all there is, and squares may overflow
    u, v = where(far, ONE, x), where(far, ONE, y)
    h = hypot(x, y)
    size = absolute(u)  # on this side of 0 nothing cancels
    away = (1.0 - size) * (1.0 - size) + v * v
    beyond = where(isinf(h), copysign(ZERO, x), x / h / h)
    re = where(far, beyond, copysign(log1p(4.0 * size / away) * 0.25, u))
    im = atan2(2.0 * v, (1.0 - u) * (1.0 + u) - v * v) * HALF
    return re, where(far, copysign(const(math.pi / 2), y), im)


def _rotated(rule: Rule) -> Rule:
    """-i f(i z): how tan, asin and atan follow from tanh, asinh and atanh, and the other way."""

    def run(x: Expr, y: Expr) -> tuple[Expr, Expr]:
        a, b = rule(-y, x)
        return b, -a

    return run


def _sigmoid(x: Expr, y: Expr) -> tuple[Expr, Expr]:
    a, b = _exp(-x, -y)
    return _div(ONE, ZERO, *_add(ONE, ZERO, a, b))


def _reciprocal(x: Expr, y: Expr) -> tuple[Expr, Expr]:
    return _div(ONE, ZERO, x, y)


def _rsqrt(x: Expr, y: Expr) -> tuple[Expr, Expr]:
    return _reciprocal(*_sqrt(x, y))


def _sgn(x: Expr, y: Expr) -> tuple[Expr, Expr]:
    size = hypot(x, y)
    none = size.eq(0.0)
    return where(none, ZERO, x / size), where(none, ZERO, y / size)


def _sinc(x: Expr, y: Expr) -> tuple[Expr, Expr]:
    u, v = x * math.pi, y * math.pi
    a, b = _div(*_rotated(_sinh)(u, v), u, v)
    none = x.eq(0.0) & y.eq(0.0)
    return where(none, ONE, a), where(none, ZERO, b)


def _exp2(x: Expr, y: Expr) -> tuple[Expr, Expr]:
    return _exp(x * math.log(2), y * math.log(2))


ONE_ARGUMENT: dict[str, Rule] = {
    "exp": _exp, "expm1": _expm1, "exp2": _exp2, "log": _log, "log1p": _log1p,
    "log2": _scaled(_log, 1 / math.log(2)), "log10": _scaled(_log, 1 / math.log(10)),
    "sqrt": _sqrt, "rsqrt": _rsqrt, "sin": _rotated(_sinh), "cos": _cos, "sinh": _sinh,
    "cosh": _cosh,
    "tanh": _tanh, "tan": _rotated(_tanh), "asin": _asin, "acos": _acos, "acosh": _acosh,
    "asinh": _rotated(_asin), "atanh": _atanh, "atan": _rotated(_atanh), "sigmoid": _sigmoid,
    "reciprocal": _reciprocal, "sgn": _sgn, "sinc": _sinc,
    "neg": lambda x, y: (-x, -y), "square": lambda x, y: _mul(x, y, x, y),
    "conj": lambda x, y: (x, -y), "annotated": lambda x, y: (x, y),
}  # fmt: skip
# Complex in, real out.
_PARTS: dict[str, Callable[[Expr, Expr], Expr]] = {
    "abs": hypot,
    "angle": lambda x, y: atan2(y, x),
    "real": lambda x, y: x,
    "imag": lambda x, y: y,
    "isnan": lambda x, y: apply("isnan", x) | apply("isnan", y),
    "isinf": lambda x, y: isinf(x) | isinf(y),
    "isfinite": lambda x, y: apply("isfinite", x) & apply("isfinite", y),
    "isposinf": lambda x, y: x.eq(math.inf) & y.eq(0.0),
    "isneginf": lambda x, y: x.eq(-math.inf) & y.eq(0.0),
}


def _powers(x: Expr, y: Expr, n: int) -> tuple[Expr, Expr]:
    """A small whole power by multiplication."""
    found: tuple[Expr, Expr] | None = None
    base = (x, y)
    for bit in range(abs(n).bit_length()):
        if bit:
            base = _mul(*base, *base)
        if abs(n) >> bit & 1:
            found = base if found is None else _mul(*found, *base)
    a, b = found or (ONE, ZERO)
    return (a, b) if n >= 0 else _reciprocal(a, b)


def _pow(x: Expr, y: Expr, c: Expr, d: Expr) -> tuple[Expr, Expr]:
    if c.op == "const" and d is ZERO and c.value == int(c.value) and abs(c.value) < 100:
        return _powers(x, y, int(c.value))
    size, angle = _log(x, y)
    re, im = _exp(c * size - d * angle, d * size + c * angle)
    nothing, zero = c.eq(0.0) & d.eq(0.0), x.eq(0.0) & y.eq(0.0)
    # 0 to a power with a positive real part is 0, to any other it is not a number.
    a = where(zero, where(c > 0.0, ZERO, const(math.nan)), re)
    b = where(zero, where(c > 0.0, ZERO, const(math.nan)), im)
    return where(nothing, ONE, a), where(nothing, ZERO, b)


def _ldexp(x: Expr, y: Expr, c: Expr, d: Expr) -> tuple[Expr, Expr]:
    return _mul(x, y, *_exp2(c, d))


def _logaddexp(a: Expr, b: Expr, c: Expr, d: Expr) -> tuple[Expr, Expr]:
    first = a >= c
    top = where(first, a, c), where(first, b, d)
    low = where(first, c, a), where(first, d, b)
    re, im = _add(*top, *_log1p(*_exp(*_sub(*low, *top))))
    same = isinf(a) & a.eq(c) & b.eq(d)
    bad = apply("isnan", a) | apply("isnan", b) | apply("isnan", c) | apply("isnan", d)
    re, im = where(same, a, re), where(same, b, im)
    return where(bad, const(math.nan), re), where(bad, ZERO, im)


_TWO_ARGUMENTS: dict[str, Callable[..., tuple[Expr, Expr]]] = {
    "add": _add,
    "sub": _sub,
    "mul": _mul,
    "div": _div,
    "pow": _pow,
    "ldexp": _ldexp,
    "logaddexp": _logaddexp,
}


def _truth(p: Pair) -> Expr:
    a, b = p
    return a if b is None else a.ne(0.0) | b.ne(0.0)


def _both(p: Pair) -> tuple[Expr, Expr]:
    return p[0], ZERO if p[1] is None else p[1]


def _step(e: Expr, args: list[Pair]) -> Pair:
    if e.op == "make_complex":
        return args[0][0], args[1][0]
    if e.op == "where":
        c = _truth(args[0])
        if args[1][1] is None and args[2][1] is None:
            return where(c, args[1][0], args[2][0]), None
        (a, b), (p, q) = _both(args[1]), _both(args[2])
        return where(c, a, p), where(c, b, q)
    if e.op == "annotated":
        return args[0]
    if all(im is None for _, im in args):
        if e.op in ("conj", "real"):
            return args[0]
        if e.op == "imag":
            return ZERO, None
        return Expr(e.op, tuple(re for re, _ in args), e.value), None
    if e.op in _LOGIC:
        return apply(e.op, *(_truth(a) for a in args)), None
    if e.op in _PARTS:
        return _PARTS[e.op](*_both(args[0])), None
    if e.op in ONE_ARGUMENT:
        return ONE_ARGUMENT[e.op](*_both(args[0]))
    if len(args) == 2:
        (a, b), (c, d) = _both(args[0]), _both(args[1])
        if e.op in _TWO_ARGUMENTS:
            return _TWO_ARGUMENTS[e.op](a, b, c, d)
        if e.op in ("eq", "ne"):
            re, im = apply(e.op, a, c), apply(e.op, b, d)
            return re & im if e.op == "eq" else re | im, None
        if e.op in _COMPARED:  # by real parts, then by imaginary ones
            return apply(_COMPARED[e.op], a, c) | (a.eq(c) & apply(e.op, b, d)), None
    raise NoPair(e.op)


def parts(root: Expr, given: dict[str, Pair]) -> Pair:
    """The real and imaginary part of a formula whose variables are pairs.

    >>> z = Expr("var", value="z")
    >>> a, b = Expr("var", value="a"), Expr("var", value="b")
    >>> parts(z * z, {"z": (a, b)})
    (a^2 - b^2, a * b + b * a)
    """
    done: dict[int, Pair] = {}
    for e in walk(root):
        if e.op == "var":
            done[e.id] = given[e.value]
        elif e.op == "const":
            v = e.value
            done[e.id] = (const(v.real), const(v.imag)) if isinstance(v, complex) else (e, None)
        else:
            done[e.id] = _step(e, [done[a.id] for a in e.args])
    return done[root.id]
