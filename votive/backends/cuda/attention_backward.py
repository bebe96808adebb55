"""The gradients of attention: weights are made again from the rows' log-sum-exp, tile by tile. One
kernel goes along queries for keys and values, one along keys for queries.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from ...core import dtype as dt
from ...core.layout import Layout, Spec
from .attention import (
    HALF,
    LOG2E,
    WIDEST,
    mask_kind,
    mask_strides,
    mask_types,
    packed,
    precision,
    stride_types,
    strides_of,
    takes,
)
from .by_rows import dense, power
from .data import View, empty
from .program import TYPE, Program
from .rows import cuda

# (queries, keys, warps, stages) for gradients by keys and values, and by queries.
KEYS = {64: (32, 64, 4, 3), 128: (64, 128, 8, 3), 256: (32, 64, 8, 1)}
QUERIES = {64: (64, 64, 4, 3), 128: (128, 64, 8, 3), 256: (64, 32, 8, 1)}
FLOAT32 = (16, 16, 4, 1)


@triton.jit
def _delta(
    o,
    g,
    y,
    g_lse,
    H,
    T,
    gb,
    gh,
    gt,
    yb,
    yh,
    yt,
    E: tl.constexpr,
    BE: tl.constexpr,
    BM: tl.constexpr,
):
    """`sum(g y) - g_lse` of each row."""
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    b = (tl.program_id(1) // H).to(tl.int64)
    h = (tl.program_id(1) % H).to(tl.int64)
    e = tl.arange(0, BE)
    inside = (i[:, None] < T) & (e[None, :] < E)
    a = tl.load(g + b * gb + h * gh + i[:, None] * gt + e[None, :], mask=inside, other=0.0).to(
        tl.float32
    )
    c = tl.load(y + b * yb + h * yh + i[:, None] * yt + e[None, :], mask=inside, other=0.0).to(
        tl.float32
    )
    at = tl.program_id(1).to(tl.int64) * T + i
    tl.store(o + at, tl.sum(a * c, 1) - tl.load(g_lse + at, mask=i < T, other=0.0), mask=i < T)


@triton.jit
def _weights(
    scores,
    lse,
    mask,
    i,
    j,
    T,
    S,
    offset,
    mt,
    ms,
    CAUSAL: tl.constexpr,
    MASK: tl.constexpr,
    EDGE: tl.constexpr,
):
    """exp2(scores - lse), where a key is seen. `i` and `j` broadcast against each other."""
    if MASK == 2:
        scores += (
            tl.load(mask + tl.minimum(i, T - 1) * mt + j * ms, mask=j < S, other=0.0).to(tl.float32)
            * 1.4426950408889634
        )
    p = tl.math.exp2(scores - lse)
    if EDGE:
        seen = (i < T) & (j < S)
        if CAUSAL:
            seen = seen & (j <= i + offset)
        p = tl.where(seen, p, 0.0)
    if MASK == 1:
        p = tl.where(
            tl.load(mask + tl.minimum(i, T - 1) * mt + j * ms, mask=j < S, other=0) != 0, p, 0.0
        )
    return p


@triton.jit
def _key_steps(
    by_k, by_v, keys, values, q, g, lse, delta, mask, j, lo, hi, T, S, offset, qt, gt, mt, ms,
    scale, CAUSAL: tl.constexpr, MASK: tl.constexpr, EDGE: tl.constexpr, PRECISION: tl.constexpr,
    D: tl.constexpr, BD: tl.constexpr, E: tl.constexpr, BE: tl.constexpr, BM: tl.constexpr,
):  # fmt: skip
    d = tl.arange(0, BD)
    e = tl.arange(0, BE)
    for start in range(lo, hi, BM):
        i = start + tl.arange(0, BM)
        if EDGE:
            query = tl.load(
                q + i[None, :] * qt + d[:, None],
                mask=(i[None, :] < T) & (d[:, None] < D),
                other=0.0,
            )
            grad = tl.load(
                g + i[:, None] * gt + e[None, :],
                mask=(i[:, None] < T) & (e[None, :] < E),
                other=0.0,
            )
            # A row that sees nothing has lse -inf; its weights are masked out.
            ends = tl.load(lse + i, mask=i < T, other=0.0)
            ends = tl.where(ends == -float("inf"), 0.0, ends) * 1.4426950408889634
            mean = tl.load(delta + i, mask=i < T, other=0.0)
        else:
            query = tl.load(q + i[None, :] * qt + d[:, None], mask=d[:, None] < D, other=0.0)
            grad = tl.load(g + i[:, None] * gt + e[None, :], mask=e[None, :] < E, other=0.0)
            ends = tl.load(lse + i)
            if MASK != 0:
                ends = tl.where(ends == -float("inf"), 0.0, ends)
            ends = ends * 1.4426950408889634
            mean = tl.load(delta + i)
        scores = tl.dot(keys, query, input_precision=PRECISION) * scale  # (keys, queries)
        p = _weights(
            scores,
            ends[None, :],
            mask,
            i[None, :],
            j[:, None],
            T,
            S,
            offset,
            mt,
            ms,
            CAUSAL,
            MASK,
            EDGE,
        )
        by_v = tl.dot(p.to(grad.dtype), grad, by_v, input_precision=PRECISION)
        by_p = tl.dot(values, tl.trans(grad), input_precision=PRECISION)
        by_s = p * (by_p - mean[None, :])
        by_k = tl.dot(by_s.to(query.dtype), tl.trans(query), by_k, input_precision=PRECISION)
    return by_k, by_v


@triton.jit
def _by_keys(
    out_k, out_v, q, k, v, g, lse, delta, mask, H, KH, T, S, offset, scale, factor,
    qb, qh, qt, kb, kh, kt, vb, vh, vt, gb, gh, gt, mb, mh, mt, ms,
    CAUSAL: tl.constexpr, MASK: tl.constexpr, PRECISION: tl.constexpr, D: tl.constexpr,
    BD: tl.constexpr,
    E: tl.constexpr, BE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, G: tl.constexpr,
    HEAD: tl.constexpr, TAIL: tl.constexpr,
):  # fmt: skip
    b = (tl.program_id(1) // KH).to(tl.int64)
    head = (tl.program_id(1) % KH).to(tl.int64)
    first = tl.program_id(0) * BN
    j = first + tl.arange(0, BN)
    d = tl.arange(0, BD)
    e = tl.arange(0, BE)
    keys = tl.load(
        k + b * kb + head * kh + j[:, None] * kt + d[None, :],
        mask=(j[:, None] < S) & (d[None, :] < D),
        other=0.0,
    )
    values = tl.load(
        v + b * vb + head * vh + j[:, None] * vt + e[None, :],
        mask=(j[:, None] < S) & (e[None, :] < E),
        other=0.0,
    )
    by_k = tl.zeros((BN, BD), tl.float32)
    by_v = tl.zeros((BN, BE), tl.float32)
    # Queries: none below `lo` see these keys, all from `plain` to `full` see all of them.
    lo = 0
    plain = 0
    full = T // BM * BM
    if CAUSAL:
        lo = tl.maximum(first - offset, 0) // BM * BM
        plain = (tl.maximum(first + BN - 1 - offset, 0) + BM - 1) // BM * BM
    if first + BN > S:
        plain = full
    plain = tl.minimum(plain, full)
    for n in range(G):
        h = head * G + n
        row = (b * H + h) * T
        at_q = q + b * qb + h * qh
        at_g = g + b * gb + h * gh
        at_m = mask + b * mb + h * mh
        if HEAD:
            by_k, by_v = _key_steps(
                by_k, by_v, keys, values, at_q, at_g, lse + row, delta + row, at_m, j, lo, plain, T,
                S, offset, qt, gt, mt, ms, scale, CAUSAL, MASK, True, PRECISION, D, BD, E, BE, BM,
            )  # fmt: skip
        by_k, by_v = _key_steps(
            by_k, by_v, keys, values, at_q, at_g, lse + row, delta + row, at_m, j,
            tl.maximum(plain, lo), full, T, S, offset, qt, gt, mt, ms, scale,
            CAUSAL, MASK, False, PRECISION, D, BD, E, BE, BM,
        )  # fmt: skip
        if TAIL:
            by_k, by_v = _key_steps(
                by_k, by_v, keys, values, at_q, at_g, lse + row, delta + row, at_m, j,
                tl.maximum(full, lo), T, T, S, offset, qt, gt, mt, ms, scale,
                CAUSAL, MASK, True, PRECISION, D, BD, E, BE, BM,
            )  # fmt: skip
    place = tl.program_id(1).to(tl.int64) * S + j[:, None]
    tl.store(
        out_k + place * D + d[None, :],
        (by_k * factor).to(out_k.dtype.element_ty),
        mask=(j[:, None] < S) & (d[None, :] < D),
    )
    tl.store(
        out_v + place * E + e[None, :],
        by_v.to(out_v.dtype.element_ty),
        mask=(j[:, None] < S) & (e[None, :] < E),
    )


@triton.jit
def _query_steps(
    by_q, query, grad, ends, mean, k, v, mask, i, lo, hi, T, S, offset, kt, vt, mt, ms, scale,
    CAUSAL: tl.constexpr, MASK: tl.constexpr, EDGE: tl.constexpr, PRECISION: tl.constexpr,
    D: tl.constexpr, BD: tl.constexpr, E: tl.constexpr, BE: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    d = tl.arange(0, BD)
    e = tl.arange(0, BE)
    for start in range(lo, hi, BN):
        j = start + tl.arange(0, BN)
        if EDGE:
            keys = tl.load(
                k + j[None, :] * kt + d[:, None],
                mask=(j[None, :] < S) & (d[:, None] < D),
                other=0.0,
            )
            values = tl.load(
                v + j[None, :] * vt + e[:, None],
                mask=(j[None, :] < S) & (e[:, None] < E),
                other=0.0,
            )
        else:
            keys = tl.load(k + j[None, :] * kt + d[:, None], mask=d[:, None] < D, other=0.0)
            values = tl.load(v + j[None, :] * vt + e[:, None], mask=e[:, None] < E, other=0.0)
        scores = tl.dot(query, keys, input_precision=PRECISION) * scale
        p = _weights(
            scores,
            ends[:, None],
            mask,
            i[:, None],
            j[None, :],
            T,
            S,
            offset,
            mt,
            ms,
            CAUSAL,
            MASK,
            EDGE,
        )
        by_p = tl.dot(grad, values, input_precision=PRECISION)
        by_s = p * (by_p - mean[:, None])
        by_q = tl.dot(by_s.to(keys.dtype), tl.trans(keys), by_q, input_precision=PRECISION)
    return by_q


@triton.jit
def _by_queries(
    out, q, k, v, g, lse, delta, mask, H, G, T, S, offset, scale, factor,
    qb, qh, qt, kb, kh, kt, vb, vh, vt, gb, gh, gt, mb, mh, mt, ms,
    CAUSAL: tl.constexpr, MASK: tl.constexpr, PRECISION: tl.constexpr, D: tl.constexpr,
    BD: tl.constexpr, E: tl.constexpr, BE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    tile = tl.num_programs(0) - 1 - tl.program_id(0)
    b = (tl.program_id(1) // H).to(tl.int64)
    h = (tl.program_id(1) % H).to(tl.int64)
    i = tile * BM + tl.arange(0, BM)
    d = tl.arange(0, BD)
    e = tl.arange(0, BE)
    row = tl.program_id(1).to(tl.int64) * T
    query = tl.load(
        q + b * qb + h * qh + i[:, None] * qt + d[None, :],
        mask=(i[:, None] < T) & (d[None, :] < D),
        other=0.0,
    )
    grad = tl.load(
        g + b * gb + h * gh + i[:, None] * gt + e[None, :],
        mask=(i[:, None] < T) & (e[None, :] < E),
        other=0.0,
    )
    ends = tl.load(lse + row + i, mask=i < T, other=0.0)
    ends = tl.where(ends == -float("inf"), 0.0, ends) * 1.4426950408889634
    mean = tl.load(delta + row + i, mask=i < T, other=0.0)
    by_q = tl.zeros((BM, BD), tl.float32)
    hi = S
    full = S // BN * BN
    if CAUSAL:
        hi = tl.maximum(tl.minimum(S, tile * BM + BM + offset), 0)
        full = tl.minimum(full, tl.maximum(tile * BM + offset + 1, 0) // BN * BN)
    k += b * kb + h // G * kh
    v += b * vb + h // G * vh
    mask += b * mb + h * mh
    by_q = _query_steps(
        by_q, query, grad, ends, mean, k, v, mask, i, 0, full, T, S, offset, kt, vt, mt, ms, scale,
        CAUSAL, MASK, False, PRECISION, D, BD, E, BE, BN,
    )  # fmt: skip
    by_q = _query_steps(
        by_q, query, grad, ends, mean, k, v, mask, i, full, hi, T, S, offset, kt, vt, mt, ms, scale,
        CAUSAL, MASK, True, PRECISION, D, BD, E, BE, BN,
    )  # fmt: skip
    place = (row + i)[:, None] * D + d[None, :]
    tl.store(
        out + place,
        (by_q * factor).to(out.dtype.element_ty),
        mask=(i[:, None] < T) & (d[None, :] < D),
    )


@cuda("_attention_backward", accepts=takes)
def attention_backward(
    g: Any, g_lse: Any, q: Any, k: Any, v: Any, mask: Any, out: Any, lse: Any, seed: Any,
    counter: Any, offset: Any, dropout_p: float, is_causal: bool, scale: float, by_mask: bool,
) -> Any:  # fmt: skip
    if dropout_p or by_mask or not q.numel or not v.numel or max(q.shape[3], v.shape[3]) > WIDEST:
        return None
    B, H, T, D = q.shape
    KH, S, E = k.shape[1], k.shape[2], v.shape[3]
    bd, be = power(max(D, 16)), power(max(E, 16))
    wide = max(64, bd, be)
    half = q.dtype in HALF
    kind, mask_type = mask_kind(mask)
    element = ["*" + TYPE[s.dtype] for s in (q, k, v)]
    fixed = {
        "CAUSAL": is_causal,
        "MASK": kind,
        "PRECISION": precision(q),
        "D": D,
        "BD": bd,
        "E": E,
        "BE": be,
    }
    km, kn, kw, ks = KEYS[wide] if half else FLOAT32
    qm, qn, qw, qs = QUERIES[wide] if half else FLOAT32
    strides = (*strides_of(q), *strides_of(k), *strides_of(v), *strides_of(g), *mask_strides(mask))
    far = stride_types(strides[:12], (T, S, S, T)) + mask_types(mask, T, S)
    first = [*element, "*" + TYPE[g.dtype], "*fp32", "*fp32", mask_type]
    keys = Program(
        _by_keys, [element[1], element[2], *first, *["i32"] * 5, "fp32", "fp32", *far],
        {
            **fixed, "BM": km, "BN": kn, "G": H // KH, "HEAD": is_causal or S % kn != 0,
            "TAIL": T % km != 0,
        },
        warps=kw, stages=ks,
    )  # fmt: skip
    keys.divisible = tuple(16 + i for i, s in enumerate(strides) if s % 16 == 0)
    queries = Program(
        _by_queries, [element[0], *first, *["i32"] * 5, "fp32", "fp32", *far],
        {**fixed, "BM": qm, "BN": qn}, warps=qw, stages=qs,
    )  # fmt: skip
    queries.divisible = tuple(15 + i for i, s in enumerate(strides) if s % 16 == 0)
    delta = Program(
        _delta,
        ["*fp32", "*" + TYPE[g.dtype], "*" + TYPE[out.dtype], "*fp32", "i32", "i32", *["i64"] * 6],
        {"E": E, "BE": be, "BM": 32}, warps=4,
    )  # fmt: skip
    rows = Spec(Layout((B, H, T)), dt.float32, q.spec.device)
    G, y_strides, g_strides = H // KH, strides_of(out), strides_of(g)

    def run(
        outs: list[View], g: View, g_lse: View, q: View, k: View, v: View, mask: Any, out: View,
        lse: View, seed: Any, counter: Any, offset: int,
    ) -> None:  # fmt: skip
        q, k, v, g, out = packed(q), packed(k), packed(v), packed(g), packed(out)
        g_lse, lse = dense(g_lse), dense(lse)
        means = empty(rows)
        m = q.ptr if mask is None else mask.ptr
        delta(
            (-(-T // 32), B * H), means.ptr, g.ptr, out.ptr, g_lse.ptr, H, T, *g_strides, *y_strides
        )
        numbers = (T, S, int(offset), scale * LOG2E, scale, *strides)
        keys(
            (-(-S // kn), B * KH), outs[1].ptr, outs[2].ptr, q.ptr, k.ptr, v.ptr, g.ptr, lse.ptr,
            means.ptr, m, H, KH, *numbers,
        )  # fmt: skip
        queries(
            (-(-T // qm), B * H),
            outs[0].ptr,
            q.ptr,
            k.ptr,
            v.ptr,
            g.ptr,
            lse.ptr,
            means.ptr,
            m,
            H,
            G,
            *numbers,
        )

    return run
