"""Plain attention kernels that take features in parts, so that heads may have any width and type: a
program makes one part of a result, and computes its scores anew. Knows Triton only.
"""

from __future__ import annotations

import triton
import triton.language as tl

from ...device import math as m
from .tiles import kept, seen, span


@triton.jit
def _times(a, b, total, WIDE: tl.constexpr, PRECISION: tl.constexpr):
    """`total + a @ b`. Doubles ("ieee") are multiplied one by one: Triton's products do not take
    them in every layout. Tiles are small then.
    """
    if PRECISION == "ieee":
        return total + tl.sum(a[:, :, None] * b[None, :, :], 1)
    else:
        return tl.dot(a, b, total, input_precision=PRECISION, out_dtype=WIDE)


@triton.jit
def _product(
    a,
    b,
    i,
    j,
    I,
    J,
    at,
    bt,
    N,
    WIDE: tl.constexpr,
    PRECISION: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BF: tl.constexpr,
):
    """Rows i of a times rows j of b, over N features: (BM, BN)."""
    total = tl.zeros((BM, BN), WIDE)
    for start in range(0, N, BF):
        f = start + tl.arange(0, BF)
        x = tl.load(a + i[:, None] * at + f[None, :], mask=(i[:, None] < I) & (f[None, :] < N), other=0.0)
        y = tl.load(b + j[None, :] * bt + f[:, None], mask=(j[None, :] < J) & (f[:, None] < N), other=0.0)
        total = _times(x, y, total, WIDE, PRECISION)
    return total


@triton.jit
def scores(
    q,
    k,
    mask,
    i,
    j,
    T,
    S,
    offset,
    lower,
    qt,
    kt,
    mt,
    ms,
    scale,
    D,
    CAUSAL: tl.constexpr,
    WINDOW: tl.constexpr,
    MASK: tl.constexpr,
    WIDE: tl.constexpr,
    PRECISION: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BF: tl.constexpr,
):
    """What softmax sees of queries i and keys j: minus infinity where nothing is seen."""
    s = _product(q, k, i, j, T, S, qt, kt, D, WIDE, PRECISION, BM, BN, BF) * scale
    sees = seen(i[:, None], j[None, :], S, offset, lower, CAUSAL, WINDOW, False) & (i[:, None] < T)
    if MASK != 0:
        given = tl.load(mask + i[:, None] * mt + j[None, :] * ms, mask=sees, other=0)
        if MASK == 1:
            sees = sees & (given != 0)
        else:
            s += given.to(WIDE)
    return tl.where(sees, s, -float("inf"))


@triton.jit
def by_scores(
    s, g, v, tops, means, i, j, rows, start, T, S, gt, vt, E, factor, moved, key, counter, highest,
    NOISE: tl.constexpr, WIDE: tl.constexpr, PRECISION: tl.constexpr, BM: tl.constexpr,
    BN: tl.constexpr, BF: tl.constexpr,
):  # fmt: skip
    """The gradient by scores of queries i and keys j."""
    ends = tl.load(tops + rows, mask=i < T, other=-float("inf"))
    p = m.f_exp(s - tl.where(ends == -float("inf"), 0.0, ends)[:, None])
    by_p = _product(g, v, i, j, T, S, gt, vt, E, WIDE, PRECISION, BM, BN, BF)
    if NOISE != 0:
        keep = kept(moved, key, counter, highest, rows, start, S, NOISE, BN)
        by_p = tl.where(keep, by_p * factor, 0.0)
    return p * (by_p - tl.load(means + rows, mask=i < T, other=0.0)[:, None])


