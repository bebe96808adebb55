"""Suppression of boxes, maxima and weighted sums of regions."""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from ....core import determinism
from ....core import dtype as dt
from ....core.layout import Layout, Spec
from ...common.slot import Slot
from ..device import math as m
from ..programs.copy import copy_view
from ..programs.layouts import contiguous, next_power_of_two
from ..programs.program import Program, pointer
from ..programs.types import Run, floats
from ..rows import cuda
from ..runtime.views import View, empty, zero

WORD = tl.constexpr(32)  # boxes whose fates are bits of one number
SIDE = 64  # boxes that are compared with a word of others by one program
ROWS = 8  # survivors that strike out others at the same time
SHARE = 8  # channels of a region that one program goes through


@triton.jit
def _corner(boxes, i, k, sb, sk, inside):
    return tl.load(boxes + i * sb + k * sk, mask=inside, other=0)


@triton.jit
def _covered(o, boxes, group, n, words, threshold, sb, sk, sg, SIDE: tl.constexpr, WIDE: tl.constexpr):
    """o (n, words): the later boxes, as bits, that box i covers too much of."""
    i = tl.program_id(0) * SIDE + tl.arange(0, SIDE)[:, None]
    j = tl.program_id(1) * WORD + tl.arange(0, WORD)[None, :]
    a, b = i < n, j < n
    zero = tl.zeros((1, 1), WIDE)
    left, top = _corner(boxes, i, 0, sb, sk, a).to(WIDE), _corner(boxes, i, 1, sb, sk, a).to(WIDE)
    right, low = _corner(boxes, i, 2, sb, sk, a).to(WIDE), _corner(boxes, i, 3, sb, sk, a).to(WIDE)
    x1, y1 = _corner(boxes, j, 0, sb, sk, b).to(WIDE), _corner(boxes, j, 1, sb, sk, b).to(WIDE)
    x2, y2 = _corner(boxes, j, 2, sb, sk, b).to(WIDE), _corner(boxes, j, 3, sb, sk, b).to(WIDE)

    wide = tl.maximum(tl.minimum(right, x2) - tl.maximum(left, x1), zero)
    high = tl.maximum(tl.minimum(low, y2) - tl.maximum(top, y1), zero)
    both = wide * high
    either = (right - left) * (low - top) + (x2 - x1) * (y2 - y1) - both
    overlap = m.f_div(both, either)
    # In double, so that the threshold is not rounded to the type of the boxes.
    strikes = a & b & (j > i) & (overlap.to(tl.float64) > threshold)
    strikes = strikes & (tl.load(group + i * sg, mask=a, other=0) == tl.load(group + j * sg, mask=b, other=0))

    bits = tl.where(strikes, 1, 0).to(tl.int64) << tl.arange(0, WORD)[None, :].to(tl.int64)
    tl.store(o + i * words + tl.program_id(1), tl.sum(bits, 1)[:, None], mask=a)


@triton.jit
def _either(a, b):
    return a | b


@triton.jit
def _survive(o, covered, n, words, so, W: tl.constexpr, ROWS: tl.constexpr):
    """One program goes through the boxes, a word of them at a time: first who of the word survives,
    then whom its survivors strike out.
    """
    w = tl.arange(0, W)
    struck = tl.zeros((W,), tl.int64)
    for word in range(words):
        first = word * WORD
        gone = tl.sum(tl.where(w == word, struck, 0), 0)
        for k in range(tl.minimum(WORD, n - first)):
            alive = ((gone >> k) & 1) == 0
            own = tl.load(covered + (first + k) * words + word)
            gone = tl.where(alive, gone | own, gone)
        i = first + tl.arange(0, WORD)
        kept = ((gone >> tl.arange(0, WORD).to(tl.int64)) & 1) == 0
        tl.store(o + i * so, tl.where(kept, 1, 0).to(tl.uint8), mask=i < n)
        for start in range(0, WORD, ROWS):
            j = start + tl.arange(0, ROWS)[:, None]
            good = (first + j < n) & (((gone >> j.to(tl.int64)) & 1) == 0)
            good = good & (w < words)[None, :] & (w > word)[None, :]
            rows = covered + (first + j).to(tl.int64) * words + w[None, :]
            struck = struck | tl.reduce(tl.load(rows, mask=good, other=0), 0, _either)


