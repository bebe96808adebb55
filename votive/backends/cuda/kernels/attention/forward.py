"""Attention forward: softmax of scores is kept in registers, tile by tile, and never written down.
`backward.py` holds the gradients, `decode.py` the case of few queries,
`plain.py` what does not fit here, `..varlen_attention` sequences of different lengths.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from .....core.layout import Spec
from ....common.attention import How
from ....common.slot import Slot
from ...programs.layouts import next_power_of_two
from ...programs.program import TYPE, Program
from ...programs.types import Run
from ...rows import cuda
from ...runtime.views import View
from .arguments import (
    ADDED,
    LOG2E,
    NOISE_TYPES,
    even,
    fits,
    made_up,
    mask_kind,
    mask_strides,
    mask_types,
    noise_for,
    noise_kind,
    packed,
    precision,
    put,
    room,
    stride_types,
    strides_of,
    takes,
)
from .tile_sizes import FORWARD, tile
from .tiles import kept, seen, span


@triton.jit
def _steps(
    total, sums, tops, q, k, v, mask, i, rows, lo, hi, S, offset, lower, kt, vt, ms, scale,
    moved, key, counter, highest,
    CAUSAL: tl.constexpr, WINDOW: tl.constexpr, MASK: tl.constexpr, NOISE: tl.constexpr,
    EDGE: tl.constexpr, WHOLE: tl.constexpr, RISING: tl.constexpr, PRECISION: tl.constexpr,
    D: tl.constexpr, BD: tl.constexpr, E: tl.constexpr, BE: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """Go over keys lo..hi. `EDGE`: some of them are not seen; `WHOLE`: all of them exist. `RISING`:
    the scale is positive, so the largest score can be found before scaling.
    """
    d = tl.arange(0, BD)
    e = tl.arange(0, BE)
    for start in range(lo, hi, BN):
        j = start + tl.arange(0, BN)
        if EDGE and not WHOLE:
            keys = tl.load(k + j[None, :] * kt + d[:, None], mask=(j[None, :] < S) & (d[:, None] < D), other=0.0)
        elif D == BD:
            keys = tl.load(k + j[None, :] * kt + d[:, None])
        else:
            keys = tl.load(k + j[None, :] * kt + d[:, None], mask=d[:, None] < D, other=0.0)
        scores = tl.dot(q, keys, input_precision=PRECISION)
        if MASK == 2:
            added = tl.load(mask + j[None, :] * ms, mask=j[None, :] < S, other=0.0).to(tl.float32)
            scores = scores * scale + added * 1.4426950408889634
        elif not RISING:
            scores = scores * scale
        if EDGE:
            sees = seen(i[:, None], j[None, :], S, offset, lower, CAUSAL, WINDOW, WHOLE)
            scores = tl.where(sees, scores, -float("inf"))
        if MASK == 1:
            open_ = tl.load(mask + j[None, :] * ms, mask=j[None, :] < S, other=0)
            scores = tl.where(open_ != 0, scores, -float("inf"))
        if RISING:
            higher = tl.maximum(tops, tl.max(scores, 1) * scale)
        else:
            higher = tl.maximum(tops, tl.max(scores, 1))
        base = tl.where(higher == -float("inf"), 0.0, higher) if EDGE or MASK != 0 else higher
        if RISING:
            p = tl.math.exp2(scores * scale - base[:, None])
        else:
            p = tl.math.exp2(scores - base[:, None])
        shrink = tl.math.exp2(tops - base)
        sums = sums * shrink + tl.sum(p, 1)
        total = total * shrink[:, None]
        if NOISE != 0:
            p = tl.where(kept(moved, key, counter, highest, rows, start, S, NOISE, BN), p, 0.0)
        if EDGE and not WHOLE:
            values = tl.load(v + j[:, None] * vt + e[None, :], mask=(j[:, None] < S) & (e[None, :] < E), other=0.0)
        elif E == BE:
            values = tl.load(v + j[:, None] * vt + e[None, :])
        else:
            values = tl.load(v + j[:, None] * vt + e[None, :], mask=e[None, :] < E, other=0.0)
        total = tl.dot(p.to(values.dtype), values, total, input_precision=PRECISION)
        tops = higher
    return total, sums, tops


@triton.jit
def _attend(
    o, lse, q, k, v, mask, ends_q, ends_k, used, moved, key, counter, highest,
    H, G, T, S, offset, lower, tiles, scale, factor, rb, rh,
    ob, oh, ot, qb, qh, qt, kb, kh, kt, vb, vh, vt, mb, mh, mt, ms,
    CAUSAL: tl.constexpr, WINDOW: tl.constexpr, MASK: tl.constexpr, NOISE: tl.constexpr,
    PACKED: tl.constexpr, USED: tl.constexpr, WHOLE: tl.constexpr, RISING: tl.constexpr,
    PRECISION: tl.constexpr,
    D: tl.constexpr, BD: tl.constexpr, E: tl.constexpr, BE: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    # The last queries see the most keys under a causal mask: they begin first.
    tile = tiles - 1 - tl.program_id(0) % tiles
    b = (tl.program_id(0) // tiles // H).to(tl.int64)
    h = (tl.program_id(0) // tiles % H).to(tl.int64)
    row = b * rb + h * rh
    q += b * qb + h * qh
    k += b * kb + h // G * kh
    v += b * vb + h // G * vh
    o += b * ob + h * oh
    if PACKED:
        first_q, T = span(ends_q, b, T)
        first_k, S = span(ends_k, b, S)
        if USED:
            S = tl.minimum(S, tl.maximum(tl.load(used + b).to(tl.int32), 0))
        if tile * BM >= T:
            return
        row += first_q
        q += first_q * qt
        k += first_k * kt
        v += first_k * vt
        o += first_q * ot
        # The last query and the last key stand side by side.
        offset += S - T
        lower += S - T
    i = tile * BM + tl.arange(0, BM)
    d = tl.arange(0, BD)
    e = tl.arange(0, BE)
    query = tl.load(q + i[:, None] * qt + d[None, :], mask=(i[:, None] < T) & (d[None, :] < D), other=0.0)
    if MASK != 0:
        # Rows beyond the last are computed with the last one's mask and not stored.
        mask = mask + b * mb + h * mh + tl.minimum(i, T - 1)[:, None] * mt
    total = tl.zeros((BM, BE), tl.float32)
    sums = tl.zeros((BM,), tl.float32)
    tops = tl.full((BM,), -float("inf"), tl.float32)

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
        total, sums, tops = _steps(
            total, sums, tops, query, k, v, mask, i, row + i, lo, plain, S, offset, lower, kt, vt,
            ms, scale, moved, key, counter, highest,
            CAUSAL, WINDOW, MASK, NOISE, True, WHOLE, RISING, PRECISION, D, BD, E, BE, BN,
        )  # fmt: skip
        lo = plain
    total, sums, tops = _steps(
        total, sums, tops, query, k, v, mask, i, row + i, lo, full, S, offset, lower, kt, vt, ms,
        scale, moved, key, counter, highest,
        CAUSAL, WINDOW, MASK, NOISE, False, WHOLE, RISING, PRECISION, D, BD, E, BE, BN,
    )  # fmt: skip
    total, sums, tops = _steps(
        total, sums, tops, query, k, v, mask, i, row + i, full, hi, S, offset, lower, kt, vt, ms,
        scale, moved, key, counter, highest,
        CAUSAL, WINDOW, MASK, NOISE, True, WHOLE, RISING, PRECISION, D, BD, E, BE, BN,
    )  # fmt: skip

    total = total * (factor / tl.where(sums == 0, 1.0, sums))[:, None]
    # In base 2 until here.
    ends = tl.where(sums == 0, -float("inf"), (tops + tl.math.log2(sums)) * 0.6931471805599453)
    at = o + i[:, None] * ot + e[None, :]
    tl.store(at, total.to(o.dtype.element_ty), mask=(i[:, None] < T) & (e[None, :] < E))
    tl.store(lse + row + i, ends, mask=i < T)


def forward(
    q: Slot,
    k: Slot,
    v: Slot,
    mask: Slot | None,
    out: Spec,
    sizes: tuple[int, ...],
    p: float,
    causal: bool,
    scale: float,
    window: bool = False,
    ends: tuple[str, ...] = (),
    used: bool = False,
) -> Any:
    """launch(out, lse, q, k, v, mask, where, noise, offset, lower) for Views with dense
    features. `sizes`: batch, query heads, queries, keys. `ends`: types of the ends of packed
    sequences; `where` then has their addresses, and `longest` is the longest sequence.
    """
    B, H, T, S = sizes
    D, E, G = q.shape[-1], v.shape[-1], H // max(k.shape[1], 1)
    wide, be = next_power_of_two(max(D, 16)), next_power_of_two(max(E, 16))
    kind, mask_type = mask_kind(mask)
    noise = noise_kind(p, S)
    bm, bn, warps, stages, more = tile(FORWARD, q.dtype, max(wide, be), kind, noise)
    bm = min(bm, max(16, next_power_of_two(T)))
    strides: tuple[int, ...] = (*strides_of(out), *strides_of(q), *strides_of(k), *strides_of(v))
    lengths = [x.shape[0 if ends else 2] for x in (q, q, k, v)]
    types = ["*" + TYPE[q.dtype], "*fp32", *("*" + TYPE[x.dtype] for x in (q, k, v)), mask_type]
    types += [*(ends or ("*i32",) * 3), *NOISE_TYPES, *["i32"] * 7, "fp32", "fp32", "i64", "i64"]
    types += stride_types(strides, tuple(lengths)) + mask_types(mask, T, S)
    strides += mask_strides(mask)
    program = Program(
        _attend,
        types,
        {
            "CAUSAL": causal,
            "WINDOW": window,
            "MASK": kind,
            "NOISE": noise,
            "PACKED": bool(ends),
            "USED": used,
            "WHOLE": not ends and S % bn == 0,
            "RISING": 1e-30 < scale < 1e30 and kind != ADDED,
            "PRECISION": precision(q.dtype),
            "D": D,
            "BD": wide,
            "E": E,
            "BE": be,
            "BM": bm,
            "BN": bn,
        },
        warps=warps,
        stages=stages,
        **more,
    )
    rows = (0, q.shape[0]) if ends else (H * T, T)
    program.divisible = even((*rows, *strides), 22)
    factor = made_up(p) if p else 1.0

    def launch(
        out: View,
        lse: View,
        q: View,
        k: View,
        v: View,
        mask: int,
        where: tuple[int, int, int],
        noise: Any,
        offset: int,
        lower: int,
        longest: int = T,
    ) -> None:
        tiles = -(-longest // bm)
        if tiles * B * H:
            program(
                (tiles * B * H,),
                out.ptr,
                lse.ptr,
                q.ptr,
                k.ptr,
                v.ptr,
                mask,
                *where,
                *noise,
                H,
                G,
                T,
                S,
                offset,
                lower,
                tiles,
                scale * LOG2E,
                factor,
                *rows,
                *strides,
            )

    return launch


@cuda("_attention", accepts=takes)
def attention(q: Slot, k: Slot, v: Slot, mask: Slot | None, *given: Any) -> Run:
    from .decode import few_queries
    from .plain import plain_forward
    from .products import pays

    how = How(*given)
    B, H, T, D = q.shape
    S, E = k.shape[2], v.shape[3]
    out = q.spec.dense_like() if D == E else q.spec.like((B, H, T, E))
    whole = fits(D, E, q.dtype)
    if whole and not how.dropout_p and D and E:
        few = few_queries(q, k, v, mask, how.is_causal, how.scale)
        if few is not None:
            return few
    if pays(q, k, v, (B, H, T, S)):
        return _by_products(q, k, v, mask, how)
    make: Any = forward if whole else plain_forward
    launch = make(q, k, v, mask, out, (B, H, T, S), how.dropout_p, how.is_causal, how.scale)
    noise = noise_for(how.dropout_p)

    def run(
        outs: list[View], q: View, k: View, v: View, mask: View | None, seed: int, counter: int, offset: int
    ) -> None:
        made = room(outs[0])
        launch(
            made,
            outs[1],
            packed(q),
            packed(k),
            packed(v),
            0 if mask is None else mask.ptr,
            (0, 0, 0),
            noise(seed, counter),
            int(offset),
            0,
        )
        put(outs[0], made)

    return run


def _by_products(q: Slot, k: Slot, v: Slot, mask: Slot | None, how: How) -> Run:
    from .products import forward_by_products

    sizes = (*q.shape[:3], k.shape[2])
    launch = forward_by_products(q, k, v, mask, sizes, how.dropout_p, how.is_causal, how.scale)
    noise = noise_for(how.dropout_p)

    def run(
        outs: list[View], q: View, k: View, v: View, mask: View | None, seed: int, counter: int, offset: int
    ) -> None:
        launch(outs[0], outs[1], q, k, v, 0 if mask is None else mask.ptr, noise(seed, counter), int(offset))

    return run
