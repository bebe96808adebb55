"""Reading and writing at positions that tensors give for several dimensions."""

from __future__ import annotations

from typing import Any

from ....core.layout import broadcast_shapes, broadcast_strides
from ...common.slot import Slot
from ..programs.index_space import IndexSpace, added, cached_by_spec, word
from ..programs.program import pointer
from ..programs.types import Run
from ..rows import cuda
from ..runtime.views import View
from .index import SUMS, checked, reach, reported, spot, summed
from .scatter_views import apart, start


class _Picked:
    """How the shape of what is read or written falls apart into index and kept dimensions."""

    def __init__(self, x: Slot, indices: Any, dims: tuple[int, ...]) -> None:
        self.dims = tuple(dims)
        self.common = broadcast_shapes("indexing", *(i.shape for i in indices))
        self.kept = [d for d in range(len(x.shape)) if d not in self.dims]
        beside = self.dims == tuple(range(self.dims[0], self.dims[0] + len(self.dims)))
        self.lead = self.dims[0] if beside else 0
        sizes = [x.shape[d] for d in self.kept]
        self.shape = (*sizes[: self.lead], *self.common, *sizes[self.lead :])

    def index_strides(self, index: Slot) -> tuple[int, ...]:
        inner = broadcast_strides(index.shape, index.strides, self.common)
        return (0,) * self.lead + inner + (0,) * (len(self.kept) - self.lead)

    def kept_strides(self, x: Slot) -> tuple[int, ...]:
        steps = [x.strides[d] for d in self.kept]
        return (*steps[: self.lead], *(0,) * len(self.common), *steps[self.lead :])

    def found(self, p: IndexSpace, x: Slot, first: int) -> tuple[list[str], str, str]:
        """Lines that load the indices; the text of the place in `x`; that of all being in range."""
        lines, terms, good = [], [], []
        for k, d in enumerate(self.dims):
            name = f"i{k}"
            lines += checked(p, name, p.load(f"index{k}", first + k), x.shape[d], True)
            terms.append(f"{name} * {p.arg(f'xs{k}', x.strides[d])}")
            good.append(f"({name}_bad == 0)")
        return lines, " + ".join(terms), " & ".join(good)


def _fault(op: str, x: Slot, dims: tuple[int, ...]) -> int:
    where = ", ".join(map(str, dims))
    sizes = tuple(x.shape[d] for d in dims)
    return reported(op, where, sizes if len(sizes) > 1 else sizes[0], IndexError)  # type: ignore[arg-type]


@cuda("_index")
def index(x: Slot, indices: tuple[Slot, ...], dims: tuple[int, ...]) -> Run:
    if word(x.dtype) is None:
        return None
    picked = _Picked(x, indices, dims)
    out = x.spec.like(picked.shape)
    at = [picked.index_strides(i) for i in indices]
    p = IndexSpace(picked.shape, [out.strides, picked.kept_strides(x), *at], reach=reach(x))
    lines, place, _ = picked.found(p, x, 2)
    types = {"o": word(x.dtype), "x": word(x.dtype), "fault": "*i32"}
    types |= {f"index{k}": pointer(i.dtype) for k, i in enumerate(indices)}
    body = [*lines, f"v = tl.load(x + {spot(p, 1, place)}, mask=inside, other=0)", p.store("v")]
    kernel = p.kernel("index", types, body)
    fault = _fault("indexing", x, dims)

    def run(outs: list[View], x: View, indices: list[View]) -> None:
        kernel(outs[0].ptr, x.ptr, fault, *[i.ptr for i in indices])

    return run


@cuda("_index_put", into=True)
def index_put(x: Slot, indices: tuple[Slot, ...], dims: tuple[int, ...], values: Slot, accumulate: bool) -> Run:
    if word(x.dtype) is None or (accumulate and x.dtype not in SUMS):
        return None
    picked = _Picked(x, indices, dims)
    at = [picked.index_strides(i) for i in indices]
    fault = _fault("index_put", x, dims)
    total = SUMS.get(x.dtype)

    def build(key: Any) -> Any:
        out, given = key
        source = broadcast_strides(given.shape, given.strides, picked.shape)
        steps = [picked.kept_strides(out), source, *at]
        p = IndexSpace(picked.shape, steps, reach=reach(out), order=1)
        lines, place, good = picked.found(p, out, 2)
        kind = pointer(total) if accumulate else word(x.dtype)  # type: ignore[arg-type]
        have = pointer(given.dtype) if accumulate else word(x.dtype)
        types = {"o": kind, "values": have, "fault": "*i32"}
        types |= {f"index{k}": pointer(i.dtype) for k, i in enumerate(indices)}
        value, where = p.load("values", 1), spot(p, 0, place)
        how = (
            added(where, value, f"inside & {good}")
            if accumulate
            else [f"tl.store(o + {where}, {value}, mask=inside & {good})"]
        )
        return p.kernel("index_put", types, [*lines, *how])

    find = cached_by_spec(build)

    def run(outs: list[View], x: View, indices: list[View], values: View) -> None:
        values = apart(values, outs[0])
        rest = [i.ptr for i in indices]
        if accumulate:
            with summed(outs[0], x) as to:
                find((to.spec, values.spec))(to.ptr, values.ptr, fault, *rest)
            return
        start(outs[0], x)
        find((outs[0].spec, values.spec))(outs[0].ptr, values.ptr, fault, *rest)

    return run
