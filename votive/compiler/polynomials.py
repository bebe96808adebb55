"""Sizes as expressions: polynomials of named sizes with integer coefficients. Pure functions; knows no tensors.

A polynomial is a table from monomials, sorted names, to coefficients; it has no entry for what is zero. What is no
polynomial, such as `s0 // 3`, becomes a name of its own, which is its Python text.
"""

from __future__ import annotations

from collections.abc import Mapping

Monomial = tuple[str, ...]
Poly = dict[Monomial, int]
Bounds = tuple[int | None, int | None]  # least and largest value, None where there is none


def constant(n: int) -> Poly:
    """A number."""
    return {(): n} if n else {}


def number(p: Poly) -> int | None:
    """The number that a polynomial is, or None."""
    if not p:
        return 0
    return p[()] if len(p) == 1 and () in p else None


def name(text: str) -> Poly:
    """A name, or an expression that is one."""
    return {(text,): 1}


def add(a: Poly, b: Poly, times: int = 1) -> Poly:
    """`a + times * b`."""
    out = dict(a)
    for m, c in b.items():
        total = out.get(m, 0) + times * c
        if total:
            out[m] = total
        else:
            out.pop(m, None)
    return out


def multiply(a: Poly, b: Poly) -> Poly:
    """`a * b`."""
    out: Poly = {}
    for m, c in a.items():
        for n, d in b.items():
            both = tuple(sorted((*m, *n)))
            total = out.get(both, 0) + c * d
            if total:
                out[both] = total
            else:
                out.pop(both, None)
    return out


def _order(m: Monomial) -> tuple[int, Monomial]:
    return len(m), m


def _quotient(m: Monomial, by: Monomial) -> Monomial | None:
    left = list(m)
    for n in by:
        if n not in left:
            return None
        left.remove(n)
    return tuple(left)


def divide(a: Poly, b: Poly) -> Poly | None:
    """The polynomial that times `b` is `a`, or None."""
    if not b:
        return None
    lead = max(b, key=_order)
    rest, out = dict(a), constant(0)
    for _ in range(64):  # each step takes the leading term away
        if not rest:
            return out
        top = max(rest, key=_order)
        m = _quotient(top, lead)
        if m is None or rest[top] % b[lead]:
            return None
        term = {m: rest[top] // b[lead]}
        out = add(out, term)
        rest = add(rest, multiply(term, b), -1)
    return None


def text(p: Poly) -> str:
    """Python text."""
    if not p:
        return "0"
    parts: list[str] = []
    for m, c in sorted(p.items(), key=lambda item: (-len(item[0]), item[0])):
        body = "*".join(m)
        if not m:
            body = str(abs(c))
        elif abs(c) != 1:
            body = f"{abs(c)}*{body}"
        parts.append(("-" if c < 0 else "") + body if not parts else f" {'-' if c < 0 else '+'} {body}")
    return "".join(parts)


_TURNED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def compared(p: Poly, relation: str) -> str:
    """Python text of `p relation 0`, written as one would: what is subtracted stands on the other side."""
    left, right = {m: c for m, c in p.items() if c > 0}, {m: -c for m, c in p.items() if c < 0}
    if number(left) is not None:
        left, right, relation = right, left, _TURNED[relation]
    return f"{text(left)} {relation} {text(right)}"


def term(p: Poly) -> str:
    """Python text that stands anywhere in an expression."""
    t = text(p)
    return t if t.isalnum() else f"({t})"


def key(p: Poly) -> tuple[tuple[Monomial, int], ...]:
    """What equal polynomials have in common."""
    return tuple(sorted(p.items()))


def replaced(p: Poly, table: Mapping[str, Poly]) -> Poly:
    """With polynomials in place of names."""
    if not any(n in table for m in p for n in m):
        return p
    out: Poly = {}
    for m, c in p.items():
        part = constant(c)
        for n in m:
            part = multiply(part, table[n] if n in table else name(n))
        out = add(out, part)
    return replaced(out, table)


def bounds(p: Poly, known: Mapping[str, Bounds]) -> Bounds:
    """Between which numbers a polynomial lies, as far as that is easily seen."""
    shifted: Poly = {}
    for m, c in p.items():
        part = constant(c)
        for n in m:
            low = known.get(n, (None, None))[0]
            if low is None:
                return None, None
            part = multiply(part, add(name(n), constant(low)))  # from here on the name counts from its least value
        shifted = add(shifted, part)
    low_end: int | None = shifted.get((), 0)
    high_end: int | None = low_end
    for m, c in shifted.items():
        if not m:
            continue
        most: int | None = c
        for n in m:
            low, high = known[n]
            most = None if most is None or high is None or low is None else most * (high - low)
        if c > 0:
            high_end = None if high_end is None or most is None else high_end + most
        else:
            low_end = None if low_end is None or most is None else low_end + most
    return low_end, high_end
