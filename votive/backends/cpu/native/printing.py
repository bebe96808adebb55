"""Which formulas are compiled whole, and their C++ text. Runs when the native module is built."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ....formula import Formula, to_cpp
from .program import APART, FLOAT, Linear, linearise

# Static arguments that are common in programs, where an operator has no default for them.
_STATIC = {
    "leaky_relu": [(0.01,), (0.2,)],
    "elu": [(1.0, 1.0, 1.0)],
    "hardtanh": [(-1.0, 1.0), (0.0, 6.0)],
    "_smooth_l1": [(1.0,)],
    "_huber": [(1.0,)],
    "gelu": [("none",), ("tanh",)],
}


def _statics(op: Any) -> list[tuple[Any, ...]]:
    if op.name in _STATIC:
        return _STATIC[op.name]
    return [tuple(a.default for a in op.schema.args if not a.is_runtime)]


def _formulas(ops: Iterable[Any]) -> Iterator[Formula]:
    """Formulas of elementwise operators and of their first derivatives."""
    for op in ops:
        if op.kind != "pointwise":
            continue
        for static in _statics(op):
            try:
                formula = op.formula(static)
            except (TypeError, ValueError):  # a static argument without a default
                continue
            yield formula
            for name in formula.params:
                try:
                    grad = formula.gradient(name, False)
                except Exception:  # no derivative: nothing to compile
                    continue
                if grad is not None:
                    yield grad


def compiled(ops: Iterable[Any]) -> dict[str, tuple[Formula, Linear]]:
    """Formulas of several steps that the engine has every primitive of, by key."""
    found: dict[str, tuple[Formula, Linear]] = {}
    for formula in _formulas(ops):
        names = list(formula.params)
        linear = linearise(formula.body, names)
        if linear is None or not 1 < len(linear.steps) <= 40 or not 1 <= len(names) <= 8:
            continue
        if all(n in FLOAT and n not in APART for n, _ in linear.steps):
            found.setdefault(linear.key(), (formula, linear))
    return found


def source(ops: Iterable[Any]) -> str:
    """The text of formulas.inc for these operators."""
    functions, entries = [], []
    for key, (formula, linear) in sorted(compiled(ops).items()):
        functions.append(f"// {formula.name}\n" + to_cpp(formula.body, key, list(formula.params)))
        for kind in ("float", "double"):
            entries.append(f'    add_formula<{kind}, {key}<{kind}>, {linear.inputs}>("{key}");')
    return (
        "\n".join(functions)
        + "\nstruct Formulas {\n  Formulas() {\n"
        + "\n".join(entries)
        + "\n  }\n} formulas;\n"
    )
