"""Attention and its gradients on native kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core import dtype as dt
from ...base import kernel
from ..reference.attention import attention_backward as by_reference
from ..rows import widen
from .loader import module
from .rows import OUT, OUT1, OUT2, native

_KNOWN = frozenset((dt.float32, dt.float64, *dt.HALF))


def _takes(q: Any, *rest: Any) -> bool:
    return q.dtype in _KNOWN


@native("_attention", "attention", accepts=_takes)
def attention(
    q: Any,
    k: Any,
    v: Any,
    mask: Any,
    seed: Any,
    counter: Any,
    offset: Any,
    dropout_p: float,
    is_causal: bool,
    scale: float,
) -> Any:
    if dropout_p or type(offset.spec) is not int:
        return None
    return q, k, v, mask, OUT, OUT1, int(is_causal), offset, float(scale)


@native("_attention_backward", "attention_backward", accepts=_takes)
def attention_backward(
    g: Any,
    g_lse: Any,
    q: Any,
    k: Any,
    v: Any,
    mask: Any,
    out: Any,
    lse: Any,
    seed: Any,
    counter: Any,
    offset: Any,
    dropout_p: float,
    is_causal: bool,
    scale: float,
    by_mask: bool,
) -> Any:
    if dropout_p or by_mask or type(offset.spec) is not int:
        return None
    views = (g, g_lse, q, k, v, mask, out, lse, OUT, OUT1, OUT2)
    return *views, int(is_causal), offset, float(scale)


# --- what needs a look at values: dropout, whose key and counter are longer than 64 bits ---------


def _words(seed: int, counter: int) -> tuple[int, ...]:
    """Key and counter in pieces of 32 bits, least significant first."""
    low = 0xFFFFFFFF
    return seed & low, seed >> 32 & low, *(counter >> 32 * i & low for i in range(4))


if module is not None:
    _forward, _backward = module.Kernel("attention"), module.Kernel("attention_backward")

    @kernel("_attention", priority=9, accepts=_takes, widen=False, into=True, label="native")
    def attention_with_dropout(
        q: Any,
        k: Any,
        v: Any,
        mask: Any,
        seed: int,
        counter: int,
        offset: int,
        dropout_p: float,
        is_causal: bool,
        scale: float,
        *,
        out: Any,
    ) -> None:
        how = (int(is_causal), int(offset), *_words(seed, counter), float(scale), float(dropout_p))
        _forward(q, k, v, mask, *out, *how)

    @kernel("_attention_backward", priority=9, accepts=_takes, widen=False, into=True, label="native")
    def attention_backward_with_dropout(
        g: Any,
        g_lse: Any,
        q: Any,
        k: Any,
        v: Any,
        mask: Any,
        y: Any,
        lse: Any,
        seed: int,
        counter: int,
        offset: int,
        dropout_p: float,
        is_causal: bool,
        scale: float,
        by_mask: bool,
        *,
        out: Any,
    ) -> None:
        if by_mask:
            arrays = [widen(x) for x in (g, g_lse, q, k, v, mask, y, lse)]
            how = (seed, counter, offset, dropout_p, is_causal, scale, by_mask)
            for to, made in zip(out, by_reference(*arrays, *how), strict=True):
                np.copyto(to, made, casting="unsafe")
            return
        how = (int(is_causal), int(offset), *_words(seed, counter), float(scale), float(dropout_p))
        _backward(g, g_lse, q, k, v, mask, y, lse, *out[:3], *how)
