"""Attention of packed sequences on the native kernels of attention: one sequence after another,
each through views of the packed tensors.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base import kernel
from ..arrays import Array
from ..reference.varlen_attention import one, sequences, window
from .dtypes import first_float
from .loader import module


def _rule(rows: int, columns: int, left: int, right: int) -> tuple[Any, int, int]:
    """(mask, whether the kernel applies the causal rule, its offset)."""
    if left < 0 <= right:
        return None, 1, columns - rows + right
    return window(rows, columns, left, right), 0, 0


if module is not None:
    _forward, _backward = module.Kernel("attention"), module.Kernel("attention_backward")

    @kernel("_varlen_attention", priority=9, accepts=first_float, widen=False, into=True, label="native")
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
        *,
        out: list[Array],
    ) -> None:
        y, lse = out
        y[...], lse[...] = 0, 0
        for a, b in sequences(q, k, ends_q, ends_k, used, max_q, max_k):
            mask, causal, offset = _rule(a.stop - a.start, b.stop - b.start, left, right)
            results = one(y[a]), lse[None, :, a]
            if results[1].size:
                _forward(one(q[a]), one(k[b]), one(v[b]), mask, *results, causal, offset, scale)

    @kernel("_varlen_attention_backward", priority=9, accepts=first_float, widen=False, into=True, label="native")
    def varlen_attention_backward(
        g: Array,
        g_lse: Array,
        q: Array,
        k: Array,
        v: Array,
        ends_q: Array,
        ends_k: Array,
        y: Array,
        lse: Array,
        max_q: int,
        max_k: int,
        scale: float,
        left: int,
        right: int,
        *,
        out: list[Array],
    ) -> None:
        for made in out:
            made[...] = 0
        for a, b in sequences(q, k, ends_q, ends_k, None, max_q, max_k):
            mask, causal, offset = _rule(a.stop - a.start, b.stop - b.start, left, right)
            by_q, by_k, by_v = (np.asarray(x) for x in out)
            _backward(
                one(g[a]),
                g_lse[None, :, a],
                one(q[a]),
                one(k[b]),
                one(v[b]),
                mask,
                one(y[a]),
                lse[None, :, a],
                one(by_q[a]),
                one(by_k[b]),
                one(by_v[b]),
                causal,
                offset,
                scale,
            )
