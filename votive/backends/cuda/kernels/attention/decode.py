"""Attention with too few queries to keep a GPU busy: the keys are split among programs, and what each found is
joined. This is what generating a token does, so it must run at the speed of memory.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from .....core import dtype as dt
from .....core.layout import Layout, Spec
from ....common.slot import Slot
from ...programs.dependent_launch import dependent, launch_dependents, wait_for_previous
from ...programs.layouts import next_power_of_two
from ...programs.program import TYPE, Program
from ...runtime import here_count
from ...runtime.views import View, empty
from .arguments import (
    LOG2E,
    even,
    mask_kind,
    mask_strides,
    mask_types,
    packed,
    precision,
    put,
    room,
    stride_types,
    strides_of,
)

BLOCK = 64  # keys at a time
FEW = 16  # queries that count as few
ROWS = 64  # queries of a program
LONG = 512  # keys from which on splitting them pays for more queries


@triton.jit
def _part(
    acc, ends, q, k, v, mask, KH, G, T, S, offset, each, tiles, scale, qb, qh, qt, kb, kh, kt, vb, vh, vt,
    mb, mh, mt, ms,
    CAUSAL: tl.constexpr, MASK: tl.constexpr, PRECISION: tl.constexpr, D: tl.constexpr,
    BD: tl.constexpr, E: tl.constexpr, BE: tl.constexpr, BR: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """BR of all query heads and positions of one key head over a range of keys."""
    at = tl.program_id(0) // tiles
    b = (at // KH).to(tl.int64)
    head = (at % KH).to(tl.int64)
    part = tl.program_id(1)
    r = tl.program_id(0) % tiles * BR + tl.arange(0, BR)
    t = r % T
    h = head * G + r // T
    rows = r < G * T
    d = tl.arange(0, BD)
    e = tl.arange(0, BE)
    query = tl.load(
        q + b * qb + h[:, None] * qh + t[:, None] * qt + d[None, :], mask=rows[:, None] & (d[None, :] < D), other=0.0
    )
    k += b * kb + head * kh
    v += b * vb + head * vh
    total = tl.zeros((BR, BE), tl.float32)
    sums = tl.zeros((BR,), tl.float32)
    tops = tl.full((BR,), -float("inf"), tl.float32)
    begin = part * each
    end = tl.minimum(begin + each, S)
    for start in range(begin, end, BN):
        j = start + tl.arange(0, BN)
        keys = tl.load(k + j[None, :] * kt + d[:, None], mask=(j[None, :] < end) & (d[:, None] < D), other=0.0)
        scores = tl.dot(query, keys, input_precision=PRECISION) * scale
        seen = (j[None, :] < end) & rows[:, None]
        if CAUSAL:
            seen = seen & (j[None, :] <= t[:, None] + offset)
        if MASK != 0:
            w = tl.load(mask + b * mb + h[:, None] * mh + t[:, None] * mt + j[None, :] * ms, mask=seen, other=0)
            if MASK == 1:
                seen = seen & (w != 0)
            else:
                scores += w.to(tl.float32) * 1.4426950408889634
        scores = tl.where(seen, scores, -float("inf"))
        higher = tl.maximum(tops, tl.max(scores, 1))
        base = tl.where(higher == -float("inf"), 0.0, higher)
        p = tl.math.exp2(scores - base[:, None])
        shrink = tl.math.exp2(tops - base)
        sums = sums * shrink + tl.sum(p, 1)
        values = tl.load(v + j[:, None] * vt + e[None, :], mask=(j[:, None] < end) & (e[None, :] < E), other=0.0)
        total = tl.dot(p.to(values.dtype), values, total * shrink[:, None], input_precision=PRECISION)
        tops = higher

    place = (at.to(tl.int64) * tl.num_programs(1) + part) * (tiles * BR) + r
    tl.store(acc + place[:, None] * BE + e[None, :], total)
    tl.store(ends + place * 2, tops)
    tl.store(ends + place * 2 + 1, sums)


@triton.jit
def _join(
    o,
    lse,
    acc,
    ends,
    KH,
    G,
    T,
    parts,
    rows,
    ob,
    oh,
    ot,
    E: tl.constexpr,
    BE: tl.constexpr,
    BP: tl.constexpr,
    DEPENDENT: tl.constexpr,
):
    """One program per row: all parts of it at once."""
    wait_for_previous(DEPENDENT)
    launch_dependents(DEPENDENT)
    row = tl.program_id(1)
    b = (tl.program_id(0) // KH).to(tl.int64)
    head = tl.program_id(0) % KH
    t = row % T
    h = head * G + row // T
    e = tl.arange(0, BE)
    n = tl.arange(0, BP)
    place = (tl.program_id(0).to(tl.int64) * parts + n) * rows + row
    tops = tl.load(ends + place * 2, mask=n < parts, other=-float("inf"))
    sums = tl.load(ends + place * 2 + 1, mask=n < parts, other=0.0)
    top = tl.max(tops, 0)
    base = tl.where(top == -float("inf"), 0.0, top)
    shares = tl.math.exp2(tops - base)
    whole = tl.sum(sums * shares, 0)
    found = tl.load(acc + place[:, None] * BE + e[None, :], mask=(n < parts)[:, None], other=0.0)
    y = tl.sum(found * shares[:, None], 0) / tl.where(whole == 0, 1.0, whole)
    tl.store(o + b * ob + h * oh + t * ot + e, y.to(o.dtype.element_ty), mask=e < E)
    end = tl.where(whole == 0, -float("inf"), (base + tl.math.log2(whole)) * 0.6931471805599453)
    tl.store(lse + (b * KH * G + h) * T + t, end)


def few_queries(q: Slot, k: Slot, v: Slot, mask: Slot | None, is_causal: bool, scale: float) -> Any:
    """The run for this case, or None when there are many queries."""
    B, H, T, D = q.shape
    KH, S, E = k.shape[1], k.shape[2], v.shape[3]
    if not B * H * T * S:
        return None
    G = H // KH
    few = G * T <= FEW and T <= 4
    programs = B * H * -(-T // ROWS)  # without splitting
    if not few and (is_causal or S < LONG or programs > here_count() or max(D, E) > 128):
        return None
    br, bd, be = max(16, next_power_of_two(G * T)), next_power_of_two(max(D, 16)), next_power_of_two(max(E, 16))
    half, narrow = q.dtype in dt.HALF, max(bd, be) <= 64
    br = min(br, ROWS if half and narrow else ROWS // 2 if half or narrow else ROWS // 4)  # what registers hold
    tiles = -(-G * T // br)
    wanted = max(1, (2 if few else 4) * here_count() // (B * KH * tiles))
    parts = max(1, min(wanted, -(-S // BLOCK), 64 if few else S // (2 * BLOCK)))
    each = -(-S // parts)
    each = -(-each // BLOCK) * BLOCK
    parts = -(-S // each)
    if parts == 1 and (G == 1 or S <= BLOCK or not few):  # nothing to join: one launch is enough
        return None
    kind, mask_type = mask_kind(mask)
    types = ["*fp32", "*fp32", *("*" + TYPE[x.dtype] for x in (q, k, v)), mask_type]
    numbers: tuple[int, ...] = (*strides_of(q), *strides_of(k), *strides_of(v))
    types += ["i32"] * 7 + ["fp32"] + stride_types(numbers, (T, S, S)) + mask_types(mask, T, S)
    numbers += mask_strides(mask)
    program = Program(
        _part,
        types,
        {
            "CAUSAL": is_causal,
            "MASK": kind,
            "PRECISION": precision(q.dtype),
            "D": D,
            "BD": bd,
            "E": E,
            "BE": be,
            "BR": br,
            "BN": BLOCK if q.dtype in dt.HALF else 32,
        },
        warps=4,
        stages=2,
    )
    program.divisible = even(numbers, 14)
    out = q.spec.dense_like() if D == E else q.spec.like((B, H, T, E))
    joined = ["*" + TYPE[q.dtype], "*fp32", "*fp32", "*fp32", *["i32"] * 5, *["i64"] * 3]
    sizes = {"E": E, "BE": be, "BP": next_power_of_two(parts)}
    # An early start pays for a token, whose launches are recorded; else it costs the host more than it saves.
    if few:
        join = dependent(_join, joined, sizes, warps=4)
    else:
        join = Program(_join, joined, {**sizes, "DEPENDENT": False}, warps=4)
    acc = Spec(Layout((B * KH * parts * tiles * br, be)), dt.float32, q.spec.device)
    ends = Spec(Layout((B * KH * parts * tiles * br, 2)), dt.float32, q.spec.device)
    to = strides_of(out)

    def run(
        outs: list[View], q: View, k: View, v: View, mask: View | None, seed: Any, counter: Any, offset: int
    ) -> None:
        q, k, v = packed(q), packed(k), packed(v)
        a, s, made = empty(acc), empty(ends), room(outs[0])
        program(
            (B * KH * tiles, parts),
            a.ptr,
            s.ptr,
            q.ptr,
            k.ptr,
            v.ptr,
            0 if mask is None else mask.ptr,
            KH,
            G,
            T,
            S,
            int(offset),
            each,
            tiles,
            scale * LOG2E,
            *numbers,
        )
        join((B * KH, G * T), made.ptr, outs[1].ptr, a.ptr, s.ptr, KH, G, T, parts, tiles * br, *to)
        put(outs[0], made)

    return run
