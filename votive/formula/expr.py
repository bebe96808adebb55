"""Scalar expressions as interned trees: building, simplifying, reading. Knows no tensors.

Equal expressions are one object, so common subexpressions are shared by construction, and `is`
compares formulas. Constructors simplify as they build; only rewrites that hold for every finite
value are done.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Union

Number = bool | int | float | complex
Operand = Union["Expr", bool, int, float, complex]

COMPARISONS = frozenset(
    [
        "lt",
        "le",
        "gt",
        "ge",
        "eq",
        "ne",
        "isnan",
        "isinf",
        "isfinite",
        "isposinf",
        "isneginf",
        "logical_and",
        "logical_or",
        "logical_xor",
        "logical_not",
        "signbit",
    ]
)


class Expr:
    """A node: a constant, a variable, or a primitive applied to expressions."""

    __slots__ = ("args", "id", "op", "value")
    _table: dict[tuple[Any, ...], Expr] = {}
    op: str
    args: tuple[Expr, ...]
    value: Any
    id: int

    def __new__(cls, op: str, args: tuple[Expr, ...] = (), value: Any = None) -> Expr:
        key = (op, *(a.id for a in args), type(value), value if op == "annotated" else repr(value))
        found = cls._table.get(key)
        if found is None:
            found = object.__new__(cls)
            found.op, found.args, found.value = op, args, value
            found.id = len(cls._table)
            cls._table[key] = found
        return found

    @property
    def is_bool(self) -> bool:
        if self.op == "const":
            return isinstance(self.value, bool)
        if self.op == "annotated":
            return self.args[0].is_bool
        if self.op == "where":
            return self.args[1].is_bool and self.args[2].is_bool
        return self.op in COMPARISONS

    def __repr__(self) -> str:
        from .printers import to_text

        return to_text(self)

    def __bool__(self) -> bool:
        raise TypeError("a formula cannot branch on a value: write where(condition, a, b) instead of `if`.")

    def __add__(self, o: Operand) -> Expr:
        return add(self, o)

    def __radd__(self, o: Operand) -> Expr:
        return add(o, self)

    def __sub__(self, o: Operand) -> Expr:
        return sub(self, o)

    def __rsub__(self, o: Operand) -> Expr:
        return sub(o, self)

    def __mul__(self, o: Operand) -> Expr:
        return mul(self, o)

    def __rmul__(self, o: Operand) -> Expr:
        return mul(o, self)

    def __truediv__(self, o: Operand) -> Expr:
        return div(self, o)

    def __rtruediv__(self, o: Operand) -> Expr:
        return div(o, self)

    def __pow__(self, o: Operand) -> Expr:
        return power(self, o)

    def __rpow__(self, o: Operand) -> Expr:
        return power(o, self)

    def __mod__(self, o: Operand) -> Expr:
        return apply("remainder", self, o)

    def __floordiv__(self, o: Operand) -> Expr:
        return apply("floor_divide", self, o)

    def __neg__(self) -> Expr:
        return neg(self)

    def __abs__(self) -> Expr:
        return apply("abs", self)

    def __lt__(self, o: Operand) -> Expr:
        return apply("lt", self, o)

    def __le__(self, o: Operand) -> Expr:
        return apply("le", self, o)

    def __gt__(self, o: Operand) -> Expr:
        return apply("gt", self, o)

    def __ge__(self, o: Operand) -> Expr:
        return apply("ge", self, o)

    def eq(self, o: Operand) -> Expr:
        return apply("eq", self, o)

    def ne(self, o: Operand) -> Expr:
        return apply("ne", self, o)

    def __and__(self, o: Operand) -> Expr:
        return apply("logical_and" if self.is_bool else "bitwise_and", self, o)

    def __or__(self, o: Operand) -> Expr:
        return apply("logical_or" if self.is_bool else "bitwise_or", self, o)

    def __xor__(self, o: Operand) -> Expr:
        return apply("logical_xor" if self.is_bool else "bitwise_xor", self, o)

    def __invert__(self) -> Expr:
        return apply("logical_not" if self.is_bool else "bitwise_not", self)


def const(value: Number) -> Expr:
    """The expression of a number."""
    return Expr("const", value=value)


def var(name: str) -> Expr:
    """The expression of an input."""
    return Expr("var", value=name)


def lift(x: Operand) -> Expr:
    """Numbers become constants; expressions stay."""
    if isinstance(x, Expr):
        return x
    if isinstance(x, (bool, int, float, complex)):
        return const(x)
    raise TypeError(f"a formula is made of expressions and numbers, got {type(x).__name__}.")


def is_const(e: Expr, value: Number | None = None) -> bool:
    """Whether `e` is a constant, and if asked, this one."""
    return e.op == "const" and (value is None or (e.value == value and e.value is not True))


def apply(op: str, *args: Operand) -> Expr:
    """A primitive applied to operands, with constants folded where that is exact."""
    return Expr(op, tuple(lift(a) for a in args))


def _folded(a: Expr, b: Expr) -> bool:
    return a.op == "const" and b.op == "const"


def add(a: Operand, b: Operand) -> Expr:
    a, b = lift(a), lift(b)
    if _folded(a, b):
        return const(a.value + b.value)
    if is_const(a, 0):
        return b
    if is_const(b, 0):
        return a
    if b.op == "neg":
        return sub(a, b.args[0])
    return Expr("add", (a, b))


def sub(a: Operand, b: Operand) -> Expr:
    a, b = lift(a), lift(b)
    if _folded(a, b):
        return const(a.value - b.value)
    if is_const(b, 0):
        return a
    if is_const(a, 0):
        return neg(b)
    if b.op == "neg":
        return add(a, b.args[0])
    return Expr("sub", (a, b))


def neg(a: Operand) -> Expr:
    a = lift(a)
    if a.op == "const":
        return const(-a.value)
    if a.op == "neg":
        return a.args[0]
    return Expr("neg", (a,))


def mul(a: Operand, b: Operand) -> Expr:
    a, b = lift(a), lift(b)
    if _folded(a, b):
        return const(a.value * b.value)
    if b.op == "const":
        a, b = b, a
    if is_const(a, 0):
        return const(0)
    if is_const(a, 1):
        return b
    if is_const(a, -1):
        return neg(b)
    if a.op == "const" and b.op == "mul" and b.args[0].op == "const":
        return mul(const(a.value * b.args[0].value), b.args[1])
    if b.op == "neg":
        return neg(mul(a, b.args[0]))
    if a.op == "neg":
        return neg(mul(a.args[0], b))
    return Expr("mul", (a, b))


def div(a: Operand, b: Operand) -> Expr:
    a, b = lift(a), lift(b)
    if is_const(b, 1):
        return a
    if is_const(a, 0):
        return a
    if a.op == "neg":
        return neg(div(a.args[0], b))
    return Expr("div", (a, b))


def power(a: Operand, b: Operand) -> Expr:
    a, b = lift(a), lift(b)
    if is_const(b, 1):
        return a
    if is_const(b, 2):
        return mul(a, a)
    return Expr("pow", (a, b))


def where(condition: Operand, a: Operand, b: Operand) -> Expr:
    """`a` where the condition holds, else `b`."""
    condition, a, b = lift(condition), lift(a), lift(b)
    if condition.op == "const":
        return a if condition.value else b
    if a is b:
        return a
    return Expr("where", (condition, a, b))


def annotate(body: Expr, formula: object, args: tuple[Expr, ...]) -> Expr:
    """`body`, marked as this formula of these arguments, so that its own gradients are used."""
    return Expr("annotated", (body, *args), formula)


def conj(a: Operand) -> Expr:
    a = lift(a)
    if a.op == "const":
        return const(a.value.conjugate() if isinstance(a.value, complex) else a.value)
    if a.op == "conj":
        return a.args[0]
    if a.op in ("add", "sub", "mul", "div", "neg"):
        return _REBUILD[a.op](*(conj(x) for x in a.args))
    if a.op == "where":  # it stays outside, so that what it hides never meets a product
        condition, yes, no = a.args
        return where(condition, conj(yes), conj(no))
    if a.op in ("abs", "real", "imag", "angle"):
        return a
    return Expr("conj", (a,))


_REBUILD: dict[str, Any] = {"add": add, "sub": sub, "mul": mul, "div": div, "neg": neg}


def rebuild(op: str, args: tuple[Expr, ...], value: Any = None) -> Expr:
    """Apply a primitive through its simplifying constructor."""
    if op == "where":
        return where(*args)
    if op == "conj":
        return conj(*args)
    if op == "pow":
        return power(*args)
    if op == "annotated":
        return Expr(op, args, value)
    make = _REBUILD.get(op)
    return make(*args) if make else Expr(op, args, value)


def walk(*roots: Expr) -> Iterator[Expr]:
    """Every distinct node below `roots`, arguments before users."""
    seen: set[int] = set()
    for root in roots:
        stack: list[tuple[Expr, bool]] = [(root, False)]
        while stack:
            e, expanded = stack.pop()
            if e.id in seen:
                continue
            if expanded:
                seen.add(e.id)
                yield e
            else:
                stack.append((e, True))
                stack.extend((a, False) for a in reversed(e.args) if a.id not in seen)


def variables(*roots: Expr) -> list[str]:
    """Names of the variables that occur, in order of appearance."""
    return [e.value for e in walk(*roots) if e.op == "var"]


def substitute(root: Expr, mapping: dict[Expr, Expr]) -> Expr:
    """Replace whole subexpressions; a replaced one is not looked into."""
    ids = {k.id: v for k, v in mapping.items()}
    done: dict[int, Expr] = {}
    stack = [root]
    while stack:
        e = stack[-1]
        if e.id in done:
            stack.pop()
        elif e.id in ids:
            done[e.id] = ids[e.id]
        elif not e.args:
            done[e.id] = e
        else:
            todo = [a for a in e.args if a.id not in done]
            if todo:
                stack.extend(todo)
            else:
                done[e.id] = rebuild(e.op, tuple(done[a.id] for a in e.args), e.value)
    return done[root.id]
