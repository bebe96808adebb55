"""Elementwise operators as ONNX nodes: each primitive of a formula leads to a node or to a few. Knows no operator."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..core import dtype as dt
from ..formula.expr import Expr, walk
from .builder import Builder
from .errors import OnnxExporterError

# Primitives that are one node.
SAME = {
    "add": "Add",
    "sub": "Sub",
    "mul": "Mul",
    "div": "Div",
    "neg": "Neg",
    "abs": "Abs",
    "exp": "Exp",
    "log": "Log",
    "sqrt": "Sqrt",
    "sin": "Sin",
    "cos": "Cos",
    "tan": "Tan",
    "asin": "Asin",
    "acos": "Acos",
    "atan": "Atan",
    "sinh": "Sinh",
    "cosh": "Cosh",
    "asinh": "Asinh",
    "acosh": "Acosh",
    "atanh": "Atanh",
    "tanh": "Tanh",
    "sigmoid": "Sigmoid",
    "erf": "Erf",
    "floor": "Floor",
    "ceil": "Ceil",
    "round": "Round",
    "sign": "Sign",
    "sgn": "Sign",
    "reciprocal": "Reciprocal",
    "pow": "Pow",
    "eq": "Equal",
    "lt": "Less",
    "le": "LessOrEqual",
    "gt": "Greater",
    "ge": "GreaterOrEqual",
    "logical_and": "And",
    "logical_or": "Or",
    "logical_xor": "Xor",
    "logical_not": "Not",
    "isnan": "IsNaN",
    "isinf": "IsInf",
    "bitwise_not": "BitwiseNot",
    "maximum": "Max",
    "minimum": "Min",
}
TRUTH = frozenset(["logical_and", "logical_or", "logical_xor", "logical_not"])


class FormulaWriter:
    """Writes one formula. `names` says which values its variables are, all of the compute type."""

    def __init__(self, b: Builder, compute: dt.dtype, names: dict[str, tuple[str, bool]]) -> None:
        self.b, self.compute = b, compute
        self.names = names  # variable -> (value, whether it is a truth value)

    def write(self, body: Expr) -> tuple[str, bool]:
        """The name of the result, and whether it is a truth value."""
        made: dict[int, tuple[str, bool]] = {}
        for e in walk(body):
            made[e.id] = self._one(e, [made[a.id] for a in e.args])
        return made[body.id]

    def _one(self, e: Expr, args: list[tuple[str, bool]]) -> tuple[str, bool]:
        if e.op == "var":
            return self.names[e.value]
        if e.op == "const":
            if isinstance(e.value, bool):
                return self.b.constant(e.value, dt.bool_), True
            return self.constant(e.value), False
        if e.op == "annotated":
            return args[0]
        if e.op == "where":
            test, a, c = self.truth(args[0]), args[1], args[2]
            if a[1] and c[1]:
                return self.b.op("Where", test, a[0], c[0]), True
            return self.b.op("Where", test, self.value(a), self.value(c)), False
        if e.op in TRUTH:
            return self.b.op(SAME[e.op], *[self.truth(a) for a in args]), True
        if e.op in ("eq", "ne") and all(a[1] for a in args):
            equal = self.b.op("Equal", *[a[0] for a in args])
            return (equal if e.op == "eq" else self.b.op("Not", equal)), True
        if e.op in ("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not") and self.compute is dt.bool_:
            logical = {"and": "And", "or": "Or", "xor": "Xor", "not": "Not"}[e.op[8:]]
            return self.b.op(logical, *[self.truth(a) for a in args]), True
        values = [self.value(a) for a in args]
        rule = RULES.get(e.op)
        if rule is not None:
            return rule(self, *values), e.is_bool
        if e.op in SAME:
            return self.b.op(SAME[e.op], *values), e.is_bool
        raise OnnxExporterError(f"export: ONNX has no operator for {e.op}.")

    def truth(self, x: tuple[str, bool]) -> str:
        return x[0] if x[1] or self.compute is dt.bool_ else self.b.cast(x[0], dt.bool_)

    def value(self, x: tuple[str, bool]) -> str:
        """A truth value counts as 0 or 1."""
        return self.b.cast(x[0], self.compute) if x[1] and self.compute is not dt.bool_ else x[0]

    def constant(self, value: Any) -> str:
        return self.b.constant(value, self.compute)

    def op(self, kind: str, *args: str, **attributes: Any) -> str:
        return self.b.op(kind, *args, **attributes)


W = FormulaWriter


def _remainder(w: W, x: str, y: str) -> str:
    if not w.compute.is_floating_point:
        return w.op("Mod", x, y)
    rest = w.op("Mod", x, y, fmod=1)
    return w.op("Where", _other_sign(w, rest, y), w.op("Add", rest, y), rest)


def _other_sign(w: W, rest: str, y: str) -> str:
    """Where there is a rest, and it has another sign than the divisor."""
    differ = w.op("Xor", w.op("Less", rest, w.constant(0)), w.op("Less", y, w.constant(0)))
    return w.op("And", differ, w.op("Not", w.op("Equal", rest, w.constant(0))))


def _floor_divide(w: W, x: str, y: str) -> str:
    if w.compute.is_floating_point:
        # As Python divides: by the exact rest, since the quotient itself may be rounded up to a whole number.
        rest = w.op("Mod", x, y, fmod=1)
        whole = w.op("Round", w.op("Div", w.op("Sub", x, rest), y))
        found = w.op("Where", _other_sign(w, rest, y), w.op("Sub", whole, w.constant(1)), whole)
        return w.op("Where", w.op("Equal", y, w.constant(0)), w.op("Div", x, y), found)
    # ONNX rounds whole quotients to zero: one less where there is a rest and the signs differ.
    whole = w.op("Div", x, y)
    rest = w.op("Sub", x, w.op("Mul", whole, y))
    return w.op("Where", _other_sign(w, rest, y), w.op("Sub", whole, w.constant(1)), whole)


def _trunc(w: W, x: str) -> str:
    return w.op("Mul", w.op("Sign", x), w.op("Floor", w.op("Abs", x)))


def _log1p(w: W, x: str) -> str:
    # Exact where 1 + x rounds: log(u) * x / (u - 1), and x itself where u is 1.
    u = w.op("Add", x, w.constant(1))
    d = w.op("Sub", u, w.constant(1))
    small = w.op("Equal", d, w.constant(0))
    safe = w.op("Where", small, w.constant(1), d)
    near = w.op("Mul", w.op("Log", u), w.op("Div", x, safe))
    exact = w.op("Where", w.op("IsInf", u, detect_negative=0), u, near)
    return w.op("Where", small, x, exact)


def _expm1(w: W, x: str) -> str:
    # 2 sinh(x/2) exp(x/2) loses nothing near 0; exp(x) - 1 serves the rest.
    half = w.op("Mul", x, w.constant(0.5))
    near = w.op("Mul", w.op("Mul", w.op("Sinh", half), w.op("Exp", half)), w.constant(2))
    far = w.op("Sub", w.op("Exp", x), w.constant(1))
    return w.op("Where", w.op("Less", w.op("Abs", x), w.constant(1)), near, far)


def _logaddexp(w: W, x: str, y: str) -> str:
    high = w.op("Max", x, y)
    gap = w.op("Neg", w.op("Abs", w.op("Sub", x, y)))
    return w.op(
        "Where",
        w.op("Equal", x, y),
        w.op("Add", x, w.constant(math.log(2))),
        w.op("Add", high, _log1p(w, w.op("Exp", gap))),
    )


def _atan2(w: W, y: str, x: str) -> str:
    zero = w.constant(0)
    ratio = w.op("Atan", w.op("Div", y, x))
    left = w.op(
        "Where", w.op("Less", y, zero), w.op("Sub", ratio, w.constant(math.pi)), w.op("Add", ratio, w.constant(math.pi))
    )
    found = w.op("Where", w.op("Less", x, zero), left, ratio)
    both = w.op("And", w.op("Equal", x, zero), w.op("Equal", y, zero))
    return w.op("Where", both, zero, found)


def _xlog(log: Callable[[W, str], str]) -> Callable[[W, str, str], str]:
    def write(w: W, x: str, y: str) -> str:
        zero = w.op("And", w.op("Equal", x, w.constant(0)), w.op("Not", w.op("IsNaN", y)))
        return w.op("Where", zero, w.constant(0), w.op("Mul", x, log(w, y)))

    return write


def _fmax(kind: str) -> Callable[[W, str, str], str]:
    def write(w: W, x: str, y: str) -> str:
        best = w.op(kind, x, y)
        return w.op("Where", w.op("IsNaN", x), y, w.op("Where", w.op("IsNaN", y), x, best))

    return write


def _sinc(w: W, x: str) -> str:
    angle = w.op("Mul", x, w.constant(math.pi))
    zero = w.op("Equal", x, w.constant(0))
    safe = w.op("Where", zero, w.constant(1), angle)
    return w.op("Where", zero, w.constant(1), w.op("Div", w.op("Sin", safe), safe))


RULES: dict[str, Callable[..., str]] = {
    "ne": lambda w, x, y: w.op("Not", w.op("Equal", x, y)),
    "square": lambda w, x: w.op("Mul", x, x),
    "rsqrt": lambda w, x: w.op("Reciprocal", w.op("Sqrt", x)),
    "exp2": lambda w, x: w.op("Pow", w.constant(2), x),
    "log2": lambda w, x: w.op("Mul", w.op("Log", x), w.constant(1 / math.log(2))),
    "log10": lambda w, x: w.op("Mul", w.op("Log", x), w.constant(1 / math.log(10))),
    "log1p": _log1p,
    "expm1": _expm1,
    "logaddexp": _logaddexp,
    "erfc": lambda w, x: w.op("Sub", w.constant(1), w.op("Erf", x)),
    "trunc": _trunc,
    "remainder": _remainder,
    "floor_divide": _floor_divide,
    "fmod": lambda w, x, y: w.op("Mod", x, y, fmod=1),
    "hypot": lambda w, x, y: w.op("Sqrt", w.op("Add", w.op("Mul", x, x), w.op("Mul", y, y))),
    "bitwise_and": lambda w, x, y: w.op("BitwiseAnd", x, y),
    "bitwise_or": lambda w, x, y: w.op("BitwiseOr", x, y),
    "bitwise_xor": lambda w, x, y: w.op("BitwiseXor", x, y),
    "bitwise_left_shift": lambda w, x, y: w.op("Mul", x, w.op("Pow", w.constant(2), y)),
    "isposinf": lambda w, x: w.op("IsInf", x, detect_negative=0),
    "isneginf": lambda w, x: w.op("IsInf", x, detect_positive=0),
    "isfinite": lambda w, x: w.op("Not", w.op("Or", w.op("IsInf", x), w.op("IsNaN", x))),
    "fmax": _fmax("Max"),
    "fmin": _fmax("Min"),
    "xlogy": _xlog(lambda w, y: w.op("Log", y)),
    "xlog1py": _xlog(_log1p),
    "sinc": _sinc,
    "atan2": _atan2,
    "copysign": lambda w, x, y: w.op(
        "Mul", w.op("Abs", x), w.op("Where", w.op("Less", y, w.constant(0)), w.constant(-1), w.constant(1))
    ),
}
