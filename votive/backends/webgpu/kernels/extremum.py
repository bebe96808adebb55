"""Smallest and largest values and their places. NaN wins over every number, the first of equals over the others."""

from __future__ import annotations

from ....core import dtype as dt
from ...common.slot import Slot
from ..rows import Run, webgpu
from ..shaders import types
from ..shaders.copy import copy_view
from ..shaders.reduction import Rule, compile_reduction
from .fill import fill_view

Ints = tuple[int, ...]


def better(kind: str, a: str, b: str, largest: bool) -> str:
    """Whether `a` wins over `b`."""
    if kind == "l":
        return f"l_lt({b}, {a})" if largest else f"l_lt({a}, {b})"
    sign = ">" if largest else "<"
    if kind == "f":
        return f"({a} {sign} {b} || (f_isnan({a}) && !f_isnan({b})))"
    return f"({a} {sign} {b})"


def _rule(x: dt.dtype, largest: bool, results: tuple[str, ...]) -> Rule:
    kind = types.KIND[x]
    members = (("a", types.WGSL[kind], types.ZERO[kind]), ("i", "u32", "0u"), ("k", "u32", "0u"))
    step = f"if (s.k == 0u || {better(kind, 'v', 's.a', largest)}) {{ s.a = v; s.i = j; s.k = 1u; }}"
    both_nan = "(f_isnan(o.a) && f_isnan(s.a))" if kind == "f" else "false"
    equal = f"(all(o.a == s.a) || {both_nan})" if kind == "l" else f"(o.a == s.a || {both_nan})"
    join = (
        f"if (o.k != 0u && (s.k == 0u || {better(kind, 'o.a', 's.a', largest)} || ({equal} && o.i < s.i))) {{ s = o; }}"
    )
    return Rule(members, step, join, results)


def _extreme(name: str, x: Slot, dims: Ints, largest: bool) -> Run:
    if x.dtype not in types.NUMBERS or not x.numel:
        return None
    return compile_reduction(name, x.spec, dims, "r", _rule(x.dtype, largest, ("s.a",)), [x.dtype])


@webgpu("amax")
def amax(x: Slot, dim: Ints, keepdim: bool) -> Run:
    return _extreme("amax", x, dim, True)


@webgpu("amin")
def amin(x: Slot, dim: Ints, keepdim: bool) -> Run:
    return _extreme("amin", x, dim, False)


def _place(name: str, x: Slot, dim: int | None, largest: bool) -> Run:
    if x.dtype not in types.NUMBERS or not x.numel:
        return None
    dims = tuple(range(x.ndim)) if dim is None or not x.ndim else (dim,)
    rule = _rule(x.dtype, largest, ("vec2<u32>(s.i, 0u)",))
    return compile_reduction(name, x.spec, dims, "r", rule, [dt.int64])


@webgpu("argmax")
def argmax(x: Slot, dim: int | None, keepdim: bool) -> Run:
    return _place("argmax", x, dim, True)


@webgpu("argmin")
def argmin(x: Slot, dim: int | None, keepdim: bool) -> Run:
    return _place("argmin", x, dim, False)


def _both(name: str, x: Slot, dim: int, largest: bool) -> Run:
    if x.dtype not in types.NUMBERS or (x.ndim and not x.numel):
        return None
    if not x.ndim:

        def alone(outs: list, x: object) -> None:
            copy_view(outs[0], x)  # type: ignore[arg-type]
            fill_view(outs[1], 0)

        return alone
    rule = _rule(x.dtype, largest, ("s.a", "vec2<u32>(s.i, 0u)"))
    return compile_reduction(name, x.spec, (dim,), "r", rule, [x.dtype, dt.int64])


@webgpu("_max_dim")
def max_dim(x: Slot, dim: int, keepdim: bool) -> Run:
    return _both("max", x, dim, True)


@webgpu("_min_dim")
def min_dim(x: Slot, dim: int, keepdim: bool) -> Run:
    return _both("min", x, dim, False)
