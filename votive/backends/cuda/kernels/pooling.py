"""Pooling: every result looks at a box of the input. Averages and their gradients are both sums
over boxes, seen from the other side.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....core import dtype as dt
from ....core.layout import Spec
from ...common.slot import Slot
from ...common.windows import taps_within
from ..programs.copy import copy_view
from ..programs.index_space import IndexSpace, added, cached_by_spec, without
from ..programs.program import pointer
from ..programs.types import Ints, Run, floats
from ..rows import cuda
from ..runtime.views import View, empty
from .index import SUMS, reach, spot, summed
from .pooling_boxes import Box, covering, held_by, span, window
from .pooling_windows import MOST_UNROLLED, Windows, even_mean, over_windows


def numbers(*specs: Spec) -> bool:
    """Floats or integers."""
    return specs[0].dtype in SUMS and specs[0].dtype is not dt.bool_


def boxed(name: str, x: Slot, n: int, boxes: list[Box], divisor: float | None, from_source: bool) -> Any:
    """`find(spec of the result)(out, x)`: sums over boxes of the last n dimensions, divided."""
    whole = not x.dtype.is_floating_point
    wide = "tl.int64" if whole else "tl.float64" if x.dtype is dt.float64 else "tl.float32"
    first = x.ndim - n
    dims = tuple(range(first, x.ndim))

    far = max(reach(x), *(box.far for box in boxes))

    def build(out: Spec) -> Any:
        p = IndexSpace(out.shape, [out.strides, without(x.strides, *dims)], apart=dims, reach=far, heavy=True)
        lines = [f"acc = (r * 0 + n * 0).to({wide})"]
        for k, (d, box) in enumerate(zip(dims, boxes, strict=True)):
            at, tag = p.at(d), f"d{k}"
            lines.append(f"low{k} = {box.low(p, at, tag)} + r * 0 + n * 0")
            lines.append(f"high{k} = {box.high(p, at, tag)} + r * 0 + n * 0")
        pad, good, offset = "", "inside", p.offsets[1] or "0"
        for k, d in enumerate(dims):
            lines.append(pad + loop(p, k, [b.most for b in boxes]))
            pad += "    "
            lines.append(f"{pad}c{k} = low{k} + t{k}")
            good += f" & (c{k} < high{k})"
            offset += f" + c{k} * {p.arg(f'xs{k}', x.strides[d])}"
        lines.append(f"{pad}v = tl.load(x + ({offset}), mask={good}, other=0).to({wide})")
        counted = [b.count for b in boxes]
        if from_source and all(counted):
            for k, count in enumerate(counted):
                lines.append(f"{pad}v = v / ({count(p, f'c{k}', f'd{k}')}).to({wide})")  # type: ignore[misc]
            lines.append(f"{pad}v = tl.where({good}, v, 0)")
        lines.append(f"{pad}acc += v")
        if whole:  # division goes toward zero, as in hardware
            lines.append(f"many = r * 0 + n * 0 + {1 if divisor is None else int(divisor)}")
            for k, (d, count) in enumerate(zip(dims, counted, strict=True)):
                if divisor is None:
                    lines.append(f"many = many * ({count(p, p.at(d), f'd{k}')})")  # type: ignore[misc]
            lines.append("acc = acc // tl.where(many == 0, 1, many).to(tl.int64)")
        elif divisor is not None:
            lines.append(f"acc = acc / {float(divisor)!r}")
        elif not from_source and all(counted):
            for k, (d, count) in enumerate(zip(dims, counted, strict=True)):
                lines.append(f"acc = acc / ({count(p, p.at(d), f'd{k}')} + r * 0 + n * 0).to({wide})")  # type: ignore[misc]
        lines.append(p.store("acc.to(o.dtype.element_ty)"))
        return p.kernel(name, {"o": pointer(out.dtype), "x": pointer(x.dtype)}, lines)

    return cached_by_spec(build)


def loop(p: IndexSpace, k: int, most: list[int], name: str = "") -> str:
    """The head of the loop over dimension k of a box: unrolled where boxes are small, so that all
    of their elements are on their way at once.
    """
    if math.prod(most) <= MOST_UNROLLED:
        return f"for t{k} in tl.static_range({most[k]}):"
    return f"for t{k} in range({p.arg(name or f'most{k}', most[k])}):"


@cuda("_avg_pool", accepts=numbers)
def avg_pool(
    x: Slot, size: Ints, kernel: Ints, stride: Ints, padding: Ints, include_pad: bool, divisor: int | None
) -> Run:
    n = len(size)
    windows = Windows(kernel, stride, padding, (1,) * n, padded=include_pad, divisor=divisor)
    exact = (
        kernel == stride
        and not any(padding)
        and x.shape[-n:] == tuple(o * k for o, k in zip(size, kernel, strict=True))
    )
    if exact and math.prod(kernel) > MOST_UNROLLED and floats(x) and x.numel:
        mean = even_mean(x, size, divisor)
        return lambda outs, x: mean(outs[0].spec)(outs[0].ptr, x.ptr)
    if windows.walked(x, size):
        walk = over_windows(x, n, size, windows, largest=False)
        return lambda outs, x: walk(outs[0].spec)(outs[0].ptr, outs[0].ptr, x.ptr)
    boxes = [
        window(i, o, k, s, p, include_pad)
        for i, o, k, s, p in zip(x.shape[-n:], size, kernel, stride, padding, strict=True)
    ]
    find = boxed("avg_pool", x, n, boxes, divisor, False)
    return lambda outs, x: find(outs[0].spec)(outs[0].ptr, x.ptr)


@cuda("_avg_pool_transpose", accepts=floats)
def avg_pool_transpose(
    x: Slot, size: Ints, kernel: Ints, stride: Ints, padding: Ints, include_pad: bool, divisor: int | None
) -> Run:
    n = len(size)
    boxes = []
    for i, o, k, s, p in zip(size, x.shape[-n:], kernel, stride, padding, strict=True):
        count = None if divisor else window(i, o, k, s, p, include_pad).count
        boxes.append(held_by(i, o, k, s, p, count))
    find = boxed("avg_pool_transpose", x, n, boxes, divisor, True)
    return lambda outs, x: find(outs[0].spec)(outs[0].ptr, x.ptr)


def _largest(x: Slot, size: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, named: bool) -> Any:
    """The largest value of each window; `named`: and its place."""
    n = len(size)
    sizes = x.shape[x.ndim - n :]
    for i, o, k, s, p, d in zip(sizes, size, kernel, stride, padding, dilation, strict=True):
        first, last = taps_within(np.arange(o) * s - p, i, k, d)
        if (first > last).any():  # dilation stepped over the whole input: left to the CPU
            return None
    dims = tuple(range(x.ndim - n, x.ndim))
    walk = Windows(kernel, stride, padding, dilation)
    if walk.walked(x, size):
        return with_places(over_windows(x, n, size, walk, largest=True, named=named), named)
    windows = list(zip(sizes, size, kernel, stride, padding, dilation, strict=True))
    far = max(reach(x), *(span(*window) for window in windows))
    low = "float('-inf')" if x.dtype.is_floating_point else str(_lowest(x.dtype))
    kind = "tl.float64" if x.dtype is dt.float64 else ("tl.float32" if x.dtype.is_floating_point else "tl.int64")

    taps = [min((i - 1) // d + 1, k) for i, k, d in zip(sizes, kernel, dilation, strict=True)]

    def build(out: Spec) -> Any:
        strides = [out.strides, without(x.strides, *dims)]
        p = IndexSpace(out.shape, strides, apart=dims, reach=far, heavy=True)
        lines = [f"best = tl.full((BM, BN), {low}, {kind})", "at = r * 0 + n * 0 - 1"]
        pad, good, offset, flat = "", "inside", p.offsets[1] or "0", "0"
        for k, d in enumerate(dims):
            s, q, g = (p.arg(f"{w}{k}", v[k]) for w, v in (("s", stride), ("p", padding), ("g", dilation)))
            size_ = p.arg(f"i{k}_size", sizes[k])
            # No more taps than the input has room for, from the first one within it.
            most = (sizes[k] - 1) // dilation[k] + 1
            tap = f"t{k}"
            if most < kernel[k]:
                lines.append(f"{pad}b{k} = tl.maximum(({q} - {p.at(d)} * {s} + {g} - 1) // {g}, 0)")
                good += f" & (b{k} + t{k} < {p.arg(f'kernel{k}', kernel[k])})"
                tap = f"(b{k} + t{k})"
            lines.append(pad + loop(p, k, taps))
            pad += "    "
            lines.append(f"{pad}c{k} = {p.at(d)} * {s} - {q} + {tap} * {g}")
            good += f" & (c{k} >= 0) & (c{k} < {size_})"
            offset += f" + c{k} * {p.arg(f'xs{k}', x.strides[d])}"
            flat = f"({flat}) * {size_} + c{k}"
        lines += largest(p, pad, good, offset, flat, kind, named)
        return p.kernel("max_pool", {"o": pointer(x.dtype), "places": "*i64", "x": pointer(x.dtype)}, lines)

    return with_places(cached_by_spec(build), named)


def largest(p: IndexSpace, pad: str, good: str, offset: str, flat: str, kind: str, named: bool = True) -> list[str]:
    """Lines inside loops over a box that keep the largest value and its place, and lines that store them."""
    lines = [
        f"{pad}good = {good}",
        f"{pad}v = tl.load(x + ({offset} + r * 0 + n * 0), mask=good, other=0).to({kind})",
        # Among equals the first counts, among NaN the last.
        f"{pad}better = good & ((v > best) | (v != v) | (at < 0))",
        f"{pad}best = tl.where(better, v, best)",
        f"{pad}at = tl.where(better, {flat}, at)",
        p.store("best.to(o.dtype.element_ty)"),
    ]
    return [*lines, p.store("at.to(tl.int64)", pointer="places")] if named else lines


def with_places(find: Any, named: bool = True) -> Any:
    """`run(outs, x)` of a kernel that writes values and, in the same layout, their places."""

    def run(outs: list[View], x: View) -> None:
        values, places = outs[0], outs[-1]
        same = not named or values.spec.strides == places.spec.strides
        made = places if same else empty(places.spec.like(strides=values.spec.strides))
        find(values.spec)(values.ptr, made.ptr, x.ptr)
        if not same:
            copy_view(places, made)

    return run


@cuda("_max_pool", accepts=numbers)
def max_pool(x: Slot, size: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints) -> Run:
    return _largest(x, size, kernel, stride, padding, dilation, True)


@cuda("_max_pool_values", accepts=numbers)
def max_pool_values(x: Slot, size: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints) -> Run:
    return _largest(x, size, kernel, stride, padding, dilation, False)


def _lowest(dtype: dt.dtype) -> int:
    return int(np.iinfo(dtype.np).min)


def _gathered(g: Slot, index: Slot, size: Ints, windows: Ints) -> Run:
    """Every element looks into the windows that may have found it: each sum is made once, in order.
    None where these are many.
    """
    first, dims = g.ndim - len(size), tuple(range(g.ndim - len(size), g.ndim))
    boxes = covering(size, g.shape[first:], windows)
    if math.prod(box.most for box in boxes) > MOST_UNROLLED:
        return None
    wide = "tl.float64" if g.dtype is dt.float64 else "tl.float32" if g.dtype.is_floating_point else "tl.int64"
    far = max(reach(g), reach(index), math.prod(size), *(box.far for box in boxes))

    def build(out: Spec) -> Any:
        strides = [out.strides, without(g.strides, *dims), without(index.strides, *dims)]
        p = IndexSpace(out.shape, strides, apart=dims, reach=far, heavy=True)
        lines = [f"acc = (r * 0 + n * 0).to({wide})"]
        flat, good, at, found = "0", "inside", p.offsets[1] or "0", p.offsets[2] or "0"
        for k, (d, box) in enumerate(zip(dims, boxes, strict=True)):
            flat = f"({flat}) * {p.arg(f'size{k}', size[k])} + {p.at(d)}"
            lines.append(f"low{k} = {box.low(p, p.at(d), f'd{k}')} + r * 0 + n * 0")
            lines.append(f"high{k} = {box.high(p, p.at(d), f'd{k}')} + r * 0 + n * 0")
        lines.append(f"flat = {flat} + r * 0 + n * 0")
        pad = ""
        for k, (d, box) in enumerate(zip(dims, boxes, strict=True)):
            lines.append(f"{pad}for t{k} in tl.static_range({box.most}):")
            pad += "    "
            lines.append(f"{pad}c{k} = low{k} + t{k}")
            good += f" & (c{k} < high{k})"
            at += f" + c{k} * {p.arg(f'gs{k}', g.strides[d])}"
            found += f" + c{k} * {p.arg(f'is{k}', index.strides[d])}"
        lines += [
            f"{pad}good = {good}",
            f"{pad}i = tl.load(index + ({found}), mask=good, other=-1)",
            f"{pad}v = tl.load(g + ({at}), mask=good, other=0).to({wide})",
            f"{pad}acc += tl.where(i == flat, v, 0)",
            p.store("acc.to(o.dtype.element_ty)"),
        ]
        types = {"o": pointer(out.dtype), "g": pointer(g.dtype), "index": pointer(index.dtype)}
        return p.kernel("max_pool_gradient", types, lines)

    find = cached_by_spec(build)
    return lambda outs, g, index: find(outs[0].spec)(outs[0].ptr, g.ptr, index.ptr)


@cuda("_max_pool_transpose", accepts=numbers)
def max_pool_transpose(g: Slot, index: Slot, size: Ints, windows: Ints) -> Run:
    if windows and g.numel:
        gathered = _gathered(g, index, size, windows)
        if gathered is not None:
            return gathered
    n = len(size)
    first = g.ndim - n

    def build(out: Spec) -> Any:
        kept = (*out.strides[:first], *(0,) * n)
        p = IndexSpace(g.shape, [kept, index.strides, g.strides], reach=reach(out), order=2)
        lines, rest = [f"i = {p.load('index', 1)}.to(tl.int64)"], "i"
        terms = []
        for d in range(n - 1, -1, -1):
            step = p.arg(f"os{d}", out.strides[first + d])
            if d:
                s = p.arg(f"size{d}", size[d])
                lines += [f"q{d} = {rest} % {s}", f"w{d} = {rest} // {s}"]
                rest = f"w{d}"
                terms.append(f"q{d} * {step}")
            else:
                terms.append(f"{rest} * {step}")
        # An index below 0 marks a window that saw nothing.
        lines += added(spot(p, 0, *terms), p.load("g", 2), "inside & (i >= 0)")
        types = {"o": pointer(SUMS[g.dtype]), "g": pointer(g.dtype), "index": pointer(index.dtype)}
        return p.kernel("put_back", types, lines)

    find = cached_by_spec(build)

    def run(outs: list[View], g: View, index: View) -> None:
        with summed(outs[0], None) as to:
            find(to.spec)(to.ptr, g.ptr, index.ptr)

    return run
