"""Pooling to a given size: windows whose ends follow from the two sizes."""

from __future__ import annotations

from typing import Any

from ...core import dtype as dt
from ...core.layout import Spec
from .index import reach
from .places import Places, by_spec, without
from .pooling import Box, boxed, with_places
from .program import pointer
from .rows import cuda
from .softmax import floats


def _range(size: int, places: int) -> Box:
    """The inputs of each place; neighbours may share one."""

    def low(p: Places, o: str, t: str) -> str:
        return f"({o} * {p.arg(f'{t}_i', size)} // {p.arg(f'{t}_o', places)})"

    def high(p: Places, o: str, t: str) -> str:
        i, n = p.arg(f"{t}_i", size), p.arg(f"{t}_o", places)
        return f"((({o} + 1) * {i} + {n} - 1) // {n})"

    count = lambda p, o, t: f"({high(p, o, t)} - {low(p, o, t)})"
    return Box(low, high, -(-size // places) + 1, count)


@cuda("_adaptive_avg_pool", accepts=floats)
def adaptive_avg_pool(x: Any, size: Any) -> Any:
    if not x.numel or 0 in size:
        empty = 0 in (*x.shape[: x.ndim - len(size)], *size)
        return (lambda outs, x: None) if empty else None
    n = len(size)
    boxes = [_range(i, o) for i, o in zip(x.shape[-n:], size, strict=True)]
    find = boxed("adaptive_avg_pool", x, n, boxes, None, False)
    return lambda outs, x: find(outs[0].spec)(outs[0].ptr, x.ptr)


@cuda("_adaptive_avg_pool_transpose", accepts=floats)
def adaptive_avg_pool_transpose(x: Any, size: Any) -> Any:
    if not x.numel or 0 in size:
        empty = 0 in (*x.shape[: x.ndim - len(size)], *size)
        return (lambda outs, x: None) if empty else None
    n = len(size)
    boxes = []
    for i, o in zip(size, x.shape[-n:], strict=True):
        # The places of an input are the inputs of a place with the sizes exchanged.
        back = _range(o, i)
        there = _range(i, o)

        def count(p: Places, c: str, t: str, there: Box = there) -> str:
            return there.count(p, c, f"{t}_there")  # type: ignore[misc]

        boxes.append(Box(back.low, back.high, back.most, count))
    find = boxed("adaptive_avg_pool_transpose", x, n, boxes, None, True)
    return lambda outs, x: find(outs[0].spec)(outs[0].ptr, x.ptr)


@cuda("_adaptive_max_pool", accepts=floats)
def adaptive_max_pool(x: Any, size: Any) -> Any:
    if not x.numel or 0 in size:
        empty = 0 in (*x.shape[: x.ndim - len(size)], *size)
        return (lambda outs, x: None) if empty else None
    n = len(size)
    dims = tuple(range(x.ndim - n, x.ndim))
    sizes = x.shape[x.ndim - n :]
    boxes = [_range(i, o) for i, o in zip(sizes, size, strict=True)]
    kind = "tl.float64" if x.dtype is dt.float64 else "tl.float32"

    def build(out: Spec) -> Any:
        p = Places(out.shape, [out.strides, without(x.strides, *dims)], apart=dims, reach=reach(x))
        lines = [f"best = tl.full((BM, BN), float('-inf'), {kind})", "at = r * 0 + n * 0 - 1"]
        for k, (d, box) in enumerate(zip(dims, boxes, strict=True)):
            lines.append(f"low{k} = {box.low(p, p.at(d), f'd{k}')}")
            lines.append(f"high{k} = {box.high(p, p.at(d), f'd{k}')}")
        pad, good, offset, flat = "", "inside", p.offsets[1] or "0", "0"
        for k, (d, box) in enumerate(zip(dims, boxes, strict=True)):
            lines.append(f"{pad}for t{k} in range({p.arg(f'most{k}', box.most)}):")
            pad += "    "
            lines.append(f"{pad}c{k} = low{k} + t{k}")
            good += f" & (c{k} < high{k})"
            offset += f" + c{k} * {p.arg(f'xs{k}', x.strides[d])}"
            flat = f"({flat}) * {p.arg(f'size{k}', sizes[k])} + c{k}"
        lines += [
            f"{pad}good = {good}",
            f"{pad}v = tl.load(x + ({offset} + r * 0 + n * 0), mask=good, other=0).to({kind})",
            f"{pad}better = good & ((v > best) | (v != v) | (at < 0))",
            f"{pad}best = tl.where(better, v, best)",
            f"{pad}at = tl.where(better, {flat}, at)",
            p.store("best.to(o.dtype.element_ty)"),
            p.store("at.to(tl.int64)", pointer="places"),
        ]
        types = {"o": pointer(x.dtype), "places": "*i64", "x": pointer(x.dtype)}
        return p.kernel("adaptive_max_pool", types, lines)

    return with_places(by_spec(build))
