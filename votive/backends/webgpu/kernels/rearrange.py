"""Moving elements: each result looks for where it comes from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....formula.wgsl import literal
from ...common.slot import Slot
from ..rows import Run, webgpu
from ..runtime.views import View
from ..shaders import types
from ..shaders.copy import copy_view
from ..shaders.layouts import contiguous
from ..shaders.program import Program, groups_for
from ..shaders.rows import Target
from .fill import fill_view

Ints = tuple[int, ...]


def moved(
    name: str,
    x: Slot,
    shape: Ints,
    source: Callable[[int], str],
    numbers: list[tuple[str, str]],
    values: list[Any],
    keep: str = "true",
    otherwise: str = "",
) -> Run:
    """A kernel whose element at coordinates `c0`, `c1`, ... is that of x at the coordinates that `source` says, where
    `keep` holds.
    """
    n = len(shape)
    count = 1
    for size in shape:
        count *= size
    if not count:
        return lambda outs, x, *rest: None
    lines = "  if (index < P.count) {\n    var rest = index;\n"
    for d in range(n - 1, -1, -1):
        lines += f"    let c{d} = i32(rest % P.n{d}); rest = rest / P.n{d};\n"
    at = " + ".join(f"u32({source(d)}) * P.s{d}" for d in range(n)) or "0u"
    otherwise = otherwise or types.ZERO[types.KIND[x.dtype]]
    lines += f"    var v = {otherwise};\n    if ({keep}) {{ v = x_at({at}); }}\n    y_set(index, v);\n  }}"
    fields = [("count", "I"), *[(f"n{d}", "I") for d in range(n)], *[(f"s{d}", "I") for d in range(n)], *numbers]
    given = [count, *shape, *x.strides, *values]
    program = Program(name, [("y", x.dtype, "w"), ("x", x.dtype, "r")], fields, lines)

    def run(outs: list[View], x: View, *more: Any) -> None:
        to = Target(outs[0])
        program(groups_for(count), [to.view, x], *given, *more)
        to.done()

    return run


@webgpu("_flip")
def flip(x: Slot, dims: Ints) -> Run:
    return moved("flip", x, x.shape, lambda d: f"(i32(P.n{d}) - 1 - c{d})" if d in dims else f"c{d}", [], [])


@webgpu("roll")
def roll(x: Slot, shifts: Ints, dims: Ints) -> Run:
    if not x.numel or not x.ndim:
        return lambda outs, x: copy_view(outs[0], x)
    if not dims:
        flat = x.spec.like((x.numel,))
        inner = moved(
            "roll",
            Slot(0, flat),
            (x.numel,),
            lambda d: "(c0 + P.k0) % i32(P.n0)",
            [("k0", "i")],
            [-shifts[0] % x.numel],
        )
        assert inner is not None

        def whole(outs: list[View], x: View) -> None:
            to = Target(outs[0])
            near = contiguous(x)
            inner([View(to.view.storage, to.view.offset, flat)], View(near.storage, near.offset, flat))
            to.done()

        return whole
    by = [0] * x.ndim
    for s, d in zip(shifts, dims, strict=True):
        by[d] += s
    numbers = [(f"k{d}", "i") for d in range(x.ndim)]
    values = [-b % n for b, n in zip(by, x.shape, strict=True)]
    return moved("roll", x, x.shape, lambda d: f"((c{d} + P.k{d}) % i32(P.n{d}))", numbers, values)


@webgpu("constant_pad_nd")
def constant_pad_nd(x: Slot, pad: Ints, value: Slot) -> Run:
    shape, before = list(x.shape), [0] * x.ndim
    for i in range(len(pad) // 2):
        d = x.ndim - 1 - i
        before[d] = pad[2 * i]
        shape[d] += pad[2 * i] + pad[2 * i + 1]

    def run(outs: list[View], x: View, value: Any) -> None:
        out = outs[0]
        fill_view(out, value)
        sizes = []
        to, source = out.offset, x.offset
        for d in range(len(before)):
            skip, lead = max(-before[d], 0), max(before[d], 0)
            sizes.append(max(min(x.spec.shape[d] - skip, out.spec.shape[d] - lead), 0))
            to += lead * out.spec.strides[d]
            source += skip * x.spec.strides[d]
        if all(sizes):
            box = tuple(sizes)
            target = View(out.storage, to, out.spec.like(box, strides=out.spec.strides))
            copy_view(target, View(x.storage, source, x.spec.like(box, strides=x.spec.strides)))

    return run


def _triangle(name: str, x: Slot, diagonal: int, lower: bool) -> Run:
    a, b = x.ndim - 2, x.ndim - 1
    sign = "<=" if lower else ">="
    return moved(
        name,
        x,
        x.shape,
        lambda d: f"c{d}",
        [("k", "i")],
        [max(min(diagonal, 1 << 30), -(1 << 30))],
        keep=f"c{b} - c{a} {sign} P.k",
    )


@webgpu("tril")
def tril(x: Slot, diagonal: int) -> Run:
    return _triangle("tril", x, diagonal, True)


@webgpu("triu")
def triu(x: Slot, diagonal: int) -> Run:
    return _triangle("triu", x, diagonal, False)


@webgpu("_shift")
def shift(x: Slot, dim: int, by: int, fill: float) -> Run:
    if x.dtype not in types.NUMBERS or not x.ndim:
        return None
    kind = types.KIND[x.dtype]
    return moved(
        "shift",
        x,
        x.shape,
        lambda d: f"(c{d} - P.k)" if d == dim else f"c{d}",
        [("k", "i")],
        [by],
        keep=f"c{dim} - P.k >= 0 && c{dim} - P.k < i32(P.n{dim})",
        otherwise=literal(fill, kind),
    )
