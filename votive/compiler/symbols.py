"""The sizes of a trace that may change, and the conditions that a program asked of them.

Numbers that come from them are integers (`integers.py`) and floats (`floats.py`) that remember their expressions.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from . import polynomials as poly
from .polynomials import Bounds, Poly

_FAR = 1 << 60  # what is compared with such numbers is whether anything overflows
_serial = itertools.count()


@dataclass(frozen=True)
class Symbol:
    """A size that may change: its name, what it is in the traced run, where it is found, for readers."""

    name: str
    hint: int
    label: str


class Symbols:
    """The sizes of one trace. `asking`: "guard" remembers conditions, "prove" answers yes only for all sizes."""

    make: ClassVar[Callable[[Symbols, int, Poly], Any]]  # an integer with its expression, see `integers.py`

    def __init__(self) -> None:
        self.serial = next(_serial)
        self.symbols: list[Symbol] = []
        self.bounds: dict[str, Bounds] = {}
        self.values: dict[str, int] = {}  # of names, in this run
        self.known: dict[str, Poly] = {}  # names that were found to be something else
        self.conditions: dict[str, str] = {}  # Python text -> who asked
        self.fixed: list[str] = []  # for readers
        self.asking = "guard"
        self.closed = False
        self.where: Callable[[], str] = lambda: ""

    def symbol(self, hint: int, label: str) -> Any:
        """A new size. 0 and 1 are never symbols: they mean other programs."""
        made = Symbol(f"s{len(self.symbols)}", hint, label)
        self.symbols.append(made)
        self.bounds[made.name], self.values[made.name] = (2, None), hint
        return Symbols.make(self, hint, poly.name(made.name))

    def name(self, text: str, value: int, low: int | None = None, high: int | None = None) -> Any:
        """An integer that is no polynomial of sizes."""
        self.bounds.setdefault(text, (low, high))
        self.values[text] = value
        return Symbols.make(self, value, poly.name(text))

    def normal(self, p: Poly) -> Poly:
        """An expression in those names that are left."""
        return poly.replaced(p, self.known) if self.known else p

    # --- asking ----------------------------------------------------------------------------------

    def holds(self, relation: str, p: Poly, value: int) -> bool:
        """Whether `p` is `==`, `<` or `<=` 0, and `value` is what it is in this run."""
        now = {"==": value == 0, "<": value < 0, "<=": value <= 0}[relation]
        if self.closed:
            return now
        p = self.normal(p)
        low, high = poly.bounds(p, self.bounds)
        if relation == "==":
            if not p:
                return True
            if (low is not None and low > 0) or (high is not None and high < 0):
                return False
        else:
            edge = 0 if relation == "<=" else -1
            if high is not None and high <= edge:
                return True
            if low is not None and low > edge:
                return False
        if self.asking == "prove":
            return now and relation != "=="
        if abs(p.get((), 0)) > _FAR:
            return now
        opposite = {"==": "!=", "<": ">=", "<=": ">"}
        self.require(poly.compared(p, relation if now else opposite[relation]))
        self._learn(relation if now else opposite[relation], p)
        return now

    def require(self, condition: str) -> None:
        """Remember what must hold for other sizes, too."""
        self.conditions.setdefault(condition, self.where())

    def _learn(self, relation: str, p: Poly) -> None:
        """What follows from a condition."""
        if relation == "==":
            for s in sorted((m[0] for m, c in p.items() if len(m) == 1 and abs(c) == 1), key=_late, reverse=True):
                if sum(s in m for m in p) == 1 and s in self.values:
                    rest = poly.add(p, {(s,): p[s,]}, -1)
                    self.known[s] = poly.add({}, rest, -p[s,])
                    return
            return
        rest = {m: c for m, c in p.items() if m}
        if len(rest) != 1:
            return
        ((m, c),) = rest.items()
        if len(m) != 1 or abs(c) != 1:
            return
        at = -p.get((), 0) * c  # the value where it is 0
        low, high = self.bounds.get(m[0], (None, None))
        if relation in ("<", "<=") if c > 0 else relation in (">", ">="):
            most = at if "=" in relation else at - 1
            high = most if high is None else min(high, most)
        elif relation != "!=":
            least = at if "=" in relation else at + 1
            low = least if low is None else max(low, least)
        elif low == at:
            low += 1
        self.bounds[m[0]] = low, high

    def fix(self, expression: str, value: Any, why: str) -> None:
        """The expression must keep its value."""
        if self.closed:
            return
        condition = f"{expression} == {value!r}"
        if condition not in self.conditions:
            self.require(condition)
            self.fixed.append(f"{expression} is {value!r}: {why}" + (f" ({self.where()})" if self.where() else ""))


def _late(name: str) -> tuple[int, int]:
    """Expressions first, then symbols from the latest on."""
    return (0, int(name[1:])) if name[0] == "s" and name[1:].isdigit() else (1, 0)


KINDS: set[Any] = set()  # classes of numbers that come from sizes


def owner_of(*given: Any) -> Symbols:
    return next(g.symbols for g in given if hasattr(g, "symbols"))


def is_symbolic(a: Any) -> bool:
    """Whether a value, or one inside of a tuple, comes from sizes."""
    if a.__class__ is tuple or a.__class__ is list:
        return any(is_symbolic(x) for x in a)
    return a.__class__ in KINDS


def plain(a: Any) -> Any:
    """A value with the numbers of this run in place of expressions."""
    if a.__class__ is tuple or a.__class__ is list:
        return a.__class__([plain(x) for x in a])
    if a.__class__ is slice:
        return slice(plain(a.start), plain(a.stop), plain(a.step))
    return a.value if a.__class__ in KINDS else a


def text_of(a: Any) -> str:
    """The Python text of a size or of a float that comes from sizes."""
    return str(a.term) if a.__class__ in KINDS else repr(a)


def key_of(a: Any) -> Any:
    """A value that can be hashed, equal for what is equal for all sizes."""
    if a.__class__ in KINDS:
        return a.key
    if a.__class__ is tuple:
        return tuple([key_of(x) for x in a])
    return a
