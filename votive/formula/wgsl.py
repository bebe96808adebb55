"""Expressions as WGSL, the language of WebGPU's kernels. Knows no backend; it only writes source.

A formula is a function of one kind of numbers: "f" of f32, "i" of i32, "u" of u32, "l" of 64-bit integers, which are
pairs of words (WGSL has none). Primitives are functions called `f_exp`, `l_add`; truth values are `bool`. Results of
narrow integers wrap after each step, through `wrap`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from .expr import Expr, walk
from .printers import _assignments, _render

TYPES = {"f": "f32", "i": "i32", "u": "u32", "l": "vec2<u32>"}
_COMPARE = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
_LOGIC = {"logical_and": "&&", "logical_or": "||", "logical_xor": "!="}
_ARITHMETIC = {"add": "+", "sub": "-", "mul": "*"}
_BITS = {"bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^"}
# Of integers, what rounding and tests of floats come down to.
_SAME = frozenset(["floor", "ceil", "trunc", "round"])
_NEVER = frozenset(["isnan", "isinf", "isposinf", "isneginf"])
_INTEGER = {"sgn": "sign", "fmax": "maximum", "fmin": "minimum"}
_WRAPPED = frozenset(["add", "sub", "mul", "neg", "bitwise_left_shift", "pow", "abs", "square", "lcm", "floor_divide"])


def literal(value: float | int | bool, kind: str) -> str:
    """A constant of a kind."""
    if kind == "f":
        with np.errstate(over="ignore"):
            v = np.float32(value)
        if math.isnan(v):
            return "f_nan()"
        if math.isinf(v):
            return "f_inf()" if v > 0 else "(-f_inf())"
        text = np.format_float_scientific(v, unique=True, trim="0", exp_digits=1)
        return f"{text}f" if v >= 0 and not np.signbit(v) else f"({text}f)"
    word = int(value) & 0xFFFFFFFFFFFFFFFF
    if kind == "l":
        return f"vec2<u32>({word & 0xFFFFFFFF}u, {word >> 32}u)"
    if kind == "u":
        return f"{word & 0xFFFFFFFF}u"
    return f"bitcast<i32>({word & 0xFFFFFFFF}u)" if word & 0x80000000 else f"{word & 0xFFFFFFFF}i"


def primitives(root: Expr, kind: str) -> set[str]:
    """The functions that the text of an expression calls."""
    found: set[str] = set()

    def plain(op: str) -> bool:
        return op in ("const", "var", "annotated", "where", "logical_not") or op in _LOGIC

    for e in walk(root):
        op = e.op
        if op == "const" and kind == "f" and not isinstance(e.value, bool):
            with np.errstate(over="ignore"):
                v = np.float32(e.value) if not isinstance(e.value, complex) else np.float32(np.nan)
            found |= {"f_nan"} if math.isnan(v) else {"f_inf"} if math.isinf(v) else set()
        if plain(op):
            continue
        if kind != "l" and (op in _COMPARE or op in _ARITHMETIC or op == "neg"):
            continue
        if op in _BITS or op == "bitwise_not":
            continue
        if kind != "f" and (op in _SAME or op in _NEVER or op == "isfinite"):
            continue
        if kind != "l" and op == "square":
            continue
        found.add(f"{kind}_{op if kind == 'f' else _INTEGER.get(op, op)}")
    return found


def to_wgsl(root: Expr | Sequence[Expr], name: str, params: list[str], kind: str = "f", wrap: str = "") -> str:
    """Source of a WGSL function of numbers of one kind; of several expressions, one that returns a struct with
    members y0, y1, ... `wrap` is a function that brings integers back into a narrow type.

    >>> from votive.formula import var
    >>> from votive.formula.wgsl import to_wgsl
    >>> print(to_wgsl(2.0 * var("x"), "twice", ["x"]), end="")
    fn twice(x: f32) -> f32 {
      return (2.0e+0f * x);
    }
    """
    roots = (root,) if isinstance(root, Expr) else tuple(root)
    steps, names = _assignments(*roots)
    T = TYPES[kind]

    def leaf(e: Expr) -> str:
        if e.op == "var":
            return _named(str(e.value))
        if isinstance(e.value, bool):
            return "true" if e.value else "false"
        return literal(e.value, kind)

    def number(e: Expr, text: str) -> str:
        return f"select({literal(0, kind)}, {literal(1, kind)}, {text})" if e.is_bool else text

    def truth(e: Expr, text: str) -> str:
        if e.is_bool:
            return text
        return f"any({text} != vec2<u32>(0u, 0u))" if kind == "l" else f"({text} != {literal(0, kind)})"

    def call(e: Expr, args: list[str]) -> str:
        op = e.op
        if op == "where":
            both = e.args[1].is_bool and e.args[2].is_bool
            a, b = args[1:] if both else (number(x, t) for x, t in zip(e.args[1:], args[1:], strict=True))
            return f"select({b}, {a}, {truth(e.args[0], args[0])})"
        if op in _LOGIC:
            a, b = (truth(x, t) for x, t in zip(e.args, args, strict=True))
            return f"({a} {_LOGIC[op]} {b})"
        if op == "logical_not":
            return f"(!{truth(e.args[0], args[0])})"
        args = [number(x, t) for x, t in zip(e.args, args, strict=True)]
        text = _applied(op, args, kind)
        return f"{wrap}({text})" if wrap and op in _WRAPPED else text

    lines = []
    for n, e in steps:
        lines.append(f"  let {n} = {_render(e, names, leaf, call, skip=e.id)};")
    given = ", ".join(f"{_named(p)}: {T}" for p in params)
    shown = [(_render(r, names, leaf, call), r.is_bool) for r in roots]
    if isinstance(root, Expr):
        lines = [f"fn {name}({given}) -> {'bool' if shown[0][1] else T} {{", *lines, f"  return {shown[0][0]};", "}"]
        return "\n".join(lines) + "\n"
    members = ", ".join(f"y{k}: {'u32' if b else T}" for k, (_, b) in enumerate(shown))
    values = ", ".join(f"select(0u, 1u, {text})" if b else text for text, b in shown)
    head = [f"struct {name}_result {{ {members} }}", f"fn {name}({given}) -> {name}_result {{"]
    return "\n".join([*head, *lines, f"  return {name}_result({values});", "}"]) + "\n"


def _named(name: str) -> str:
    """A name that is no word of WGSL's."""
    return f"v_{name}"


def _applied(op: str, args: list[str], kind: str) -> str:
    if op in _BITS:
        return f"({args[0]} {_BITS[op]} {args[1]})"
    if op == "bitwise_not":
        return f"(~{args[0]})"
    if kind != "f":
        if op in _SAME:
            return args[0]
        if op in _NEVER or op == "isfinite":
            return "true" if op == "isfinite" else "false"
        op = _INTEGER.get(op, op)
    if kind != "l":
        infix = _COMPARE.get(op) or _ARITHMETIC.get(op)
        if infix:
            return f"({args[0]} {infix} {args[1]})"
        if op == "neg":
            return f"(-{args[0]})" if kind != "u" else f"(0u - {args[0]})"
        if op == "square":
            return f"({args[0]} * {args[0]})"
    return f"{kind}_{op}({', '.join(args)})"
