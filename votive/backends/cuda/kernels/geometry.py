"""Cross products and distances of points."""

from __future__ import annotations

import math
from typing import Any

import triton
import triton.language as tl

from ....core import dtype as dt
from ....core.layout import Spec, broadcast_strides
from ...common.slot import Slot
from ..device import math as m
from ..programs.index_space import IndexSpace, cached_by_spec, without
from ..programs.layouts import contiguous_output, expanded
from ..programs.program import TYPE, Program, pointer
from ..programs.types import Run, floats, wide
from ..rows import cuda
from ..runtime.views import View
from .index import reach

TILE = 32  # points of either set that a program takes
ZERO, ONE, TWO, MOST, OTHER = range(5)


@cuda("_cross", accepts=lambda a, b: a.dtype in TYPE and b.dtype is a.dtype)
def cross(a: Slot, b: Slot, dim: int) -> Run:
    kind = "tl.float32" if a.dtype in dt.HALF else "o.dtype.element_ty"

    def build(out: Spec) -> Any:
        sa, sb = (broadcast_strides(v.shape, v.strides, out.shape) for v in (a, b))
        steps = [out.strides, without(sa, dim), without(sb, dim)]
        p = IndexSpace(out.shape, steps, apart=(dim,), reach=max(reach(a), reach(b)))
        pa, pb = p.arg("pa", sa[dim]), p.arg("pb", sb[dim])
        i = p.at(dim)
        lines = [f"i = {i} + r * 0 + n * 0", "j = (i + 1) % 3", "k = (i + 2) % 3"]
        for name, at in (("a", "j"), ("a", "k"), ("b", "j"), ("b", "k")):
            step = pa if name == "a" else pb
            place = " + ".join(t for t in (p.offsets["oab".index(name)], f"{at} * {step}") if t)
            lines.append(f"{name}{at} = tl.load({name} + {place}, mask=inside, other=0).to({kind})")
        lines.append(p.store("(aj * bk - ak * bj).to(o.dtype.element_ty)"))
        types = {"o": pointer(a.dtype), "a": pointer(a.dtype), "b": pointer(a.dtype)}
        return p.kernel("cross", types, lines)

    find = cached_by_spec(build)
    return lambda outs, a, b: find(outs[0].spec)(outs[0].ptr, a.ptr, b.ptr)


@triton.jit
def _cdist(o, x1, x2, rows, columns, size, p, KIND: tl.constexpr, WIDE: tl.constexpr, BLOCK: tl.constexpr):
    # Grid: (blocks of second points x blocks of first points x batch,).
    at, across, down = tl.program_id(0).to(tl.int64), tl.cdiv(columns, BLOCK), tl.cdiv(rows, BLOCK)
    batch = at // across // down
    i = at // across % down * BLOCK + tl.arange(0, BLOCK)
    j = at % across * BLOCK + tl.arange(0, BLOCK)
    first = x1 + (batch * rows + i) * size
    second = x2 + (batch * columns + j) * size
    total = tl.zeros((BLOCK, BLOCK), WIDE)
    for k in range(size):
        a = tl.load(first + k, mask=i < rows, other=0.0).to(WIDE)
        b = tl.load(second + k, mask=j < columns, other=0.0).to(WIDE)
        d = tl.abs(a[:, None] - b[None, :])
        if KIND == 0:
            total += tl.where(d != 0, 1.0, 0.0)
        elif KIND == 1:
            total += d
        elif KIND == 2:
            total += d * d
        elif KIND == 3:
            total = m.f_maximum(total, d)
        else:
            total += m.f_pow(d, p.to(WIDE) + d * 0)
    if KIND == 2:
        total = m.f_sqrt(total)
    if KIND == 4:
        total = m.f_pow(total, (1 / p).to(WIDE) + total * 0)
    to = o + (batch * rows + i[:, None]) * columns + j[None, :]
    tl.store(to, total.to(o.dtype.element_ty), mask=(i[:, None] < rows) & (j[None, :] < columns))


@cuda("_cdist", accepts=floats)
def cdist(x1: Slot, x2: Slot, p: float, product: bool) -> Run:
    """Differences are formed in any case: more exact than products, and no larger memory."""
    rows, columns, size = x1.shape[-2], x2.shape[-2], x1.shape[-1]
    kind = {0.0: ZERO, 1.0: ONE, 2.0: TWO, math.inf: MOST}.get(p, OTHER)
    types = [pointer(x1.dtype)] * 3 + ["i64", "i64", "i64", "fp64"]
    constants = {"KIND": kind, "WIDE": wide(x1.dtype), "BLOCK": TILE}
    program = Program(_cdist, types, constants)
    power = p if kind == OTHER else 1.0

    def run(outs: list[View], x1: View, x2: View) -> None:
        spec = outs[0].spec
        if not spec.numel:
            return
        lead = spec.shape[:-2]
        a, b = expanded(x1, (*lead, rows, size)), expanded(x2, (*lead, columns, size))
        grid = (-(-columns // TILE) * -(-rows // TILE) * math.prod(lead),)
        with contiguous_output(outs[0]) as to:
            program(grid, to.ptr, a.ptr, b.ptr, rows, columns, size, power)

    return run
