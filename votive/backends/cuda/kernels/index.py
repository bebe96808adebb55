"""Reading and writing along one dimension."""

from __future__ import annotations

from typing import Any

from ....core import dtype as dt
from ....core.layout import Spec
from ...common.slot import Slot
from ..programs.copy import copy_view
from ..programs.fill import bits, fill_view
from ..programs.index_space import IndexSpace, added, cached_by_spec, without, word
from ..programs.layouts import contiguous
from ..programs.program import pointer
from ..programs.types import Run
from ..rows import cuda
from ..runtime.faults import faults
from ..runtime.views import View, empty
from .scatter_views import apart, start

# The type in which elements are added up: hardware adds these at one place in any order.
SUMS = {
    dt.float16: dt.float32,
    dt.bfloat16: dt.float32,
    dt.float32: dt.float32,
    dt.float64: dt.float64,
    dt.int64: dt.int64,
    dt.int32: dt.int32,
    dt.int16: dt.int32,
    dt.int8: dt.int32,
    dt.uint8: dt.int32,
    dt.bool_: dt.int32,
}


def lined(x: Slot | Spec) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(shape, strides); a 0-d tensor counts as one with a single element."""
    return (x.shape, x.strides) if x.ndim else ((1,), (1,))


def checked(p: IndexSpace, name: str, text: str, size: int, below: bool = False) -> list[str]:
    """Lines that load an index, report it when it is out of range, and make it harmless."""
    n = p.arg(f"{name}_size", size)
    low = f"-{n}" if below else "0"
    lines = [
        f"{name} = {text}.to(tl.int64)",
        f"{name}_bad = inside & (({name} < {low}) | ({name} >= {n}))",
        f"tl.store(fault + tl.zeros_like({name}_bad.to(tl.int32)), 1, mask={name}_bad)",
        f"{name} = tl.where(({name} < {low}) | ({name} >= {n}), 0, {name})",
    ]
    if below:
        lines.append(f"{name} = tl.where({name} < 0, {name} + {n}, {name})")
    return lines


def reported(op: str, dim: int, size: int, kind: type[Exception] = RuntimeError) -> int:
    """The word that a kernel sets when an index is out of range."""
    text = f"{op}: an index is out of bounds for dimension {dim} with size {size}."
    return faults.place(kind, text)


def spot(p: IndexSpace, k: int, *extra: str) -> str:
    """Operand k's place with further terms, as wide as the tile."""
    parts = [t for t in (p.offsets[k], *extra) if t]
    return "(" + " + ".join([*parts, "r * 0", "n * 0"]) + ")"


def reach(spec: Slot | Spec) -> int:
    """The largest offset inside a layout."""
    return sum(abs(s) * (n - 1) for s, n in zip(spec.strides, spec.shape, strict=True))


class summed:  # named and used as the function that it is
    """Memory that can be added into, beginning with `x` or zeros, whose values end up in `out`."""

    __slots__ = ("out", "to")

    def __init__(self, out: View, x: View | None) -> None:
        kind = SUMS[out.spec.dtype]
        self.out = out
        self.to = to = out if kind is out.spec.dtype else empty(wider(out.spec))
        if x is None:
            fill_view(to, 0)
        elif to is out:
            start(out, x)
        else:
            copy_view(to, x)

    def __enter__(self) -> View:
        return self.to

    def __exit__(self, failed: object, *rest: object) -> None:
        if failed is None and self.to is not self.out:
            copy_view(self.out, self.to)


@cached_by_spec
def wider(out: Spec) -> Spec:
    """The spec of memory in which elements of another are added up."""
    return out.dense_like().like(dtype=SUMS[out.dtype])


def _index_types(*slots: Any) -> bool:
    return all(s.dtype in (dt.int64, dt.int32) for s in slots)


def _reader(name: str, p: IndexSpace, x: Slot, index: Slot, dim: int, fault: int) -> Run:
    """Elements taken along a dimension: operand 1 of the index space is the index, 2 the source without that step."""
    shape, steps = lined(x)
    xs = p.arg("xs", steps[dim])
    body = [
        *checked(p, "i", p.load("index", 1), shape[dim]),
        f"v = tl.load(x + {spot(p, 2, f'i * {xs}')}, mask=inside, other=0)",
        p.store("v"),
    ]
    types = {"o": word(x.dtype), "x": word(x.dtype), "index": pointer(index.dtype), "fault": "*i32"}
    run = p.kernel(name, types, body)
    return lambda outs, x, index: run(outs[0].ptr, x.ptr, index.ptr, fault)


