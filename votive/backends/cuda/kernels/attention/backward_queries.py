"""The gradient of attention by queries: a tile of queries goes along the keys. On its way it writes
down what the kernel for keys needs of each row. Knows tiles, not rows of the kernel table.
"""

from __future__ import annotations

import triton
import triton.language as tl

from .tiles import kept, seen, span


@triton.jit
def _query_steps(
    by_q, query, grad, ends, mean, k, v, mask, i, rows, lo, hi, T, S, offset, lower, kt, vt, mt, ms,
    scale, factor, moved, key, counter, highest,
    CAUSAL: tl.constexpr, WINDOW: tl.constexpr, MASK: tl.constexpr, NOISE: tl.constexpr,
    EDGE: tl.constexpr, WHOLE: tl.constexpr, AHEAD: tl.constexpr, PRECISION: tl.constexpr,
    D: tl.constexpr, BD: tl.constexpr, E: tl.constexpr, BE: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """Go over keys lo..hi. `EDGE`: some of them are not seen; `WHOLE`: all of them exist."""
    d = tl.arange(0, BD)
    e = tl.arange(0, BE)
    for start in range(lo, hi, BN):
        j = start + tl.arange(0, BN)
        if EDGE and not WHOLE:
            keys = tl.load(k + j[None, :] * kt + d[:, None], mask=(j[None, :] < S) & (d[:, None] < D), other=0.0)
            values = tl.load(v + j[None, :] * vt + e[:, None], mask=(j[None, :] < S) & (e[:, None] < E), other=0.0)
        elif D == BD and E == BE:
            keys = tl.load(k + j[None, :] * kt + d[:, None])
            values = tl.load(v + j[None, :] * vt + e[:, None])
        else:
            keys = tl.load(k + j[None, :] * kt + d[:, None], mask=d[:, None] < D, other=0.0)
            values = tl.load(v + j[None, :] * vt + e[:, None], mask=e[:, None] < E, other=0.0)
        scores = tl.dot(query, keys, input_precision=PRECISION)
        if AHEAD:
            by_p = tl.dot(grad, values, input_precision=PRECISION)
        scores = scores * scale
        if MASK == 2:
            at = mask + tl.minimum(i, T - 1)[:, None] * mt + j[None, :] * ms
            added = tl.load(at, mask=j[None, :] < S, other=0.0)
            scores += added.to(tl.float32) * 1.4426950408889634
        p = tl.math.exp2(scores - ends[:, None])
        if EDGE:
            sees = seen(i[:, None], j[None, :], S, offset, lower, CAUSAL, WINDOW, WHOLE)
            p = tl.where(sees, p, 0.0)
        if MASK == 1:
            at = mask + tl.minimum(i, T - 1)[:, None] * mt + j[None, :] * ms
            p = tl.where(tl.load(at, mask=j[None, :] < S, other=0) != 0, p, 0.0)
        if not AHEAD:
            by_p = tl.dot(grad, values, input_precision=PRECISION)
        if NOISE != 0:
            keep = kept(moved, key, counter, highest, rows, start, S, NOISE, BN)
            by_p = tl.where(keep, by_p * factor, 0.0)
        by_s = p * (by_p - mean[:, None])
        by_q = tl.dot(by_s.to(keys.dtype), tl.trans(keys), by_q, input_precision=PRECISION)
    return by_q


@triton.jit
def by_queries(
    out, tops, means, q, k, v, g, y, lse, g_lse, mask, ends_q, ends_k, moved, key, counter, highest,
    H, G, T, S, offset, lower, tiles, scale, back, factor, rb, rh,
    ob, oh, ot, qb, qh, qt, kb, kh, kt, vb, vh, vt, gb, gh, gt, yb, yh, yt, mb, mh, mt, ms,
    CAUSAL: tl.constexpr, WINDOW: tl.constexpr, MASK: tl.constexpr, NOISE: tl.constexpr,
    PACKED: tl.constexpr, WHOLE: tl.constexpr, AHEAD: tl.constexpr, PRECISION: tl.constexpr,
    D: tl.constexpr, BD: tl.constexpr, E: tl.constexpr, BE: tl.constexpr, BM: tl.constexpr,
    BN: tl.constexpr,
):  # fmt: skip
    """`means`: `sum(g y) - g_lse` of each row. `tops`: its log-sum-exp in base 2, or infinity where
    it sees nothing, so that its weights come out as zero. Grid: (tiles of queries x heads,).
    """
    tile = tiles - 1 - tl.program_id(0) % tiles
    b = (tl.program_id(0) // tiles // H).to(tl.int64)
    h = (tl.program_id(0) // tiles % H).to(tl.int64)
    row = b * rb + h * rh
    q += b * qb + h * qh
    k += b * kb + h // G * kh
    v += b * vb + h // G * vh
    g += b * gb + h * gh
    y += b * yb + h * yh
    out += b * ob + h * oh
    if MASK != 0:
        mask += b * mb + h * mh
    if PACKED:
        first_q, T = span(ends_q, b, T)
        first_k, S = span(ends_k, b, S)
        if tile * BM >= T:
            return
        row += first_q
        q += first_q * qt
        k += first_k * kt
        v += first_k * vt
        g += first_q * gt
        y += first_q * yt
        out += first_q * ot
        offset += S - T
        lower += S - T
    i = tile * BM + tl.arange(0, BM)
    d = tl.arange(0, BD)
    e = tl.arange(0, BE)
    inside = (i[:, None] < T) & (e[None, :] < E)
    query = tl.load(q + i[:, None] * qt + d[None, :], mask=(i[:, None] < T) & (d[None, :] < D), other=0.0)
    grad = tl.load(g + i[:, None] * gt + e[None, :], mask=inside, other=0.0)
    made = tl.load(y + i[:, None] * yt + e[None, :], mask=inside, other=0.0)
    mean = tl.sum(grad.to(tl.float32) * made.to(tl.float32), 1)
    mean -= tl.load(g_lse + row + i, mask=i < T, other=0.0)
    ends = tl.load(lse + row + i, mask=i < T, other=-float("inf"))
    ends = tl.where(ends == -float("inf"), float("inf"), ends * 1.4426950408889634)
    tl.store(means + row + i, mean, mask=i < T)
    tl.store(tops + row + i, ends, mask=i < T)
    by_q = tl.zeros((BM, BD), tl.float32)

    # Keys: all queries see those from `plain` to `full`, none sees one below `lo` or from `hi` on.
    lo = 0
    hi = S
    full = S // BN * BN
    if CAUSAL:
        hi = tl.maximum(tl.minimum(S, tile * BM + BM + offset), 0)
        full = tl.minimum(full, tl.maximum(tile * BM + offset + 1, 0) // BN * BN)
    if WINDOW:
        lo = tl.minimum(tl.maximum(tile * BM + lower, 0) // BN * BN, hi)
        plain = tl.minimum((tl.maximum(tile * BM + BM - 1 + lower, 0) + BN - 1) // BN * BN, hi)
        full = tl.maximum(full, plain)
        by_q = _query_steps(
            by_q, query, grad, ends, mean, k, v, mask, i, row + i, lo, plain, T, S, offset, lower,
            kt, vt, mt, ms, scale, factor, moved, key, counter, highest,
            CAUSAL, WINDOW, MASK, NOISE, True, WHOLE, AHEAD, PRECISION, D, BD, E, BE, BN,
        )  # fmt: skip
        lo = plain
    by_q = _query_steps(
        by_q, query, grad, ends, mean, k, v, mask, i, row + i, lo, full, T, S, offset, lower, kt,
        vt, mt, ms, scale, factor, moved, key, counter, highest,
        CAUSAL, WINDOW, MASK, NOISE, False, WHOLE, AHEAD, PRECISION, D, BD, E, BE, BN,
    )  # fmt: skip
    by_q = _query_steps(
        by_q, query, grad, ends, mean, k, v, mask, i, row + i, full, hi, T, S, offset, lower, kt,
        vt, mt, ms, scale, factor, moved, key, counter, highest,
        CAUSAL, WINDOW, MASK, NOISE, True, WHOLE, AHEAD, PRECISION, D, BD, E, BE, BN,
    )  # fmt: skip
    tl.store(
        out + i[:, None] * ot + d[None, :],
        (by_q * back).to(out.dtype.element_ty),
        mask=(i[:, None] < T) & (d[None, :] < D),
    )
