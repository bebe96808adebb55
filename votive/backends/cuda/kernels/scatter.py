"""Writing and adding at positions along one dimension."""

from __future__ import annotations

from typing import Any

from ....core import determinism
from ....core import dtype as dt
from ....core.layout import Spec
from ...common.slot import Slot
from ..programs.copy import copy_view
from ..programs.fill import bits
from ..programs.index_space import IndexSpace, added, cached_by_spec, without, word
from ..programs.lines import key_type, ordered
from ..programs.pointwise import _TL
from ..programs.program import TYPE, pointer
from ..programs.types import Run
from ..rows import cuda
from ..runtime.views import View, empty
from .index import SUMS, checked, lined, reach, reported, spot, summed
from .scatter_views import apart, start


def _usable(index: Slot) -> bool:
    return index.dtype in (dt.int64, dt.int32) or not index.numel


def _places(out: Spec, dim: int, index: Any, src: Any) -> tuple[IndexSpace, str]:
    """Places of the index, and the text of where each writes in `out`."""
    steps = lined(out)[1]
    shape, at = lined(index)
    given = lined(src)[1] if src is not None else (0,) * len(shape)
    p = IndexSpace(shape, [without(steps, dim), at, given], reach=reach(out), order=2)
    return p, spot(p, 0, f"i * {p.arg('os', steps[dim])}")


@cuda("_scatter", into=True)
def scatter(x: Slot, dim: int, index: Slot, src: Slot) -> Run:
    tensor = isinstance(src.spec, Spec)
    if word(x.dtype) is None or not _usable(index):
        return None
    if not tensor and (isinstance(src.spec, complex) or (isinstance(src.spec, float) and not x.dtype.is_inexact)):
        return None
    size = lined(x)[0][dim]
    fault = reported("scatter", dim, size)

    def build(key: Any) -> Any:
        out, given = key
        p, place = _places(out, dim, index, given)
        types = {"o": word(x.dtype), "index": pointer(index.dtype), "fault": "*i32"}
        types |= {"src": word(x.dtype)} if tensor else {"value": "i64"}
        value = p.load("src", 2) if tensor else "value.to(o.dtype.element_ty)"
        return p.kernel(
            "scatter",
            types,
            [*checked(p, "i", p.load("index", 1), size), f"tl.store(o + {place}, {value}, mask=inside & (i_bad == 0))"],
        )

    find = cached_by_spec(build)

    def run(outs: list[View], x: View, index: View, src: View) -> None:
        if tensor:
            src = apart(src, outs[0])
        start(outs[0], x)
        if index.spec.numel:
            value = src.ptr if tensor else bits(src, x.spec.dtype)
            kernel = find((outs[0].spec, src.spec if tensor else None))
            kernel(outs[0].ptr, index.ptr, fault, value)

    return run


@cuda("scatter_add", into=True)
def scatter_add(x: Slot, dim: int, index: Slot, src: Slot) -> Run:
    if x.dtype not in SUMS or not _usable(index):
        return None
    kind = SUMS[x.dtype]
    size = lined(x)[0][dim]
    fault = reported("scatter_add", dim, size)

    def build(key: Any) -> Any:
        out, given = key
        p, place = _places(out, dim, index, given)
        return p.kernel(
            "scatter_add",
            {"o": pointer(kind), "src": pointer(src.dtype), "index": pointer(index.dtype), "fault": "*i32"},
            [*checked(p, "i", p.load("index", 1), size), *added(place, p.load("src", 2), "inside & (i_bad == 0)")],
        )

    find = cached_by_spec(build)

    def run(outs: list[View], x: View, index: View, src: View) -> None:
        src = apart(src, outs[0])
        with summed(outs[0], x) as to:
            if index.spec.numel:
                find((to.spec, src.spec))(to.ptr, src.ptr, index.ptr, fault)

    return run


