"""The gradients of attention by keys and values: a tile of keys goes along the queries. Knows
tiles, not rows of the kernel table.
"""

from __future__ import annotations

import triton
import triton.language as tl

from .tiles import kept, seen, span


@triton.jit
def _key_steps(
    by_k, by_v, keys, values, q, g, tops, means, mask, j, row, first, lo, hi, T, S, offset, lower,
    rh, qh, qt, gh, gt, mh, mt, ms, scale, factor, moved, key, counter, highest,
    CAUSAL: tl.constexpr, WINDOW: tl.constexpr, MASK: tl.constexpr, NOISE: tl.constexpr,
    EDGE: tl.constexpr, END: tl.constexpr, AHEAD: tl.constexpr, PRECISION: tl.constexpr,
    D: tl.constexpr, BD: tl.constexpr, E: tl.constexpr, BE: tl.constexpr, BM: tl.constexpr,
    BN: tl.constexpr, G: tl.constexpr,
):  # fmt: skip
    """Go over queries lo..hi. `EDGE`: some do not see some keys; `END`: some do not exist.

    What is missing needs no rule: queries beyond the last have infinite `tops`, and what keys
    beyond the last gather is not stored.
    """
    d = tl.arange(0, BD)
    e = tl.arange(0, BE)
    # One loop over all heads: a loop around this one would empty the pipeline for each of them.
    if G == 1:
        end = hi
    else:
        length = tl.maximum(hi - lo + BM - 1, 0) // BM * BM
        end = lo + G * length
    for start in range(lo, end, BM):
        if G == 1:
            n = 0
            i = start + tl.arange(0, BM)
        else:
            n = (start - lo) // length
            i = start - n * length + tl.arange(0, BM)
        at_q = q + n * qh
        at_g = g + n * gh
        rows = row + n * rh + i
        if END:
            query = tl.load(at_q + i[None, :] * qt + d[:, None], mask=(i[None, :] < T) & (d[:, None] < D), other=0.0)
            grad = tl.load(at_g + i[:, None] * gt + e[None, :], mask=(i[:, None] < T) & (e[None, :] < E), other=0.0)
            ends = tl.load(tops + rows, mask=i < T, other=float("inf"))
            mean = tl.load(means + rows, mask=i < T, other=0.0)
        else:
            if D == BD and E == BE:
                query = tl.load(at_q + i[None, :] * qt + d[:, None])
                grad = tl.load(at_g + i[:, None] * gt + e[None, :])
            else:
                query = tl.load(at_q + i[None, :] * qt + d[:, None], mask=d[:, None] < D, other=0.0)
                grad = tl.load(at_g + i[:, None] * gt + e[None, :], mask=e[None, :] < E, other=0.0)
            ends = tl.load(tops + rows)
            mean = tl.load(means + rows)
        scores = tl.dot(keys, query, input_precision=PRECISION)  # (keys, queries)
        if AHEAD:
            by_p = tl.dot(values, tl.trans(grad), input_precision=PRECISION)
        scores = scores * scale
        if MASK == 2:
            at = mask + n * mh + tl.minimum(i, T - 1)[None, :] * mt + j[:, None] * ms
            added = tl.load(at, mask=j[:, None] < S, other=0.0)
            scores += added.to(tl.float32) * 1.4426950408889634
        p = tl.math.exp2(scores - ends[None, :])
        if EDGE:
            sees = seen(i[None, :], j[:, None], S, offset, lower, CAUSAL, WINDOW, True)
            p = tl.where(sees, p, 0.0)
        if MASK == 1:
            at = mask + n * mh + tl.minimum(i, T - 1)[None, :] * mt + j[:, None] * ms
            p = tl.where(tl.load(at, mask=j[:, None] < S, other=0) != 0, p, 0.0)
        if NOISE != 0:
            keep = tl.trans(kept(moved, key, counter, highest, rows, first, S, NOISE, BN))
            weights = tl.where(keep, p, 0.0).to(grad.dtype)
        else:
            weights = p.to(grad.dtype)
        by_v = tl.dot(weights, grad, by_v, input_precision=PRECISION)
        if not AHEAD:
            by_p = tl.dot(values, tl.trans(grad), input_precision=PRECISION)
        if NOISE != 0:
            by_p = tl.where(keep, by_p * factor, 0.0)
        by_s = p * (by_p - mean[None, :])
        by_k = tl.dot(by_s.to(query.dtype), tl.trans(query), by_k, input_precision=PRECISION)
    return by_k, by_v