@cuda("gather")
def gather(x: Slot, dim: int, index: Slot, sparse_grad: bool) -> Run:
    if word(x.dtype) is None:
        return None
    if not index.numel:
        return lambda outs, x, index: None
    if not _index_types(index):
        return None
    (shape, steps), (places, at) = lined(x), lined(index)
    out = lined(x.spec.like(index.shape))[1]
    p = IndexSpace(places, [out, at, without(steps, dim)], reach=reach(x))
    return _reader("gather", p, x, index, dim, reported("gather", dim, shape[dim]))


@cuda("index_select")
def index_select(x: Slot, dim: int, index: Slot) -> Run:
    if word(x.dtype) is None or not (_index_types(index) or not index.numel):
        return None
    shape, steps = lined(x)
    out = x.spec.like((*shape[:dim], index.numel, *shape[dim + 1 :]))
    step = index.strides[0] if index.ndim else 1
    at = tuple(step if d == dim else 0 for d in range(len(shape)))
    p = IndexSpace(out.shape, [out.strides, at, without(steps, dim)], reach=reach(x))
    return _reader("index_select", p, x, index, dim, reported("index_select", dim, shape[dim], IndexError))


def _along(out: Spec, dim: int, index: Slot, source: Slot | None) -> tuple[IndexSpace, str]:
    """Places of the slices that a vector names, and the text of where they are in `out`."""
    shape, steps = lined(out)
    sizes = (*shape[:dim], index.numel, *shape[dim + 1 :])
    step = index.strides[0] if index.ndim else 1
    at = tuple(step if d == dim else 0 for d in range(len(shape)))
    given = source.strides if source is not None and source.ndim else (0,) * len(shape)
    p = IndexSpace(sizes, [without(steps, dim), at, given], reach=reach(out), order=2)
    return p, spot(p, 0, f"i * {p.arg('os', steps[dim])}")


@cuda("index_add", into=True)
def index_add(x: Slot, dim: int, index: Slot, source: Slot, alpha: Slot) -> Run:
    if x.dtype not in SUMS or isinstance(alpha.spec, complex) or not _index_types(index):
        return None
    kind = SUMS[x.dtype]
    size = lined(x)[0][dim]
    number = "i64" if not kind.is_floating_point else "fp64" if kind is dt.float64 else "fp32"
    fault = reported("index_add", dim, size)

    def build(out: Spec) -> Any:
        p, place = _along(out, dim, index, source)
        return p.kernel(
            "index_add",
            {
                "o": pointer(kind),
                "source": pointer(source.dtype),
                "index": pointer(index.dtype),
                "fault": "*i32",
                "alpha": number,
            },
            [
                *checked(p, "i", p.load("index", 1), size),
                f"s = {p.load('source', 2)}.to(o.dtype.element_ty)",
                *added(place, "s * alpha.to(s.dtype)", "inside & (i_bad == 0)"),
            ],
        )

    find = cached_by_spec(build)

    def run(outs: list[View], x: View, index: View, source: View, alpha: Any) -> None:
        source = apart(source, outs[0])
        with summed(outs[0], x) as to:
            a = int(alpha) if number == "i64" else float(alpha)
            find(to.spec)(to.ptr, source.ptr, index.ptr, fault, a)

    return run


def _writer(name: str, x: Slot, dim: int, index: Slot, source: Any, below: bool) -> Any:
    size = lined(x)[0][dim]

    def build(out: Spec) -> Any:
        p, place = _along(out, dim, index, source)
        value = p.load("source", 2) if source is not None else "value.to(o.dtype.element_ty)"
        types = {"o": word(x.dtype), "index": pointer(index.dtype), "fault": "*i32"}
        types |= {"source": word(x.dtype)} if source is not None else {"value": "i64"}
        return p.kernel(
            name,
            types,
            [
                *checked(p, "i", p.load("index", 1), size, below),
                f"tl.store(o + {place}, {value}, mask=inside & (i_bad == 0))",
            ],
        )

    return cached_by_spec(build)


