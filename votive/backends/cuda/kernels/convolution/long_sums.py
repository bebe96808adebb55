"""Convolutions of little work in one launch: lanes share the terms of each result, so that even a few results with
long sums keep a GPU busy. Everything is read where it lies, and padding is skipped.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import triton
import triton.language as tl

from .....core.layout import Spec
from ...programs.layouts import next_power_of_two
from ...programs.lines import shared_program
from ...programs.program import pointer
from ...programs.types import wide
from ...runtime.views import View
from .depthwise import five, near, source
from .implicit import Convolve, divider, three
from .kernels import within
from .staging import flat_step
from .taps import quotient

MOST_TERMS = 8192  # of a result: beyond, programs should share a sum
TILE = 1024  # terms of all results of a program at once


@triton.jit
def _read(o, t, size, stride, by, padding, dilation, TRANSPOSED: tl.constexpr, PHASED: tl.constexpr, K):
    """(coordinate, tap, whether both are there) of result `o` at the t-th tap; PHASED: at the t-th of those that meet
    an input, which are a stride apart.
    """
    if PHASED:
        last = quotient(o + padding, by)
        tap = o + padding - last * stride + t * stride
        return last - t, tap, within(last - t, size) & (tap < K)
    else:
        i, here = source(o, t, size, stride, by, padding, dilation, TRANSPOSED)
        return i, t, here


@triton.jit
def convolve_sums(
    o, x, w, bias, R, CH, OD, OH, OW, ID, IH, IW, KD, KH, KW, UH, UW, T, K, sd, sh, sw, pd, ph, pw, dd, dh, dw, xn,
    xc, xd, xh, xw, on, oc, od, oh, ow, wo, wi, wt, P, COL, zd, zh, zw, DIMS: tl.constexpr,
    TRANSPOSED: tl.constexpr, PHASED: tl.constexpr, BIAS: tl.constexpr, LAST: tl.constexpr, WIDE: tl.constexpr,
    BR: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """T taps, in rows of UW and planes of UH rows, that results may meet. LAST: channels are neighbours in memory;
    else taps are. `zd`, `zh`, `zw` divide by strides.
    """
    # Grid: (blocks of results,).
    r = tl.program_id(0) * BR + tl.arange(0, BR)
    v = r % OW
    h = r // OW % OH
    d = r // OW // OH % OD
    c = r // OW // OH // OD % CH
    n = r // OW // OH // OD // CH
    first = c // COL * P
    if TRANSPOSED:
        column = first * wo + c % COL * wi
    else:
        column = c * wo
    acc = tl.zeros((BR, BK), WIDE)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        if LAST:
            p, t = k % P, k // P
        else:
            p, t = k // T, k % T
        i, tap, good = _read(v[:, None], (t % UW)[None, :], IW, sw, zw, pw, dw, TRANSPOSED, PHASED, KW)
        at = i * xw + (p * xc)[None, :]
        good = good & (r < R)[:, None] & (k < K)[None, :]
        if DIMS > 1:
            i, line, here = _read(h[:, None], (t // UW % UH)[None, :], IH, sh, zh, ph, dh, TRANSPOSED, PHASED, KH)
            at += i * xh
            tap += line * KW
            good = good & here
        if DIMS > 2:
            i, plane, here = _read(d[:, None], (t // UW // UH)[None, :], ID, sd, zd, pd, dd, TRANSPOSED, PHASED, KD)
            at += i * xd
            tap += plane * (KH * KW)
            good = good & here
        a = tl.load(x + ((n * xn + first * xc)[:, None] + at), mask=good, other=0.0).to(WIDE)
        step = p * wo if TRANSPOSED else p * wi
        b = tl.load(w + ((column[:, None] + step[None, :]) + tap * wt), mask=good, other=0.0).to(WIDE)
        acc += a * b
    y = tl.sum(acc, 1)
    if BIAS:
        y += tl.load(bias + c, mask=r < R, other=0.0).to(WIDE)
    tl.store(o + (n * on + c * oc + d * od + h * oh + v * ow), y.to(o.dtype.element_ty), mask=r < R)


def long_sums(p: Convolve, out: Spec) -> list[Callable[..., None]]:
    """`run(out, x, weight, bias)`, or nothing."""
    x, w = p.x, p.weight
    per = x.shape[1] // p.groups
    kernel, stride = three(w.shape[2:], 1), three(p.stride, 1)
    # Of the taps of a transpose only those meet an input that are a stride apart.
    phased = p.transposed and max(p.dilation) == 1
    met = tuple(-(-k // s) for k, s in zip(kernel, stride, strict=True)) if phased else kernel
    terms, results = per * math.prod(met), math.prod(out.shape)
    geometry = (*three(p.stride, 1), *three(p.padding, 0), *three(p.dilation, 1))
    step = flat_step(tuple(w.shape[2:]), tuple(w.strides[2:]))
    if terms > MOST_TERMS or step is None or not near(x.spec, w.spec, out) or max(geometry) >= 2**20:
        return []
    bk = min(256 if terms <= 2048 else 512, max(16, next_power_of_two(terms)))
    br = max(1, min(TILE // bk, next_power_of_two(results)))
    fixed = {"DIMS": x.ndim - 2, "TRANSPOSED": p.transposed, "PHASED": phased, "BIAS": p.bias}
    fixed |= {"LAST": x.strides[1] == 1 and per > 1, "WIDE": wide(x.dtype), "BR": br, "BK": bk}
    program = shared_program(convolve_sums, [pointer(x.dtype)] * 4 + ["i32"] * 39 + ["i64"] * 3, fixed)
    sizes = (results, out.shape[1], *three(p.size, 1), *three(x.shape[2:], 1), *kernel, *met[1:], math.prod(met), terms)
    numbers = (*sizes, *geometry, *five(x.spec), *five(out), *w.strides[:2], step, per, p.columns)
    numbers += tuple(map(divider, stride))
    grid = (-(-results // br),)

    def run(out: View, x: View, w: View, bias: View | None) -> None:
        program(grid, out.ptr, x.ptr, w.ptr, w.ptr if bias is None else bias.ptr, *numbers)

    run.__name__ = "long sums"
    return [run]