@cuda("_survivors", accepts=lambda boxes, group: floats(boxes))
def survivors(boxes: Slot, group: Slot, iou_threshold: float) -> Run:
    n = boxes.shape[0]
    if not n:
        return lambda outs, boxes, group: None
    words = -(-n // 32)
    if words > 2048:  # the fates of more boxes do not fit into registers
        return None
    wide = tl.float64 if boxes.dtype is dt.float64 else tl.float32
    # Product and difference are rounded one by one, as on the CPU.
    compare = Program(
        _covered,
        ["*i64", pointer(boxes.dtype), pointer(group.dtype), "i32", "i32", "fp64", *["i32"] * 3],
        {"SIDE": SIDE, "WIDE": wide},
        enable_fp_fusion=False,
    )
    choose = Program(
        _survive,
        ["*u8", "*i64", "i32", "i64", "i32"],
        {"W": next_power_of_two(words), "ROWS": ROWS},
        warps=1 if words <= 32 else 4 if words <= 256 else 16,
    )
    numbers = (n, words, float(iou_threshold), *boxes.strides, group.strides[0])

    def run(outs: list[View], boxes: View, group: View) -> None:
        covered = empty(Spec(Layout((n, words)), dt.int64, boxes.spec.device))
        compare((-(-n // SIDE), words), covered.ptr, boxes.ptr, group.ptr, *numbers)
        choose((1,), outs[0].ptr, covered.ptr, n, words, outs[0].spec.strides[0])

    return run


@triton.jit
def _argmax(
    o,
    x,
    image,
    top,
    bottom,
    left,
    right,
    channels,
    rows,
    columns,
    W,
    shares,
    sn,
    sc,
    sh,
    sw,
    SHARE: tl.constexpr,
    BINS: tl.constexpr,
    WIDE: tl.constexpr,
):
    """The bins of a region side by side, its channels one after the other."""
    k, first = (tl.program_id(0) // shares).to(tl.int64), tl.program_id(0) % shares * SHARE
    bin = tl.arange(0, BINS)
    inside = bin < rows * columns
    i, j = bin // columns, bin % columns
    t = tl.load(top + k * rows + i, mask=inside, other=0)
    l = tl.load(left + k * columns + j, mask=inside, other=0)
    high = tl.load(bottom + k * rows + i, mask=inside, other=0) - t
    wide = tl.load(right + k * columns + j, mask=inside, other=0) - l
    n = tl.load(image + k)
    tall, broad = tl.max(high, 0).to(tl.int32), tl.max(wide, 0).to(tl.int32)
    for c in range(first, tl.minimum(first + SHARE, channels)):
        best = tl.zeros((BINS,), WIDE)
        found = tl.zeros((BINS,), tl.int64) - 1
        for r in range(tall):
            for q in range(broad):
                good = inside & (r < high) & (q < wide)
                spot = x + n * sn + c * sc + (t + r) * sh + (l + q) * sw
                v = tl.load(spot, mask=good, other=0).to(WIDE)
                # The first of equal ones counts, and NaN counts as largest.
                better = good & ((found < 0) | (v > best) | ((v != v) & (best == best)))
                best = tl.where(better, v, best)
                found = tl.where(better, (t + r) * W + l + q, found)
        tl.store(o + (k * channels + c) * rows * columns + bin, found, mask=inside)


@cuda("_region_argmax", accepts=lambda x, *edges: floats(x))
def region_argmax(x: Slot, image: Slot, top: Slot, bottom: Slot, left: Slot, right: Slot) -> Run:
    regions, channels, rows, columns = image.shape[0], x.shape[1], top.shape[1], left.shape[1]
    if not regions * channels * rows * columns:
        return lambda outs, *values: None
    shares = -(-channels // SHARE)
    wide = tl.float64 if x.dtype is dt.float64 else tl.float32
    program = Program(
        _argmax,
        ["*i64", pointer(x.dtype), *["*i64"] * 5, *["i32"] * 5, *["i64"] * 4],
        {"SHARE": SHARE, "BINS": next_power_of_two(rows * columns), "WIDE": wide},
        warps=2,
    )
    numbers = (channels, rows, columns, x.shape[3], shares, *x.strides)

    def run(outs: list[View], x: View, *edges: View) -> None:
        near = [contiguous(e) for e in edges]
        program((regions * shares,), outs[0].ptr, x.ptr, *[e.ptr for e in near], *numbers)

    return run


@triton.jit
def _spans(o, weight, n, BLOCK: tl.constexpr):
    """Where the weights of a bin that are not zero begin, and how far they reach."""
    line = tl.program_id(0).to(tl.int64)
    first, last = n, n * 0 - 1
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        real = (i < n) & (tl.load(weight + line * n + i, mask=i < n, other=0) != 0)
        first = tl.minimum(first, tl.min(tl.where(real, i, n), 0))
        last = tl.maximum(last, tl.max(tl.where(real, i, -1), 0))
    tl.store(o + 2 * line, first)
    tl.store(o + 2 * line + 1, tl.maximum(last + 1 - first, 0))


@triton.jit
def _region(
    o,
    x,
    image,
    by_row,
    by_column,
    down,
    across,
    channels,
    rows,
    columns,
    H,
    W,
    shares,
    sn,
    sc,
    sh,
    sw,
    SHARE: tl.constexpr,
    BINS: tl.constexpr,
    WIDE: tl.constexpr,
    BACK: tl.constexpr,
):
    """Sums over the elements of each bin; BACK: o's bins given back to x, which is added into."""
    k, first = (tl.program_id(0) // shares).to(tl.int64), tl.program_id(0) % shares * SHARE
    bin = tl.arange(0, BINS)
    inside = bin < rows * columns
    i, j = k * rows + bin // columns, k * columns + bin % columns
    top, high = (tl.load(down + 2 * i, mask=inside, other=0), tl.load(down + 2 * i + 1, mask=inside, other=0))
    left = tl.load(across + 2 * j, mask=inside, other=0)
    wide = tl.load(across + 2 * j + 1, mask=inside, other=0)
    n = tl.load(image + k)
    tall, broad = tl.max(high, 0), tl.max(wide, 0)
    for c in range(first, tl.minimum(first + SHARE, channels)):
        place = o + (k * channels + c) * rows * columns + bin
        y = tl.zeros((BINS,), WIDE)
        if BACK:
            y = tl.load(place, mask=inside, other=0).to(WIDE)
        for r in range(tall):
            a = tl.load(by_row + i * H + top + r, mask=inside & (r < high), other=0).to(WIDE)
            for q in range(broad):
                good = inside & (r < high) & (q < wide)
                b = tl.load(by_column + j * W + left + q, mask=good, other=0).to(WIDE)
                spot = x + n * sn + c * sc + (top + r) * sh + (left + q) * sw
                if BACK:
                    tl.atomic_add(spot, y * a * b, mask=good, sem="relaxed")
                else:
                    y += a * b * tl.load(spot, mask=good, other=0).to(WIDE)
        if not BACK:
            tl.store(place, y.to(o.dtype.element_ty), mask=inside)


def _regions(
    dtype: dt.dtype, inner: dt.dtype, image: Slot, by_row: Slot, by_column: Slot, channels: int, back: bool
) -> Any:
    """`go(bins, features, strides of features, image, by_row, by_column)` in either direction."""
    regions, rows, H = by_row.shape
    columns, W = by_column.shape[1:]
    shares = -(-channels // SHARE)
    wide = tl.float64 if dt.float64 in (dtype, by_row.dtype) else tl.float32
    span = [
        Program(_spans, ["*i32", pointer(w.dtype), "i32"], {"BLOCK": min(next_power_of_two(size), 1024)})
        for w, size in ((by_row, H), (by_column, W))
    ]
    weights = [pointer(by_row.dtype), pointer(by_column.dtype)]
    program = Program(
        _region,
        [pointer(dtype), pointer(inner), "*i64", *weights, "*i32", "*i32", *["i32"] * 6, *["i64"] * 4],
        {"SHARE": SHARE, "BINS": next_power_of_two(rows * columns), "WIDE": wide, "BACK": back},
    )
    numbers = (channels, rows, columns, H, W, shares)

    def go(bins: View, features: View, *rest: View) -> None:
        image, by_row, by_column = (contiguous(v) for v in rest)
        spans = []
        for find, v, count, size in ((span[0], by_row, rows, H), (span[1], by_column, columns, W)):
            made = empty(Spec(Layout((regions * count * 2,)), dt.int32, v.spec.device))
            find((regions * count,), made.ptr, v.ptr, size)
            spans.append(made)
        program(
            (regions * shares,),
            bins.ptr,
            features.ptr,
            image.ptr,
            by_row.ptr,
            by_column.ptr,
            spans[0].ptr,
            spans[1].ptr,
            *numbers,
            *features.spec.strides,
        )

    return go


def _with_floats(x: Spec, image: Spec, by_row: Spec, by_column: Spec) -> bool:
    return floats(x, by_row, by_column)


@cuda("_region_sums", accepts=_with_floats)
def region_sums(x: Slot, image: Slot, by_row: Slot, by_column: Slot) -> Run:
    if not x.shape[1] * image.shape[0] * by_row.shape[1] * by_column.shape[1]:
        return lambda outs, *values: None
    go = _regions(x.dtype, x.dtype, image, by_row, by_column, x.shape[1], False)
    return lambda outs, x, image, by_row, by_column: go(outs[0], x, image, by_row, by_column)


@cuda("_region_sums_transpose", accepts=_with_floats)
def region_sums_transpose(g: Slot, image: Slot, by_row: Slot, by_column: Slot, batch: int) -> Run:
    if not g.numel:
        return lambda outs, *values: zero(outs[0])
    total = dt.float64 if dt.float64 in (g.dtype, by_row.dtype) else dt.float32
    go = _regions(g.dtype, total, image, by_row, by_column, g.shape[1], True)

    def run(outs: list[View], g: View, *rest: View) -> None:
        determinism.alert("roi_align_backward")
        out = outs[0]
        sums = out if out.spec.dtype is total else empty(out.spec.like(out.spec.shape, total))
        zero(sums)
        go(contiguous(g), sums, *rest)
        if sums is not out:
            copy_view(out, sums)

    return run