@triton.jit
def by_keys(
    out_k, out_v, q, k, v, g, tops, means, mask, ends_q, ends_k, moved, key, counter, highest,
    H, KH, T, S, offset, lower, tiles, scale, back, factor, rb, rh,
    ub, uh, ut, wb, wh, wt, qb, qh, qt, kb, kh, kt, vb, vh, vt, gb, gh, gt, mb, mh, mt, ms,
    CAUSAL: tl.constexpr, WINDOW: tl.constexpr, MASK: tl.constexpr, NOISE: tl.constexpr,
    PACKED: tl.constexpr, TAIL: tl.constexpr, AHEAD: tl.constexpr, PRECISION: tl.constexpr,
    D: tl.constexpr, BD: tl.constexpr, E: tl.constexpr, BE: tl.constexpr, BM: tl.constexpr,
    BN: tl.constexpr, G: tl.constexpr,
):  # fmt: skip
    """All query heads of a key head add up. Grid: (tiles of keys x key heads,)."""
    tile = tl.program_id(0) % tiles
    b = (tl.program_id(0) // tiles // KH).to(tl.int64)
    head = (tl.program_id(0) // tiles % KH).to(tl.int64)
    first = tile * BN
    row = b * rb + head * G * rh
    q += b * qb + head * G * qh
    g += b * gb + head * G * gh
    k += b * kb + head * kh
    v += b * vb + head * vh
    out_k += b * ub + head * uh
    out_v += b * wb + head * wh
    if MASK != 0:
        mask += b * mb + head * G * mh
    if PACKED:
        first_q, T = span(ends_q, b, T)
        first_k, S = span(ends_k, b, S)
        if first >= S:
            return
        row += first_q
        q += first_q * qt
        g += first_q * gt
        k += first_k * kt
        v += first_k * vt
        out_k += first_k * ut
        out_v += first_k * wt
        offset += S - T
        lower += S - T
    j = first + tl.arange(0, BN)
    d = tl.arange(0, BD)
    e = tl.arange(0, BE)
    keys = tl.load(k + j[:, None] * kt + d[None, :], mask=(j[:, None] < S) & (d[None, :] < D), other=0.0)
    values = tl.load(v + j[:, None] * vt + e[None, :], mask=(j[:, None] < S) & (e[None, :] < E), other=0.0)
    by_k = tl.zeros((BN, BD), tl.float32)
    by_v = tl.zeros((BN, BE), tl.float32)

    # Queries: those from `plain` to `full` see all keys, none below `lo` or from `hi` on sees one.
    lo = 0
    hi = T
    plain = 0
    full = T // BM * BM
    if CAUSAL:
        lo = tl.maximum(first - offset, 0) // BM * BM
        plain = (tl.maximum(first + BN - 1 - offset, 0) + BM - 1) // BM * BM
    if WINDOW:
        hi = tl.maximum(tl.minimum(T, first + BN - lower), 0)
        full = tl.minimum(full, tl.maximum(first - lower + 1, 0) // BM * BM)
    end = tl.minimum(plain, T // BM * BM)
    full = tl.maximum(full, end)
    if CAUSAL:
        by_k, by_v = _key_steps(
            by_k, by_v, keys, values, q, g, tops, means, mask, j, row, first, lo, end, T, S, offset,
            lower, rh, qh, qt, gh, gt, mh, mt, ms, scale, factor, moved, key, counter, highest,
            CAUSAL, WINDOW, MASK, NOISE, True, False, AHEAD, PRECISION, D, BD, E, BE, BM, BN, G,
        )  # fmt: skip
    by_k, by_v = _key_steps(
        by_k, by_v, keys, values, q, g, tops, means, mask, j, row, first, tl.maximum(end, lo), full,
        T, S, offset, lower, rh, qh, qt, gh, gt, mh, mt, ms, scale, factor, moved, key, counter,
        highest,
        CAUSAL, WINDOW, MASK, NOISE, False, False, AHEAD, PRECISION, D, BD, E, BE, BM, BN, G,
    )  # fmt: skip
    if TAIL:
        by_k, by_v = _key_steps(
            by_k, by_v, keys, values, q, g, tops, means, mask, j, row, first, tl.maximum(full, lo),
            hi, T, S, offset, lower, rh, qh, qt, gh, gt, mh, mt, ms, scale, factor, moved, key,
            counter, highest,
            CAUSAL, WINDOW, MASK, NOISE, CAUSAL or WINDOW, True, AHEAD, PRECISION, D, BD, E, BE, BM,
            BN, G,
        )  # fmt: skip
    tl.store(
        out_k + j[:, None] * ut + d[None, :],
        (by_k * back).to(out_k.dtype.element_ty),
        mask=(j[:, None] < S) & (d[None, :] < D),
    )
    tl.store(
        out_v + j[:, None] * wt + e[None, :],
        (by_v * factor).to(out_v.dtype.element_ty),
        mask=(j[:, None] < S) & (e[None, :] < E),
    )
