"""Expressions as text: readable, NumPy, C++ and Triton. Knows no backend; it only writes source."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable

from .expr import Expr, Number, walk

_INFIX = {
    "add": (" + ", 4),
    "sub": (" - ", 4),
    "mul": (" * ", 5),
    "div": (" / ", 5),
    "remainder": (" % ", 5),
    "floor_divide": (" // ", 5),
    "lt": (" < ", 2),
    "le": (" <= ", 2),
    "gt": (" > ", 2),
    "ge": (" >= ", 2),
    "eq": (" == ", 2),
    "ne": (" != ", 2),
    "logical_and": (" and ", 1),
    "logical_or": (" or ", 0),
    "bitwise_and": (" & ", 3),
    "bitwise_or": (" | ", 3),
    "bitwise_xor": (" ^ ", 3),
}

_NAMED = {
    math.sqrt(0.5): "sqrt(1/2)",
    math.sqrt(2 / math.pi): "sqrt(2/pi)",
    math.pi: "pi",
    2 / math.sqrt(math.pi): "2/sqrt(pi)",
    math.sqrt(math.pi): "sqrt(pi)",
    math.log(2): "ln(2)",
    math.log(10): "ln(10)",
    math.sqrt(math.pi) / 2: "sqrt(pi)/2",
}


def _number(v: Number) -> str:
    if isinstance(v, float):
        if v in _NAMED:
            return _NAMED[v]
        if v == int(v) if math.isfinite(v) and abs(v) < 1e6 else False:
            return str(int(v))
        return f"{v:.6g}"
    return str(v)


def to_text(root: Expr) -> str:
    """A formula as a person would write it."""

    def show(e: Expr, outer: int) -> str:
        if e.op == "annotated":
            return show(e.args[0], outer)
        if e.op == "const":
            s, level = _number(e.value), 9
            if s.startswith("-") or ("/" in s and not s.endswith(")")):
                level = 4
        elif e.op == "var":
            return str(e.value)
        elif e.op == "neg":
            s, level = "-" + show(e.args[0], 6), 4
        elif e.op == "mul" and e.args[0] is e.args[1]:
            s, level = show(e.args[0], 8) + "^2", 7
        elif e.op == "pow":
            s, level = show(e.args[0], 8) + "^" + show(e.args[1], 8), 7
        elif e.op in _INFIX:
            sign, level = _INFIX[e.op]
            s = show(e.args[0], level) + sign + show(e.args[1], level + 1)
        else:
            return f"{e.op}({', '.join(show(a, 0) for a in e.args)})"
        return f"({s})" if level < outer else s

    return show(root, 0)


def _assignments(*roots: Expr) -> tuple[list[tuple[str, Expr]], dict[int, str]]:
    """Nodes that get a name of their own: those used more than once."""
    uses: Counter[int] = Counter(e.id for e in roots if len(roots) > 1)
    for e in walk(*roots):
        uses.update(a.id for a in e.args)
    steps: list[tuple[str, Expr]] = []
    names: dict[int, str] = {}
    for e in walk(*roots):
        if e.args and uses[e.id] > 1 and e.op != "annotated":
            names[e.id] = f"t{len(steps)}"
            steps.append((names[e.id], e))
    return steps, names


Leaf = Callable[[Expr], str]
Call = Callable[[Expr, list[str]], str]


def _render(e: Expr, names: dict[int, str], leaf: Leaf, call: Call, skip: int | None = None) -> str:
    if e.id in names and e.id != skip:
        return names[e.id]
    if e.op == "annotated":
        return _render(e.args[0], names, leaf, call)
    if not e.args:
        return leaf(e)
    return call(e, [_render(a, names, leaf, call) for a in e.args])


def _python_leaf(e: Expr) -> str:
    if e.op == "var":
        return str(e.value)
    v = e.value
    if isinstance(v, float) and not math.isfinite(v):
        return "nan" if math.isnan(v) else ("inf" if v > 0 else "-inf")
    return repr(v)


def to_numpy(root: Expr, name: str, params: list[str]) -> str:
    """Source of a Python function whose primitives are looked up by name where it is compiled."""
    steps, names = _assignments(root)

    def call(e: Expr, args: list[str]) -> str:
        return f"{e.op}({', '.join(args)})"

    lines = [f"def {name}({', '.join(params)}):"]
    for n, e in steps:
        lines.append(f"    {n} = {_render(e, names, _python_leaf, call, skip=e.id)}")
    lines.append(f"    return {_render(root, names, _python_leaf, call)}")
    return "\n".join(lines) + "\n"


C_INFIX = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "div": "/",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "eq": "==",
    "ne": "!=",
    "logical_and": "&&",
    "logical_or": "||",
    "bitwise_and": "&",
    "bitwise_or": "|",
    "bitwise_xor": "^",
    "bitwise_left_shift": "<<",
    "bitwise_right_shift": ">>",
    "logical_xor": "!=",
}


def to_cpp(root: Expr, name: str, params: list[str]) -> str:
    """Source of a C++ function template over the compute type; `vt::` holds the primitives."""
    steps, names = _assignments(root)

    def leaf(e: Expr) -> str:
        if e.op == "var":
            return str(e.value)
        v = e.value
        if isinstance(v, bool):
            return "true" if v else "false"
        if isinstance(v, complex):
            return f"T({v.real!r}, {v.imag!r})"
        if math.isnan(v):
            return "std::numeric_limits<T>::quiet_NaN()"
        if math.isinf(v):
            return ("-" if v < 0 else "") + "std::numeric_limits<T>::infinity()"
        return f"T({v!r})"

    def call(e: Expr, args: list[str]) -> str:
        if e.op == "where":
            return f"({args[0]} ? {args[1]} : {args[2]})"
        if e.op == "neg":
            return f"(-{args[0]})"
        if e.op == "logical_not":
            return f"(!{args[0]})"
        if e.op == "bitwise_not":
            return f"(~{args[0]})"
        if e.op in C_INFIX:
            return f"({args[0]} {C_INFIX[e.op]} {args[1]})"
        return f"vt::{e.op}({', '.join(args)})"

    lines = ["template <class T>", f"inline auto {name}({', '.join('T ' + p for p in params)}) {{"]
    for n, e in steps:
        lines.append(f"  const auto {n} = {_render(e, names, leaf, call, skip=e.id)};")
    lines.append(f"  return {_render(root, names, leaf, call)};")
    lines.append("}")
    return "\n".join(lines) + "\n"


# Of integers, what rounding and tests of floats come down to.
_TL_INTEGER = {
    "floor": "same",
    "ceil": "same",
    "trunc": "same",
    "round": "same",
    "sgn": "sign",
    "isnan": "never",
    "isinf": "never",
    "isposinf": "never",
    "isneginf": "never",
    "isfinite": "always",
    "fmax": "maximum",
    "fmin": "minimum",
}
_TL_COMPARE = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
_TL_LOGIC = {"logical_and": "&", "logical_or": "|", "logical_xor": "^"}
_TL_ARITHMETIC = {"add": "+", "sub": "-", "mul": "*"}
_TL_BITS = {"bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^"}
# Approximations of the hardware, good enough where the result is rounded to a half type.
_TL_FAST = {
    "exp": "tl.exp",
    "exp2": "tl.exp2",
    "log": "tl.log",
    "log2": "tl.log2",
    "sqrt": "tl.sqrt",
    "rsqrt": "tl.rsqrt",
    "sigmoid": "tl.sigmoid",
    "erf": "m.fast_erf",
    "tanh": "m.fast_tanh",
}


def to_triton(root: Expr | tuple[Expr, ...], name: str, params: list[str], kind: str = "f", fast: bool = False) -> str:
    """Source of a Triton device function on blocks of the compute type `T`; of several expressions
    it returns a tuple.

    `m` holds the primitives of this kind: "f" floats, "i" integers (truth values are 0 and 1).
    """
    roots = root if isinstance(root, tuple) else (root,)
    steps, names = _assignments(*roots)

    def leaf(e: Expr) -> str:
        if e.op == "var":
            return str(e.value)
        v = e.value
        if isinstance(v, float) and not math.isfinite(v):
            return f"tl.full((), float('{v}'), T)"
        return f"tl.full((), {int(v) if isinstance(v, bool) else v!r}, T)"

    def number(e: Expr, text: str) -> str:
        return f"m.as_number({text}, T)" if e.is_bool and e.op != "const" else text

    def truth(e: Expr, text: str) -> str:
        return text if e.is_bool and e.op != "const" else f"({text} != 0)"

    def call(e: Expr, args: list[str]) -> str:
        if e.op == "where":
            both = e.args[1].is_bool and e.args[2].is_bool
            a, b = args[1:] if both else (number(x, t) for x, t in zip(e.args[1:], args[1:]))
            return f"tl.where({truth(e.args[0], args[0])}, {a}, {b})"
        if e.op in _TL_LOGIC:
            a, b = (truth(x, t) for x, t in zip(e.args, args, strict=True))
            return f"({a} {_TL_LOGIC[e.op]} {b})"
        if e.op == "logical_not":
            return f"({truth(e.args[0], args[0])} == 0)"
        args = [number(x, t) for x, t in zip(e.args, args, strict=True)]
        if e.op == "bitwise_not":
            return f"(~{args[0]})"
        infix = _TL_COMPARE.get(e.op) or _TL_ARITHMETIC.get(e.op) or _TL_BITS.get(e.op)
        if infix:
            return f"({args[0]} {infix} {args[1]})"
        if e.op == "div" and fast:
            return f"({args[0]} / {args[1]})"
        if fast and e.op in _TL_FAST:
            return f"{_TL_FAST[e.op]}({', '.join(args)})"
        called = _TL_INTEGER.get(e.op, e.op) if kind == "i" else e.op
        return f"m.{kind}_{called}({', '.join(args)})"

    lines = ["@triton.jit", f"def {name}({', '.join([*params, 'T: tl.constexpr'])}):"]
    for n, e in steps:
        lines.append(f"    {n} = {_render(e, names, leaf, call, skip=e.id)}")
    values = ", ".join(_render(r, names, leaf, call) for r in roots)
    lines.append(f"    return {values}")
    return "\n".join(lines) + "\n"
