"""Resampling by a filter for each phase, its transpose, and what its taps receive."""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from ....core import dtype as dt
from ...common.slot import Slot
from ..programs.program import Program, pointer
from ..programs.types import Run, floats
from ..rows import cuda
from ..runtime.views import View

BLOCK = 256


@triton.jit
def _polyphase(
    o, x, w, length, size, new, taps, orig, offset, so, st, sx, sn, wp, wk, WIDE: tl.constexpr, BLOCK: tl.constexpr
):
    blocks = tl.cdiv(length, BLOCK)
    row = (tl.program_id(0) // blocks).to(tl.int64)
    n = tl.program_id(0) % blocks * BLOCK + tl.arange(0, BLOCK)
    start = n // new * orig + n % new * orig // new - offset
    y = tl.zeros((BLOCK,), WIDE)
    for k in range(taps):
        m = start + k
        good = (n < length) & (m >= 0) & (m < size)
        by = tl.load(w + n % new * wp + k * wk, mask=good, other=0).to(WIDE)
        y += by * tl.load(x + row * sx + m * sn, mask=good, other=0).to(WIDE)
    tl.store(o + row * so + n * st, y.to(o.dtype.element_ty), mask=n < length)


@triton.jit
def _transposed(
    o,
    g,
    w,
    length,
    size,
    new,
    taps,
    orig,
    offset,
    most,
    so,
    st,
    sg,
    sn,
    wp,
    wk,
    WIDE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """`length` results of the forward pass, `size` samples. The results that read a sample follow
    one another.
    """
    blocks = tl.cdiv(size, BLOCK)
    row = (tl.program_id(0) // blocks).to(tl.int64)
    m = tl.program_id(0) % blocks * BLOCK + tl.arange(0, BLOCK)
    first = (tl.maximum(m + offset - taps + 1, 0) * new + orig - 1) // orig
    y = tl.zeros((BLOCK,), WIDE)
    for t in range(most):
        n = first + t
        k = m - (n // new * orig + n % new * orig // new - offset)
        good = (m < size) & (n < length) & (k >= 0) & (k < taps)
        by = tl.load(w + n % new * wp + k * wk, mask=good, other=0).to(WIDE)
        y += by * tl.load(g + row * sg + n * sn, mask=good, other=0).to(WIDE)
    tl.store(o + row * so + m * st, y.to(o.dtype.element_ty), mask=m < size)


@triton.jit
def _products(o, g, x, rows, length, size, new, taps, orig, offset, op, ok, sg, gn, sx, xn, BLOCK: tl.constexpr):
    """One tap of one phase per program."""
    phase, k = tl.program_id(0) // taps, tl.program_id(0) % taps
    count = tl.cdiv(length - phase, new)
    acc = tl.zeros((BLOCK,), tl.float64)
    for start in range(0, count, BLOCK):
        i = start + tl.arange(0, BLOCK)
        m = i * orig + phase * orig // new - offset + k
        good = (i < count) & (m >= 0) & (m < size)
        for row in range(rows):
            v = tl.load(g + row * sg + (phase + i * new) * gn, mask=good, other=0).to(tl.float64)
            acc += v * tl.load(x + row * sx + m * xn, mask=good, other=0).to(tl.float64)
    total = tl.sum(acc, 0).to(o.dtype.element_ty)
    tl.store(o + phase * op + k * ok, total)


def _wide(x: Slot) -> Any:
    return tl.float64 if x.dtype is dt.float64 else tl.float32


def _kinds(x: Slot, ints: int) -> list[str]:
    # Products of places and rates stay below 2^31 for signals of 100 million samples.
    return [pointer(x.dtype)] * 3 + ["i64" if x.numel >= 2**24 else "i32"] * ints + ["i64"] * 6


@cuda("_polyphase", accepts=floats)
def polyphase(x: Slot, kernel: Slot, orig: int, offset: int, length: int) -> Run:
    if not x.shape[0] * length:
        return lambda outs, x, kernel: None
    program = Program(_polyphase, _kinds(x, 6), {"WIDE": _wide(x), "BLOCK": BLOCK})
    numbers = (length, x.shape[1], *kernel.shape, orig, offset)
    launch = (x.shape[0] * -(-length // BLOCK),)

    def run(outs: list[View], x: View, kernel: View) -> None:
        steps = (*outs[0].spec.strides, *x.spec.strides, *kernel.spec.strides)
        program(launch, outs[0].ptr, x.ptr, kernel.ptr, *numbers, *steps)

    return run


@cuda("_polyphase_transposed", accepts=floats)
def polyphase_transposed(g: Slot, kernel: Slot, orig: int, offset: int, length: int) -> Run:
    if not g.shape[0] * length:
        return lambda outs, g, kernel: None
    new, taps = kernel.shape
    program = Program(_transposed, _kinds(g, 7), {"WIDE": _wide(g), "BLOCK": BLOCK})
    numbers = (g.shape[1], length, new, taps, orig, offset, -(-taps * new // orig) + 1)
    launch = (g.shape[0] * -(-length // BLOCK),)

    def run(outs: list[View], g: View, kernel: View) -> None:
        steps = (*outs[0].spec.strides, *g.spec.strides, *kernel.spec.strides)
        program(launch, outs[0].ptr, g.ptr, kernel.ptr, *numbers, *steps)

    return run


@cuda("_polyphase_products", accepts=floats)
def polyphase_products(g: Slot, x: Slot, orig: int, offset: int, new: int, taps: int) -> Run:
    if not new * taps:
        return lambda outs, g, x: None
    program = Program(_products, _kinds(x, 7), {"BLOCK": BLOCK})
    numbers = (g.shape[0], g.shape[1], x.shape[1], new, taps, orig, offset)

    def run(outs: list[View], g: View, x: View) -> None:
        steps = (*outs[0].spec.strides, *g.spec.strides, *x.spec.strides)
        program((new * taps,), outs[0].ptr, g.ptr, x.ptr, *numbers, *steps)

    return run
