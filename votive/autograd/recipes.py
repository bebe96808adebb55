"""Recipes: what a node keeps and how it runs back, decided once per plan and needed inputs."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ..core.errors import MissingGradientError
from ..core.layout import Spec
from ..dispatch import Plan, PointwisePlan
from ..formula import NotDifferentiable
from ..ops.registry import F, Op, formula_op
from .graph import Node, flat_names, sources


class Recipe:
    """What `recipe_for` adds to both kinds."""

    plan: Plan
    outs: tuple[Spec, ...] | None
    slots: tuple[tuple[Any, int], ...]  # the kept values: key, and where it is found
    sources: dict[str, tuple[str, Any]]  # how rules get arguments by name
    carries: tuple[bool, ...] | None  # per output: whether it can carry a gradient
    first_only: bool = False  # whether only the gradient of the first output is looked at
    materialize: bool = True  # whether zeros stand in for a gradient that never came


class FormulaRecipe(Recipe):
    """Backward of a formula: one derived formula per needed input."""

    def __init__(self, plan: PointwisePlan, mask: tuple[bool, ...]) -> None:
        formula = plan.formula
        self.mask = mask
        self.zero: list[Spec | None] = []  # needed inputs whose gradient is zero everywhere
        self.steps: list[Any] = []
        keep: list[Any] = []
        for name, needed in zip(flat_names(plan), mask, strict=True):
            step = None
            if needed:
                try:
                    step = _backward_op(plan, name)
                except NotDifferentiable as e:
                    step = MissingGradientError(
                        f"{plan.op.name}: the derivative by {name!r} is not implemented (via {e})."
                    )
            self.steps.append(step)
            self.zero.append(plan.specs[len(self.zero)] if needed and step is None else None)
            if isinstance(step, tuple):
                for source in step[1]:
                    key = ("out", 0) if source == formula.result else source
                    if source != formula.incoming and key not in keep:
                        keep.append(key)
        specs = dict(zip(formula.params, plan.specs, strict=True))
        self.numbers = {n: i for i, n in enumerate(formula.params) if not isinstance(specs[n], Spec)}
        self.keep = [k for k in keep if k not in self.numbers]
        self.incoming = formula.incoming
        self.result = formula.result

    def run(self, node: Node, grads: list[Any]) -> tuple[Any, ...]:
        (g,) = grads
        out = []
        for step, zero in zip(self.steps, self.zero, strict=True):
            if step is None:
                out.append(None if zero is None else zeros(zero))
                continue
            if isinstance(step, Exception):
                raise step
            op, sources = step
            values = []
            for s in sources:
                if s == self.incoming:
                    values.append(g)
                elif s == self.result:
                    values.append(node.saved(("out", 0)))
                elif s in self.numbers:
                    values.append(node.numbers[self.numbers[s]])
                else:
                    values.append(node.saved(s))
            if op is None:  # the gradient is g itself
                out.append(g)
            elif any(hasattr(v, "_spec") for v in values):
                out.append(Op.apply(op, tuple(values)))
            else:
                out.append(None)
        return tuple(out)


def zeros(spec: Spec) -> Any:
    """A gradient of zeros; torch gives one wherever an input was used, also if it has no effect."""
    return F.zeros(spec.shape, dtype=spec.dtype, device=spec.device)


def _backward_op(plan: PointwisePlan, name: str) -> Any:
    """(operator, argument sources) of the gradient by one input, or None when it is zero."""
    formula = plan.formula
    grad = formula.gradient(name, plan.is_complex)
    if grad is None:
        return None
    if grad.body.op == "var" and grad.params == (formula.incoming,):
        return (None, grad.params)
    cache = plan.op.__dict__.setdefault("backward_ops", {})
    key = id(grad)
    if key not in cache:
        cache[key] = (formula_op(grad), grad)
    return (cache[key][0], grad.params)


def _read_names(fn: Callable[..., Any]) -> set[str]:
    """Every attribute name a rule's code reads, nested functions included."""
    names: set[str] = set()
    codes = [fn.__code__] if hasattr(fn, "__code__") else []
    while codes:
        code = codes.pop()
        names.update(code.co_names)
        codes.extend(c for c in code.co_consts if hasattr(c, "co_names"))
    return names


def _ignores_rest(rules: Any) -> bool:
    """Whether all rules take the first gradient and the others as `*_`: nobody looks at them."""
    for fn in rules.values() if isinstance(rules, dict) else (rules,):
        code = getattr(fn, "__code__", None)
        if code is None or not code.co_flags & inspect.CO_VARARGS or code.co_argcount != 2:
            return False
        if code.co_varnames[code.co_argcount + code.co_kwonlyargcount] != "_":
            return False
    return True


