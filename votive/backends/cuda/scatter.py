"""Writing and adding at positions along one dimension."""

from __future__ import annotations

from typing import Any

from ...core import dtype as dt
from ...core.layout import Spec
from .data import View
from .fill import bits
from .index import SUMS, checked, lined, reach, reported, spot, summed
from .places import Places, added, by_spec, without, word
from .program import pointer
from .rows import cuda
from .scatter_views import apart, start


def _usable(index: Any) -> bool:
    return index.dtype in (dt.int64, dt.int32) or not index.numel


def _places(out: Spec, dim: int, index: Any, src: Any) -> tuple[Places, str]:
    """Places of the index, and the text of where each writes in `out`."""
    steps = lined(out)[1]
    shape, at = lined(index)
    given = lined(src)[1] if src is not None else (0,) * len(shape)
    p = Places(shape, [without(steps, dim), at, given], reach=reach(out))
    return p, spot(p, 0, f"i * {p.arg('os', steps[dim])}")


@cuda("_scatter", into=True)
def scatter(x: Any, dim: int, index: Any, src: Any) -> Any:
    tensor = isinstance(src.spec, Spec)
    if word(x.dtype) is None or not _usable(index):
        return None
    if not tensor and (
        isinstance(src.spec, complex) or (isinstance(src.spec, float) and not x.dtype.is_inexact)
    ):
        return None
    size = lined(x)[0][dim]
    fault = reported("scatter", dim, size)

    def build(key: Any) -> Any:
        out, given = key
        p, place = _places(out, dim, index, given)
        types = {"o": word(x.dtype), "index": pointer(index.dtype), "fault": "*i32"}
        types |= {"src": word(x.dtype)} if tensor else {"value": "i64"}
        value = p.load("src", 2) if tensor else "value.to(o.dtype.element_ty)"
        return p.kernel("scatter", types, [  # type: ignore[arg-type]
            *checked(p, "i", p.load("index", 1), size),
            f"tl.store(o + {place}, {value}, mask=inside & (i_bad == 0))",
        ])  # fmt: skip

    find = by_spec(build)

    def run(outs: list[View], x: View, index: View, src: Any) -> None:
        if tensor:
            src = apart(src, outs[0])
        start(outs[0], x)
        if index.spec.numel:
            value = src.ptr if tensor else bits(src, x.spec.dtype)
            kernel = find((outs[0].spec, src.spec if tensor else None))
            kernel(outs[0].ptr, index.ptr, fault, value)

    return run


@cuda("scatter_add", into=True)
def scatter_add(x: Any, dim: int, index: Any, src: Any) -> Any:
    if x.dtype not in SUMS or not _usable(index):
        return None
    kind = SUMS[x.dtype]
    size = lined(x)[0][dim]
    fault = reported("scatter_add", dim, size)

    def build(key: Any) -> Any:
        out, given = key
        p, place = _places(out, dim, index, given)
        return p.kernel("scatter_add", {
            "o": pointer(kind), "src": pointer(src.dtype), "index": pointer(index.dtype),
            "fault": "*i32",
        }, [
            *checked(p, "i", p.load("index", 1), size),
            *added(place, p.load("src", 2), "inside & (i_bad == 0)"),
        ])  # fmt: skip

    find = by_spec(build)

    def run(outs: list[View], x: View, index: View, src: View) -> None:
        src = apart(src, outs[0])
        with summed(outs[0], x) as to:
            if index.spec.numel:
                find((to.spec, src.spec))(to.ptr, src.ptr, index.ptr, fault)

    return run
