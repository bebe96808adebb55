"""Softmax and its gradients along a dimension that does not lie dense: a tile holds neighbouring lines side by
side, so that memory is read in its order and nothing is copied first.
"""

from __future__ import annotations

from collections.abc import Callable

import triton
import triton.language as tl

from .....core import dtype as dt
from .....core.layout import Spec
from ...device import math as m
from ...programs.layouts import next_power_of_two
from ...programs.pointwise import _TL, jit
from ...programs.program import TYPE, Program, pointer
from ...programs.tiles import close_block
from ...programs.walk import Text, Walk
from ...runtime import here_count

HELD = 16384  # elements of lines that a program keeps as a whole
LOWEST = "-float('inf')"
SECTOR = 32  # bytes that memory is read in at least


@triton.jit
def normalised(v, LOG: tl.constexpr):
    """The softmax of the rows of a tile; what is not part of a row is -inf."""
    top = tl.max(v, 1)[:, None]
    top = tl.where(top == -float("inf"), 0.0, top)
    e = m.swift_exp(v - top)
    total = tl.sum(e, 1)[:, None]
    if LOG:
        y = v - top - m.f_log(total)
    else:
        y = e / total
    return y


@triton.jit
def raised(top, total, v):
    """Maxima and sums of exponentials with one more value each."""
    higher = tl.maximum(top, v)
    base = tl.where(higher == -float("inf"), 0.0, higher)
    return higher, total * m.f_exp(top - base) + m.f_exp(v - base)


@triton.jit
def joined(top, total):
    """The maximum and the sum of a row's lanes."""
    highest = tl.max(top, 1)[:, None]
    highest = tl.where(highest == -float("inf"), 0.0, highest)
    return highest, tl.sum(total * m.f_exp(top - highest), 1)[:, None]


class _Lines:
    """Lines of some operands, the result last: which a program takes, and where their elements lie."""

    def __init__(self, specs: list[Spec], dim: int) -> None:
        x, out = specs[0], specs[-1]
        strides = [s.strides for s in specs]
        self.walk = walk = Walk(x.shape, (dim,), strides, x.dtype.itemsize, out.strides)
        self.specs, self.rows, self.n, self.text = specs, walk.rows, walk.terms, Text()
        self.T = _TL["fp64" if x.dtype is dt.float64 else "fp32"]
        least = max(1, SECTOR // min(s.dtype.itemsize for s in specs)) if walk.across else 1
        whole = next_power_of_two(self.n)
        self.held = whole * least <= HELD
        self.bn = whole if self.held else close_block(self.n, 2048 if not walk.across else 64)
        room = min(128, max(1, (4096 if self.held else 2048) // self.bn))
        # Few lines rather than processors without work, but whole sectors.
        fill = next_power_of_two(self.rows // (2 * here_count()) + 1)
        self.bm = min(max(min(room, fill), least), next_power_of_two(self.rows))
        self.warps = min(16, max(1, self.bm * self.bn // 256))
        self.ints = ".to(tl.int64)" if walk.far else ""

    def head(self) -> list[str]:
        rows = self.text.arg("ROWS", self.rows)
        return [
            f"row = tl.program_id(0){self.ints} * BM + tl.arange(0, BM)[:, None]",
            *self.text.places("k", self.walk.kept, "row"),
            f"good = row < {rows}",
        ]

    def place(self, k: int) -> str:
        """Where element i of a row of operand k is."""
        walk = self.walk
        parts = [self.text.offset(k, "k", walk.kept_strides[k])]
        if walk.gone:
            step = self.text.arg(f"gs{k}", walk.gone_strides[k][0])
            parts.append("i" if step == "1" else f"i * {step}")
        return f"({' + '.join(p for p in parts if p) or '0'} + row * 0 + i * 0)"

    def load(self, k: int, other: str) -> str:
        return f"tl.load(a{k} + {self.place(k)}, mask=inside, other={other}).to({self.T})"

    def store(self, value: str) -> str:
        kept = _TL[TYPE[self.specs[-1].dtype]]
        return f"tl.store(o + {self.place(len(self.specs) - 1)}, ({value}).to({kept}), mask=inside)"

    def loop(self, *body: str) -> list[str]:
        """Lines that do something everywhere: once where whole rows are held."""
        n = self.text.arg("N", self.n)
        if self.held:
            return [f"i = tl.arange(0, BN)[None, :]{self.ints}", f"inside = good & (i < {n})", *body]
        lines = [f"i = (start + tl.arange(0, BN)[None, :]){self.ints}", f"inside = good & (i < {n})", *body]
        return [f"for start in range(0, {n}, BN):", *("    " + line for line in lines)]

    def launcher(self, name: str, lines: list[str]) -> Callable[..., None]:
        """launch(to, *sources)."""
        args = ["o", *(f"a{k}" for k in range(len(self.specs) - 1)), *self.text.params]
        source = f"@triton.jit\ndef {name}({', '.join(args)}, BM: tl.constexpr, BN: tl.constexpr):\n"
        source += "".join(f"    {line}\n" for line in [*self.head(), *lines])
        types = [pointer(self.specs[-1].dtype), *(pointer(s.dtype) for s in self.specs[:-1])]
        first = len(types)
        types += ["i64" if self.walk.far else "i32"] * len(self.text.params)
        fn = jit(source, name, normalised=normalised, raised=raised, joined=joined)
        program = Program(fn, types, {"BM": self.bm, "BN": self.bn}, warps=self.warps)
        self.text.promise(program, first)
        grid, values = (-(-self.rows // self.bm),), tuple(self.text.values)
        return lambda to, *sources: program(grid, to.ptr, *[v.ptr for v in sources], *values)


def forward(x: Spec, out: Spec, dim: int, log: bool) -> Callable[..., None]:
    """launch(to, from) of the softmax along `dim`."""
    p = _Lines([x, out], dim)
    p.head()  # names the numbers in the order of their use
    if p.held:
        lines = p.loop(f"v = {p.load(0, LOWEST)}", f"y = normalised(v, {log})", p.store("y"))
        return p.launcher("softmax_held", lines)
    lines = [f"top = tl.full((BM, BN), -float('inf'), {p.T})", f"total = tl.zeros((BM, BN), {p.T})"]
    lines += p.loop(f"v = {p.load(0, LOWEST)}", "top, total = raised(top, total, v)")
    lines.append("top, total = joined(top, total)")
    y = "v - top - m.f_log(total)" if log else "m.f_exp(v - top) / total"
    lines += p.loop(f"v = {p.load(0, '0.0')}", p.store(y))
    return p.launcher("softmax_long", lines)


def backward(y: Spec, g: Spec, out: Spec, dim: int, log: bool) -> Callable[..., None]:
    """launch(to, y, g) of its gradient."""
    p = _Lines([y, g, out], dim)
    p.head()
    r = "(a - m.f_exp(b) * whole)" if log else "(b * (a - whole))"
    read = [f"b = {p.load(0, '0.0')}", f"a = {p.load(1, '0.0')}"]
    term = "a" if log else "a * b"
    if p.held:
        lines = p.loop(*read, f"whole = tl.sum({term}, 1)[:, None]", p.store(r))
        return p.launcher("softmax_backward_held", lines)
    lines = [f"total = tl.zeros((BM, BN), {p.T})", *p.loop(*read, f"total += {term}")]
    lines += ["whole = tl.sum(total, 1)[:, None]", *p.loop(*read, p.store(r))]
    return p.launcher("softmax_backward_long", lines)
