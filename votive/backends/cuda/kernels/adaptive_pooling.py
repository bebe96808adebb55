"""Pooling to a given size: windows whose ends follow from the two sizes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....core import dtype as dt
from ....core.layout import Spec
from ...common.slot import Slot
from ..programs.copy import copy_view
from ..programs.index_space import IndexSpace, cached_by_spec, without
from ..programs.program import pointer
from ..programs.types import Ints, Run, floats
from ..rows import cuda
from ..runtime.views import View, empty
from .index import reach
from .pooling import boxed, largest, loop, with_places
from .pooling_boxes import places_of, range_of
from .pooling_windows import MOST_UNROLLED, adaptive, even_mean, over_windows


@cuda("_adaptive_avg_pool", accepts=floats)
def adaptive_avg_pool(x: Slot, size: Ints) -> Run:
    if not x.numel or 0 in size:
        empty = 0 in (*x.shape[: x.ndim - len(size)], *size)
        return (lambda outs, x: None) if empty else None
    n = len(size)
    sizes = x.shape[-n:]
    windows = adaptive(sizes, size)
    if math.prod(windows.kernel) > MOST_UNROLLED and all(i % o == 0 for i, o in zip(sizes, size, strict=True)):
        mean = even_mean(x, size)
        return lambda outs, x: mean(outs[0].spec)(outs[0].ptr, x.ptr)
    if windows.walked(x, size):
        walk = over_windows(x, n, size, windows, largest=False)
        return lambda outs, x: walk(outs[0].spec)(outs[0].ptr, outs[0].ptr, x.ptr)
    boxes = [range_of(i, o) for i, o in zip(sizes, size, strict=True)]
    find = boxed("adaptive_avg_pool", x, n, boxes, None, False)
    return lambda outs, x: find(outs[0].spec)(outs[0].ptr, x.ptr)


@cuda("_adaptive_avg_pool_transpose", accepts=floats)
def adaptive_avg_pool_transpose(x: Slot, size: Ints) -> Run:
    if not x.numel or 0 in size:
        empty = 0 in (*x.shape[: x.ndim - len(size)], *size)
        return (lambda outs, x: None) if empty else None
    n = len(size)
    boxes = [places_of(i, o) for i, o in zip(size, x.shape[-n:], strict=True)]
    find = boxed("adaptive_avg_pool_transpose", x, n, boxes, None, True)
    return lambda outs, x: find(outs[0].spec)(outs[0].ptr, x.ptr)


@cuda("_adaptive_max_pool", accepts=floats)
def adaptive_max_pool(x: Slot, size: Ints) -> Run:
    if not x.numel or 0 in size:
        empty = 0 in (*x.shape[: x.ndim - len(size)], *size)
        return (lambda outs, x: None) if empty else None
    n = len(size)
    dims = tuple(range(x.ndim - n, x.ndim))
    sizes = x.shape[x.ndim - n :]
    windows = adaptive(sizes, size)
    if windows.walked(x, size):
        return with_places(over_windows(x, n, size, windows, largest=True, named=True))
    boxes = [range_of(i, o) for i, o in zip(sizes, size, strict=True)]
    kind = "tl.float64" if x.dtype is dt.float64 else "tl.float32"
    far = max(reach(x), *(box.far for box in boxes))

    def build(out: Spec) -> Any:
        p = IndexSpace(out.shape, [out.strides, without(x.strides, *dims)], apart=dims, reach=far, heavy=True)
        lines = [f"best = tl.full((BM, BN), float('-inf'), {kind})", "at = r * 0 + n * 0 - 1"]
        for k, (d, box) in enumerate(zip(dims, boxes, strict=True)):
            lines.append(f"low{k} = {box.low(p, p.at(d), f'd{k}')}")
            lines.append(f"high{k} = {box.high(p, p.at(d), f'd{k}')}")
        pad, good, offset, flat = "", "inside", p.offsets[1] or "0", "0"
        for k, d in enumerate(dims):
            lines.append(pad + loop(p, k, [b.most for b in boxes]))
            pad += "    "
            lines.append(f"{pad}c{k} = low{k} + t{k}")
            good += f" & (c{k} < high{k})"
            offset += f" + c{k} * {p.arg(f'xs{k}', x.strides[d])}"
            flat = f"({flat}) * {p.arg(f'size{k}', sizes[k])} + c{k}"
        lines += largest(p, pad, good, offset, flat, kind)
        types = {"o": pointer(x.dtype), "places": "*i64", "x": pointer(x.dtype)}
        return p.kernel("adaptive_max_pool", types, lines)

    return with_places(cached_by_spec(build))


@cuda("_fractional_max_pool", accepts=lambda x, samples: floats(x) and floats(samples))
def fractional_max_pool(x: Slot, size: Ints, kernel: Ints, samples: Slot) -> Run:
    """Windows begin evenly spaced, shifted by each sample, the last one at the end."""
    if not x.numel or 0 in size:
        return None
    n = len(size)
    lead = x.ndim - n
    dims = tuple(range(lead, x.ndim))
    sizes = x.shape[lead:]
    kind = "tl.float64" if x.dtype is dt.float64 else "tl.float32"
    real = "tl.float64" if samples.dtype is dt.float64 else "tl.float32"
    number = np.float64 if samples.dtype is dt.float64 else np.float32
    # Samples are (batch, channels, n); a single picture has the first of them.
    moves = samples.strides[:2] if lead == 2 else samples.strides[1:2]
    steps = [float(number((i - k) / (o - 1))) if o > 1 else 0.0 for i, o, k in zip(sizes, size, kernel, strict=True)]

    def build(out: Spec) -> Any:
        drawn = (*moves, *(0,) * n)
        p = IndexSpace(
            out.shape, [out.strides, without(x.strides, *dims), drawn], apart=dims, reach=reach(x), heavy=True
        )
        lines = [f"best = tl.full((BM, BN), float('-inf'), {kind})", "at = (r * 0 + n * 0).to(tl.int64) - 1"]
        types = {"o": pointer(x.dtype), "places": "*i64", "x": pointer(x.dtype), "samples": pointer(samples.dtype)}
        for k, d in enumerate(dims):
            types[f"step{k}"] = "fp64" if real == "tl.float64" else "fp32"
            # Samples are drawn for (width, height), but for (time, height, width).
            which = p.arg(f"which{k}", (1 - k if n == 2 else k) * samples.strides[2])
            place = " + ".join(t for t in (p.offsets[2], which, "r * 0", "n * 0") if t)
            c, last = p.at(d), p.arg(f"end{k}", sizes[k] - kernel[k])
            lines += [
                f"u = tl.load(samples + ({place}), mask=inside, other=0).to({real})",
                f"low{k} = (({c} + r * 0 + n * 0).to({real}) + u) * step{k}",
                f"low{k} = low{k}.to(tl.int64) - (u * step{k}).to(tl.int64)",
                f"low{k} = tl.where({c} == {p.arg(f'top{k}', size[k] - 1)}, {last}, low{k})",
            ]
        pad, offset, flat = "", p.offsets[1] or "0", "0"
        for k, d in enumerate(dims):
            lines.append(f"{pad}for t{k} in range({p.arg(f'kernel{k}', kernel[k])}):")
            pad += "    "
            lines.append(f"{pad}c{k} = low{k} + t{k}")
            offset += f" + c{k} * {p.arg(f'xs{k}', x.strides[d])}"
            flat = f"({flat}) * {p.arg(f'size{k}', sizes[k])} + c{k}"
        lines += [
            f"{pad}v = tl.load(x + ({offset} + r * 0 + n * 0), mask=inside, other=0).to({kind})",
            f"{pad}better = inside & ((v > best) | (v != v) | (at < 0))",
            f"{pad}best = tl.where(better, v, best)",
            f"{pad}at = tl.where(better, {flat}, at)",
            p.store("best.to(o.dtype.element_ty)"),
            p.store("at.to(tl.int64)", pointer="places"),
        ]
        return p.kernel("fractional_max_pool", types, lines)

    find = cached_by_spec(build)

    def run(outs: list[View], x: View, samples: View) -> None:
        values, places = outs
        same = values.spec.strides == places.spec.strides
        made = places if same else empty(places.spec.like(strides=values.spec.strides))
        find(values.spec)(values.ptr, made.ptr, x.ptr, samples.ptr, *steps)
        if not same:
            copy_view(places, made)

    return run
