"""Attention forward: softmax of scores is kept in registers, tile by tile, and never written down.
`attention_backward.py` holds the gradients, `attention_decode.py` the case of few queries.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from ...core import dtype as dt
from .by_rows import dense, power
from .data import View
from .program import TYPE, Program
from .rows import cuda

LOG2E = 1.4426950408889634
NONE, TRUTH, ADDED = range(3)
WIDEST = 256  # features of a head
# (queries, keys, warps, stages) of a tile by head width, for half types and for float32.
TILES = {64: (64, 64, 4, 3), 128: (128, 128, 8, 3), 256: (64, 64, 8, 2)}
TILES_FLOAT32 = {64: (64, 32, 8, 2), 128: (32, 32, 4, 2), 256: (16, 32, 4, 2)}
FEW = 16  # queries that count as few


@triton.jit
def _steps(
    total, sums, tops, q, k, v, mask, i, lo, hi, S, offset, kt, vt, ms, scale,
    CAUSAL: tl.constexpr, MASK: tl.constexpr, EDGE: tl.constexpr, PRECISION: tl.constexpr,
    D: tl.constexpr, BD: tl.constexpr, E: tl.constexpr, BE: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """Go over keys lo..hi; `EDGE`: some of them are not seen."""
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
        elif D == BD:
            keys = tl.load(k + j[None, :] * kt + d[:, None])
        else:
            keys = tl.load(k + j[None, :] * kt + d[:, None], mask=d[:, None] < D, other=0.0)
        scores = tl.dot(q, keys, input_precision=PRECISION)
        if MASK == 2:
            added = tl.load(mask + j[None, :] * ms, mask=j[None, :] < S, other=0.0).to(tl.float32)
            scores = scores * scale + added * 1.4426950408889634
        else:
            scores = scores * scale
        if EDGE:
            seen = j[None, :] < S
            if CAUSAL:
                seen = seen & (j[None, :] <= i[:, None] + offset)
            scores = tl.where(seen, scores, -float("inf"))
        if MASK == 1:
            open_ = tl.load(mask + j[None, :] * ms, mask=j[None, :] < S, other=0)
            scores = tl.where(open_ != 0, scores, -float("inf"))
        higher = tl.maximum(tops, tl.max(scores, 1))
        base = tl.where(higher == -float("inf"), 0.0, higher) if EDGE or MASK != 0 else higher
        p = tl.math.exp2(scores - base[:, None])
        shrink = tl.math.exp2(tops - base)
        sums = sums * shrink + tl.sum(p, 1)
        total = total * shrink[:, None]
        if EDGE:
            values = tl.load(
                v + j[:, None] * vt + e[None, :],
                mask=(j[:, None] < S) & (e[None, :] < E),
                other=0.0,
            )
        elif E == BE:
            values = tl.load(v + j[:, None] * vt + e[None, :])
        else:
            values = tl.load(v + j[:, None] * vt + e[None, :], mask=e[None, :] < E, other=0.0)
        total = tl.dot(p.to(values.dtype), values, total, input_precision=PRECISION)
        tops = higher
    return total, sums, tops


@triton.jit
def _attend(
    o, lse, q, k, v, mask, H, G, T, S, offset, scale, ob, oh, ot, qb, qh, qt, kb, kh, kt, vb, vh,
    vt, mb, mh, mt, ms,
    CAUSAL: tl.constexpr, MASK: tl.constexpr, PRECISION: tl.constexpr, D: tl.constexpr,
    BD: tl.constexpr, E: tl.constexpr, BE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    # The last queries see the most keys under a causal mask: they begin first.
    tile = tl.num_programs(0) - 1 - tl.program_id(0)
    b = (tl.program_id(1) // H).to(tl.int64)
    h = (tl.program_id(1) % H).to(tl.int64)
    i = tile * BM + tl.arange(0, BM)
    d = tl.arange(0, BD)
    e = tl.arange(0, BE)
    query = tl.load(
        q + b * qb + h * qh + i[:, None] * qt + d[None, :],
        mask=(i[:, None] < T) & (d[None, :] < D),
        other=0.0,
    )
    k += b * kb + h // G * kh
    v += b * vb + h // G * vh
    if MASK != 0:
        # Rows beyond the last are computed with the last one's mask and not stored.
        mask = mask + b * mb + h * mh + tl.minimum(i, T - 1)[:, None] * mt
    total = tl.zeros((BM, BE), tl.float32)
    sums = tl.zeros((BM,), tl.float32)
    tops = tl.full((BM,), -float("inf"), tl.float32)

    hi = S
    full = S // BN * BN
    if CAUSAL:
        hi = tl.maximum(tl.minimum(S, tile * BM + BM + offset), 0)
        full = tl.minimum(full, tl.maximum(tile * BM + offset + 1, 0) // BN * BN)
    total, sums, tops = _steps(
        total, sums, tops, query, k, v, mask, i, 0, full, S, offset, kt, vt, ms, scale,
        CAUSAL, MASK, False, PRECISION, D, BD, E, BE, BN,
    )  # fmt: skip
    total, sums, tops = _steps(
        total, sums, tops, query, k, v, mask, i, full, hi, S, offset, kt, vt, ms, scale,
        CAUSAL, MASK, True, PRECISION, D, BD, E, BE, BN,
    )  # fmt: skip

    total = total / tl.where(sums == 0, 1.0, sums)[:, None]
    # In base 2 until here.
    ends = tl.where(sums == 0, -float("inf"), (tops + tl.math.log2(sums)) * 0.6931471805599453)
    at = o + b * ob + h * oh + i[:, None] * ot + e[None, :]
    tl.store(at, total.to(o.dtype.element_ty), mask=(i[:, None] < T) & (e[None, :] < E))
    tl.store(lse + tl.program_id(1).to(tl.int64) * T + i, ends, mask=i < T)


HALF = frozenset(dt.HALF)


def takes(q: Any, *rest: Any) -> bool:
    """float32 and half types; doubles are left to the CPU."""
    return q.dtype in (dt.float32, *dt.HALF)


def features_dense(slot: Any) -> bool:
    return bool(slot.strides[3] == 1 or slot.shape[3] == 1)


def mask_kind(mask: Any) -> tuple[int, str]:
    """(what a mask does, its type)."""
    if mask is None:
        return NONE, "*u8"
    return (TRUTH if mask.dtype is dt.bool_ else ADDED), "*" + TYPE[mask.dtype]


def mask_strides(mask: Any) -> tuple[int, ...]:
    """Distances by batch, head, query and key; 0 where the mask is stretched."""
    if mask is None:
        return (0, 0, 0, 0)
    pad = 4 - mask.ndim
    return (0,) * pad + tuple(
        0 if n == 1 else s for n, s in zip(mask.shape, mask.strides, strict=True)
    )


def packed(v: View) -> View:
    """Features side by side: a copy where they are not."""
    return v if v.spec.strides[3] == 1 or v.spec.shape[3] == 1 else dense(v)


def strides_of(slot: Any) -> tuple[int, ...]:
    return slot.strides[:3] if features_dense(slot) else slot.spec.like(slot.shape).strides[:3]


def stride_types(strides: tuple[int, ...], lengths: tuple[int, ...]) -> list[str]:
    """Types of (batch, head, position) distances: positions in 32 bits where that reaches, since a
    tile of 64-bit offsets fills the registers.
    """
    out = []
    for k, n in enumerate(lengths):
        short = strides[3 * k + 2] * max(n, 1) + WIDEST < 2**31
        out += ["i64", "i64", "i32" if short else "i64"]
    return out


def mask_types(mask: Any, T: int, S: int) -> list[str]:
    """Types of a mask's four distances."""
    s = mask_strides(mask)
    return ["i64", "i64", *["i32" if s[2] * T + s[3] * S < 2**31 else "i64"] * 2]


