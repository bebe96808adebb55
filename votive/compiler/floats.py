"""Floats that remember how they come from sizes, such as the scale `1 / n`. All that is known of one is its text."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .from_sizes import FromSizes
from .symbols import KINDS, Symbols, owner_of, plain, text_of


def _fixed(a: Any) -> Any:
    return a.fixed("it is computed with a float") if hasattr(a, "symbols") else a


def compare(a: Any, b: Any, relation: str, swap: bool) -> bool:
    if swap:
        a, b = b, a
    return bool({"==": a == b, "<": a < b, "<=": a <= b}[relation])


_SIGNS = {  # Python's methods
    "__add__": "+",
    "__sub__": "-",
    "__mul__": "*",
    "__truediv__": "/",
    "__floordiv__": "//",
    "__pow__": "**",
    "__mod__": "%",
}


class SizeFloat(FromSizes, float):
    """A float that comes from sizes: its text is all that is known of it."""

    text: str

    @property
    def value(self) -> float:
        return float.__float__(self)

    @property
    def term(self) -> str:
        return self.text

    @property
    def key(self) -> Any:
        return "float", self.symbols.serial, self.text

    def fixed(self, why: str) -> float:
        self.symbols.fix(self.text, self.value, why)
        return self.value

    def _asked(self, other: Any, relation: str, swap: bool = False) -> Any:
        if not isinstance(other, (int, float)):
            return NotImplemented
        a, b = (self.value, self.text), (plain(other), text_of(other))
        if swap:
            a, b = b, a
        now = compare(a[0], b[0], relation, False)
        if not self.symbols.closed and self.symbols.asking == "guard":
            test = f"{a[1]} {relation} {b[1]}"
            self.symbols.require(test if now else f"not ({test})")
        elif not self.symbols.closed and relation == "==":
            return a[1] == b[1]
        return now

    def __bool__(self) -> bool:
        return bool(self != 0.0)

    def __neg__(self) -> Any:
        return made_float(self.symbols, -self.value, f"(-{self.text})")

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return made_float(self.symbols, abs(self.value), f"abs({self.text})")

    def _whole(self, how: str) -> Any:
        fn: Any = {"math.ceil": math.ceil, "math.floor": math.floor, "round": round, "int": int}[how]
        if self.symbols.closed or not math.isfinite(self.value):
            return fn(self.fixed("it becomes an integer"))
        return self.symbols.name(f"{how}({self.text})", fn(self.value))

    def __ceil__(self) -> Any:
        return self._whole("math.ceil")

    def __floor__(self) -> Any:
        return self._whole("math.floor")

    def __trunc__(self) -> Any:
        return self._whole("int")

    def __round__(self, digits: Any = None) -> Any:
        return self._whole("round") if digits is None else round(self.fixed("it is rounded"), digits)

    def __int__(self) -> int:
        return int(self.fixed("it becomes an integer"))

    def __float__(self) -> float:
        return self.fixed("it is read")

    def __format__(self, spec: str) -> str:
        return format(self.fixed("it becomes text"), spec)

    def __reduce__(self) -> Any:
        return float, (self.fixed("it is pickled"),)


def made_float(symbols: Symbols, value: float, text: str) -> Any:
    """A float with its expression."""
    if symbols.closed:
        return value
    made = float.__new__(SizeFloat, value)
    made.symbols, made.text = symbols, text
    return made


def number_with(a: Any, other: Any, sign: str, swap: bool = False) -> Any:
    """A float from a size or a float of sizes and another number."""
    if not isinstance(other, (int, float)) or not isinstance(a, (int, float)):
        return NotImplemented
    x, y = (other, a) if swap else (a, other)
    value = _compute(sign, plain(x), plain(y))
    s = owner_of(a, other)
    if not isinstance(value, float) or not math.isfinite(value):
        return value.__class__(_compute(sign, _fixed(x), _fixed(y)))
    return made_float(s, value, f"({text_of(x)} {sign} {text_of(y)})")


def _compute(sign: str, x: Any, y: Any) -> Any:
    return eval(f"x {sign} y", {"x": x, "y": y})


def _with(sign: str, swap: bool) -> Callable[[Any, Any], Any]:
    return lambda self, other: number_with(self, other, sign, swap)


for _name, _sign in _SIGNS.items():
    setattr(SizeFloat, _name, _with(_sign, False))
    setattr(SizeFloat, f"__r{_name[2:]}", _with(_sign, True))

KINDS.add(SizeFloat)
