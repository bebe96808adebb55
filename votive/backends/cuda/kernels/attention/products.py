"""Attention and its gradients in float64 by matrix products: scores are written down, since cuBLAS multiplies doubles
many times faster than a kernel without tensor cores that keeps them. Small calls, and those whose scores would take
too much memory, are left to `plain.py`.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from .....core import dtype as dt
from .....core.layout import Spec
from ....common.slot import Slot
from ...device import math as m
from ...libraries import cublas
from ...programs.copy import copy_view
from ...programs.layouts import contiguous, next_power_of_two
from ...programs.program import TYPE, Program
from ...programs.types import Ints
from ...runtime.views import View, empty
from ..matmul.plan import Planned
from .arguments import NOISE_TYPES, made_up, mask_kind, mask_strides, noise_kind
from .tiles import kept, seen

LEAST = 1 << 18  # products of numbers from which on starting three kernels pays
MOST = 1 << 31  # bytes of scores
WIDTH = 512  # keys of a tile


@triton.jit
def _seen_scores(s, mask, row, i, j, there, S, offset, scale, mt, ms, CAUSAL: tl.constexpr, MASK: tl.constexpr):
    """Scaled and masked scores (rows, keys): minus infinity where nothing is seen."""
    sees = seen(i[:, None], j[None, :], S, offset, 0, CAUSAL, False, False) & there[:, None]
    x = tl.load(s + row[:, None] * S + j[None, :], mask=sees, other=0.0) * scale
    if MASK != 0:
        given = tl.load(mask[:, None] + i[:, None] * mt + j[None, :] * ms, mask=sees, other=0)
        if MASK == 1:
            sees = sees & (given != 0)
        else:
            x += given.to(x.dtype)
    return tl.where(sees, x, -float("inf"))


@triton.jit
def _rows(mask, N, H, T, mb, mh, BR: tl.constexpr):
    """Of a program: its rows, which are there, their queries, and where their masks begin."""
    row = tl.program_id(0).to(tl.int64) * BR + tl.arange(0, BR)
    i = (row % T).to(tl.int32)
    h = row // T
    return row, row < N, i, mask + (h // H) * mb + (h % H) * mh


@triton.jit
def _softmax(
    s, lse, mask, moved, key, counter, highest, N, H, T, S, offset, scale, factor, mb, mh, mt, ms,
    CAUSAL: tl.constexpr, MASK: tl.constexpr, NOISE: tl.constexpr, BR: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """Scores become weights in place. Grid: (blocks of rows,)."""
    row, there, i, mask = _rows(mask, N, H, T, mb, mh, BR)
    kind = s.dtype.element_ty
    tops = tl.full((BR,), -float("inf"), kind)
    sums = tl.zeros((BR,), kind)
    for start in range(0, S, BN):
        j = start + tl.arange(0, BN)
        x = _seen_scores(s, mask, row, i, j, there, S, offset, scale, mt, ms, CAUSAL, MASK)
        higher = tl.maximum(tops, tl.max(x, 1))
        base = tl.where(higher == -float("inf"), 0.0, higher)
        sums = sums * m.f_exp(tops - base) + tl.sum(m.f_exp(x - base[:, None]), 1)
        tops = higher
    end = tl.where(sums == 0, -float("inf"), tops + m.f_log(sums))
    tl.store(lse + row, end, mask=there)
    base = tl.where(tops == -float("inf"), 0.0, tops)
    part = factor / tl.where(sums == 0, 1.0, sums)
    for start in range(0, S, BN):
        j = start + tl.arange(0, BN)
        x = _seen_scores(s, mask, row, i, j, there, S, offset, scale, mt, ms, CAUSAL, MASK)
        p = m.f_exp(x - base[:, None]) * part[:, None]
        if NOISE != 0:
            p = tl.where(kept(moved, key, counter, highest, row, start, S, NOISE, BN), p, 0.0)
        tl.store(s + row[:, None] * S + j[None, :], p, mask=there[:, None] & (j[None, :] < S))


@triton.jit
def _weights(
    s, by_p, lse, mask, row, i, j, there, start, S, offset, scale, factor, mt, ms, moved, key, counter, highest,
    CAUSAL: tl.constexpr, MASK: tl.constexpr, NOISE: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """Of some rows and keys: weights, weights that dropout kept, and the gradient by weights."""
    x = _seen_scores(s, mask, row, i, j, there, S, offset, scale, mt, ms, CAUSAL, MASK)
    p = m.f_exp(x - tl.where(lse == -float("inf"), 0.0, lse)[:, None])
    inside = there[:, None] & (j[None, :] < S)
    g = tl.load(by_p + row[:, None] * S + j[None, :], mask=inside, other=0.0)
    if NOISE != 0:
        keep = kept(moved, key, counter, highest, row, start, S, NOISE, BN)
        return p, tl.where(keep, p * factor, 0.0), tl.where(keep, g * factor, 0.0), inside
    else:
        return p, p, g, inside


@triton.jit
def _softmax_gradient(
    s, by_p, lse, g_lse, mask, moved, key, counter, highest, N, H, T, S, offset, scale, factor, mb, mh, mt, ms,
    CAUSAL: tl.constexpr, MASK: tl.constexpr, NOISE: tl.constexpr, BR: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """Scores become weights, and gradients by weights those by scores, in place. Grid: (blocks of rows,)."""
    row, there, i, mask = _rows(mask, N, H, T, mb, mh, BR)
    ends = tl.load(lse + row, mask=there, other=-float("inf"))
    mean = -tl.load(g_lse + row, mask=there, other=0.0)
    for start in range(0, S, BN):
        j = start + tl.arange(0, BN)
        p, _, g, _ = _weights(
            s, by_p, ends, mask, row, i, j, there, start, S, offset, scale, factor, mt, ms, moved, key, counter,
            highest, CAUSAL, MASK, NOISE, BN,
        )  # fmt: skip
        # A weight of nothing takes no part, whatever its value's gradient is.
        mean += tl.sum(tl.where(p == 0, 0.0, p * g), 1)
    for start in range(0, S, BN):
        j = start + tl.arange(0, BN)
        p, w, g, inside = _weights(
            s, by_p, ends, mask, row, i, j, there, start, S, offset, scale, factor, mt, ms, moved, key, counter,
            highest, CAUSAL, MASK, NOISE, BN,
        )  # fmt: skip
        at = row[:, None] * S + j[None, :]
        tl.store(s + at, w, mask=inside)
        tl.store(by_p + at, tl.where(p == 0, 0.0, p * (g - mean[:, None]) * scale), mask=inside)


def pays(q: Slot, k: Slot, v: Slot, sizes: Ints) -> bool:
    """Whether a call is taken: doubles, enough of them, and not too many."""
    B, H, T, S = sizes
    work = B * H * T * S * (q.shape[-1] + v.shape[-1])
    known = q.dtype is dt.float64 and all(x.dtype is dt.float64 for x in (k, v))
    return known and work >= LEAST and B * H * T * S * 8 <= MOST and cublas.library.load()


def _dense(x: View) -> View:
    return x if x.spec.contiguous else contiguous(x)


def _flipped(s: Spec) -> Spec:
    """Matrices with rows and columns exchanged, in the same memory."""
    order = (*range(s.ndim - 2), s.ndim - 1, s.ndim - 2)
    return s.like(tuple(s.shape[d] for d in order), strides=tuple(s.strides[d] for d in order))


class Products:
    """Specs, products and launches of a call. All operands are dense; query heads that share a key head are rows of
    one matrix.
    """

    def __init__(self, q: Slot, k: Slot, v: Slot, mask: Slot | None, sizes: Ints, p: float, causal: bool) -> None:
        self.sizes = B, H, T, S = sizes
        KH = k.shape[1]
        rows = H // KH * T
        like = q.spec
        self.q = like.like((B, KH, rows, q.shape[-1]))
        self.k, self.v = like.like((B, KH, S, k.shape[-1])), like.like((B, KH, S, v.shape[-1]))
        self.y = like.like((B, KH, rows, v.shape[-1]))
        self.s = like.like((B, KH, rows, S))
        self.score = Planned(self.q, _flipped(self.k), like)
        kind, mask_type = mask_kind(mask)
        self.number, self.mask_type = TYPE[q.dtype], mask_type
        self.factor = made_up(p) if p else 1.0
        self.far = mask_strides(mask)
        self.bn = min(WIDTH, max(16, next_power_of_two(S)))
        self.br = max(1, WIDTH // self.bn)
        self.constants = {"CAUSAL": causal, "MASK": kind, "NOISE": noise_kind(p, S), "BR": self.br, "BN": self.bn}

    def program(self, fn: Any, arrays: int) -> Program:
        n = self.number
        types = [*["*" + n] * arrays, self.mask_type, *NOISE_TYPES, "i64", *["i32"] * 4, n, n, *["i64"] * 4]
        return Program(fn, types, self.constants, warps=4, stages=1)

    def launch(self, program: Program, arrays: list[View], mask: int, noise: Any, offset: int, scale: float) -> None:
        B, H, T, S = self.sizes
        n = B * H * T
        numbers = (n, H, T, S, offset, scale, self.factor, *self.far)
        program((-(-n // self.br),), *(a.ptr for a in arrays), mask, *noise, *numbers)


def forward_by_products(
    q: Slot, k: Slot, v: Slot, mask: Slot | None, sizes: Ints, p: float, causal: bool, scale: float
) -> Any:
    """launch(out, lse, q, k, v, mask, noise, offset)."""
    c = Products(q, k, v, mask, sizes, p, causal)
    softmax = c.program(_softmax, 2)
    mix = Planned(c.s, c.v, q.spec)

    def launch(out: View, lse: View, q: View, k: View, v: View, mask: int, noise: Any, offset: int) -> None:
        q, k, v = _dense(q), _dense(k), _dense(v)
        s = empty(c.s)
        c.score(s, q, k)
        c.launch(softmax, [s, lse], mask, noise, offset, scale)
        y = out if out.spec.contiguous else empty(c.y)
        mix(y, s, v)
        if y is not out:
            copy_view(out, View(y.ptr, out.spec.like(out.spec.shape), y.storage))

    return launch


def backward_by_products(q: Slot, k: Slot, v: Slot, mask: Slot | None, sizes: Ints, p: float, causal: bool) -> Any:
    """launch(outs, g, g_lse, q, k, v, mask, lse, noise, offset, scale)."""
    c = Products(q, k, v, mask, sizes, p, causal)
    gradient = c.program(_softmax_gradient, 4)
    by_weights = Planned(c.y, _flipped(c.v), q.spec)
    ends = (Planned(c.s, c.k, q.spec), Planned(_flipped(c.s), c.q, q.spec), Planned(_flipped(c.s), c.y, q.spec))

    def launch(
        outs: list[View], g: View, g_lse: View, q: View, k: View, v: View, mask: int, lse: View, noise: Any,
        offset: int, scale: float,
    ) -> None:  # fmt: skip
        g, q, k, v = _dense(g), _dense(q), _dense(k), _dense(v)
        s, by_s = empty(c.s), empty(c.s)
        c.score(s, q, k)
        by_weights(by_s, g, v)
        c.launch(gradient, [s, by_s, lse, g_lse], mask, noise, offset, scale)
        for out, product, left, right in zip(outs, ends, (by_s, by_s, s), (k, q, g), strict=False):
            made = out if out.spec.contiguous else empty(out.spec.like(out.spec.shape))
            product(made, left, right)
            if made is not out:
                copy_view(out, made)

    return launch
