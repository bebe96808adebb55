"""Linear filters in time, and the sums of lagged products that their gradients need.

A long signal is cut into chunks that are filtered at the same time as if nothing came before them.
What came before enters by the filter's answers to the last samples of the chunk before: those
samples are found chunk after chunk, and their answers are added everywhere at once. Feedback
carries rounding on, so all of it is float64.
"""

from __future__ import annotations

import triton
import triton.language as tl

from ....core import dtype as dt
from ....core.layout import Layout, Spec
from ...common.slot import Slot
from ..programs.layouts import next_power_of_two
from ..programs.program import Program, pointer
from ..programs.types import Run, floats
from ..rows import cuda
from ..runtime.views import View, empty

# One signal or chunk per thread: a thread then reads back only what it wrote itself.
LANES = 32
CHUNK = 1024
LONG = 4096  # shorter signals are one chunk
MANY = 32  # filters with more coefficients are not cut: the answers to each would cost more
BLOCK = 1024


@triton.jit
def _forward(
    u, x, b, time, channels, order, chunk, lanes, chunks, sb, sc, st, bc, bk, REVERSE: tl.constexpr, BLOCK: tl.constexpr
):
    """u (chunk, lanes): the part without feedback. A lane is a chunk of a signal."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < chunk.to(tl.int64) * lanes
    l, lane = i // lanes, i % lanes
    row, n = lane // chunks, lane % chunks * chunk + l
    c = row % channels
    line = x + row // channels * sb + c * sc
    y = tl.zeros((BLOCK,), tl.float64)
    for k in range(order):
        m = n - k
        good = inside & (m >= 0) & (n < time)
        at = time - 1 - m if REVERSE else m
        w = tl.load(b + c * bc + k * bk, mask=inside, other=0).to(tl.float64)
        y += w * tl.load(line + at * st, mask=good, other=0).to(tl.float64)
    tl.store(u + i, y, mask=inside)


@triton.jit
def _answers(u, a, channels, order, chunk, ac, ak, BLOCK: tl.constexpr):
    """u (chunk, channel, order - 1): what one sample, j + 1 before the chunk, sends into it."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    past = order - 1
    inside = i < chunk * channels * past
    l, c, j = i // past // channels, i // past % channels, i % past
    k = l + j + 1
    v = tl.load(a + c * ac + k * ak, mask=inside & (k < order), other=0).to(tl.float64)
    tl.store(u + i, -v, mask=inside)


@triton.jit
def _feedback(y, a, channels, order, chunk, lanes, each, ac, ak, SHORT: tl.constexpr, LANES: tl.constexpr):
    """y (chunk, lanes) in place: each lane is filtered from rest. `each`: lanes of a channel."""
    lane = tl.program_id(0) * LANES + tl.arange(0, LANES)
    inside = lane < lanes
    coefficient = a + lane // each % channels * ac
    a1 = tl.load(coefficient + ak, mask=inside & (order > 1), other=0).to(tl.float64)
    a2 = tl.load(coefficient + 2 * ak, mask=inside & (order > 2), other=0).to(tl.float64)
    y1 = tl.zeros((LANES,), tl.float64)
    y2 = tl.zeros((LANES,), tl.float64)
    for l in range(chunk):
        at = y + l * lanes + lane
        s = tl.load(at, mask=inside, other=0)
        if not SHORT:  # oldest first
            for back in range(3, order):
                k = order + 2 - back
                good = inside & (k <= l)
                w = tl.load(coefficient + k * ak, mask=good, other=0).to(tl.float64)
                s -= w * tl.load(at - k * lanes, mask=good, other=0)
        s = (s - a2 * y2) - a1 * y1
        tl.store(at, s, mask=inside)
        y2, y1 = y1, s


@triton.jit
def _states(s, y, answers, past, channels, chunk, chunks, lanes, P: tl.constexpr):
    """s (row, chunk, past): the samples before each chunk, the last first."""
    row = tl.program_id(0).to(tl.int64)
    c = row % channels
    i, j = tl.arange(0, P)[:, None], tl.arange(0, P)[None, :]
    ends = (chunk - 1 - i).to(tl.int64)
    both = (i < past) & (j < past)
    step = tl.load(answers + (ends * channels + c) * past + j, mask=both, other=0)
    now = tl.zeros((P,), tl.float64)
    k = tl.arange(0, P)
    last = (chunk - 1 - k).to(tl.int64) * lanes + row * chunks
    for n in range(chunks):
        tl.store(s + (row * chunks + n) * past + k, now, mask=k < past)
        # Where there was silence there is no answer, however loud it would be.
        sent = tl.where(now[None, :] == 0, 0.0, step * now[None, :])
        now = tl.load(y + last + n, mask=k < past, other=0) + tl.sum(sent, 1)


