"""Variance and standard deviation in one reading: every lane of a tile keeps the mean of what it saw and the
squares around it (Welford 1962), and lanes and parts are joined by their means. Knows no operators.

A row that fits into a tile is one step, and so the plain rule: its mean first, then the distances from it.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from ....core import dtype as dt
from ....core.layout import Layout, Spec
from ....formula import const, to_triton, var
from ....formula.expr import apply
from ..runtime.views import empty
from .pointwise import _TL, jit
from .program import TYPE, Program
from .walk import Text, Walk


@triton.jit
def spread(mean, squares, count, n):
    """(mean, squares around it) of rows whose columns have means, squares and counts of their own."""
    middle = tl.sum(mean * count, 1) / n
    away = mean - middle[:, None]
    return middle, tl.sum(squares + away * away * count, 1)


@triton.jit
def terms_of(length, lane, BN: tl.constexpr, T: tl.constexpr):
    """How many of `length` terms each lane of BN sees."""
    return (tl.maximum(length - lane + BN - 1, 0) // BN).to(T)


def variance(x: Spec, dims: tuple[int, ...], left: float, root: bool, compute: dt.dtype) -> Any:
    """`run(out address, address)`: the squares around the mean over `left`, and their root."""
    walk = Walk(x.shape, dims, [x.strides], x.dtype.itemsize)
    parts = walk.split()
    y = apply("div", var("x"), const(left))
    finish = to_triton(apply("sqrt", y) if root else y, "finish", ["x"], "f") + "\n\n\n"
    program, numbers = _first(x, walk, parts, compute, finish, root)
    grid = (-(-walk.rows // walk.bm), parts)
    if parts == 1:
        return lambda to, source: program(grid, to, source, *numbers)
    each = walk.each(parts)
    parts = -(-walk.terms // each)
    grid = (grid[0], parts)
    part = Spec(Layout((2, parts, walk.rows)), compute, x.device)
    last, more = _last(x, walk, parts, each, compute, finish, root)
    blocks = (-(-walk.rows // last.constants["BM"]),)

    def twice(to: int, source: int) -> None:
        middle = empty(part)
        program(grid, middle.ptr, source, *numbers)
        last(blocks, to, middle.ptr, *more)

    return twice


def _program(name: str, args: list[str], lines: list[str], finish: str) -> Any:
    source = finish + f"@triton.jit\ndef {name}({', '.join(args)}, BM: tl.constexpr, BN: tl.constexpr):\n"
    source += "".join(f"    {line}\n" for line in lines)
    return jit(source, name, spread=spread, terms_of=terms_of)


def _divisible(program: Program, text: Text) -> tuple[Program, list[int]]:
    program.divisible = tuple(2 + k for k, v in enumerate(text.values) if v % 16 == 0)
    return program, text.values


def _first(x: Spec, walk: Walk, parts: int, compute: dt.dtype, finish: str, root: bool) -> tuple[Program, list[int]]:
    """Rows, or parts of rows: then their means and squares are stored."""
    text, T = Text(), _TL[TYPE[compute]]
    ints = ".to(tl.int64)" if walk.far else ""
    rows = text.arg("ROWS", walk.rows)
    lines = [
        f"row = tl.program_id(0){ints} * BM + tl.arange(0, BM)[:, None]",
        *text.places("k", walk.kept, "row"),
        f"mean = tl.zeros((BM, BN), {T})",
        f"squares = tl.zeros((BM, BN), {T})",
        f"step = tl.zeros((), {T})",
    ]
    place = [text.offset(0, "k", walk.kept_strides[0]), text.offset(0, "g", walk.gone_strides[0])]
    offset = " + ".join(p for p in place if p) or "row * 0 + i * 0"

    def step(mask: str) -> list[str]:
        loop = [f"i = (start + lane){ints}", *text.places("g", walk.gone, "i")]
        if mask:
            loop += [
                f"inside = {mask}",
                f"v = tl.load(a + ({offset}), mask=inside, other=0.0).to({T})",
                "v = tl.where(inside, v, mean)",
            ]
        else:
            loop.append(f"v = tl.load(a + ({offset})).to({T})")
        return [*loop, "step += 1", "away = v - mean", "mean += away * (1 / step)", "squares += away * (v - mean)"]

    lines += text.steps(walk, parts, ints, step)
    lines += [
        "n = end - begin",
        f"count = terms_of(n, lane, BN, {T})",
        f"middle, y = spread(mean, squares, count, (n + tl.zeros((), tl.int32)).to({T}))",
        *text.target(walk, ints, parts),
    ]
    if parts == 1:
        kept = x.dtype
        lines += [f"tl.store(o + to, finish(y, {T}).to({_TL[TYPE[kept]]}), mask=at < {rows})"]
    else:
        kept = compute
        lines += [
            f"tl.store(o + to, middle, mask=at < {rows})",
            f"tl.store(o + (to + tl.num_programs(1){ints} * {rows}), y, mask=at < {rows})",
        ]
    name = ("std" if root else "var") + ("_parts" if parts > 1 else "")
    types = ["*" + TYPE[kept], "*" + TYPE[x.dtype], *(["i64" if walk.far else "i32"] * len(text.params))]
    made = _program(name, ["o", "a", *text.params], lines, finish)
    return _divisible(Program(made, types, {"BM": walk.bm, "BN": walk.bn}, warps=walk.warps), text)


def _last(
    x: Spec, walk: Walk, parts: int, each: int, compute: dt.dtype, finish: str, root: bool
) -> tuple[Program, list[int]]:
    """What the parts of rows come to."""
    text, T = Text(), _TL[TYPE[compute]]
    rows, terms = text.arg("ROWS", walk.rows), text.arg("TERMS", walk.terms)
    count, size = text.arg("PARTS", parts), text.arg("EACH", each)
    bn = 1 << (parts - 1).bit_length()
    bm = max(1, min(2048 // bn, 32, 1 << (walk.rows - 1).bit_length()))
    lines = [
        "row = tl.program_id(0) * BM + tl.arange(0, BM)[:, None]",
        "part = tl.arange(0, BN)[None, :]",
        f"inside = (row < {rows}) & (part < {count})",
        f"place = part * {rows} + row",
        "mean = tl.load(a + place, mask=inside, other=0.0)",
        f"squares = tl.load(a + (place + {count} * {rows}), mask=inside, other=0.0)",
        f"n = tl.maximum(tl.minimum({size}, {terms} - part * {size}), 0).to({T})",
        f"middle, y = spread(mean, squares, n, tl.full((), {terms}, tl.int64).to({T}))",
        *text.target(walk, "", 1),
        f"tl.store(o + to, finish(y, {T}).to({_TL[TYPE[x.dtype]]}), mask=at < {rows})",
    ]
    types = ["*" + TYPE[x.dtype], "*" + TYPE[compute], *(["i64" if walk.far else "i32"] * len(text.params))]
    made = _program(f"{'std' if root else 'var'}_joined", ["o", "a", *text.params], lines, finish)
    return _divisible(Program(made, types, {"BM": bm, "BN": bn}), text)
