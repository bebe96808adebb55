"""Arithmetic on sizes as text: evaluated, or written as nodes of a graph. Text never runs as Python."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

_BINARY: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod, ast.Div: operator.truediv,
}  # fmt: skip
_COMPARED: dict[type[ast.AST], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}  # fmt: skip
_CALLS: dict[str, Callable[..., Any]] = {
    "math.ceil": math.ceil, "math.floor": math.floor, "math.trunc": math.trunc, "math.sqrt": math.sqrt,
    "math.log": math.log, "math.log2": math.log2, "math.gcd": math.gcd,
    "float": float, "int": int, "abs": abs, "round": round, "min": min, "max": max,
}  # fmt: skip


class Unknown(ValueError):
    """An expression that is not arithmetic on sizes."""


@cache
def _parsed(text: str) -> ast.expr:
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError as e:
        raise Unknown(text) from e


def walk(text: str, names: Mapping[str, Any], call: Callable[[Callable[..., Any], tuple[Any, ...]], Any]) -> Any:
    """The value of an expression, where `call(function, values)` says what becomes of each step."""
    if len(text) > 10_000:
        raise Unknown("An expression of sizes is too long.")

    def part(at: ast.AST) -> Any:
        if isinstance(at, ast.Constant) and isinstance(at.value, (int, float)):
            return at.value
        if isinstance(at, ast.Name) and at.id in names:
            return names[at.id]
        if isinstance(at, ast.BinOp) and type(at.op) in _BINARY:
            return call(_BINARY[type(at.op)], (part(at.left), part(at.right)))
        if isinstance(at, ast.UnaryOp) and isinstance(at.op, ast.USub):
            return call(operator.neg, (part(at.operand),))
        if isinstance(at, ast.Compare) and len(at.ops) == 1 and type(at.ops[0]) in _COMPARED:
            return call(_COMPARED[type(at.ops[0])], (part(at.left), part(at.comparators[0])))
        if isinstance(at, ast.Call) and not at.keywords and ast.unparse(at.func) in _CALLS:
            return call(_CALLS[ast.unparse(at.func)], tuple(part(a) for a in at.args))
        raise Unknown(f"{text!r} is not arithmetic on sizes.")

    return part(_parsed(text))


def evaluate(text: str, names: Mapping[str, int]) -> Any:
    """The value of an expression for sizes."""
    return walk(text, names, lambda fn, values: fn(*values))


_PLAIN: tuple[Callable[..., Any], ...] = (*_BINARY.values(), operator.neg)
FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{f.__name__: f for f in _PLAIN},
    **{f"call {name}": f for name, f in _CALLS.items()},
}
