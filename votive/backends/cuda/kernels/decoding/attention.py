"""Attention of one token over keys and values that are kept in place: its own are rotated, put to
the others and seen, in one launch.

How many are kept lies on the device, so that one recorded launch serves every length. The keys of a
head are split among programs; whoever of them ends last joins what all have found.
"""

from __future__ import annotations

import math

import triton
import triton.language as tl

from .....core import dtype as dt
from .....core.layout import Layout, Spec
from ....common.slot import Slot
from ...device import math as m
from ...programs.dependent_launch import dependent, launch_dependents, wait_for_previous
from ...programs.layouts import next_power_of_two
from ...programs.program import TYPE
from ...programs.types import Run
from ...rows import cuda
from ...runtime import here_count
from ...runtime.views import View, empty
from ..index import reported
from .products import same

BLOCK = 64  # keys at a time
PROGRAMS = 2  # per multiprocessor, at most
WARPS = 4


@triton.jit
def _rotated(at, weight, c, s, eps, here, NORM: tl.constexpr, A: tl.constexpr, BA: tl.constexpr, KIND: tl.constexpr):
    """Both halves of heads, normed and rotated; `at`: addresses of the first halves. Rounded where
    single operators would round, so that both ways agree."""
    i = tl.arange(0, BA)[None, :]
    p = tl.load(at, mask=here, other=0.0).to(tl.float32)
    q = tl.load(at + A, mask=here, other=0.0).to(tl.float32)
    if NORM:
        scale = 1.0 / m.f_sqrt((tl.sum(p * p, 1) + tl.sum(q * q, 1)) / (2 * A) + eps)[:, None]
        u = tl.load(weight + i, mask=i < A, other=0.0).to(tl.float32)
        w = tl.load(weight + A + i, mask=i < A, other=0.0).to(tl.float32)
        p = (p * scale * u).to(KIND).to(tl.float32)
        q = (q * scale * w).to(KIND).to(tl.float32)
    return (p * c - q * s).to(KIND), (q * c + p * s).to(KIND)


@triton.jit
def _seen(total, sums, tops, q1, q2, k1, k2, v, here, scale, PRECISION: tl.constexpr):
    """What was found, and one more block of keys."""
    scores = tl.dot(q1, k1, input_precision=PRECISION)
    scores = tl.dot(q2, k2, scores, input_precision=PRECISION) * scale
    scores = tl.where(here, scores, -float("inf"))
    higher = tl.maximum(tops, tl.max(scores, 1))
    base = tl.where(higher == -float("inf"), 0.0, higher)
    p = tl.math.exp2(scores - base[:, None])
    shrink = tl.math.exp2(tops - base)
    total = tl.dot(p.to(v.dtype), v, total * shrink[:, None], input_precision=PRECISION)
    return total, sums * shrink + tl.sum(p, 1), higher


