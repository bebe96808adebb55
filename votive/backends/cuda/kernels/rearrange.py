"""Elements in other places: the source's coordinate is a rule of the result's."""

from __future__ import annotations

from typing import Any

from ....core.layout import Layout, Spec
from ...common.slot import Slot
from ..programs.fill import bits, fill_view
from ..programs.gather import Rule, taken
from ..programs.index_space import IndexSpace, cached_by_spec, word
from ..programs.layouts import contiguous, contiguous_output
from ..programs.types import Run
from ..rows import cuda
from ..runtime.views import View
from .padding import rules_of


def _flipped(n: int) -> Rule:
    return lambda p, d, c: f"{p.arg(f'top{d}', n - 1)} - {c}"


@cuda("_flip")
def flip(x: Slot, dims: tuple[int, ...]) -> Run:
    if word(x.dtype) is None:
        return None
    rules = {d: _flipped(x.shape[d]) for d in dims} if x.ndim else {}
    find = cached_by_spec(lambda s: taken("flip", x, s.shape, s.strides, rules))
    return lambda outs, x: find(outs[0].spec)(outs[0].ptr, x.ptr)


def _rolled(n: int, shift: int) -> Rule:
    def rule(p: IndexSpace, d: int, c: str) -> str:
        s, size = p.arg(f"shift{d}", shift), p.arg(f"size{d}", n)
        return f"tl.where({c} >= {s}, {c} - {s}, {c} + {size} - {s})"

    return rule


@cuda("roll")
def roll(x: Slot, shifts: tuple[int, ...], dims: tuple[int, ...]) -> Run:
    if word(x.dtype) is None:
        return None
    if not x.numel:
        return lambda outs, x: None
    if not dims:
        flat = Spec(Layout((x.numel,)), x.dtype, x.spec.device)
        run = taken("roll", flat, flat.shape, flat.strides, {0: _rolled(x.numel, shifts[0] % x.numel)})

        def flatly(outs: list[View], x: View) -> None:
            x = contiguous(x)
            with contiguous_output(outs[0]) as out:
                run(out.ptr, x.ptr)

        return flatly
    total: dict[int, int] = {}
    for d, s in zip(dims, shifts, strict=True):
        total[d] = (total.get(d, 0) + s) % x.shape[d]
    rules = {d: _rolled(x.shape[d], s) for d, s in total.items() if s}
    find = cached_by_spec(lambda s: taken("roll", x, s.shape, s.strides, rules))
    return lambda outs, x: find(outs[0].spec)(outs[0].ptr, x.ptr)


@cuda("constant_pad_nd")
def constant_pad_nd(x: Slot, pad: tuple[int, ...], value: Slot) -> Run:
    if word(x.dtype) is None or isinstance(value.spec, complex):
        return None
    if not x.numel:
        return lambda outs, x, value: fill_view(outs[0], value)
    rules = rules_of(x.shape, pad, "constant")
    find = cached_by_spec(lambda s: taken("pad_constant", x, s.shape, s.strides, rules, fill=True))

    def run(outs: list[View], x: View, value: Any) -> None:
        numbers = (bits(value, x.spec.dtype),) if rules else (0,)
        find(outs[0].spec)(outs[0].ptr, x.ptr, *numbers)

    return run
