"""Structured operators on complex tensors, computed by the kernels of reals: the same memory is a
real tensor with one more dimension, of size 2. Knows the real rows, has no kernels.

Words of 64 bits are moved whole, so complex64 is seen as pairs only where numbers are added up.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .....core import dtype as dt
from .....core.layout import Spec
from ....common.slot import Slot
from ...programs.complex_pointwise import pairs_of
from ...programs.copy import copy_view
from ...programs.fill import fill_view
from ...programs.index_space import window
from ...programs.layouts import contiguous
from ...programs.types import Run
from ...rows import cuda
from ...runtime.views import View, empty
from .. import diagonal, embedding, fold, index, index_put, masked, padding, rearrange, reduction, scatter, strided
from ..scan import scans as scan
from ..scatter_views import start


def last(spec: Spec) -> Spec:
    """Pairs in a new last dimension; a single number becomes a vector of one."""
    return pairs_of(spec if spec.ndim else spec.like((1,)))


def first(spec: Spec) -> Spec:
    """Pairs in a new first dimension."""
    strides = (1, *(2 * s for s in spec.strides))
    return spec.like((2, *spec.shape), dtype=spec.dtype.to_real(), strides=strides)


def both(spec: Spec) -> Spec:
    """Positions for either part of a pair."""
    shape, strides = (spec.shape, spec.strides) if spec.ndim else ((1,), (1,))
    return spec.like((*shape, 2), strides=(*strides, 0))


_SEEN: dict[str, Callable[[Spec], Spec]] = {"z": last, "f": first, "i": both}


def seen(v: View | None, how: str) -> Any:
    """A view (or a list of them) through another spec."""
    if how == "." or v is None:
        return v
    return View(v.ptr, _SEEN[how](v.spec), v.storage)


def _slot(s: Slot | None, how: str) -> Any:
    return s if how == "." or s is None else Slot(s.index, _SEEN[how](s.spec))


def paired(
    op: str,
    fn: Callable[..., Any],
    how: str,
    *,
    moves: bool = False,
    into: bool = False,
    change: Callable[..., tuple[Any, ...]] | None = None,
    out: str = "z",
) -> None:
    """Let a real row serve complex tensors. `how` says how each argument is seen: pairs last or
    first (z, f), an index (i), as it is (.). `moves`: numbers are only moved. `change` gives the
    arguments that the real row is planned with.
    """

    def accepts(*specs: Spec) -> bool:
        kinds = [s.dtype for s in specs if s.dtype.is_complex]
        return bool(kinds) and (not moves or dt.complex128 in kinds)

    @cuda(op, accepts=accepts, priority=20, into=into)
    def arrange(*args: Any) -> Any:
        tensors = [(a, h) for a, h in zip(args, how, strict=True) if h in "zf" and a is not None]
        if any(not isinstance(a.spec, Spec) or not a.dtype.is_complex for a, _ in tensors):
            return None
        given = [_slot(a, h) for a, h in zip(args, how, strict=True)]
        run = fn(*(change(*given) if change else given))
        if run is None:
            return None
        runtime = [h for a, h in zip(args, how, strict=True) if _is_runtime(a)]

        def launch(outs: list[View], *values: Any) -> Any:
            parts = [seen(v, h) for v, h in zip(values, runtime, strict=True)]
            return run([seen(o, out) for o in outs], *parts)

        return launch


def _is_runtime(a: Any) -> bool:
    return isinstance(a, Slot) or (isinstance(a, tuple) and bool(a) and all(isinstance(x, Slot) for x in a))


def _real_last(*args: Any) -> tuple[Any, ...]:
    return (*args[:-1], args[-1].to_real())


paired("gather", index.gather, "z.i.", moves=True)
paired("index_select", index.index_select, "z..", moves=True)
paired("index_copy", index.index_copy, "z..z", moves=True, into=True)
paired("_index", index_put.index, "z..", moves=True)
paired("_index_put", index_put.index_put, "z..z.", into=True)
paired("_flip", rearrange.flip, "z.", moves=True)
paired("tril", diagonal.tril, "f.", moves=True, into=True, out="f")
paired("triu", diagonal.triu, "f.", moves=True, into=True, out="f")
paired("_pad", padding.pad, "f..", moves=True, out="f")
paired(
    "_pad_transpose",
    padding.pad_transpose,
    "f...",
    out="f",
    change=lambda g, size, pad, mode: (g, (2, *size), pad, mode),
)
paired("index_add", index.index_add, "z..z.", into=True)
paired("scatter_add", scatter.scatter_add, "z.iz", into=True)
paired("cumsum", scan.cumsum, "z..", change=_real_last)
paired("sum", reduction.sum_, "z...", change=_real_last)
paired("mean", reduction.mean, "z...", change=_real_last)
paired(
    "_into_window",
    strided.into_window,
    "z...",
    change=lambda x, size, stride, offset: (x, (*size, 2), (*(2 * s for s in stride or (1,)), 1), 2 * offset),
)


@cuda("roll", accepts=lambda x: x.dtype is dt.complex128, priority=20)
def roll(x: Slot, shifts: tuple[int, ...], dims: tuple[int, ...]) -> Run:
    if not dims:  # the flat tensor
        return None
    run: Any = rearrange.roll(_slot(x, "z"), shifts, dims)
    return run and (lambda outs, x: run([seen(outs[0], "z")], seen(x, "z")))


def is_complex(x: Spec, *rest: Spec) -> bool:
    return x.dtype.is_complex


def _numbered(spec: Spec, value: Any) -> View:
    """A number as a tensor of one element."""
    if value.__class__ is View:
        made = empty(spec.like(()))
        copy_view(made, value)
        return made
    made = empty(spec.like(()))
    fill_view(made, value)
    return made


def _spread(v: View, shape: tuple[int, ...]) -> View:
    """One element everywhere."""
    return View(v.ptr, v.spec.like(shape, strides=(0,) * len(shape)), v.storage)


@cuda("_scatter", accepts=is_complex, priority=20, into=True)
def scatter_values(x: Slot, dim: int, index: Slot, src: Slot) -> Run:
    tensor = isinstance(src.spec, Spec)
    if tensor and (x.dtype is dt.complex64 or src.dtype is not x.dtype):
        return None  # whole words serve complex64
    shape = index.shape if index.ndim else (1,)
    given = src if tensor else Slot(0, x.spec.like(shape, strides=(0,) * len(shape)))
    run: Any = scatter.scatter(_slot(x, "z"), dim, _slot(index, "i"), _slot(given, "z"))

    def launch(outs: list[View], x: View, index: View, src: Any) -> None:
        if not tensor:
            src = _spread(_numbered(x.spec, src), shape)
        run([seen(outs[0], "z")], seen(x, "z"), seen(index, "i"), seen(src, "z"))

    return run and launch


@cuda("index_fill", accepts=is_complex, priority=20, into=True)
def index_fill(x: Slot, dim: int, index_: Slot, value: Slot) -> Run:
    if isinstance(value.spec, Spec) and value.dtype is not x.dtype:
        return None
    shape = x.shape if x.ndim else (1,)
    sizes = (*shape[:dim], index_.numel, *shape[dim + 1 :])
    spec = x.spec.like(sizes, strides=(0,) * len(sizes))
    # Negative positions count from the end here: what `index_put` takes.
    line = index_.spec if index_.ndim else index_.spec.like((1,))
    values = _slot(Slot(0, spec), "z")
    run: Any = index_put.index_put(_slot(x, "z"), (Slot(1, line),), (dim,), values, False)

    def launch(outs: list[View], x: View, index_: View, value: Any) -> None:
        source = _spread(_numbered(x.spec, value), sizes)
        places = View(index_.ptr, line, index_.storage)
        run([seen(outs[0], "z")], seen(x, "z"), [places], seen(source, "z"))

    return run and launch


@cuda("constant_pad_nd", accepts=is_complex, priority=20)
def constant_pad_nd(x: Slot, pad: tuple[int, ...], value: Slot) -> Run:
    """The whole filled, then the part that stays copied into its place."""

    def run(outs: list[View], x: View, value: Any) -> None:
        out, size = outs[0], list(x.spec.shape)
        fill_view(out, value)
        to = begin = 0
        for i in range(len(pad) // 2):
            d, (before, after) = x.spec.ndim - 1 - i, pad[2 * i : 2 * i + 2]
            size[d] += min(before, 0) + min(after, 0)
            to += max(before, 0) * out.spec.strides[d]
            begin -= min(before, 0) * x.spec.strides[d]
        if math.prod(size) and min(size, default=1) > 0:
            part = window(out, size, out.spec.strides, to)
            copy_view(part, window(x, size, x.spec.strides, begin))

    return run


@cuda("take", accepts=lambda x, *_: x.dtype is dt.complex128, priority=20)
def take(x: Slot, index: Slot) -> Run:
    flat = Slot(0, x.spec.like((x.numel, 2), dtype=dt.float64))
    run: Any = index_put.index(flat, (index,), (0,))

    def launch(outs: list[View], x: View, index: View) -> None:
        x = contiguous(x)
        to = View(outs[0].ptr, pairs_of(outs[0].spec), outs[0].storage)
        run([to], View(x.ptr, flat.spec, x.storage), [index])

    return run and launch


@cuda("put", accepts=is_complex, priority=20)
def put(x: Slot, index: Slot, source: Slot, accumulate: bool) -> Run:
    if x.dtype is dt.complex64 and not accumulate:
        return None
    flat = x.spec.like((x.numel, 2), dtype=x.dtype.to_real())
    given = x.spec.like((index.numel, 2), dtype=flat.dtype)
    places = index.spec.like((index.numel,))
    run: Any = index_put.index_put(Slot(0, flat), (Slot(1, places),), (0,), Slot(2, given), accumulate)

    def launch(outs: list[View], x: View, index: View, source: View) -> None:
        x, source, index = contiguous(x), contiguous(source), contiguous(index)
        to = View(outs[0].ptr, flat, outs[0].storage)
        values = View(source.ptr, given, source.storage)
        where = View(index.ptr, places, index.storage)
        run([to], View(x.ptr, flat, x.storage), [where], values)

    return run and launch


@cuda("_masked_select", accepts=lambda x, *_: x.dtype is dt.complex128, priority=20)
def masked_select(x: Slot, mask: Slot) -> Run:
    run: Any = masked.masked_select(_slot(x, "z"), _slot(mask, "i"))

    def launch(outs: list[View], x: View, mask: View) -> list[View]:
        (found,) = run(None, seen(x, "z"), seen(mask, "i"))
        return [View(found.ptr, x.spec.like((found.spec.numel // 2,)), found.storage)]

    return run and launch


@cuda("_masked_scatter", accepts=lambda x, *_: x.dtype is dt.complex128, priority=20)
def masked_scatter(x: Slot, mask: Slot, source: Slot) -> Run:
    """The values under the mask as a list of places: those of its true elements, in order."""
    flat = x.spec.like((x.numel, 2), dtype=dt.float64)

    def launch(outs: list[View], x: View, mask: View, source: View) -> None:
        mask, source = contiguous(mask), contiguous(source)
        line = View(mask.ptr, mask.spec.like((mask.spec.numel,)), mask.storage)
        find: Any = masked.nonzero(Slot(0, line.spec))
        (where,) = find(None, line)
        count = where.spec.numel
        if source.spec.numel < count:
            masked.too_few(source.spec.numel, count)
        start(outs[0], x)
        if count:
            places = View(where.ptr, where.spec.like((count,)), where.storage)
            given = View(source.ptr, flat.like((count, 2)), source.storage)
            to = View(outs[0].ptr, flat, outs[0].storage)
            put: Any = index_put.index_put(Slot(0, flat), (Slot(1, places.spec),), (0,), Slot(2, given.spec), False)
            put([to], to, [places], given)

    return launch


@cuda("_embedding", accepts=lambda w, *_: w.dtype is dt.complex128, priority=20)
def rows_of(weight: Slot, indices: Slot, padding_idx: int, scale_grad_by_freq: bool) -> Run:
    rows, columns = weight.shape
    wide = weight.spec.like((rows, 2 * columns), dtype=dt.float64)
    run: Any = embedding.embedding(Slot(0, wide), indices, padding_idx, scale_grad_by_freq)

    def launch(outs: list[View], weight: View, indices: View) -> None:
        weight = contiguous(weight)
        run(outs, View(weight.ptr, wide, weight.storage), indices)

    return run and launch


@cuda("_embedding_backward", accepts=is_complex, priority=20)
def rows_back(g: Slot, indices: Slot, rows: int, padding_idx: int, scale_grad_by_freq: bool) -> Run:
    *lead, columns = g.shape
    wide = g.spec.like((*lead, 2 * columns), dtype=g.dtype.to_real())
    run: Any = embedding.embedding_backward(Slot(0, wide), indices, rows, padding_idx, scale_grad_by_freq)

    def launch(outs: list[View], g: View, indices: View) -> None:
        g, out = contiguous(g), outs[0]
        to = out.spec.like((rows, 2 * columns), dtype=wide.dtype)
        run([View(out.ptr, to, out.storage)], View(g.ptr, wide, g.storage), indices)

    return run and launch


def _planar(fn: Callable[..., Any], x: Slot, *static: Any) -> Any:
    """A linear operator on each part by itself, both parts side by side in the batch."""
    n, *rest = x.shape
    apart = x.spec.like((2, n, *rest), dtype=x.dtype.to_real())
    run = fn(Slot(0, apart.like((2 * n, *rest))), *static)

    def launch(outs: list[View], x: View) -> None:
        planes = empty(apart)
        copy_view(planes, seen(x, "f"))
        out = outs[0].spec
        made = empty(out.like((2, *out.shape), dtype=apart.dtype))
        to = View(made.ptr, made.spec.like((2 * n, *out.shape[1:])), made.storage)
        run([to], View(planes.ptr, apart.like((2 * n, *rest)), planes.storage))
        copy_view(seen(outs[0], "f"), made)

    return run and launch


@cuda("_unfold", accepts=lambda x: x.dtype is dt.complex128, priority=20)
def unfold(
    x: Slot, kernel: tuple[int, ...], stride: tuple[int, ...], padding: tuple[int, ...], dilation: tuple[int, ...]
) -> Run:
    return _planar(fold.unfold, x, kernel, stride, padding, dilation)


@cuda("_fold", accepts=is_complex, priority=20)
def fold_(
    x: Slot,
    size: tuple[int, ...],
    kernel: tuple[int, ...],
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
) -> Run:
    return _planar(fold.fold, x, size, kernel, stride, padding, dilation)
