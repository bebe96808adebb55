"""The joined operators of decoding: a token of a decoder in seven launches a layer."""

from __future__ import annotations

import math
from typing import Any

import triton
import triton.language as tl

from ...core import dtype as dt
from ...core.layout import Layout, Spec
from . import device_math as m
from .attention_decode import _join, _part_ref
from .by_rows import power
from .data import View, empty
from .early import early, start_next, wait_for_last
from .program import TYPE
from .rows import cuda
from .runtime import here_count

FEW = 8  # rows of a batch
LONGEST = 8192  # features that a program normalises at once
BLOCK = 64  # keys at a time
WHOLE = 8192  # weights of a feature that a program holds at once
MANY = 8  # features of a program where there are very many
ADDED = (2, 4)  # (features, warps) of a program of `_linear_add` over short rows
ONE = (dt.float32, *dt.HALF)


@triton.jit
def _normed_product(
    o, x, norm, w0, w1, w2, n0, n1, N, K, eps,
    M: tl.constexpr, GATED: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
    EARLY: tl.constexpr,
):  # fmt: skip
    """Every program norms the rows again: they are short, and reading them is free."""
    start_next(EARLY)
    first = tl.program_id(0) * BN
    j = first + tl.arange(0, BN)
    k = tl.arange(0, BK)
    inside = (j < N)[:, None] & (k < K)[None, :]
    # Sizes are multiples of the block, so a block never spans two weights.
    if GATED:
        at = j[:, None].to(tl.int64) * K + k[None, :]
        a = tl.load(w0 + at, mask=inside, other=0.0)
        b = tl.load(w1 + at, mask=inside, other=0.0)
    else:
        w = w0
        start = 0
        if first >= n0 + n1:
            w = w2
            start = n0 + n1
        elif first >= n0:
            w = w1
            start = n0
        a = tl.load(w + (j - start)[:, None].to(tl.int64) * K + k[None, :], mask=inside, other=0.0)
        b = a
    g = tl.load(norm + k, mask=k < K, other=0.0).to(tl.float32)
    wait_for_last(EARLY)
    kind = o.dtype.element_ty
    for r in tl.static_range(M):
        v = tl.load(x + r * K + k, mask=k < K, other=0.0).to(tl.float32)
        scale = 1.0 / m.f_sqrt(tl.sum(v * v, 0) / K + eps)
        # Rounded where single operators would round, so that both ways agree.
        v = (v * scale * g).to(kind).to(tl.float32)
        y = tl.sum(a.to(tl.float32) * v[None, :], 1)
        if GATED:
            y = y.to(kind).to(tl.float32)
            y = (y * tl.sigmoid(y)).to(kind).to(tl.float32)
            y = y * tl.sum(b.to(tl.float32) * v[None, :], 1).to(kind).to(tl.float32)
        tl.store(o + r * N + j, y.to(kind), mask=j < N)