@triton.jit
def _finish(
    o,
    y,
    s,
    answers,
    past,
    time,
    channels,
    chunk,
    chunks,
    lanes,
    total,
    ob,
    oc,
    ot,
    REVERSE: tl.constexpr,
    CUT: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """The result: what each chunk gave from rest, and the answers to what came before it."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < total
    row, n = i // time, i % time
    l, k, c = n % chunk, n // chunk, row % channels
    v = tl.load(y + l * lanes + row * chunks + k, mask=inside, other=0)
    if CUT:
        for j in range(past):
            before = tl.load(s + (row * chunks + k) * past + j, mask=inside, other=0)
            answer = tl.load(answers + (l * channels + c) * past + j, mask=inside, other=0)
            v += tl.where(before == 0, 0.0, answer * before)
    at = time - 1 - n if REVERSE else n
    tl.store(o + row // channels * ob + c * oc + at * ot, v.to(o.dtype.element_ty), mask=inside)


def _wide(n: int, like: Spec) -> View:
    return empty(Spec(Layout((n,)), dt.float64, like.device))


@cuda("_lfilter", accepts=floats)
def lfilter(x: Slot, a: Slot, b: Slot, reverse: bool) -> Run:
    if not x.numel:
        return lambda outs, x, a, b: None
    (batch, channels, time), order = x.shape, a.shape[1]
    rows = batch * channels
    cut = time > LONG and 1 < order <= MANY
    chunk = CHUNK if cut else time
    chunks = -(-time // chunk)
    lanes, past = rows * chunks, order - 1
    kind = pointer(x.dtype)
    forward = Program(_forward, ["*fp64", kind, kind, *["i32"] * 6, *["i64"] * 5], {"REVERSE": reverse, "BLOCK": BLOCK})
    feedback = Program(
        _feedback, ["*fp64", kind, "i32", "i32", "i32", *["i64"] * 4], {"SHORT": order <= 3, "LANES": LANES}, warps=1
    )
    finish = Program(
        _finish, [kind, *["*fp64"] * 3, *["i32"] * 6, *["i64"] * 4], {"REVERSE": reverse, "CUT": cut, "BLOCK": BLOCK}
    )
    if cut:
        answers = Program(_answers, ["*fp64", kind, "i32", "i32", "i32", "i64", "i64"], {"BLOCK": BLOCK})
        states = Program(_states, ["*fp64"] * 3 + ["i32"] * 5, {"P": max(next_power_of_two(past), 2)}, warps=1)
    by_a, by_b = a.strides, b.strides
    blocks = lambda n: (-(-n // BLOCK),)

    def run(outs: list[View], x: View, a: View, b: View) -> None:
        y = _wide(chunk * lanes, x.spec)
        forward(
            blocks(chunk * lanes),
            y.ptr,
            x.ptr,
            b.ptr,
            time,
            channels,
            order,
            chunk,
            lanes,
            chunks,
            *x.spec.strides,
            *by_b,
        )
        if order > 1:
            feedback((-(-lanes // LANES),), y.ptr, a.ptr, channels, order, chunk, lanes, chunks, *by_a)
        before = answer = y
        if cut:
            count = chunk * channels * past
            answer, before = _wide(count, x.spec), _wide(lanes * past, x.spec)
            answers(blocks(count), answer.ptr, a.ptr, channels, order, chunk, *by_a)
            feedback(
                (-(-channels * past // LANES),), answer.ptr, a.ptr, channels, order, chunk, channels * past, past, *by_a
            )
            states((rows,), before.ptr, y.ptr, answer.ptr, past, channels, chunk, chunks, lanes)
        finish(
            blocks(rows * time),
            outs[0].ptr,
            y.ptr,
            before.ptr,
            answer.ptr,
            past,
            time,
            channels,
            chunk,
            chunks,
            lanes,
            rows * time,
            *outs[0].spec.strides,
        )

    return run


@triton.jit
def _products(
    o, g, x, batch, time, channels, taps, parts, gb, gc, gt, xb, xc, xt, REVERSE: tl.constexpr, BLOCK: tl.constexpr
):
    """o (channel, tap, part): sums over every `parts`-th block of samples."""
    pid = tl.program_id(0)
    part, k, c = pid % parts, pid // parts % taps, pid // parts // taps
    acc = tl.zeros((BLOCK,), tl.float64)
    for s in range(batch):
        for start in range(part * BLOCK, time - k, parts * BLOCK):
            n = start + tl.arange(0, BLOCK)
            good = n < time - k
            ng, nx = (n, n + k) if REVERSE else (n + k, n)
            v = tl.load(g + s * gb + c * gc + ng * gt, mask=good, other=0).to(tl.float64)
            w = tl.load(x + s * xb + c * xc + nx * xt, mask=good, other=0).to(tl.float64)
            acc += v * w
    tl.store(o + pid, tl.sum(acc, 0))


@triton.jit
def _sums(o, parts, n, so, sk, taps, P: tl.constexpr):
    pid = tl.program_id(0)
    k = tl.arange(0, P)
    v = tl.load(parts + pid * n + k, mask=k < n, other=0)
    tl.store(o + pid // taps * so + pid % taps * sk, tl.sum(v, 0).to(o.dtype.element_ty))


@cuda("_lag_products", accepts=floats)
def lag_products(g: Slot, x: Slot, taps: int, reverse: bool) -> Run:
    batch, channels, time = x.shape
    if not channels * taps:
        return lambda outs, g, x: None
    parts = min(max(-(-time // (8 * BLOCK)), 1), 64)
    program = Program(
        _products,
        ["*fp64", pointer(g.dtype), pointer(x.dtype), *["i32"] * 5, *["i64"] * 6],
        {"REVERSE": reverse, "BLOCK": BLOCK},
    )
    sums = Program(
        _sums, [pointer(x.dtype), "*fp64", "i32", "i64", "i64", "i32"], {"P": next_power_of_two(parts)}, warps=1
    )
    numbers = (batch, time, channels, taps, parts, *g.strides, *x.strides)

    def run(outs: list[View], g: View, x: View) -> None:
        made = _wide(channels * taps * parts, x.spec)
        program((channels * taps * parts,), made.ptr, g.ptr, x.ptr, *numbers)
        sums((channels * taps,), outs[0].ptr, made.ptr, parts, *outs[0].spec.strides, taps)

    return run
