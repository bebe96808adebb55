"""Sizes that change from call to call: known by what they were in several runs, written as arithmetic on shapes.

A program is captured with several sizes of its dynamic dimensions. A number that came out differently is a `Sym`: its
value in each run. Arithmetic on it is done run by run, and `fit` finds how it follows from sizes that are at hand.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any, Union

Int = Union[int, "Sym"]


@dataclass(frozen=True)
class Sym:
    """A number by its values in the captured runs."""

    values: tuple[int, ...]

    def _with(self, other: Any, fn: Callable[[Any, Any], Any]) -> Int:
        others = other.values if isinstance(other, Sym) else (other,) * len(self.values)
        return merged([fn(a, b) for a, b in zip(self.values, others, strict=True)])

    def __add__(self, other: Int) -> Int:
        return self._with(other, operator.add)

    def __sub__(self, other: Int) -> Int:
        return self._with(other, operator.sub)

    def __rsub__(self, other: Int) -> Int:
        return self._with(other, lambda a, b: b - a)

    def __mul__(self, other: Int) -> Int:
        return self._with(other, operator.mul)

    def __floordiv__(self, other: Int) -> Int:
        return self._with(other, operator.floordiv)

    __radd__, __rmul__ = __add__, __mul__


def merged(values: Sequence[Any]) -> Any:
    """One number for equal ones, a Sym for others."""
    first = values[0]
    if all(v == first and type(v) is type(first) for v in values):
        return first
    if not all(isinstance(v, int) for v in values):
        raise ValueError(f"a number that depends on sizes is not whole: {values}")
    return Sym(tuple(int(v) for v in values))


def product(sizes: Sequence[Int]) -> Int:
    """The number of elements of a shape."""
    total: Int = 1
    for s in sizes:
        total = total * s
    return total


@dataclass(frozen=True)
class Fit:
    """`(times * product of dims) // over + plus`."""

    dims: tuple[Any, ...]
    times: int
    over: int
    plus: int


def fit(wanted: Sym, known: Sequence[tuple[Any, Sym]]) -> Fit | None:
    """How a size follows from known ones, as a multiple of one or of a product of up to three, plus a constant."""
    for what, sym in known:
        if sym == wanted:
            return Fit((what,), 1, 1, 0)
    for degree in (1, 2, 3):
        for chosen in combinations_with_replacement(known, degree):
            products = [1] * len(wanted.values)
            for _, sym in chosen:
                products = [p * v for p, v in zip(products, sym.values, strict=True)]
            found = _affine(wanted.values, products)
            if found is not None:
                return Fit(tuple(what for what, _ in chosen), *found)
    for what, sym in known:
        strided = _strided(wanted.values, sym.values)
        if strided is not None:
            return Fit((what,), *strided)
    return None


def _affine(wanted: Sequence[int], known: Sequence[int]) -> tuple[int, int, int] | None:
    i = next((i for i in range(1, len(known)) if known[i] != known[0]), None)
    if i is None:
        return None
    slope = Fraction(wanted[i] - wanted[0], known[i] - known[0])
    plus = wanted[0] - slope * known[0]
    if plus.denominator != 1 or any(w != slope * k + plus for w, k in zip(wanted, known, strict=True)):
        return None
    return slope.numerator, slope.denominator, int(plus)


def _strided(wanted: Sequence[int], known: Sequence[int]) -> tuple[int, int, int] | None:
    """`(known + a) // step + b`, as strided windows give it: returned for `a = 0` only, or None."""
    for step in range(2, 65):
        plus = wanted[0] - known[0] // step
        if all(w == k // step + plus for w, k in zip(wanted, known, strict=True)):
            return 1, step, plus
    return None