def precision(q: Any) -> str:
    return "ieee" if q.dtype is dt.float32 else "tf32"


@cuda("_attention", accepts=takes)
def attention(
    q: Any, k: Any, v: Any, mask: Any, seed: Any, counter: Any, offset: Any, dropout_p: float,
    is_causal: bool, scale: float,
) -> Any:  # fmt: skip
    if dropout_p or not q.numel or not v.numel or max(q.shape[3], v.shape[3]) > WIDEST:
        return None
    from .attention_decode import few_queries

    run = few_queries(q, k, v, mask, is_causal, scale)
    if run is not None:
        return run
    B, H, T, D = q.shape
    S, E = k.shape[2], v.shape[3]
    wide, be = power(max(D, 16)), power(max(E, 16))
    tiles = TILES if q.dtype in HALF else TILES_FLOAT32
    bm, bn, warps, stages = tiles[64 if max(wide, be) <= 64 else max(wide, be)]
    bm = min(bm, max(16, power(T)))
    kind, mask_type = mask_kind(mask)
    if kind and q.dtype in HALF:
        bn = min(bn, 64)
    float_type = "*" + TYPE[q.dtype]
    types = [float_type, "*fp32", float_type, "*" + TYPE[k.dtype], "*" + TYPE[v.dtype], mask_type]
    out = q.spec.dense_like() if q.shape[3] == E else q.spec.like((B, H, T, E))
    if out.strides[3] != 1:
        return None
    numbers: tuple[int, ...] = (*out.strides[:3], *strides_of(q), *strides_of(k), *strides_of(v))
    types += ["i32"] * 5 + ["fp32"] + stride_types(numbers, (T, T, S, S)) + mask_types(mask, T, S)
    numbers += mask_strides(mask)
    program = Program(
        _attend, types,
        {
            "CAUSAL": is_causal, "MASK": kind, "PRECISION": precision(q), "D": D, "BD": wide,
            "E": E, "BE": be, "BM": bm, "BN": bn,
        },
        warps=warps, stages=stages,
    )  # fmt: skip
    program.divisible = tuple(12 + i for i, s in enumerate(numbers) if s % 16 == 0)
    grid = (-(-T // bm), B * H)
    first = (H, H // k.shape[1], T, S)

    def run(
        outs: list[View], q: View, k: View, v: View, mask: Any, seed: Any, counter: Any, offset: int
    ) -> None:
        q, k, v = packed(q), packed(k), packed(v)
        program(
            grid, outs[0].ptr, outs[1].ptr, q.ptr, k.ptr, v.ptr, 0 if mask is None else mask.ptr,
            *first, int(offset), scale * LOG2E, *numbers,
        )  # fmt: skip

    return run
