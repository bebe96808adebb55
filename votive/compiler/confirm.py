"""Two traces of one program compared: one for any sizes, one at other sizes where all sizes are plain numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..core.layout import Spec
from . import polynomials as poly
from .graph import Graph, Value
from .symbols import Symbols, is_symbolic, text_of
from .trace import draw_arguments


@dataclass
class Traced:
    """What one trace of sizes found."""

    symbols: Symbols
    graph: Graph
    outputs: list[Value]
    grads: list[int | None] | None
    recipes: Any
    leaves: list[Any]  # of the result, that are no tensors
    entry: Any


_STEPS: tuple[Callable[[int], int], ...] = (
    lambda n: n + 3,
    lambda n: n + 1,
    lambda n: n + 2,
    lambda n: 2 * n,
    lambda n: 3 * n,
    lambda n: n - 1,
    lambda n: 2 * n + 1,
    lambda n: n // 2,
    lambda n: 4 * n,
    lambda n: n - 2,
    lambda n: n + 4,
    lambda n: n + 8,
    lambda n: n + 64,
)


def other_values(symbols: Symbols) -> dict[str, int]:
    """Other sizes for which the same conditions hold, as different as possible."""
    hints = {s.name: s.hint for s in symbols.symbols}
    tests = [compile(c, "<sizes>", "eval") for c in symbols.conditions]
    # What is known to be an expression of others follows these.
    follow = {n: poly.text(symbols.normal(poly.name(n))) for n in hints if n in symbols.known}
    free = [n for n in hints if n not in follow]

    def whole(values: dict[str, int]) -> dict[str, int] | None:
        try:
            found = {**values, **{n: eval(t, {"math": math}, values) for n, t in follow.items()}}
            fits = all(v >= 2 for v in found.values()) and all(eval(t, {"math": math}, found) for t in tests)
        except (ArithmeticError, NameError):
            return None
        return found if fits else None

    best = {n: hints[n] for n in free}
    apart = whole({n: best[n] + 3 + 2 * k for k, n in enumerate(free)})
    if apart is not None:
        return apart
    for step in _STEPS:  # all changed in the same way
        same = whole({n: step(v) for n, v in best.items()})
        if same is not None:
            return same
    for n in free:  # as many as can be, one by one or two together
        for other in (n, *free):
            for step in _STEPS:
                shift = step(hints[n]) - hints[n]
                new = {**best, n: hints[n] + shift, **({other: best[other] + shift} if other != n else {})}
                if shift and best[n] == hints[n] and whole(new) is not None:
                    best = new
    return whole(best) or hints


def difference(one: Traced, other: Traced, values: dict[str, int]) -> str:
    """Where two traces differ, the first with the sizes of the second; empty where they do not."""
    scope = {"math": math, **values}

    def at(a: object) -> Any:
        if a.__class__ in (tuple, list):
            return tuple([at(x) for x in a])
        if is_symbolic(a):
            return eval(text_of(a), dict(scope))
        return f"v{a.number}" if a.__class__ is Value else a

    def spec(s: Spec) -> Any:
        return at(s.shape), at(s.strides), s.dtype, s.device

    def same(a: object, b: object) -> bool:
        if a.__class__ in (tuple, list):
            return (
                b.__class__ in (tuple, list) and len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
            )
        if a.__class__ is float and b.__class__ is float:
            return a == b or (a != a and b != b)
        return a is b or (a.__class__ is b.__class__ and bool(a == b))

    mine, theirs = one.graph, other.graph
    if len(mine.nodes) != len(theirs.nodes) or len(mine.inputs) != len(theirs.inputs):
        return "the program makes other calls"
    for a, b in zip(mine.inputs, theirs.inputs, strict=True):
        if spec(a.spec) != spec(b.spec) or a.kind != b.kind:
            return f"{a.label} has other sizes"
    for n, m in zip(mine.nodes, theirs.nodes, strict=True):
        where = f"{n.op.name}" + (f" ({n.line})" if n.line else "")
        if n.op is not m.op or n.form != m.form or n.backward != m.backward or len(n.outs) != len(m.outs):
            return f"{where} is another call"
        drawn = draw_arguments(n.op) if n.draw is not None else ()
        for i, (a, b) in enumerate(zip(n.args, m.args, strict=True)):
            if i not in drawn and not same(at(a), at(b)):
                return f"{n.op.schema.names[i]} of {where}"
        if n.draw is not None and (m.draw is None or at(n.draw.count) != m.draw.count):
            return f"the random numbers of {where}"
        for v, w in zip((*n.outs, n.into), (*m.outs, m.into), strict=True):
            if v is None or w is None:
                alike = v is w
            else:
                alike = v.number == w.number and spec(v.spec) == spec(w.spec)
            if not alike:
                return f"the result of {where}"
    if len(mine.constants) != len(theirs.constants) or len(one.recipes) != len(other.recipes):
        return "the program makes other tensors"
    for (a, t), (b, u) in zip(mine.constants.items(), theirs.constants.items(), strict=True):
        if a.number != b.number or t._spec is not u._spec or t.numpy().tobytes() != u.numpy().tobytes():
            return "a tensor made of numbers"
    if [v.number for v in one.outputs] != [v.number for v in other.outputs]:
        return "the results"
    if not same(tuple(at(x) for x in one.leaves), tuple(at(x) for x in other.leaves)):
        return "numbers among the results"
    for r, q in zip(one.recipes, other.recipes, strict=True):
        if (r.given, r.index, r.detached, len(r.views)) != (q.given, q.index, q.detached, len(q.views)):
            return "how results share memory"
        views = zip(r.views, q.views, strict=True)
        if any(x.op is not y.op or not same(at(x.args[1:]), at(y.args[1:])) for x, y in views):
            return "how results share memory"
    return "" if one.grads == other.grads else "gradients"
