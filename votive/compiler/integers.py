"""Integers that remember how they come from sizes.

A `Size` is the number that it is in the run which is traced, so that any code goes on with it; its arithmetic keeps
the expression. A comparison that is not the same for all sizes is remembered as a condition. Whatever needs the
number itself (a hash, text, `int()`) fixes it: the condition is then that the expression has this value.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from . import polynomials as poly
from .floats import _fixed, compare, number_with
from .from_sizes import FromSizes
from .polynomials import Poly
from .symbols import KINDS, Symbols, owner_of


def size(symbols: Symbols, value: int, p: Poly) -> Any:
    """An integer with its expression; a plain one where that is a number."""
    n = poly.number(symbols.normal(p))
    if n is not None or symbols.closed:
        return value
    made = int.__new__(Size, value)
    made.symbols, made.poly = symbols, p
    return made


def _parts(a: Any) -> tuple[int, Poly] | None:
    if a.__class__ is Size:
        return int.__int__(a), a.poly
    if isinstance(a, int):
        return int(a), poly.constant(int(a))
    return None


class Size(FromSizes, int):
    """An integer that comes from sizes."""

    poly: Poly

    @property
    def value(self) -> int:
        return int.__int__(self)

    @property
    def text(self) -> str:
        return poly.text(self.symbols.normal(self.poly))

    @property
    def term(self) -> str:
        """Text that stands anywhere in an expression."""
        return poly.term(self.symbols.normal(self.poly))

    @property
    def key(self) -> Any:
        return "size", self.symbols.serial, poly.key(self.symbols.normal(self.poly))

    def fixed(self, why: str) -> int:
        """The number itself, from now on a condition."""
        s = self.symbols
        if not s.closed:
            p = s.normal(self.poly)
            if poly.number(p) is None:
                s.fix(poly.text(p), self.value, why)
                s._learn("==", poly.add(p, poly.constant(self.value), -1))
        return self.value

    # --- arithmetic ------------------------------------------------------------------------------

    def _with(self, other: Any, how: str) -> Any:
        b = _parts(other)
        if b is None:
            return number_with(self, other, how[-1], how[0] == "r") if isinstance(other, float) else NotImplemented
        a = self.value, self.poly
        if how[0] == "r":
            a, b, how = b, a, how[1:]
        s = self.symbols
        if how == "+":
            return size(s, a[0] + b[0], poly.add(a[1], b[1]))
        if how == "-":
            return size(s, a[0] - b[0], poly.add(a[1], b[1], -1))
        return size(s, a[0] * b[0], poly.multiply(a[1], b[1]))

    def __add__(self, other: Any) -> Any:
        return self._with(other, "+")

    def __radd__(self, other: Any) -> Any:
        return self._with(other, "r+")

    def __sub__(self, other: Any) -> Any:
        return self._with(other, "-")

    def __rsub__(self, other: Any) -> Any:
        return self._with(other, "r-")

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, (str, bytes, list, tuple)):
            return other * self.fixed("it repeats a sequence")
        return self._with(other, "*")

    def __rmul__(self, other: Any) -> Any:
        if isinstance(other, (str, bytes, list, tuple)):
            return other * self.fixed("it repeats a sequence")
        return self._with(other, "r*")

    def __neg__(self) -> Any:
        return size(self.symbols, -self.value, poly.add({}, self.poly, -1))

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return -self if self < 0 else self

    def __floordiv__(self, other: Any) -> Any:
        return _floor(self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return _floor(other, self)

    def __mod__(self, other: Any) -> Any:
        return _modulo(self, other)

    def __rmod__(self, other: Any) -> Any:
        if isinstance(other, str):
            return other % self.fixed("it becomes text")
        return _modulo(other, self)

    def __divmod__(self, other: Any) -> Any:
        return _floor(self, other), _modulo(self, other)

    def __rdivmod__(self, other: Any) -> Any:
        return _floor(other, self), _modulo(other, self)

    def __truediv__(self, other: Any) -> Any:
        return number_with(self, other, "/")

    def __rtruediv__(self, other: Any) -> Any:
        return number_with(self, other, "/", True)

    def __pow__(self, other: Any, mod: Any = None) -> Any:
        if mod is None and other.__class__ is int and 0 <= other <= 8:
            out: Any = 1
            for _ in range(other):
                out = out * self
            return out
        if mod is None and isinstance(other, (int, float)) and not isinstance(other, Size):
            if isinstance(other, float) or other < 0:
                return number_with(self, other, "**")
        return pow(self.fixed("it is a power"), other, mod)

    def __rpow__(self, other: Any, mod: Any = None) -> Any:
        return pow(other, self.fixed("it is an exponent"), mod)

    # --- questions -------------------------------------------------------------------------------

    def _asked(self, other: Any, relation: str, swap: bool = False) -> Any:
        b = _parts(other)
        if b is None:
            if isinstance(other, float):
                if other == int(other) if math.isfinite(other) else False:
                    return self._asked(int(other), relation, swap)
                return compare(float(self.fixed("it is compared with a float")), other, relation, swap)
            return NotImplemented
        a = self.value, self.poly
        if swap:
            a, b = b, a
        return self.symbols.holds(relation, poly.add(a[1], b[1], -1), a[0] - b[0])

    def __bool__(self) -> bool:
        return not self.symbols.holds("==", self.poly, self.value)

    # --- whatever needs the number ---------------------------------------------------------------

    def __index__(self) -> Any:
        return self.value if self.symbols.closed else self

    def __int__(self) -> int:
        return self.fixed("it becomes an integer")

    def __float__(self) -> float:
        return float(self.fixed("it becomes a float"))

    def __format__(self, spec: str) -> str:
        return format(self.value if self.symbols.closed else self.fixed("it becomes text"), spec)

    def __trunc__(self) -> Any:
        return self

    __floor__ = __ceil__ = conjugate = __trunc__

    def __round__(self, digits: Any = None) -> Any:
        return self if digits is None else round(self.fixed("it is rounded"), digits)

    def __reduce__(self) -> Any:
        return int, (self.fixed("it is pickled"),)


def _bits(name: str) -> Callable[..., Any]:
    plain = getattr(int, name)

    def run(self: Size, *args: Any) -> Any:
        args = tuple([a.fixed("it is used bit by bit") if a.__class__ is Size else a for a in args])
        return plain(self.fixed("it is used bit by bit"), *args)

    return run


for _name in (
    "__and__",
    "__rand__",
    "__or__",
    "__ror__",
    "__xor__",
    "__rxor__",
    "__lshift__",
    "__rlshift__",
    "__rshift__",
    "__rrshift__",
    "__invert__",
    "bit_length",
    "bit_count",
    "to_bytes",
    "as_integer_ratio",
):
    setattr(Size, _name, _bits(_name))


def _floor(a: Any, b: Any) -> Any:
    one, other = _parts(a), _parts(b)
    if one is None or other is None:
        return number_with(a, b, "//") if isinstance(a, float) or isinstance(b, float) else NotImplemented
    s = owner_of(a, b)
    value = one[0] // other[0]
    p, q = s.normal(one[1]), s.normal(other[1])
    exact = poly.divide(p, q)
    low, high = poly.bounds(q, s.bounds)
    nonzero = (low is not None and low > 0) or (high is not None and high < 0)
    if exact is not None and nonzero:
        return size(s, value, exact)
    if not nonzero and s.holds("==", q, other[0]):
        raise ZeroDivisionError("integer division or modulo by zero")
    first = poly.bounds(p, s.bounds)
    positive = first[0] is not None and first[0] >= 0 and low is not None and low > 0
    most = first[1] // low if positive and first[1] is not None and low else None
    least = first[0] // high if positive and first[0] is not None and high else 0 if positive else None
    return s.name(f"({poly.term(p)} // {poly.term(q)})", value, least, most)


def _modulo(a: Any, b: Any) -> Any:
    one, other = _parts(a), _parts(b)
    if one is None or other is None:
        return _fixed(a) % _fixed(b) if isinstance(a, float) or isinstance(b, float) else NotImplemented
    s = owner_of(a, b)
    value = one[0] % other[0]
    p, q = s.normal(one[1]), s.normal(other[1])
    low, high = poly.bounds(q, s.bounds)
    if poly.divide(p, q) is not None and low is not None and low > 0:
        return 0
    if low is None or low <= 0:
        s.holds("==", q, other[0])
        return s.name(f"({poly.term(p)} % {poly.term(q)})", value)
    return s.name(f"({poly.term(p)} % {poly.term(q)})", value, 0, None if high is None else high - 1)


KINDS.add(Size)
Symbols.make = staticmethod(size)
