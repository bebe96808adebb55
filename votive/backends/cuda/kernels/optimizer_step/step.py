"""Optimizer steps: a formula of `rules.py` becomes the text of a kernel that goes over
all parameters of a group in one launch. Knows no formula itself.

With the step counts on the device (`fused=True`) nothing is read on the host, so that a whole
training step can become a graph.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import triton.language as tl

from .....core import dtype as dt
from ...cpu_fallback import fetch, store
from ...programs.copy import copy_view
from ...programs.multi_tensor import (
    REAL,
    Table,
    addresses,
    alike,
    column,
    counted,
    kinds,
    laid_out_like,
    place,
    sizes_of,
)
from ...programs.pointwise import jit
from ...programs.program import TYPE, Program
from ...rows import cuda
from ...runtime.views import View
from . import rules as r


@dataclass(frozen=True)
class Rule:
    """A rule of `states` states, and where its numbers come from.

    Each parameter keeps `counts` numbers, the step last; `each`: it has one more, fixed in the
    plan; `scaling`: a gradient scaler's tensors come last. Where the counts are on the host, so
    does `on_host` work; on the device `numbers` gives the rule's numbers once the step is counted,
    and `after` moves the other counts on.
    """

    fn: Any
    states: int
    counts: int
    on_host: Callable[..., r.Numbers]
    numbers: Any = None
    after: Any = None
    each: bool = False
    scaling: bool = False


_KERNEL = """
@triton.jit
def {name}(table, count, chunks, {scaling}{given}, T: tl.constexpr, G: tl.constexpr,
           WIDE: tl.constexpr, S: tl.constexpr, ALIGNED: tl.constexpr, BLOCK: tl.constexpr):
    which, first, n = place(table, count, chunks, {columns})
{numbers}
    if first + 8192 <= n:  # without a mask, loads are wide
        for k in tl.static_range(8192 // BLOCK):
            i = first + k * BLOCK + tl.arange(0, BLOCK)
{whole}
    else:
        for k in tl.static_range(8192 // BLOCK):
            i = first + k * BLOCK + tl.arange(0, BLOCK)
            inside = i < n
{masked}
"""


def _source(
    rule: Rule,
    present: tuple[bool, ...],
    flags: tuple[bool, ...],
    device: bool,
    scaling: tuple[bool, bool],
    given: list[str],
) -> str:
    """The text of a rule's kernel. Columns of the table: parameters, gradients, states, counts.
    `scaling`: whether gradients are divided by a scale, and whether a step may be left out.
    """
    scaled, checked = scaling
    held = [True, True, *present]
    columns = [k for k, here in enumerate(held) if here]
    kind = ["G" if k == 1 else "T" for k in range(len(held))]
    lines = [f"a{k} = column(table, {k} * count + which, {kind[k]}, ALIGNED)" for k in columns]
    if checked:
        lines.append("n = tl.where(tl.load(found) != 0, 0, n)")
    if scaled:
        lines.append("scale = tl.load(scale_at).to(WIDE)")
    inner = given
    if device:
        counts = [f"c{k}" for k in range(rule.counts)]
        for k, name in enumerate(counts, len(held)):
            lines.append(f"{name} = tl.load(column(table, {k} * count + which, S, False))")
            lines.append(f"{name} = {name}.to(tl.float64)")
        used = len(rule.fn.arg_names) - len(held) - len(flags)
        inner = [f"n{k}" for k in range(used)]
        lines.append(f"{', '.join(inner)} = numbers({', '.join([*counts, *given])})")
        lines += [f"{n} = {n}.to(WIDE)" for n in inner]
    values = [f"v{k}" for k in range(len(held))]
    results = "".join(f"{v}, " for v in values if v != "v1")
    operands = ", ".join([*values, *inner, *map(str, flags)])

    def body(mask: str, other: str) -> list[str]:
        return [
            *(f"v{k} = tl.load(a{k} + i{mask}{other}).to(WIDE)" for k in columns),
            *(f"v{k} = v0" for k, here in enumerate(held) if not here),
            *(["v1 = m.f_div(v1, scale)", f"tl.store(a1 + i, v1.to(G){mask})"] if scaled else []),
            f"{results} = rule({operands})",
            *(f"tl.store(a{k} + i, v{k}.to(T){mask})" for k in columns if k != 1),
        ]

    def text(lines: list[str], depth: int) -> str:
        return "\n".join("    " * depth + line for line in lines)

    return _KERNEL.format(
        name=rule.fn.__name__ + "_step",
        given=", ".join(given),
        scaling="scale_at, " * scaled + "found, " * checked,
        columns=len(held) + rule.counts,
        numbers=text(lines, 1),
        whole=text(body("", ""), 3),
        masked=text(body(", mask=inside", ", other=0.0"), 3),
    )


def _register(op: str, rule: Rule, variant: Any = None) -> None:
    """`variant(states, flags)`: which states are there, and the rule's own flags."""
    tensors = 2 + rule.states

    @cuda(op)
    def arrange(*args: Any) -> Any:
        lists, counts, rest = args[:tensors], args[tensors:][: rule.counts], args[tensors:]
        options = [a for a in rest if isinstance(a, bool)]
        scaling = rest[-2:] if rule.scaling else ()
        params, grads, states = lists[0], lists[1], lists[2:]
        fixed = kinds(params, grads)
        present, flags = variant(states, options) if variant else ((True,) * rule.states, ())
        used = [s for s, here in zip(states, present, strict=True) if here]
        if (
            fixed is None
            or not alike(params)
            or any(s.dtype is not params[0].dtype for x in used for s in x)
            or any(len({s.dtype for s in c}) != 1 or c[0].dtype not in _COUNTS for c in counts)
            or any(s is not None and s.dtype is not dt.float32 for s in scaling)
        ):
            return None
        each = rest[0] or (False,) * len(params) if rule.each else None
        launch = _Launches(rule, fixed, counts, present, flags)
        step = _stepping(rule, launch, sizes_of(params), options, each)
        turns = [laid_out_like(x, params) for x, here in zip(lists[1:], (True, *present)) if here]

        def run(outs: list[View], *values: Any) -> None:
            scaling = (0, 0)
            if rule.scaling:
                *values, scale, found = values  # type: ignore[assignment]
                scaling = (0 if scale is None else scale.ptr, 0 if found is None else found.ptr)
            lists, kept = values[:tensors], values[tensors : tensors + rule.counts]
            params = lists[0]
            if scaling[1] and kept and kept[0][0].__class__ is not View and fetch(found).any():
                return
            given = [x for x, here in zip(lists[1:], (True, *present)) if here]
            dense = [turn(x, params) for turn, x in zip(turns, given, strict=True)]
            filled = iter(dense)
            columns = [addresses(params), addresses(next(filled))]
            columns += [addresses(next(filled)) if here else [0] * len(params) for here in present]
            step(columns, kept, values[tensors + rule.counts :], scaling)
            first = 0 if scaling[0] else 1  # gradients are written where they are scaled
            for states, moved in zip(given[first:], dense[first:], strict=True):
                for v, made in zip(states, moved, strict=True):
                    if v is not made:
                        copy_view(v, made)

        return run


class _Launches:
    """The programs of a rule, made when first wanted, and the tables they were given."""

    def __init__(self, rule: Rule, fixed: dict[str, Any], counts: Any, present: Any, flags: Any) -> None:
        self.rule, self.fixed, self.present, self.flags = rule, fixed, present, flags
        self.tensors = 2 + rule.states
        self.kind = REAL[TYPE[counts[0][0].dtype]] if counts else tl.float32
        self.tables: list[Table] = []
        self.made: dict[tuple[bool, bool, tuple[bool, bool]], Program] = {}
        if rule.numbers:
            self.count = counted(counts[-1], self.tensors + rule.counts - 1)
        if rule.after:
            types = ["*i64", "i32", *["fp64"] * 6]
            self.after = Program(rule.after, types, {"S": self.kind})

    def __call__(self, columns: Any, sizes: list[int], numbers: Any, device: bool, k: int, scaling: Any) -> None:
        """Step the parameters whose addresses are given. `k`: which table is rewritten;
        `scaling`: where the scale and what forbids a step lie, or 0.
        """
        if k == len(self.tables):
            self.tables.append(Table())
        table, n = self.tables[k], len(sizes)
        at = table.write(columns, sizes)
        if device:
            self.count(at, n, scaling[1])
        if table.chunks:
            even, given = table.even, [p for p in scaling if p]
            program = self._program(device, even, len(numbers), tuple(p != 0 for p in scaling))
            program((table.chunks,), at, n, table.chunks, *given, *numbers)
        if device and self.rule.after:
            self.after((n,), at, n, *numbers)

    def _program(self, device: bool, even: bool, n: int, scaling: Any) -> Program:
        found = self.made.get((device, even, scaling))
        if found is None:
            rule, given = self.rule, [f"x{k}" for k in range(n)]
            source = _source(rule, self.present, self.flags, device, scaling, given)
            known = {"place": place, "column": column, "rule": rule.fn, "numbers": rule.numbers}
            fn = jit(source, rule.fn.__name__ + "_step", **known)
            number = "fp64" if device or self.fixed["WIDE"] == tl.float64 else "fp32"
            types = ["*i64", "i32", "i32", *["*fp32"] * sum(scaling), *[number] * n]
            constants = {"S": self.kind, "ALIGNED": even, **self.fixed}
            found = self.made[device, even, scaling] = Program(fn, types, constants)
        return found


def _stepping(rule: Rule, launch: _Launches, sizes: list[int], options: Any, each: Any) -> Any:
    """step(columns, counts, hyperparameters, scaling): parameters with the same numbers in one
    launch. That is all of them, but where some have taken fewer steps.
    """
    n = len(sizes)

    def numbers_of(kept: Any, hyper: Any) -> list[tuple[float, ...]]:
        known: dict[Any, r.Numbers] = {}
        found = []
        for k in range(n):
            key: Any = (each[k],) if each else ()
            if kept:
                kept[-1][k] += 1
                key = (*(c[k][()] for c in kept[:-1]), float(kept[-1][k]))
            if key not in known:
                known[key] = rule.on_host(*key, *hyper, *options)
            numbers, moved = known[key]
            for c, value in zip(kept, moved):
                c[k][...] = value
            found.append(numbers)
        return found

    def step(columns: Any, kept: Any, hyper: Any, scaling: Any) -> None:
        device = bool(kept) and kept[0][0].__class__ is View
        if device and rule.numbers:
            columns += [addresses(c) for c in kept]
            launch(columns, sizes, (*map(float, hyper), *map(float, options)), True, 0, scaling)
            return
        columns += [[0] * n] * rule.counts
        there = [[fetch(v) for v in c] for c in kept] if device else kept
        groups: dict[tuple[float, ...], list[int]] = {}
        for k, numbers in enumerate(numbers_of(there, hyper)):
            groups.setdefault(numbers, []).append(k)
        if device:
            for c, arrays in zip(kept, there, strict=True):
                for v, a in zip(c, arrays, strict=True):
                    store(a, v)
        for k, (numbers, which) in enumerate(groups.items()):
            if len(which) == n:
                launch(columns, sizes, numbers, False, k, scaling)
            else:
                some = [[c[i] for i in which] for c in columns]
                launch(some, [sizes[i] for i in which], numbers, False, k, scaling)

    return step


def _sgd_states(states: Any, options: Any) -> tuple[tuple[bool, ...], tuple[bool, ...]]:
    moving = bool(states[0])
    return (moving,), (moving, options[0])


def _adam_states(states: Any, options: Any) -> tuple[tuple[bool, ...], tuple[bool, ...]]:
    return (True, True, options[0]), (options[0],)


def _rmsprop_states(states: Any, options: Any) -> tuple[tuple[bool, ...], tuple[bool, ...]]:
    centered, moving = options[0], bool(states[2])
    return (True, centered, moving), (centered, moving)


_COUNTS = (dt.float32, dt.float64)
_register("_sgd_step", Rule(r.sgd, 1, 0, r.sgd_on_host, each=True, scaling=True), _sgd_states)
_register("_adam_step", Rule(r.adam, 3, 1, r.adam_on_host, r.adam_numbers, scaling=True), _adam_states)
_register("_rmsprop_step", Rule(r.rmsprop, 3, 1, r.rmsprop_on_host), _rmsprop_states)
_register("_adagrad_step", Rule(r.adagrad, 1, 1, r.adagrad_on_host, r.adagrad_numbers, scaling=True))
_register("_adadelta_step", Rule(r.adadelta, 2, 1, r.adadelta_on_host))
_register("_adamax_step", Rule(r.adamax, 2, 1, r.adamax_on_host))
_register("_nadam_step", Rule(r.nadam, 2, 2, r.nadam_on_host))
_register("_radam_step", Rule(r.radam, 2, 1, r.radam_on_host))
_register("_lion_step", Rule(r.lion, 1, 0, r.lion_on_host))
_register("_rprop_step", Rule(r.rprop, 2, 1, r.rprop_on_host))
_register("_asgd_step", Rule(r.asgd, 1, 3, r.asgd_on_host, r.asgd_numbers, r.asgd_after))
_register("_average_step", Rule(r.average, 0, 0, r.average_on_host))
