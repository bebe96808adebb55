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
from .implicit import Convolve, three
from .staging import flat_step

MOST_TERMS = 8192  # of a result: beyond, programs should share a sum
TILE = 1024  # terms of all results of a program at once


@triton.jit
def convolve_sums(
    o, x, w, bias, R, CH, OD, OH, OW, ID, IH, IW, KH, KW, T, K, sd, sh, sw, pd, ph, pw, dd, dh, dw, xn, xc, xd, xh,
    xw, on, oc, od, oh, ow, wo, wi, wt, P, COL, DIMS: tl.constexpr, TRANSPOSED: tl.constexpr, BIAS: tl.constexpr,
    LAST: tl.constexpr, WIDE: tl.constexpr, BR: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """LAST: channels are neighbours in memory; else taps are."""
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
        at, good = source(v[:, None], (t % KW)[None, :], IW, sw, pw, dw, TRANSPOSED)
        good = good & (r < R)[:, None] & (k < K)[None, :]
        at = at * xw + (p * xc)[None, :]
        if DIMS > 1:
            i, here = source(h[:, None], (t // KW % KH)[None, :], IH, sh, ph, dh, TRANSPOSED)
            at += i * xh
            good = good & here
        if DIMS > 2:
            i, here = source(d[:, None], (t // KW // KH)[None, :], ID, sd, pd, dd, TRANSPOSED)
            at += i * xd
            good = good & here
        a = tl.load(x + ((n * xn + first * xc)[:, None] + at), mask=good, other=0.0).to(WIDE)
        step = p * wo if TRANSPOSED else p * wi
        b = tl.load(w + (column[:, None] + (step + t * wt)[None, :]), mask=good, other=0.0).to(WIDE)
        acc += a * b
    y = tl.sum(acc, 1)
    if BIAS:
        y += tl.load(bias + c, mask=r < R, other=0.0).to(WIDE)
    tl.store(o + (n * on + c * oc + d * od + h * oh + v * ow), y.to(o.dtype.element_ty), mask=r < R)


def long_sums(p: Convolve, out: Spec) -> list[Callable[..., None]]:
    """`run(out, x, weight, bias)`, or nothing."""
    x, w = p.x, p.weight
    per, taps = x.shape[1] // p.groups, math.prod(w.shape[2:])
    terms, results = per * taps, math.prod(out.shape)
    geometry = (*three(p.stride, 1), *three(p.padding, 0), *three(p.dilation, 1))
    step = flat_step(tuple(w.shape[2:]), tuple(w.strides[2:]))
    if terms > MOST_TERMS or step is None or not near(x.spec, w.spec, out) or max(geometry) >= 2**20:
        return []
    bk = min(256 if terms <= 2048 else 512, max(16, next_power_of_two(terms)))
    br = max(1, min(TILE // bk, next_power_of_two(results)))
    fixed = {"DIMS": x.ndim - 2, "TRANSPOSED": p.transposed, "BIAS": p.bias}
    fixed |= {"LAST": x.strides[1] == 1 and per > 1, "WIDE": wide(x.dtype), "BR": br, "BK": bk}
    program = shared_program(convolve_sums, [pointer(x.dtype)] * 4 + ["i32"] * 36, fixed)
    sizes = (results, out.shape[1], *three(p.size, 1), *three(x.shape[2:], 1), *three(w.shape[2:], 1)[1:], taps, terms)
    numbers = (*sizes, *geometry, *five(x.spec), *five(out), *w.strides[:2], step, per, p.columns)
    grid = (-(-results // br),)

    def run(out: View, x: View, w: View, bias: View | None) -> None:
        program(grid, out.ptr, x.ptr, w.ptr, w.ptr if bias is None else bias.ptr, *numbers)

    run.__name__ = "long sums"
    return [run]
