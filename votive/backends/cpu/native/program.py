"""Formulas as programs of the tile engine: a list of steps over numbered registers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ....core.words import words
from ....formula.expr import Expr
from ..arrays import Ints

# Primitives that the engine has on floating-point tiles, and on integer tiles.
_COMMON = words(
    "lt le gt ge eq ne logical_and logical_or logical_xor logical_not where abs floor ceil trunc round sign sgn "
    "signbit isnan isinf isfinite isposinf isneginf maximum minimum fmax fmin add sub mul neg square"
)
# Where an argument may ask for the long way, or an integer divisor may be 0: found out tile by
# tile, which a formula compiled whole cannot do.
_CHECKED = ("floor_divide", "remainder", "fmod")
_SPECIAL = ("lgamma", "digamma", "polygamma", "zeta", "erfcx", "erfinv", "ndtri", "log_ndtr", "i0", "i0e", "i1", "i1e")
APART = frozenset(["sin", "cos", "tan", "sinc", *_CHECKED, *_SPECIAL])
FLOAT = frozenset([
    *_COMMON, *APART, "div", "sqrt", "rsqrt", "reciprocal", "copysign", "exp", "exp2", "expm1",
    "log", "log2", "log10", "log1p", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh",
    "acosh", "atanh", "erf", "erfc", "sigmoid", "pow", "atan2", "hypot", "logaddexp", "logaddexp2",
    "xlogy", "xlog1py", "entr", "ldexp", "angle", "nextafter", "trunc_divide",
])  # fmt: skip
BOOL = frozenset([*_COMMON, "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not"])
INT = frozenset([*BOOL, *_CHECKED, "trunc_divide", "bitwise_left_shift", "bitwise_right_shift", "gcd", "lcm", "pow"])

# Rough cost of a primitive in additions, for the decision to use threads; the rest count 1.
_DEAR = {
    4: "exp exp2 log log2 sigmoid sqrt rsqrt div reciprocal",
    8: "expm1 log1p log10 sin cos tanh erf erfc atan",
    12: "tan asin acos sinh cosh asinh acosh atanh pow atan2 hypot logaddexp logaddexp2 ldexp xlogy"
    " xlog1py sinc fmod remainder floor_divide trunc_divide",
    100: "gcd lcm " + " ".join(_SPECIAL),
}
_COST = {name: cost for cost, names in _DEAR.items() for name in names.split()}


@dataclass(frozen=True)
class Linear:
    """Registers 0..inputs-1 are the inputs, then the constants, then one per step."""

    inputs: int
    constants: tuple[Any, ...]
    steps: tuple[tuple[str, Ints], ...]
    result: int

    @property
    def cost(self) -> int:
        return 1 + sum(_COST.get(name, 1) for name, _ in self.steps)

    def key(self) -> str:
        """The name under which this formula is compiled as a whole."""
        # 6 and 6.0 are one number to a formula on floats.
        constants = tuple(float(c) if abs(c) < 2**53 else c for c in self.constants)
        return _name("f", self.inputs, constants, self.steps, self.result)

    def shape_key(self) -> str:
        """The name of the compiled formula that takes its constants as further inputs."""
        return _name("g", self.inputs, len(self.constants), self.steps, self.result)


def _name(kind: str, *parts: object) -> str:
    import hashlib

    return kind + hashlib.sha1(repr(parts).encode()).hexdigest()[:20]


def _plain(e: Expr) -> Expr:
    while e.op == "annotated":
        e = e.args[0]
    return e


def linearise(body: Expr, names: list[str]) -> Linear | None:
    """The steps of a formula, or None when it has something that is not a real number."""
    body = _plain(body)
    order: list[Expr] = []
    seen: set[int] = set()
    stack = [(body, False)]
    while stack:
        e, done = stack.pop()
        if e.id in seen:
            continue
        if done:
            seen.add(e.id)
            order.append(e)
        else:
            stack.append((e, True))
            stack.extend((_plain(a), False) for a in reversed(e.args))
    place = {}
    constants: list[Any] = []
    for e in order:
        if e.op == "var":
            place[e.id] = names.index(e.value)
        elif e.op == "const":
            if isinstance(e.value, complex):
                return None
            place[e.id] = len(names) + len(constants)
            constants.append(e.value)
    steps: list[tuple[str, Ints]] = []
    first = len(names) + len(constants)
    for e in order:
        if e.args:
            steps.append((e.op, tuple(place[_plain(a).id] for a in e.args)))
            place[e.id] = first + len(steps) - 1
    return Linear(len(names), tuple(constants), tuple(steps), place[body.id])