@cuda("_scatter_extremum", into=True)
def scatter_extremum(x: Slot, dim: int, index: Slot, src: Slot, reduce: str, own: bool) -> Run:
    """The largest or smallest of what falls on a place: as integers in the same order, of which
    hardware keeps the largest. `own`: what is there takes part.
    """
    if not ordered(x) or not _usable(index) or src.dtype is not x.dtype:
        return None
    largest = reduce == "amax"
    size = lined(x)[0][dim]
    fault = reported("scatter_reduce", dim, size)
    key = key_type(x.dtype)
    lowest = -(2**63) if key is dt.int64 else -(2**31)
    keys = x.spec.like(x.shape, dtype=key)
    kind = pointer(x.dtype)
    p = IndexSpace(x.shape, [keys.strides, x.strides])
    none = f"tl.full((BM, BN), {lowest}, {_TL[TYPE[key]]})"
    begin = p.kernel(
        "scatter_keys",
        {"o": pointer(key), "x": kind},
        [
            f"v = {p.load('x', 1)} + (r * 0 + n * 0).to(x.dtype.element_ty)" if own else "v = 0",
            p.store(f"m.sought(v, {largest})" if own else none),
        ],
    )

    def reading(given: Spec) -> Any:
        q, place = _places(keys, dim, index, given)
        types = {"o": pointer(key), "src": kind, "index": pointer(index.dtype), "fault": "*i32"}
        return q.kernel(
            "scatter_max",
            types,
            [
                *checked(q, "i", q.load("index", 1), size),
                f"v = m.sought({q.load('src', 2)}, {largest})",
                f"tl.atomic_max(o + {place}, v + (r * 0 + n * 0).to(v.dtype), "
                "mask=inside & (i_bad == 0), sem='relaxed')",
            ],
        )

    def writing(out: Spec) -> Any:
        w = IndexSpace(out.shape, [out.strides, keys.strides, x.strides])
        back = f"m.value_of(k, {_TL[TYPE[x.dtype]]}, {largest})"
        types = {"o": kind, "keys": pointer(key), "x": kind}
        return w.kernel(
            "scatter_values",
            types,
            [
                f"k = {w.load('keys', 1)} + (r * 0 + n * 0).to(keys.dtype.element_ty)",
                f"old = {w.load('x', 2)}",
                w.store(f"tl.where(k == {lowest}, old, {back})"),
            ],
        )

    reads, writes = cached_by_spec(reading), cached_by_spec(writing)

    def run(outs: list[View], x: View, index: View, src: View) -> None:
        made = empty(keys)
        begin(made.ptr, x.ptr)
        if index.spec.numel:
            reads(src.spec)(made.ptr, src.ptr, index.ptr, fault)
        writes(outs[0].spec)(outs[0].ptr, made.ptr, x.ptr)

    return run


# Products are formed by exchange: what is there, read as bits, is replaced by the product if it is
# still there. Narrow types are multiplied in wider memory.
_PRODUCTS = {
    dt.float64: (dt.float64, "tl.int64"),
    dt.int64: (dt.int64, "tl.int64"),
    dt.float32: (dt.float32, "tl.int32"),
    dt.float16: (dt.float32, "tl.int32"),
    dt.bfloat16: (dt.float32, "tl.int32"),
    dt.int32: (dt.int32, "tl.int32"),
    dt.int16: (dt.int32, "tl.int32"),
    dt.int8: (dt.int32, "tl.int32"),
    dt.uint8: (dt.int32, "tl.int32"),
    dt.bool_: (dt.int32, "tl.int32"),
}


@cuda("_scatter_prod", into=True)
def scatter_prod(x: Slot, dim: int, index: Slot, src: Slot, own: bool) -> Run:
    """`own`: what is there takes part."""
    if x.dtype not in _PRODUCTS or not _usable(index) or src.dtype is not x.dtype:
        return None
    kind, bits = _PRODUCTS[x.dtype]
    size = lined(x)[0][dim]
    fault = reported("scatter_reduce", dim, size)
    wide = x.spec.like(x.shape, dtype=kind)
    spare = x.spec.like((1,), dtype=dt.int64)

    def build(given: Spec) -> tuple[Any, Any]:
        p, place = _places(wide, dim, index, given)
        types = {"o": pointer(kind), "index": pointer(index.dtype), "fault": "*i32"}
        clear = p.kernel(
            "scatter_ones",
            types,
            [*checked(p, "i", p.load("index", 1), size), f"tl.store(o + {place}, 1, mask=inside & (i_bad == 0))"],
        )
        q, place = _places(wide, dim, index, given)
        types |= {"src": pointer(x.dtype), "spare": "*i64"}
        number = "o.dtype.element_ty"
        return clear, q.kernel(
            "scatter_prod",
            types,
            [
                *checked(q, "i", q.load("index", 1), size),
                f"v = {q.load('src', 2)}.to({number}) + (r * 0 + n * 0).to({number})",
                "live = inside & (i_bad == 0)",
                f"there = (o + {place}).to(tl.pointer_type({bits}))",
                # Whoever is done exchanges a word that nobody reads.
                f"nowhere = (spare + (r * 0 + n * 0)).to(tl.pointer_type({bits}))",
                "old = tl.load(there, mask=live, other=0)",
                "while tl.max(live.to(tl.int32)) > 0:",
                f"    new = (old.to({number}, bitcast=True) * v).to({bits}, bitcast=True)",
                "    got = tl.atomic_cas(tl.where(live, there, nowhere), old, new)",
                "    live = live & (got != old)",
                "    old = got",
            ],
        )

    find = cached_by_spec(build)

    def run(outs: list[View], x: View, index: View, src: View) -> None:
        if kind.is_floating_point:
            determinism.alert("scatter_reduce")
        src = apart(src, outs[0])
        to = empty(wide)
        copy_view(to, x)
        if index.spec.numel:
            clear, multiply = find(src.spec)
            if not own:
                clear(to.ptr, index.ptr, fault)
            word = empty(spare)
            multiply(to.ptr, index.ptr, fault, src.ptr, word.ptr)
        copy_view(outs[0], to)

    return run


@cuda("_first_order")
def first_order(x: Slot) -> Run:
    return lambda outs, x: copy_view(outs[0], x)
