"""Padding: every place of the result knows where its value comes from."""

from __future__ import annotations

import math

from ....core import dtype as dt
from ....core.layout import Spec, contiguous_strides
from ...common.slot import Slot
from ..programs.copy import copy_view
from ..programs.fill import fill_view
from ..programs.gather import Rule, taken
from ..programs.index_space import IndexSpace, added, cached_by_spec, without, word
from ..programs.program import pointer
from ..programs.types import Run
from ..rows import cuda
from ..runtime.views import View, empty


def _source(size: int, before: int, after: int, mode: str) -> Rule:
    """Where a padded position's value comes from."""
    first, last = max(-before, 0), size - max(-after, 0)

    def rule(p: IndexSpace, d: int, c: str) -> str:
        top, b = p.arg(f"top{d}", size - 1), p.arg(f"before{d}", before)
        at = f"({c} - {b})"
        if mode == "constant":
            return at
        if mode == "replicate":
            return f"tl.minimum(tl.maximum({at}, 0), {top})"
        if mode == "reflect":
            return f"{top} - tl.abs({top} - tl.abs({at}))"
        # What negative amounts cut off does not come back on the other side.
        f, span = p.arg(f"first{d}", first), p.arg(f"span{d}", max(last - first, 1))
        turns = p.arg(f"turns{d}", (max(before, 0) // max(last - first, 1) + 1) * (last - first))
        return f"({at} - {f} + {turns}) % {span} + {f}"

    return rule


def rules_of(shape: tuple[int, ...], pad: tuple[int, ...], mode: str) -> dict[int, Rule]:
    rules = {}
    for i in range(len(pad) // 2):
        before, after = pad[2 * i], pad[2 * i + 1]
        d = len(shape) - 1 - i
        if before or after:
            rules[d] = _source(shape[d], before, after, mode)
    return rules


def _padded(shape: tuple[int, ...], pad: tuple[int, ...]) -> tuple[int, ...]:
    out = list(shape)
    for i in range(len(pad) // 2):
        out[-1 - i] += pad[2 * i] + pad[2 * i + 1]
    return tuple(out)


@cuda("_pad")
def pad(x: Slot, pad: tuple[int, ...], mode: str) -> Run:
    if word(x.dtype) is None:
        return None
    if 0 in _padded(x.shape, pad):
        return lambda outs, x: None
    rules = rules_of(x.shape, pad, mode)
    find = cached_by_spec(lambda s: taken(f"pad_{mode}", x, s.shape, s.strides, rules))
    return lambda outs, x: find(outs[0].spec)(outs[0].ptr, x.ptr)


@cuda("_pad_transpose")
def pad_transpose(x: Slot, size: tuple[int, ...], pad: tuple[int, ...], mode: str) -> Run:
    """The gradient of padding: each place adds to where its value came from."""
    if x.dtype not in (dt.float32, dt.float64, *dt.HALF):
        return None
    total = dt.float64 if x.dtype is dt.float64 else dt.float32
    shape = (*x.shape[: x.ndim - len(size)], *size)
    strides = contiguous_strides(shape)
    rules = rules_of(shape, pad, mode)
    dims = tuple(rules)
    p = IndexSpace(x.shape, [x.strides, without(strides, *dims)], apart=dims, reach=math.prod(shape))
    parts = []
    for d, rule in rules.items():
        p.add(f"c{d} = {rule(p, d, p.at(d))}")
        parts.append(f"c{d} * {p.arg(f'xs{d}', strides[d])}")
    offset = " + ".join(t for t in (p.offsets[1], *parts) if t) or "0"
    types = {"o": pointer(total), "x": pointer(x.dtype)}
    add = p.kernel("pad_transpose", types, added(f"({offset} + r * 0 + n * 0)", p.load("x", 0)))

    def run(outs: list[View], x: View) -> None:
        out = outs[0]
        own = out.spec.contiguous and out.spec.dtype is total
        sums = out if own else empty(Spec(out.spec.like(shape).layout, total, out.spec.device))
        fill_view(sums, 0)
        add(sums.ptr, x.ptr)
        if sums is not out:
            copy_view(out, sums)

    return run
