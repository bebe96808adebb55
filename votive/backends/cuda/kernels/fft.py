"""Fourier transforms by cuFFT: which dimensions it is given in what layout, copies where it cannot
read one, scaling. Without the library they are the CPU's.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import triton
import triton.language as tl

from ....core import dtype as dt
from ....core.layout import Spec
from ....formula import Formula, var
from ...common.slot import Slot
from ..libraries import cufft as fft
from ..programs.complex_pointwise import pairs_of
from ..programs.copy import copy_view
from ..programs.fill import parts
from ..programs.index_space import window
from ..programs.lines import shared_program
from ..programs.pointwise import compile_formula
from ..programs.program import TYPE
from ..programs.types import Ints, Run
from ..rows import cuda
from ..runtime.views import View, empty, zero

BLOCK = 1024
_SCALED = Formula("fft_scale", ("x", "s"), var("x") * var("s"))


@lru_cache(1024)
def _order(ndim: int, dims: Ints) -> Ints:
    """All dimensions, those of the transform last."""
    return (*(d for d in range(ndim) if d not in dims), *dims)


def _permuted(v: View, order: Ints) -> View:
    return View(v.ptr, _like(v.spec, order), v.storage)


def _copied(v: View) -> View:
    """The same values, dense in the order of the dimensions, in memory of their own."""
    made = empty(v.spec.like(v.spec.shape))
    copy_view(made, v)
    return made


@lru_cache(1024)
def _placed(spec: Spec, rank: int) -> tuple[int, tuple[Ints, int, int]] | None:
    """(batch, layout) of the last `rank` dimensions as the library reads them, or None."""
    cut = spec.ndim - rank
    sizes, strides = spec.shape[cut:], spec.strides[cut:]
    step = strides[-1] if sizes[-1] > 1 else 1
    embed, inner = [sizes[0]], step
    for k in range(rank - 1, 0, -1):
        # The size of the array that a dimension lies in is the ratio of two strides.
        if sizes[k - 1] == 1:
            embed.insert(1, sizes[k])
        elif not inner or strides[k - 1] % inner or strides[k - 1] < inner * sizes[k]:
            return None
        else:
            embed.insert(1, strides[k - 1] // inner)
        inner *= embed[1]
    batch, distance = 1, 0
    for d in range(cut - 1, -1, -1):
        if spec.shape[d] == 1:
            continue
        if batch > 1 and spec.strides[d] != distance * batch:
            return None
        distance = distance or spec.strides[d]
        batch *= spec.shape[d]
    if step < 1 or (batch > 1 and distance < 1):
        return None
    return batch, (tuple(embed), step, distance or math.prod(embed) * step)


def _readable(v: View, rank: int) -> bool:
    """Whether the library can read a view where it lies: also reals at addresses of pairs."""
    size = v.spec.dtype.to_complex().itemsize
    return not v.ptr % size and _placed(v.spec, rank) is not None


def _direct(kind: str, given: Spec, made: Spec, rank: int, direction: int = fft.FORWARD) -> Any:
    """`run(source, to)` for specs whose last dimensions are transformed where they lie, at addresses of
    whole pairs; None where the library cannot.
    """
    source, to = _placed(given, rank), _placed(made, rank)
    if source is None or to is None:
        return None
    sizes = (made if kind == "c2r" else given).shape[-rank:]
    transform = fft.Transform(kind, given.dtype.to_real(), sizes, source[0], source[1], to[1])
    pair = given.dtype.to_complex().itemsize - 1

    def run(source: int, to: int) -> bool:
        if (source | to) & pair:
            return False
        transform(source, to, direction)
        return True

    return run


@lru_cache(1024)
def _like(spec: Spec, order: Ints) -> Spec:
    """The spec with its dimensions in another order."""
    shape, strides = (tuple(s[d] for d in order) for s in (spec.shape, spec.strides))
    return spec.like(shape, strides=strides)


def _complex(v: View, dims: Ints, direction: int, to: View | None = None) -> View:
    """A transform of complex numbers, at most three dimensions at a time; into `to`, if given."""
    first, rest = dims[-fft.RANK :], dims[: -fft.RANK]
    order, rank = _order(v.spec.ndim, first), len(first)
    given = _permuted(v, order)
    own = not _readable(given, rank)
    if own:
        given = _copied(given)
    target = None if to is None or rest else _permuted(to, order)
    if target is not None and _readable(target, rank):
        made = target
    else:
        made = given if own else empty(given.spec.like(given.spec.shape))
    batch, layout = _placed(given.spec, rank)  # type: ignore[misc]
    _, layout_to = _placed(made.spec, rank)  # type: ignore[misc]
    fft.run(
        "c2c",
        v.spec.dtype.to_real(),
        given.spec.shape[-rank:],
        batch,
        layout,
        layout_to,
        given.ptr,
        made.ptr,
        direction,
    )
    result = _permuted(made, tuple(order.index(d) for d in range(len(order))))
    if rest:
        return _complex(result, rest, direction, to)
    if to is not None and made is not target:
        copy_view(to, result)
    return to or result


def _scaling(spec: Spec, factor: float) -> Any:
    """`run(view)` that multiplies memory of a layout by a number."""
    if factor == 1.0 or not spec.numel:
        return lambda v: None
    seen = pairs_of(spec) if spec.dtype.is_complex else spec
    kind = seen.dtype
    roles = [(kind, kind, None), (None, kind, None)]
    into = compile_formula(_SCALED, ["x", "s"], roles, [seen, None], seen, empty)[1]

    def run(v: View) -> None:
        line = View(v.ptr, seen, v.storage)
        into([line, factor], line)

    return run


@triton.jit
def _half(o, x, total, n, row, col, partner, factor, imaginary, BLOCK: tl.constexpr):
    """Rows of n pairs, times a factor for each part. Those at 0 and `partner` have none of their own, so their
    imaginary parts do not count. Grid: blocks of numbers.
    """
    e = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = e < total
    pair = e // 2
    k = pair % n
    v = tl.load(x + 2 * (pair // n * row + k * col) + e % 2, mask=inside, other=0)
    v *= tl.where(e % 2 == 1, imaginary, factor)
    v = tl.where((e % 2 == 1) & ((k == 0) | (k == partner)), 0.0, v)
    tl.store(o + e, v, mask=inside)


class _Prepared:
    """Half a spectrum as the library transforms it to reals: a scaled copy, dense in its rows, conjugate for a
    forward transform.
    """

    def __init__(self, spec: Spec, size: int, factor: float, forward: bool) -> None:
        self.spec, self.n = spec, spec.shape[-1]
        kind = TYPE[spec.dtype.to_real()]
        self.program = shared_program(_half, ["*" + kind] * 2 + ["i64"] * 5 + [kind] * 2, {"BLOCK": BLOCK})
        self.numbers = (size // 2 if size % 2 == 0 else 0, factor, -factor if forward else factor)
        self.total = 2 * spec.numel

    def __call__(self, v: View) -> View:
        placed = _placed(v.spec, 1)
        if placed is None:
            v = _copied(v)
            placed = _placed(v.spec, 1)
        _, col, row = placed[1]  # type: ignore[index]
        made = empty(self.spec)
        grid = (-(-self.total // BLOCK),)
        self.program(grid, made.ptr, v.ptr, self.total, self.n, row, col, *self.numbers)
        return made


def _finishing(spec: Spec, factor: float, forward: bool) -> Any:
    """`run(view)` that multiplies memory of a dense layout by a number, and conjugates what an inverse one wants."""
    scale = _scaling(spec, factor)
    if forward or not spec.numel:
        return scale
    strides = tuple(2 * s for s in spec.strides)
    negate = _scaling(spec.like(spec.shape, dtype=spec.dtype.to_real(), strides=strides), -1.0)

    def run(v: View) -> None:
        scale(v)
        negate(parts(v)[1])

    return run


def _accepts(x: Spec) -> bool:
    return x.dtype.to_real() in (dt.float32, dt.float64)


@cuda("_fft_c2c", accepts=_accepts)
def c2c(x: Slot, dim: Ints, power: float, forward: bool) -> Run:
    if not dim or not x.numel:
        return lambda outs, x: copy_view(outs[0], x)
    if not fft.library.load():
        return None
    direction = fft.FORWARD if forward else fft.INVERSE
    factor = math.prod(x.shape[d] for d in dim) ** -power
    out = x.spec.like(x.shape, dtype=x.dtype.to_complex())
    scale = _scaling(out, factor)
    order, direct = _order(x.ndim, tuple(dim)), None
    if len(dim) <= fft.RANK:
        given = x.spec if x.dtype.is_complex else out
        direct = _direct("c2c", _like(given, order), _like(out, order), len(dim), direction)

    def run(outs: list[View], x: View) -> None:
        if not x.spec.dtype.is_complex:
            wide = empty(out)
            copy_view(wide, x)
            x = wide
        if direct is None or not direct(x.ptr, outs[0].ptr):
            _complex(x, tuple(dim), direction, outs[0])
        scale(outs[0])

    return run


@cuda("_fft_r2c", accepts=_accepts)
def r2c(x: Slot, dim: Ints, power: float, forward: bool) -> Run:
    if x.dtype.is_complex:
        return None
    if not x.numel:
        return lambda outs, x: zero(outs[0])
    if not fft.library.load():
        return None
    half = list(x.shape)
    half[dim[-1]] = half[dim[-1]] // 2 + 1
    out = x.spec.like(tuple(half), dtype=x.dtype.to_complex())
    finish = _finishing(out, math.prod(x.shape[d] for d in dim) ** -power, forward)
    last, rest = tuple(dim[-fft.RANK :]), tuple(dim[: -fft.RANK])
    order = _order(x.ndim, last)
    back = tuple(order.index(d) for d in range(x.ndim))
    rank = len(last)
    dense = _like(x.spec, order).like(tuple(x.shape[d] for d in order))
    direct = packed = None
    if not rest:
        direct = _direct("r2c", _like(x.spec, order), _like(out, order), rank)
        packed = _direct("r2c", dense, _like(out, order), rank)

    def run(outs: list[View], x: View) -> None:
        if direct is not None and direct(x.ptr, outs[0].ptr):
            finish(outs[0])
            return
        if packed is not None:
            line = empty(dense)
            copy_view(line, _permuted(x, order))
            if packed(line.ptr, outs[0].ptr):
                finish(outs[0])
                return
        given = _permuted(x, order)
        if not _readable(given, rank):
            given = _copied(given)
        to = _permuted(outs[0], order)
        made = to if _placed(to.spec, rank) is not None else empty(to.spec.like(to.spec.shape))
        batch, layout = _placed(given.spec, rank)  # type: ignore[misc]
        _, layout_to = _placed(made.spec, rank)  # type: ignore[misc]
        fft.run("r2c", x.spec.dtype, given.spec.shape[-rank:], batch, layout, layout_to, given.ptr, made.ptr)
        result = _permuted(made, back)
        if rest:
            _complex(_copied(result), rest, fft.FORWARD, outs[0])
        elif made is not to:
            copy_view(outs[0], result)
        finish(outs[0])

    return run


@cuda("_fft_c2r", accepts=_accepts)
def c2r(x: Slot, dim: Ints, power: float, size: int, forward: bool) -> Run:
    if not x.numel:
        return lambda outs, x: zero(outs[0])
    *others, last = dim
    if not fft.library.load() or not x.dtype.is_complex or x.shape[last] != size // 2 + 1:
        return None
    whole = x.spec.like((*x.shape[:last], size, *x.shape[last + 1 :]), dtype=x.dtype.to_real())
    factor = (math.prod(x.shape[d] for d in others) * size) ** -power
    order = _order(x.ndim, (last,))
    back = tuple(order.index(d) for d in range(x.ndim))
    half = _like(x.spec, order)
    dense, made_like = half.like(half.shape), _like(whole, order)
    prepare = _Prepared(dense, size, factor, forward)
    direct = _direct("c2r", dense, made_like, 1)
    packed = _direct("c2r", dense, made_like.like(made_like.shape), 1)
    direction = fft.FORWARD if forward else fft.INVERSE
    before, inner = x.spec.like(x.shape), None
    if others and len(others) <= fft.RANK:
        inside = _order(x.ndim, tuple(others))
        inner = _direct("c2c", _like(x.spec, inside), _like(before, inside), len(others), direction)

    def run(outs: list[View], x: View) -> None:
        # Only the last transform is of half a spectrum; those before it are of complex numbers.
        if others:
            made = empty(before)
            done = inner is not None and inner(x.ptr, made.ptr)
            x = made if done else _complex(x, tuple(others), direction)
        given = prepare(_permuted(x, order))  # the library overwrites what it reads
        if direct is None or not direct(given.ptr, outs[0].ptr):
            made = empty(made_like.like(made_like.shape))
            packed(given.ptr, made.ptr)
            copy_view(outs[0], _permuted(made, back))

    return run


@cuda("_fft_pairs", accepts=_accepts)
def pairs(x: Slot, dim: int, size: int, factor: float) -> Run:
    if not x.dtype.is_complex:
        return None
    # The first entry stands for itself, and so does the last of an even size.
    count = min((size + 1) // 2, x.shape[dim]) - 1
    out = x.spec.like(x.shape)
    shape = (*x.shape[:dim], max(count, 0), *x.shape[dim + 1 :])
    scale = _scaling(out.like(shape, strides=out.strides), factor)

    def run(outs: list[View], x: View) -> None:
        copy_view(outs[0], x)
        scale(window(outs[0], shape, out.strides, out.strides[dim]))

    return run
