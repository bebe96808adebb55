"""Rows of a table: reading them, and adding into them."""

from __future__ import annotations

from typing import Any

from ...core import dtype as dt
from ...core.layout import Layout, Spec
from .data import View, empty
from .fill import fill_view
from .index import SUMS, checked, reach, reported, spot, summed
from .places import Places, added, by_spec, word
from .program import pointer
from .rows import cuda


@cuda("_embedding")
def embedding(weight: Any, indices: Any, padding_idx: int, scale_grad_by_freq: bool) -> Any:
    if word(weight.dtype) is None:
        return None
    shape = (*indices.shape, weight.shape[1])
    out = weight.spec.like(shape)
    columns = (0,) * indices.ndim + (weight.strides[1],)
    p = Places(shape, [out.strides, (*indices.strides, 0), columns], reach=reach(weight))
    body = [
        *checked(p, "i", p.load("index", 1), weight.shape[0]),
        f"v = tl.load(x + {spot(p, 2, f'''i * {p.arg('xs', weight.strides[0])}''')}, mask=inside, "
        "other=0)",
        p.store("v"),
    ]
    kind = word(weight.dtype)
    types = {"o": kind, "x": kind, "index": pointer(indices.dtype), "fault": "*i32"}
    run = p.kernel("embedding", types, body)  # type: ignore[arg-type]
    fault = reported("embedding", 0, weight.shape[0], IndexError)
    return lambda outs, weight, indices: run(outs[0].ptr, weight.ptr, indices.ptr, fault)


def _counter(indices: Any) -> Any:
    """`count(counts, indices)`: how often each row is named."""
    p = Places(indices.shape, [indices.strides])
    return p.kernel("count", {"o": "*i32", "index": pointer(indices.dtype)}, [
        f"i = {p.load('index', 0)} + r * 0 + n * 0",
        "tl.atomic_add(o + i, 1, mask=inside, sem='relaxed')",
    ])  # fmt: skip


@cuda("_embedding_backward")
def embedding_backward(
    g: Any, indices: Any, rows: int, padding_idx: int, scale_grad_by_freq: bool
) -> Any:
    if g.dtype not in SUMS or not g.dtype.is_floating_point:
        return None
    kind = SUMS[g.dtype]
    counter = _counter(indices) if scale_grad_by_freq else None
    zero = (0,) * indices.ndim

    def build(out: Spec) -> Any:
        steps = [(*zero, out.strides[1]), (*indices.strides, 0), g.strides]
        p = Places(g.shape, steps, reach=reach(out), order=2)
        types = {"o": pointer(kind), "g": pointer(g.dtype), "index": pointer(indices.dtype)}
        body = [
            f"i = {p.load('index', 1)}.to(tl.int64)",
            f"keep = inside & (i != {p.arg('padding', padding_idx)})",
        ]
        value = f"{p.load('g', 2)}.to(o.dtype.element_ty)"
        if scale_grad_by_freq:
            types["counts"] = "*i32"
            body.append("many = tl.load(counts + i + r * 0, mask=(i + r * 0) >= 0, other=1)")
            value += " / many.to(o.dtype.element_ty)"
        body += added(spot(p, 0, f"i * {p.arg('os', out.strides[0])}"), value, "keep")
        return p.kernel("embedding_backward", types, body)

    find = by_spec(build)

    def run(outs: list[View], g: View, indices: View) -> None:
        with summed(outs[0], None) as to:
            extra = []
            if counter is not None:
                counts = empty(Spec(Layout((max(rows, 1),)), dt.int32, to.spec.device))
                fill_view(counts, 0)
                counter(counts.ptr, indices.ptr)
                extra = [counts.ptr]
            find(to.spec)(to.ptr, g.ptr, indices.ptr, *extra)

    return run