@triton.jit
def _product_added(
    o, x, w, residual, N, K,
    M: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, WHOLE: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    start_next(EARLY)
    j = tl.program_id(0) * BN + tl.arange(0, BN)
    kind = o.dtype.element_ty
    k = tl.arange(0, BK)
    inside = (j < N)[:, None] & (k < K)[None, :]
    at = w + j[:, None].to(tl.int64) * K + k[None, :]
    a = tl.load(at, mask=inside, other=0.0)
    wait_for_last(EARLY)
    for r in tl.static_range(M):
        total = (
            a.to(tl.float32) * tl.load(x + r * K + k, mask=k < K, other=0.0).to(tl.float32)[None, :]
        )
        if not WHOLE:
            for start in range(BK, K, BK):
                i = start + k
                inside = (j < N)[:, None] & (i < K)[None, :]
                b = tl.load(at + start, mask=inside, other=0.0).to(tl.float32)
                total += b * tl.load(x + r * K + i, mask=i < K, other=0.0).to(tl.float32)[None, :]
        y = tl.sum(total, 1).to(kind).to(tl.float32)
        y += tl.load(residual + r * N + j, mask=j < N, other=0.0).to(tl.float32)
        tl.store(o + r * N + j, y.to(kind), mask=j < N)


@triton.jit
def _turn(
    o, keys, values, qkv, q_norm, k_norm, cos, sin, position, H, KH, L, ct, st, eps,
    NORM: tl.constexpr, A: tl.constexpr, BA: tl.constexpr, D: tl.constexpr, BD: tl.constexpr,
    EARLY: tl.constexpr,
):  # fmt: skip
    """One head of one row: queries go out, keys and values to their place."""
    start_next(EARLY)
    head = tl.program_id(0)
    b = tl.program_id(1).to(tl.int64)
    source = qkv + (b * (H + 2 * KH) + head) * D
    kind = o.dtype.element_ty
    wait_for_last(EARLY)
    at = tl.load(position)
    if head >= H + KH:
        d = tl.arange(0, BD)
        v = tl.load(source + d, mask=d < D, other=0.0)
        tl.store(values + ((b * KH + head - H - KH) * L + at) * D + d, v, mask=d < D)
    else:
        i = tl.arange(0, BA)
        p = tl.load(source + i, mask=i < A, other=0.0).to(tl.float32)
        q = tl.load(source + A + i, mask=i < A, other=0.0).to(tl.float32)
        if NORM:
            scale = 1.0 / m.f_sqrt((tl.sum(p * p, 0) + tl.sum(q * q, 0)) / D + eps)
            w = q_norm
            if head >= H:
                w = k_norm
            p = (
                (p * scale * tl.load(w + i, mask=i < A, other=0.0).to(tl.float32))
                .to(kind)
                .to(tl.float32)
            )
            q = (
                (q * scale * tl.load(w + A + i, mask=i < A, other=0.0).to(tl.float32))
                .to(kind)
                .to(tl.float32)
            )
        c = tl.load(cos + at * ct + i, mask=i < A, other=0.0).to(tl.float32)
        s = tl.load(sin + at * st + i, mask=i < A, other=0.0).to(tl.float32)
        first = (p * c - q * s).to(kind)
        second = (q * c + p * s).to(kind)
        to = o + (b * H + head) * D
        if head >= H:
            to = keys + ((b * KH + head - H) * L + at) * D
        tl.store(to + i, first, mask=i < A)
        tl.store(to + A + i, second, mask=i < A)


def _same(*slots: Any) -> bool:
    return (
        all(s is None or (s.contiguous and s.dtype is slots[0].dtype) for s in slots)
        and slots[0].dtype in ONE
    )


@cuda("_norm_linear")
def norm_linear(x: Any, norm: Any, eps: float, weights: Any, gated: bool) -> Any:
    k = x.shape[-1]
    rows = x.numel // k if k else 0
    sizes = [w.shape[0] for w in weights]
    most = MANY if sizes[0] >= 32768 else 2
    bn = max(b for b in (1, 2, MANY) if b <= most and not any(s % b for s in sizes))
    if not _same(x, norm, *weights) or not 1 <= rows <= FEW or k > LONGEST or len(weights) > 3:
        return None
    n = sizes[0] if gated else sum(sizes)
    bk = power(max(k, 16))
    kind = "*" + TYPE[x.dtype]
    program = early(
        _normed_product, [kind] * 6 + ["i32"] * 4 + ["fp32"],
        {"M": rows, "GATED": gated, "BN": bn, "BK": bk}, warps=4 if bk <= 2048 else 8,
    )  # fmt: skip
    program.divisible = tuple(9 for _ in range(k % 16 == 0))
    numbers = (sizes[0], sizes[1] if len(sizes) > 1 else 0, n, k, float(eps))
    grid = (-(-n // bn),)

    def run(outs: list[View], x: View, norm: View, weights: list[View]) -> None:
        at = [w.ptr for w in weights]
        at += [at[0]] * (3 - len(at))
        program(grid, outs[0].ptr, x.ptr, norm.ptr, *at, *numbers)

    return run


@cuda("_linear_add")
def linear_add(x: Any, weight: Any, residual: Any) -> Any:
    n, k = weight.shape
    rows = x.numel // k if k else 0
    if not _same(x, weight, residual) or not 1 <= rows <= FEW or residual.numel != rows * n:
        return None
    bk = min(power(max(k, 16)), WHOLE)
    bn, warps = ADDED if bk <= 2048 else (1, 8)
    kind = "*" + TYPE[x.dtype]
    program = early(
        _product_added, [kind] * 4 + ["i32", "i32"],
        {"M": rows, "BN": bn, "BK": bk, "WHOLE": bk >= k}, warps=warps,
    )  # fmt: skip
    program.divisible = (5,) if k % 16 == 0 else ()
    grid = (-(-n // bn),)
    return lambda outs, x, w, residual: program(grid, outs[0].ptr, x.ptr, w.ptr, residual.ptr, n, k)


@cuda("_turn_and_keep")
def turn_and_keep(
    qkv: Any,
    q_norm: Any,
    k_norm: Any,
    eps: float,
    cos: Any,
    sin: Any,
    keys: Any,
    values: Any,
    position: Any,
    heads: int,
) -> Any:
    batch, shared, length, width = keys.shape
    whole = cos.ndim == 2 and 2 * cos.shape[1] == width and cos.strides[1] == sin.strides[1] == 1
    both = (q_norm is None) == (k_norm is None)
    if (
        not _same(qkv, q_norm, k_norm, keys, values)
        or not whole
        or not both
        or position.dtype is not dt.int64
    ):
        return None
    kind = "*" + TYPE[qkv.dtype]
    types = (
        [kind] * 6 + ["*" + TYPE[cos.dtype], "*" + TYPE[sin.dtype], "*i64"] + ["i32"] * 5 + ["fp32"]
    )
    program = early(
        _turn, types,
        {
            "NORM": q_norm is not None, "A": width // 2, "BA": power(width // 2), "D": width,
            "BD": power(width),
        },
        warps=1,
    )  # fmt: skip
    numbers = (heads, shared, length, cos.strides[0], sin.strides[0], float(eps))
    grid = (heads + 2 * shared, batch)

    def run(
        outs: list[View],
        qkv: View,
        qn: Any,
        kn: Any,
        cos: View,
        sin: View,
        keys: View,
        values: View,
        at: View,
    ) -> None:
        program(
            grid, outs[0].ptr, keys.ptr, values.ptr, qkv.ptr, qkv.ptr if qn is None else qn.ptr,
            qkv.ptr if kn is None else kn.ptr, cos.ptr, sin.ptr, at.ptr, *numbers,
        )  # fmt: skip

    return run


@cuda("_attend_kept")
def attend_kept(q: Any, keys: Any, values: Any, position: Any, scale: float) -> Any:
    batch, shared, length, width = keys.shape
    heads, e = q.shape[1], values.shape[3]
    group = heads // shared
    if not _same(q, keys, values) or group > 16 or max(width, e) > 256:
        return None
    br, bd, be = max(16, power(group)), power(max(width, 16)), power(max(e, 16))
    parts = max(1, min(2 * here_count() // (batch * shared), -(-length // BLOCK), 64))
    share = -(-length // parts)
    each = -(-share // BLOCK) * BLOCK
    parts = -(-length // each)
    kind = "*" + TYPE[q.dtype]
    part = early(
        _part_ref, ["*fp32", "*fp32", kind, kind, kind, "*i64", "i32", "i32", "i32", "i32", "fp32"],
        {
            "PRECISION": "ieee" if q.dtype is dt.float32 else "tf32", "D": width, "BD": bd, "E": e,
            "BE": be, "BR": br, "BN": BLOCK if q.dtype in dt.HALF else 32,
        },
        warps=4, stages=2,
    )  # fmt: skip
    join = early(
        _join, [kind, "*fp32", "*fp32", "*fp32", *["i32"] * 4, *["i64"] * 3],
        {"E": e, "BE": be, "BR": br, "BP": power(parts)}, warps=4,
    )  # fmt: skip
    acc = Spec(Layout((batch * shared * parts * br, be)), dt.float32, q.spec.device)
    ends = Spec(Layout((batch * shared * parts * br, 2)), dt.float32, q.spec.device)
    lse = Spec(Layout((batch, heads)), dt.float32, q.spec.device)
    log2e = scale * math.log2(math.e)

    def run(outs: list[View], q: View, keys: View, values: View, position: View) -> None:
        a, s, unused = empty(acc), empty(ends), empty(lse)
        part(
            (batch * shared, parts),
            a.ptr,
            s.ptr,
            q.ptr,
            keys.ptr,
            values.ptr,
            position.ptr,
            shared,
            group,
            length,
            each,
            log2e,
        )
        join(
            (batch * shared, group),
            outs[0].ptr,
            unused.ptr,
            a.ptr,
            s.ptr,
            shared,
            group,
            1,
            parts,
            heads * e,
            e,
            heads * e,
        )

    return run