@triton.jit
def _attend_kept(
    o, acc, ends, counts, keys, values, qkv, q_norm, k_norm, cos, sin, position, fault, KH, L, each,
    parts, ct, st, eps, scale,
    G: tl.constexpr, NORM: tl.constexpr, PRECISION: tl.constexpr, A: tl.constexpr,
    BA: tl.constexpr, BD: tl.constexpr, BR: tl.constexpr, BN: tl.constexpr, BP: tl.constexpr,
    LATE: tl.constexpr, DEPENDENT: tl.constexpr,
):  # fmt: skip
    """All query heads of one key head over a range of keys."""
    launch_dependents(DEPENDENT)
    now = tl.load(position).to(tl.int32)
    beyond = (now < 0) | (now >= L)
    tl.store(fault, 1, mask=beyond)
    now = tl.where(beyond, 0, now)
    b = (tl.program_id(0) // KH).to(tl.int64)
    head = (tl.program_id(0) % KH).to(tl.int64)
    part = tl.program_id(1)
    kind = o.dtype.element_ty
    D = 2 * A
    r = tl.arange(0, BR)
    i = tl.arange(0, BA)
    d = tl.arange(0, BD)
    halves = i < A
    rows = r < G
    keys += (b * KH + head) * L * D
    values += (b * KH + head) * L * D
    first = part * each
    end = tl.minimum(first + each, now + 1)
    j = first + tl.arange(0, BN)
    at = keys + j[None, :].to(tl.int64) * D + i[:, None]
    whole = (j[None, :] < now) & halves[:, None]
    k1 = tl.load(at, mask=whole, other=0.0)
    k2 = tl.load(at + A, mask=whole, other=0.0)
    v = tl.load(
        values + j[:, None].to(tl.int64) * D + d[None, :], mask=(j[:, None] < now) & (d[None, :] < D), other=0.0
    )
    if not LATE:
        c = tl.load(cos + now * ct + i, mask=halves, other=0.0).to(tl.float32)[None, :]
        s = tl.load(sin + now * st + i, mask=halves, other=0.0).to(tl.float32)[None, :]
    wait_for_previous(DEPENDENT)
    if LATE:  # rows that were made for this token
        c = tl.load(cos + now * ct + i, mask=halves, other=0.0).to(tl.float32)[None, :]
        s = tl.load(sin + now * st + i, mask=halves, other=0.0).to(tl.float32)[None, :]

    source = qkv + b * (G + 2) * KH * D
    q1, q2 = _rotated(
        source + (head * G + r)[:, None] * D + i[None, :],
        q_norm,
        c,
        s,
        eps,
        rows[:, None] & halves[None, :],
        NORM,
        A,
        BA,
        kind,
    )
    if (first <= now) & (now < first + each):  # the token's own place
        one = tl.arange(0, 1)[:, None]
        own1, own2 = _rotated(
            source + (KH * G + head) * D + one + i[None, :],
            k_norm,
            c,
            s,
            eps,
            (one == 0) & halves[None, :],
            NORM,
            A,
            BA,
            kind,
        )
        own = tl.load(source + (KH * G + KH + head) * D + d, mask=d < D, other=0.0)
        mine = keys + now.to(tl.int64) * D + one + i[None, :]
        tl.store(mine, own1, mask=(one == 0) & halves[None, :])
        tl.store(mine + A, own2, mask=(one == 0) & halves[None, :])
        tl.store(values + now.to(tl.int64) * D + d, own, mask=d < D)
        k1 = tl.where(j[None, :] == now, tl.trans(own1), k1)
        k2 = tl.where(j[None, :] == now, tl.trans(own2), k2)
        v = tl.where(j[:, None] == now, own[None, :], v)
        tl.debug_barrier()  # later blocks are read from memory

    total = tl.zeros((BR, BD), tl.float32)
    sums = tl.zeros((BR,), tl.float32)
    tops = tl.full((BR,), -float("inf"), tl.float32)
    here = (j[None, :] < end) & rows[:, None]
    total, sums, tops = _seen(total, sums, tops, q1, q2, k1, k2, v, here, scale, PRECISION)
    for start in range(first + BN, end, BN):
        n = start + tl.arange(0, BN)
        at = keys + n[None, :].to(tl.int64) * D + i[:, None]
        whole = (n[None, :] < end) & halves[:, None]
        k1 = tl.load(at, mask=whole, other=0.0)
        k2 = tl.load(at + A, mask=whole, other=0.0)
        v = tl.load(
            values + n[:, None].to(tl.int64) * D + d[None, :], mask=(n[:, None] < end) & (d[None, :] < D), other=0.0
        )
        here = (n[None, :] < end) & rows[:, None]
        total, sums, tops = _seen(total, sums, tops, q1, q2, k1, k2, v, here, scale, PRECISION)

    out = o + (b * KH + head) * G * D
    working = now // each + 1  # programs that have keys
    if working == 1:
        if part == 0:
            y = total / sums[:, None]
            inside = rows[:, None] & (d[None, :] < D)
            tl.store(out + r[:, None] * D + d[None, :], y.to(kind), mask=inside)
    elif part < working:
        place = (tl.program_id(0).to(tl.int64) * parts + part) * BR + r
        tl.store(acc + place[:, None] * BD + d[None, :], total, mask=rows[:, None])
        tl.store(ends + place * 2, tops, mask=rows)
        tl.store(ends + place * 2 + 1, sums, mask=rows)
        tl.debug_barrier()
        arrived = tl.atomic_add(counts + tl.program_id(0), 1)
        if arrived == working - 1:
            tl.store(counts + tl.program_id(0), 0)
            p = tl.arange(0, BP)
            for row in tl.static_range(G):
                of = (tl.program_id(0).to(tl.int64) * parts + p) * BR + row
                highest = tl.load(ends + of * 2, mask=p < working, other=-float("inf"))
                weights = tl.load(ends + of * 2 + 1, mask=p < working, other=0.0)
                shares = tl.math.exp2(highest - tl.max(highest, 0))
                found = tl.load(acc + of[:, None] * BD + d[None, :], mask=(p < working)[:, None], other=0.0)
                combined = tl.sum(found * shares[:, None], 0) / tl.sum(weights * shares, 0)
                tl.store(out + row * D + d, combined.to(kind), mask=d < D)


@cuda("_rotate_and_attend")
def rotate_and_attend(
    qkv: Slot,
    q_norm: Slot | None,
    k_norm: Slot | None,
    eps: float,
    cos: Slot,
    sin: Slot,
    keys: Slot,
    values: Slot,
    position: Slot,
    counts: Slot,
    heads: int,
    scale: float,
) -> Run:
    batch, shared, length, width = keys.shape
    whole = cos.ndim == 2 and 2 * cos.shape[1] == width and cos.strides[1] == sin.strides[1] == 1
    group = heads // shared
    if (
        not same(qkv, q_norm, k_norm, keys, values)
        or not whole
        or group > 16
        or width > 256
        or (q_norm is None) != (k_norm is None)
        or position.dtype is not dt.int64
        or counts.dtype is not dt.int32
        or not counts.contiguous
    ):
        return None
    br, ba, bd = (
        max(16, next_power_of_two(group)),
        next_power_of_two(max(width // 2, 16)),
        next_power_of_two(max(width, 16)),
    )
    parts = max(1, min(PROGRAMS * here_count() // (batch * shared), -(-length // BLOCK), 64))
    share = -(-length // parts)
    each = -(-share // BLOCK) * BLOCK
    parts = -(-length // each)
    # A table of one row is that of this very position.
    steps = [0 if t.shape[0] == 1 else t.strides[0] for t in (cos, sin)]
    kind = "*" + TYPE[qkv.dtype]
    program = dependent(
        _attend_kept,
        [
            kind,
            "*fp32",
            "*fp32",
            "*i32",
            *[kind] * 5,
            "*" + TYPE[cos.dtype],
            "*" + TYPE[sin.dtype],
            "*i64",
            "*i32",
            *["i32"] * 6,
            "fp32",
            "fp32",
        ],
        {
            "G": group,
            "LATE": not any(steps),
            "NORM": q_norm is not None,
            "A": width // 2,
            "BA": ba,
            "BD": bd,
            "BR": br,
            "PRECISION": "ieee" if qkv.dtype is dt.float32 else "tf32",
            "BP": next_power_of_two(parts),
            "BN": BLOCK if qkv.dtype in dt.HALF else 32,
        },
        warps=WARPS,
        stages=2,
    )
    tables = tuple(enumerate(steps, 17))
    program.divisible = tuple(k for k, n in tables if n % 16 == 0)
    fault = reported("index_copy", 2, length)
    acc = Spec(Layout((batch * shared * parts * br, bd)), dt.float32, qkv.spec.device)
    ends = Spec(Layout((batch * shared * parts * br, 2)), dt.float32, qkv.spec.device)
    numbers = (shared, length, each, parts, *steps, float(eps), scale * math.log2(math.e))

    def run(
        outs: list[View],
        qkv: View,
        qn: View | None,
        kn: View | None,
        cos: View,
        sin: View,
        keys: View,
        values: View,
        at: View,
        counts: View,
    ) -> None:
        a, s = empty(acc), empty(ends)
        program(
            (batch * shared, parts),
            outs[0].ptr,
            a.ptr,
            s.ptr,
            counts.ptr,
            keys.ptr,
            values.ptr,
            qkv.ptr,
            qkv.ptr if qn is None else qn.ptr,
            qkv.ptr if kn is None else kn.ptr,
            cos.ptr,
            sin.ptr,
            at.ptr,
            fault,
            *numbers,
        )

    return run