class RuleRecipe(Recipe):
    """Backward by hand-written rules: a dict of rules per input, or one rule for all."""

    def __init__(self, plan: Plan, mask: tuple[bool, ...]) -> None:
        op = plan.op
        self.names = flat_names(plan)
        self.mask = mask
        self.wanted = [
            n for n in dict.fromkeys(self.names) if any(m for k, m in zip(self.names, mask, strict=True) if k == n)
        ]
        rules = op.grad
        self.missing: str | None = None
        read: set[str] = set(getattr(op, "saves", ()))
        if rules is None:
            self.missing = self.wanted[0]
        elif isinstance(rules, dict):
            for n in self.wanted:
                if n in rules:
                    if rules[n] is not None:
                        read |= _read_names(rules[n])
                else:
                    self.missing = n
        else:
            read |= _read_names(rules)
        self.rules = rules
        self.first_only = rules is not None and _ignores_rest(rules)
        self.materialize = not op.partial
        # One rule per input, in their order, when no input is a list.
        self.direct: list[tuple[str, Any, bool]] | None = None
        lists = any(a.is_list and a.is_tensor for a in op.schema.args)
        if isinstance(rules, dict) and self.missing is None and not lists:
            self.direct = [(n, rules[n] if m else None, m) for n, m in zip(self.names, mask, strict=True)]
        self.keep: list[Any] = []
        for a, v in zip(op.schema.args, plan.static, strict=True):
            if a.is_tensor and a.name in read and v is not None:
                if a.is_list:
                    self.keep.extend((a.name, k) for k in range(len(v)))
                elif isinstance(v, Spec):
                    self.keep.append(a.name)
        if "out" in read:
            self.keep.append(("out", 0))
        for k in range(op.n_out):
            if f"out{k}" in read:
                self.keep.append(("out", k))

    def run(self, node: Node, grads: list[Any]) -> tuple[Any, ...]:
        if self.missing is not None:
            raise MissingGradientError(f"{node.plan.op.name}: the derivative by {self.missing!r} is not implemented.")
        if self.direct is not None:
            return tuple(
                [
                    None if not wanted else zeros(node.spec(n)) if rule is None else rule(node, *grads)
                    for n, rule, wanted in self.direct
                ]
            )
        given: dict[str, Any] = {}
        rules = self.rules
        if isinstance(rules, dict):
            for n in self.wanted:
                given[n] = zeros(node.spec(n)) if rules[n] is None else rules[n](node, *grads)
        else:
            assert rules is not None  # `missing` says so otherwise
            result = rules(node, *grads)
            tensors = [a.name for a in node.plan.op.schema.args if a.is_tensor]
            if not isinstance(result, tuple):
                result = (result,)
            given = dict(zip(tensors, result, strict=True))
        out: list[Any] = []
        counts: dict[str, int] = {}
        for n in self.names:
            value = given.get(n)
            if isinstance(value, (list, tuple)):
                k = counts.get(n, 0)
                counts[n] = k + 1
                value = value[k]
            out.append(value)
        return tuple(out)


def _slots(plan: Plan, keep: list[Any]) -> tuple[tuple[Any, int], ...]:
    """Where each kept value is found: a position among the flat inputs, or -1 - an output's."""
    start, at = {}, 0
    for name, spec in zip(plan.op.schema.runtime_names, plan.specs, strict=True):
        start[name] = at
        at += len(spec) if spec.__class__ is tuple else 1
    out = []
    for key in keep:
        if key.__class__ is not tuple:
            out.append((key, start[key]))
        elif key[0] == "out":
            out.append((key, -1 - key[1]))
        else:
            out.append((key, start[key[0]] + key[1]))
    return tuple(out)


def _carries(plan: Plan) -> tuple[bool, ...] | None:
    """Which outputs can carry a gradient; None when that is known only after the call."""
    if plan.outs is None:
        return None
    return tuple(s.dtype.is_inexact for s in plan.outs)


def recipe_for(plan: Plan, mask: tuple[bool, ...]) -> Any:
    recipe = plan.recipes.get(mask)
    if recipe is None:
        if isinstance(plan, PointwisePlan) and plan.op.grad is None:
            recipe = FormulaRecipe(plan, mask)
        else:
            recipe = RuleRecipe(plan, mask)
        recipe.plan, recipe.outs = plan, plan.outs
        recipe.sources = sources(plan)
        recipe.slots, recipe.carries = _slots(plan, recipe.keep), _carries(plan)
        plan.recipes[mask] = recipe
    return recipe
