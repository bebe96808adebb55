"""Which formulas are compiled whole, and their C++ text. Runs when the native module is built."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any

from ....formula import Formula, to_cpp
from ....formula.expr import Expr, var
from .program import APART, FLOAT, Linear, linearise


def _statics(op: Any) -> list[tuple[Any, ...]]:
    if op.typical:
        return list(op.typical)
    return [tuple(a.default for a in op.schema.args if not a.is_runtime)]


def _odd(op: Any) -> Iterator[tuple[Any, ...]]:
    """Static arguments, some with numbers that nothing folds away: they show a formula's shape."""
    numeric = [a.type in ("number", "float") for a in op.schema.args if not a.is_runtime]
    for common in _statics(op):
        for chosen in product((True, False), repeat=len(common)):
            if any(chosen) and all(n for n, c in zip(numeric, chosen, strict=True) if c):
                yield tuple(
                    0.3717 + 0.1193 * k if c else v for k, (c, v) in enumerate(zip(chosen, common, strict=True))
                )


def _with_gradients(op: Any, statics: Iterable[tuple[Any, ...]]) -> Iterator[Formula]:
    """An operator's formula and its first derivatives."""
    for static in statics:
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


def _fits(linear: Linear | None, inputs: int) -> bool:
    return (
        linear is not None
        and 1 < len(linear.steps) <= 40
        and 1 <= inputs <= 8
        and all(n in FLOAT and n not in APART for n, _ in linear.steps)
    )


def _open(linear: Linear, names: list[str]) -> tuple[Expr, list[str]]:
    """The formula with variables in place of its constants."""
    names = [*names, *(f"c{k}" for k in range(len(linear.constants)))]
    registers = [var(n) for n in names]
    for op, args in linear.steps:
        registers.append(Expr(op, tuple(registers[r] for r in args)))
    return registers[linear.result], names


def compiled(ops: Iterable[Any]) -> dict[str, tuple[str, Expr, list[str], int]]:
    """What to compile by key: a formula's name, body, inputs, how many of these are constants.

    Formulas of several steps that the engine has every primitive of. Those with static numbers
    are there a second time, with the constants as inputs, for numbers that are not in the list.
    """
    found: dict[str, tuple[str, Expr, list[str], int]] = {}
    for op in ops:
        if op.kind != "pointwise":
            continue
        for formula in _with_gradients(op, _statics(op)):
            names = list(formula.params)
            linear = linearise(formula.body, names)
            if linear is not None and _fits(linear, len(names)):
                found.setdefault(linear.key(), (formula.name, formula.body, names, 0))
        for formula in _with_gradients(op, _odd(op)):
            names = list(formula.params)
            linear = linearise(formula.body, names)
            if linear is not None and _fits(linear, len(names) + len(linear.constants)):
                opened = (formula.name, *_open(linear, names), len(linear.constants))
                found.setdefault(linear.shape_key(), opened)
    return found


def _cheap(linear: Linear | None) -> bool:
    """Whether to widen and round half types costs more than the formula itself."""
    return linear is not None and linear.cost <= 6


def source(ops: Iterable[Any]) -> str:
    """The text of formulas.inc for these operators."""
    functions, entries = [], []
    for key, (name, body, names, constants) in sorted(compiled(ops).items()):
        functions.append(f"// {name}\n" + to_cpp(body, key, names))
        for kind in ("float", "double"):
            arity = f"{len(names)}, {constants}"
            entries.append(f'    add_formula<{kind}, {key}<{kind}>, {arity}>("{key}");')
        if _cheap(linearise(body, names)) and len(names) <= 4:
            # Constants are numbers; else none is, or (min and max of clamp) all but the first.
            for numbers in {constants} if constants else {0, len(names) - 1}:
                entries.append(f'    add_halves<{key}<float>, {len(names)}, {numbers}>("{key}");')
    return "\n".join(functions) + "\nstruct Formulas {\n  Formulas() {\n" + "\n".join(entries) + "\n  }\n} formulas;\n"