@triton.jit
def row_means(
    o,
    g,
    y,
    g_lse,
    ends,
    H,
    T,
    E,
    tiles,
    rb,
    rh,
    gb,
    gh,
    gt,
    yb,
    yh,
    yt,
    PACKED: tl.constexpr,
    WIDE: tl.constexpr,
    BM: tl.constexpr,
    BF: tl.constexpr,
):
    """`sum(g y) - g_lse` of each row. Grid: (tiles x heads,)."""
    tile = tl.program_id(0) % tiles
    b = (tl.program_id(0) // tiles // H).to(tl.int64)
    h = (tl.program_id(0) // tiles % H).to(tl.int64)
    row = b * rb + h * rh
    g += b * gb + h * gh
    y += b * yb + h * yh
    if PACKED:
        first, T = span(ends, b, T)
        row += first
        g += first * gt
        y += first * yt
    i = tile * BM + tl.arange(0, BM)
    total = tl.zeros((BM,), WIDE)
    for start in range(0, E, BF):
        f = start + tl.arange(0, BF)
        inside = (i[:, None] < T) & (f[None, :] < E)
        a = tl.load(g + i[:, None] * gt + f[None, :], mask=inside, other=0.0).to(WIDE)
        c = tl.load(y + i[:, None] * yt + f[None, :], mask=inside, other=0.0).to(WIDE)
        total += tl.sum(a * c, 1)
    total -= tl.load(g_lse + row + i, mask=i < T, other=0.0)
    tl.store(o + row + i, total, mask=i < T)


@triton.jit
def forward_part(
    o, lse, q, k, v, mask, ends_q, ends_k, used, moved, key, counter, highest,
    H, G, T, S, D, E, offset, lower, tiles, parts, scale, factor, rb, rh,
    ob, oh, ot, qb, qh, qt, kb, kh, kt, vb, vh, vt, mb, mh, mt, ms,
    CAUSAL: tl.constexpr, WINDOW: tl.constexpr, MASK: tl.constexpr, NOISE: tl.constexpr,
    PACKED: tl.constexpr, USED: tl.constexpr, WIDE: tl.constexpr, PRECISION: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BF: tl.constexpr,
):  # fmt: skip
    """Grid: (tiles of queries x parts of the values' features x heads,)."""
    tile = tl.program_id(0) % tiles
    part = tl.program_id(0) // tiles % parts
    head = tl.program_id(0) // tiles // parts
    b = (head // H).to(tl.int64)
    h = (head % H).to(tl.int64)
    row = b * rb + h * rh
    q += b * qb + h * qh
    k += b * kb + h // G * kh
    v += b * vb + h // G * vh
    o += b * ob + h * oh
    if MASK != 0:
        mask += b * mb + h * mh
    if PACKED:
        first_q, T = span(ends_q, b, T)
        first_k, S = span(ends_k, b, S)
        if USED:
            S = tl.minimum(S, tl.maximum(tl.load(used + b).to(tl.int32), 0))
        row += first_q
        q += first_q * qt
        k += first_k * kt
        v += first_k * vt
        o += first_q * ot
        offset += S - T
        lower += S - T
    i = tile * BM + tl.arange(0, BM)
    e = part * BF + tl.arange(0, BF)
    total = tl.zeros((BM, BF), WIDE)
    sums = tl.zeros((BM,), WIDE)
    tops = tl.full((BM,), -float("inf"), WIDE)
    for start in range(0, S, BN):
        j = start + tl.arange(0, BN)
        s = scores(
            q, k, mask, i, j, T, S, offset, lower, qt, kt, mt, ms, scale, D,
            CAUSAL, WINDOW, MASK, WIDE, PRECISION, BM, BN, BF,
        )  # fmt: skip
        higher = tl.maximum(tops, tl.max(s, 1))
        base = tl.where(higher == -float("inf"), 0.0, higher)
        p = m.f_exp(s - base[:, None])
        shrink = m.f_exp(tops - base)
        sums = sums * shrink + tl.sum(p, 1)
        if NOISE != 0:
            p = tl.where(kept(moved, key, counter, highest, row + i, start, S, NOISE, BN), p, 0.0)
        values = tl.load(v + j[:, None] * vt + e[None, :], mask=(j[:, None] < S) & (e[None, :] < E), other=0.0)
        total = _times(p.to(values.dtype), values, total * shrink[:, None], WIDE, PRECISION)
        tops = higher
    total = total * (factor / tl.where(sums == 0, 1.0, sums))[:, None]
    at = o + i[:, None] * ot + e[None, :]
    tl.store(at, total.to(o.dtype.element_ty), mask=(i[:, None] < T) & (e[None, :] < E))
    if part == 0:
        end = tl.where(sums == 0, -float("inf"), tops + m.f_log(sums))
        tl.store(lse + row + i, end, mask=i < T)


@triton.jit
def backward_part(
    o, q, k, v, g, tops, means, mask, ends_q, ends_k, moved, key, counter, highest,
    H, G, T, S, D, E, offset, lower, tiles, parts, scale, factor, rb, rh,
    ob, oh, ot, qb, qh, qt, kb, kh, kt, vb, vh, vt, gb, gh, gt, mb, mh, mt, ms,
    SIDE: tl.constexpr, CAUSAL: tl.constexpr, WINDOW: tl.constexpr, MASK: tl.constexpr,
    NOISE: tl.constexpr, PACKED: tl.constexpr, WIDE: tl.constexpr, PRECISION: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BF: tl.constexpr,
):  # fmt: skip
    """One part of the features of queries (SIDE 0), keys (1) or values (2).

    Grid: (tiles of queries or keys x parts x heads of the side,).
    """
    tile = tl.program_id(0) % tiles
    part = tl.program_id(0) // tiles % parts
    head = tl.program_id(0) // tiles // parts
    # A key head serves G query heads, and gathers from all of them.
    heads = H if SIDE == 0 else H // G
    turns = 1 if SIDE == 0 else G
    b = (head // heads).to(tl.int64)
    own = (head % heads).to(tl.int64)
    h = own * turns
    shared = own // G if SIDE == 0 else own
    row = b * rb + h * rh
    q += b * qb + h * qh
    g += b * gb + h * gh
    k += b * kb + shared * kh
    v += b * vb + shared * vh
    o += b * ob + own * oh
    if MASK != 0:
        mask += b * mb + h * mh
    if PACKED:
        first_q, T = span(ends_q, b, T)
        first_k, S = span(ends_k, b, S)
        row += first_q
        q += first_q * qt
        g += first_q * gt
        k += first_k * kt
        v += first_k * vt
        o += (first_q if SIDE == 0 else first_k) * ot
        offset += S - T
        lower += S - T
    f = part * BF + tl.arange(0, BF)
    if SIDE == 0:
        total = tl.zeros((BM, BF), WIDE)
        length = S
        width = D
    else:
        total = tl.zeros((BN, BF), WIDE)
        length = T
        width = E if SIDE == 2 else D
    for _ in range(turns):
        for start in range(0, length, BN if SIDE == 0 else BM):
            first = start if SIDE == 0 else tile * BN
            i = (tile * BM if SIDE == 0 else start) + tl.arange(0, BM)
            j = first + tl.arange(0, BN)
            s = scores(
                q, k, mask, i, j, T, S, offset, lower, qt, kt, mt, ms, scale, D,
                CAUSAL, WINDOW, MASK, WIDE, PRECISION, BM, BN, BF,
            )  # fmt: skip
            if SIDE == 2:
                ends = tl.load(tops + row + i, mask=i < T, other=-float("inf"))
                w = m.f_exp(s - tl.where(ends == -float("inf"), 0.0, ends)[:, None])
                if NOISE != 0:
                    keep = kept(moved, key, counter, highest, row + i, first, S, NOISE, BN)
                    w = tl.where(keep, w * factor, 0.0)
                other = tl.load(g + i[:, None] * gt + f[None, :], mask=(i[:, None] < T) & (f[None, :] < E), other=0.0)
                total = _times(tl.trans(w.to(other.dtype)), other, total, WIDE, PRECISION)
            else:
                w = by_scores(
                    s, g, v, tops, means, i, j, row + i, first, T, S, gt, vt, E, factor, moved,
                    key, counter, highest, NOISE, WIDE, PRECISION, BM, BN, BF,
                )  # fmt: skip
                if SIDE == 0:
                    other = tl.load(
                        k + j[:, None] * kt + f[None, :], mask=(j[:, None] < S) & (f[None, :] < D), other=0.0
                    )
                    total = _times(w.to(other.dtype), other, total, WIDE, PRECISION)
                else:
                    other = tl.load(
                        q + i[:, None] * qt + f[None, :], mask=(i[:, None] < T) & (f[None, :] < D), other=0.0
                    )
                    total = _times(tl.trans(w.to(other.dtype)), other, total, WIDE, PRECISION)
        row += rh
        q += qh
        g += gh
        if MASK != 0:
            mask += mh
    if SIDE != 2:
        total = total * scale
    if SIDE == 0:
        r = tile * BM + tl.arange(0, BM)
        end = T
    else:
        r = tile * BN + tl.arange(0, BN)
        end = S
    tl.store(
        o + r[:, None] * ot + f[None, :], total.to(o.dtype.element_ty), mask=(r[:, None] < end) & (f[None, :] < width)
    )
