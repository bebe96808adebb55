"""Reductions in one reading whose lanes keep two numbers each: variances and logarithms of sums of exponentials.
Lanes, and parts of long rows, are joined at the end. Knows no operators.

Variances: every lane keeps the mean of what it saw and the squares around it (Welford 1962). A row that fits into
a tile is one step, and so the plain rule: its mean first, then the distances from it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import triton
import triton.language as tl

from ....core import dtype as dt
from ....core.layout import Layout, Spec
from ....formula import const, to_triton, var
from ....formula.expr import Expr, apply
from ..device import math as m
from ..runtime.views import View, empty
from .pointwise import _TL, jit
from .program import TYPE, Program
from .walk import Text, Walk


@triton.jit
def with_square(mean, squares, v, step):
    """Means and squares with one more value: the one of number `step`."""
    away = v - mean
    mean += away * (1 / step)
    return mean, squares + away * (v - mean)


@triton.jit
def spread(mean, squares, count, n):
    """(mean, squares around it) of rows whose columns have means, squares and counts of their own."""
    middle = tl.sum(mean * count, 1) / n
    away = mean - middle[:, None]
    return middle, tl.sum(squares + away * away * count, 1)


@triton.jit
def with_exponential(top, total, v, step):
    """Maxima and sums of exponentials with one more value."""
    higher = m.f_maximum(top, v)
    base = tl.where(tl.abs(higher) == float("inf"), 0.0, higher)
    return higher, total * m.f_exp(top - base) + m.f_exp(v - base)


@triton.jit
def exponentials(top, total, count, n):
    """(maximum, sum of exponentials beside it) of rows."""
    highest = tl.max(top, 1)
    base = tl.where(tl.abs(highest) == float("inf"), 0.0, highest)
    return highest, tl.sum(total * m.f_exp(top - base[:, None]), 1)


@triton.jit
def logarithm(top, total):
    base = tl.where(tl.abs(top) == float("inf"), 0.0, top)
    return m.f_log(total) + base


@triton.jit
def terms_of(length, lane, BN: tl.constexpr, T: tl.constexpr):
    """How many of `length` terms each lane of BN sees."""
    return (tl.maximum(length - lane + BN - 1, 0) // BN).to(T)


_DEVICE = (with_square, spread, with_exponential, exponentials, logarithm, terms_of)
_KNOWN: dict[str, Any] = {f.__name__: f for f in _DEVICE}
_X = var("x")


@dataclass(frozen=True)
class Rule:
    """The names of the functions above that make a reduction; `first`: what lanes begin with."""

    name: str
    first: str
    step: str
    absent: str  # what stands for a term that is not there
    joined: str
    results: tuple[tuple[str, Expr], ...]  # of the two numbers, and what is made of each


_SQUARES = ("0.0", "with_square", "a", "spread")


def variance(x: Spec, dims: tuple[int, ...], left: float, root: bool, compute: dt.dtype) -> Any:
    """`run(out address, address)`: the squares around the mean over `left`, and their root."""
    y = apply("div", _X, const(left))
    name, y = ("std", apply("sqrt", y)) if root else ("var", y)
    return lane_reduction(Rule(name, *_SQUARES, (("b", y),)), x, dims, compute, x.dtype)


def moments(x: Spec, dims: tuple[int, ...], finish: Callable[[Expr], Expr], compute: dt.dtype) -> Any:
    """`run(address of the means, of the others, address)`: means, and what `finish` makes of mean squares around
    them.
    """
    y = finish(apply("div", _X, const(float(math.prod(x.shape[d] for d in dims)))))
    return lane_reduction(Rule("moments", *_SQUARES, (("a", _X), ("b", y))), x, dims, compute, compute)


_LOW = "-float('inf')"
_EXPONENTIALS = Rule("logsumexp", _LOW, "with_exponential", _LOW, "exponentials", (("logarithm(a, b)", _X),))


def logsumexp(x: Spec, dims: tuple[int, ...], compute: dt.dtype) -> Any:
    """`run(out address, address)`: the logarithm of the sum of exponentials."""
    return lane_reduction(_EXPONENTIALS, x, dims, compute, x.dtype)


def exponentials_of_parts(x: Spec, dim: int, compute: dt.dtype) -> tuple[Any, int]:
    """(run, parts): `run(address)` gives the maxima of parts of lines, and the sums of exponentials beside them, as
    a view of 2 by parts by lines; None where there is one part.
    """
    walk = Walk(x.shape, (dim,), [x.strides], x.dtype.itemsize)
    each = walk.each(walk.split())
    parts = -(-walk.terms // each)
    if parts == 1:
        return None, 1
    program, numbers = _Kernel(_EXPONENTIALS, x, walk, compute, compute).over_terms(parts)
    grid, found = (-(-walk.rows // walk.bm), parts), Spec(Layout((2, parts, walk.rows)), compute, x.device)

    def run(source: int) -> View:
        made = empty(found)
        program(grid, made.ptr, source, *numbers)
        return made

    return run, parts


def lane_reduction(rule: Rule, x: Spec, dims: tuple[int, ...], compute: dt.dtype, out: dt.dtype) -> Any:
    """`run(*addresses of the results, address)`."""
    walk = Walk(x.shape, dims, [x.strides], x.dtype.itemsize)
    each = walk.each(walk.split())
    parts = max(1, -(-walk.terms // max(each, 1)))
    program, numbers = _Kernel(rule, x, walk, compute, out).over_terms(parts)
    grid = (-(-walk.rows // walk.bm), parts)
    if parts == 1:
        return lambda *addresses: program(grid, *addresses, *numbers)
    part = Spec(Layout((2, parts, walk.rows)), compute, x.device)
    last, more = _Kernel(rule, x, walk, compute, out).over_parts(parts, each)
    blocks = (-(-walk.rows // last.constants["BM"]),)

    def twice(*addresses: int) -> None:
        middle = empty(part)
        program(grid, middle.ptr, addresses[-1], *numbers)
        last(blocks, *addresses[:-1], middle.ptr, *more)

    return twice


class _Kernel:
    """The text of one kernel and its numbers."""

    def __init__(self, rule: Rule, x: Spec, walk: Walk, compute: dt.dtype, out: dt.dtype) -> None:
        self.rule, self.x, self.walk, self.compute, self.out = rule, x, walk, compute, out
        self.text, self.T = Text(), _TL[TYPE[compute]]
        self.ints = ".to(tl.int64)" if walk.far else ""

    def over_terms(self, parts: int) -> tuple[Program, list[int]]:
        """Rows, or parts of rows: then both numbers of each are stored."""
        walk, text, T, ints, rule = self.walk, self.text, self.T, self.ints, self.rule
        rows = text.arg("ROWS", walk.rows)
        place = [text.offset(0, "k", walk.kept_strides[0]), text.offset(0, "g", walk.gone_strides[0])]
        offset = " + ".join(p for p in place if p) or "row * 0 + i * 0"

        def step(mask: str) -> list[str]:
            loop = [f"i = (start + lane){ints}", *text.places("g", walk.gone, "i")]
            if mask:
                loop += [f"inside = {mask}", f"v = tl.load(x + ({offset}), mask=inside, other=0.0).to({T})"]
                loop.append(f"v = tl.where(inside, v, {rule.absent})")
            else:
                loop.append(f"v = tl.load(x + ({offset})).to({T})")
            return [*loop, "step += 1", f"a, b = {rule.step}(a, b, v, step)"]

        lines = [
            f"row = tl.program_id(0){ints} * BM + tl.arange(0, BM)[:, None]",
            *text.places("k", walk.kept, "row"),
            f"a = tl.full((BM, BN), {rule.first}, {T})",
            f"b = tl.zeros((BM, BN), {T})",
            f"step = tl.zeros((), {T})",
            *text.steps(walk, parts, ints, step),
            "n = end - begin + tl.zeros((), tl.int32)",
            f"a, b = {rule.joined}(a, b, terms_of(n, lane, BN, {T}), n.to({T}))",
            *text.target(walk, ints, parts),
        ]
        if parts == 1:
            lines += self._results()
            return self._program(
                rule.name, lines, walk.bm, walk.bn, walk.warps, [self.out] * len(rule.results), self.x.dtype
            )
        lines += [
            f"tl.store(o0 + to, a, mask=at < {rows})",
            f"tl.store(o0 + (to + tl.num_programs(1){ints} * {rows}), b, mask=at < {rows})",
        ]
        return self._program(f"{rule.name}_parts", lines, walk.bm, walk.bn, walk.warps, [self.compute], self.x.dtype)

    def over_parts(self, parts: int, each: int) -> tuple[Program, list[int]]:
        """What the parts of rows come to."""
        walk, text, T, rule = self.walk, self.text, self.T, self.rule
        rows, terms = text.arg("ROWS", walk.rows), text.arg("TERMS", walk.terms)
        count, size = text.arg("PARTS", parts), text.arg("EACH", each)
        bn = 1 << (parts - 1).bit_length()
        bm = max(1, min(2048 // bn, 32, 1 << (walk.rows - 1).bit_length()))
        lines = [
            "row = tl.program_id(0) * BM + tl.arange(0, BM)[:, None]",
            "part = tl.arange(0, BN)[None, :]",
            f"inside = (row < {rows}) & (part < {count})",
            f"place = part * {rows} + row",
            f"a = tl.load(x + place, mask=inside, other={rule.first})",
            f"b = tl.load(x + (place + {count} * {rows}), mask=inside, other=0.0)",
            f"n = tl.maximum(tl.minimum({size}, {terms} - part * {size}), 0).to({T})",
            f"a, b = {rule.joined}(a, b, n, tl.full((), {terms}, tl.int64).to({T}))",
            *text.target(walk, "", 1),
        ]
        lines += self._results()
        return self._program(f"{rule.name}_joined", lines, bm, bn, 4, [self.out] * len(rule.results), self.compute)

    def _results(self) -> list[str]:
        kept, rows = _TL[TYPE[self.out]], self.text.arg("ROWS", self.walk.rows)
        return [
            f"tl.store(o{k} + to, finish{k}({what}, {self.T}).to({kept}), mask=at < {rows})"
            for k, (what, _) in enumerate(self.rule.results)
        ]

    def _program(
        self, name: str, lines: list[str], bm: int, bn: int, warps: int, outs: list[dt.dtype], source: dt.dtype
    ) -> tuple[Program, list[int]]:
        text = self.text
        code = "\n\n".join(to_triton(y, f"finish{k}", ["x"], "f") for k, (_, y) in enumerate(self.rule.results))
        args = [*(f"o{k}" for k in range(len(outs))), "x", *text.params]
        code += f"\n\n\n@triton.jit\ndef {name}({', '.join(args)}, BM: tl.constexpr, BN: tl.constexpr):\n"
        code += "".join(f"    {line}\n" for line in lines)
        types = [*("*" + TYPE[o] for o in outs), "*" + TYPE[source]]
        types += ["i64" if self.walk.far else "i32"] * len(text.params)
        program = Program(jit(code, name, **_KNOWN), types, {"BM": bm, "BN": bn}, warps=warps)
        text.promise(program, len(outs) + 1)
        return program, text.values
