"""Attention of packed sequences on NumPy, one after another. Half types arrive as float32."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from ....core.errors import fail
from ...base import kernel
from ..arrays import Array
from .attention import attention, attention_backward

OP = "varlen_attn"


def spans(ends: Array, total: int, most: int, name: str) -> list[tuple[int, int]]:
    """Beginning and end of each sequence."""
    given = [int(n) for n in ends]
    if given[0] != 0 or given[-1] > total or any(a > b for a, b in pairwise(given)):
        rule = f"must begin at 0, never fall and end within {total} positions"
        fail(ValueError, OP, f"cu_seq_{name} {rule}, got {given}.")
    found = list(pairwise(given))
    longest = max((b - a for a, b in found), default=0)
    if longest > most:
        fail(ValueError, OP, f"max_{name} is {most}, but a sequence has {longest} positions.")
    return found


def sequences(
    q: Array, k: Array, ends_q: Array, ends_k: Array, used: Array | None, max_q: int, max_k: int
) -> Iterator[tuple[slice, slice]]:
    """Queries and keys of each sequence."""
    of_q = spans(ends_q, q.shape[0], int(max_q), "q")
    of_k = spans(ends_k, k.shape[0], int(max_k), "k")
    for n, ((a, b), (c, d)) in enumerate(zip(of_q, of_k, strict=True)):
        yield slice(a, b), slice(c, d if used is None else min(d, c + max(int(used[n]), 0)))


def one(x: Array) -> Array:
    """A sequence as a batch of one: (1, heads, positions, features)."""
    return np.swapaxes(x, 0, 1)[None]


def window(rows: int, columns: int, left: int, right: int) -> Any:
    """The mask of what a window shows, or None for all."""
    if left < 0 and right < 0:
        return None
    apart = np.arange(columns)[None, :] - np.arange(rows)[:, None] - (columns - rows)
    seen = np.ones((rows, columns), np.bool_)
    if left >= 0:
        seen &= apart >= -left
    if right >= 0:
        seen &= apart <= right
    return seen


@kernel("_varlen_attention")
def varlen_attention(
    q: Array,
    k: Array,
    v: Array,
    ends_q: Array,
    ends_k: Array,
    used: Array | None,
    max_q: int,
    max_k: int,
    scale: float,
    left: int,
    right: int,
) -> tuple[Array, ...]:
    out = np.zeros((*q.shape[:2], v.shape[2]), q.dtype)
    lse = np.zeros((q.shape[1], q.shape[0]), q.dtype)
    for a, b in sequences(q, k, ends_q, ends_k, used, max_q, max_k):
        mask = window(a.stop - a.start, b.stop - b.start, left, right)
        y, top = attention(one(q[a]), one(k[b]), one(v[b]), mask, 0, 0, 0, 0.0, False, scale)
        out[a], lse[:, a] = np.swapaxes(y[0], 0, 1), top[0]
    return out, lse


@kernel("_varlen_attention_backward")
def varlen_attention_backward(
    g: Array,
    g_lse: Array,
    q: Array,
    k: Array,
    v: Array,
    ends_q: Array,
    ends_k: Array,
    out: Array,
    lse: Array,
    max_q: int,
    max_k: int,
    scale: float,
    left: int,
    right: int,
) -> tuple[Array, ...]:
    made = tuple(np.zeros_like(x) for x in (q, k, v))
    for a, b in sequences(q, k, ends_q, ends_k, None, max_q, max_k):
        mask = window(a.stop - a.start, b.stop - b.start, left, right)
        found = attention_backward(
            one(g[a]),
            g_lse[None, :, a],
            one(q[a]),
            one(k[b]),
            one(v[b]),
            mask,
            one(out[a]),
            lse[None, :, a],
            0,
            0,
            0,
            0.0,
            False,
            scale,
            False,
        )
        for to, x, at in zip(made, found, (a, b, b), strict=False):
            to[at] = np.swapaxes(x[0], 0, 1)
    return made