@cuda("index_copy", into=True)
def index_copy(x: Slot, dim: int, index: Slot, source: Slot) -> Run:
    if word(x.dtype) is None or not _index_types(index):
        return None
    find = _writer("index_copy", x, dim, index, source, False)
    fault = reported("index_copy", dim, lined(x)[0][dim], IndexError)

    def run(outs: list[View], x: View, index: View, source: View) -> None:
        source = apart(source, outs[0])
        start(outs[0], x)
        find(outs[0].spec)(outs[0].ptr, index.ptr, fault, source.ptr)

    return run


@cuda("index_fill", into=True)
def index_fill(x: Slot, dim: int, index: Slot, value: Slot) -> Run:
    if word(x.dtype) is None or not _index_types(index) or isinstance(value.spec, complex):
        return None
    if isinstance(value.spec, float) and not x.dtype.is_inexact:
        return None
    tensor = isinstance(value.spec, Spec)
    find = _writer("index_fill", x, dim, index, value if tensor else None, True)
    fault = reported("index_fill", dim, lined(x)[0][dim], IndexError)

    def run(outs: list[View], x: View, index: View, value: Any) -> None:
        if tensor:
            one = empty(value.spec.like(dtype=x.spec.dtype))
            copy_view(one, value)
        start(outs[0], x)
        given = one.ptr if tensor else bits(value, x.spec.dtype)
        find(outs[0].spec)(outs[0].ptr, index.ptr, fault, given)

    return run


@cuda("take")
def take(x: Slot, index: Slot) -> Run:
    if word(x.dtype) is None:
        return None
    out = x.spec.like(index.shape)
    p = IndexSpace(index.shape, [out.strides, index.strides], reach=x.numel)
    body = [
        *checked(p, "i", p.load("index", 1), x.numel, True),
        f"v = tl.load(x + {spot(p, 1)} * 0 + i, mask=inside, other=0)",
        p.store("v"),
    ]
    types = {"o": word(x.dtype), "x": word(x.dtype), "index": pointer(index.dtype), "fault": "*i32"}
    run = p.kernel("take", types, body)
    fault = _flat_fault("take", x.numel)

    def launch(outs: list[View], x: View, index: View) -> None:
        x = contiguous(x)
        run(outs[0].ptr, x.ptr, index.ptr, fault)

    return launch


def _flat_fault(op: str, size: int) -> int:
    return faults.place(IndexError, f"{op}: out of range: an index lies outside of a tensor of {size} elements.")


@cuda("put", into=True)
def put(x: Slot, index: Slot, source: Slot, accumulate: bool) -> Run:
    if word(x.dtype) is None or (accumulate and x.dtype not in SUMS):
        return None
    total = SUMS[x.dtype] if accumulate else x.dtype
    # Index and source are read in row-major order, whatever their shapes.
    p = IndexSpace((index.numel,), [(1,), (1,)], reach=x.numel)
    kind = pointer(total) if accumulate else word(x.dtype)
    given = pointer(source.dtype) if accumulate else word(x.dtype)
    types = {"o": kind, "source": given, "index": pointer(index.dtype), "fault": "*i32"}
    place, good = "(i + r * 0 + n * 0)", "inside & (i_bad == 0)"
    value = p.load("source", 1)
    how = added(place, value, good) if accumulate else [f"tl.store(o + {place}, {value}, mask={good})"]
    body = [*checked(p, "i", p.load("index", 0), x.numel, True), *how]
    kernel = p.kernel("put", types, body)
    fault = _flat_fault("put", x.numel)

    def run(outs: list[View], x: View, index: View, source: View) -> None:
        source, index = contiguous(apart(source, outs[0])), contiguous(index)
        flat = empty(outs[0].spec.like(outs[0].spec.shape)) if not outs[0].spec.contiguous else outs[0]
        if accumulate:
            with summed(flat, x) as to:
                kernel(to.ptr, source.ptr, index.ptr, fault)
        else:
            start(flat, x)
            kernel(flat.ptr, source.ptr, index.ptr, fault)
        if flat is not outs[0]:
            copy_view(outs[0], flat)

    return run
