"""Packed sequences for tests of varlen attention, and what each would give by itself."""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import Any

import numpy as np

import votive
from votive.core import dtype as dt
from votive.nn.functional import scaled_dot_product_attention

ROOM: dict[Any, float] = {dt.float64: 1e-9, dt.float32: 1e-4, dt.float16: 1e-2, dt.bfloat16: 6e-2}
# Lengths of queries and keys, heads of both, features of keys and of values.
CASES = [
    ([3, 1, 7], [3, 1, 7], 4, 2, 8, 8),
    ([5, 0, 2], [9, 4, 1], 2, 2, 5, 3),  # no queries; more queries than keys
    ([4, 3], [6, 0], 2, 1, 16, 16),  # no keys
    ([], [], 2, 2, 4, 4),
    ([70, 33], [70, 90], 2, 1, 16, 16),  # several tiles
]
WINDOWS = [(-1, -1), (-1, 0), (2, 0), (1, 2), (-1, 1), (0, -1), (0, 0)]


def ends(lengths: list[int], device: str, dtype: dt.dtype = dt.int32) -> Any:
    return votive.tensor([0, *accumulate(lengths)], dtype=dtype, device=device)


def normal(seed: int, *shape: int, dtype: dt.dtype) -> Any:
    return votive.tensor(np.random.default_rng(seed).normal(size=shape), dtype=dtype)


def given(case: Any, dtype: dt.dtype, over: int = 0) -> list[Any]:
    """Query, key, value and the gradient of the result; `over` positions belong to no sequence."""
    lengths_q, lengths_k, heads, shared, d, e = case
    q, k = sum(lengths_q) + over, sum(lengths_k) + over
    return [
        normal(0, q, heads, d, dtype=dtype),
        normal(1, k, shared, d, dtype=dtype),
        normal(2, k, shared, e, dtype=dtype),
        normal(3, q, heads, e, dtype=dtype),
    ]


def shown(rows: int, columns: int, left: int, right: int) -> Any:
    """What a window shows, element by element."""
    table = np.zeros((rows, columns), np.bool_)
    for i in range(rows):
        own = i + columns - rows
        for j in range(columns):
            table[i, j] = (left < 0 or j >= own - left) and (right < 0 or j <= own + right)
    return votive.tensor(table)


def one_by_one(case: Any, tensors: list[Any], window: tuple[int, int], scale: Any) -> list[Any]:
    """Result and gradients, each sequence through scaled_dot_product_attention in float64."""
    q, k, v, g = (x.detach().to(dt.float64) for x in tensors)
    leaves = [x.requires_grad_() for x in (q, k, v)]
    out = votive.zeros(*q.shape[:2], v.shape[2], dtype=dt.float64)
    at_q, at_k = ([0, *accumulate(n)] for n in case[:2])
    for (a, b), (c, d) in zip(pairwise(at_q), pairwise(at_k), strict=True):
        parts = [x.transpose(0, 1) for x in (q[a:b], k[c:d], v[c:d])]
        mask = shown(b - a, d - c, *window)
        y = scaled_dot_product_attention(*parts, mask, scale=scale, enable_gqa=True)
        out = votive.cat([out[:a], y.transpose(0, 1), out[b:]])
    if not out.requires_grad:
        return [out, *(votive.zeros_like(x) for x in leaves)]
    return [out.detach(), *votive.autograd.grad(out, leaves, g)]


def close(ours: Any, theirs: Any, dtype: dt.dtype, what: str) -> None:
    assert ours.dtype is dtype, what
    a, b = ours.detach().cpu().to(dt.float64).numpy(), theirs.detach().numpy()
    room = ROOM[dtype]
    most = float(np.abs(b).max(initial=0.0))
    np.testing.assert_allclose(a, b, rtol=room, atol=room * max(1.0, most), err_msg=what)
