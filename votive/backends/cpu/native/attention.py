"""Attention and its gradients on native kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base import kernel
from ...common.slot import Slot
from ..arrays import Args, Array, Ints
from ..reference.attention import attention_backward as by_reference
from ..rows import widen
from .dtypes import first_float
from .loader import module
from .rows import OUT, OUT1, OUT2, native


@native("_attention", "attention", accepts=first_float)
def attention(
    q: Slot,
    k: Slot,
    v: Slot,
    mask: Slot | None,
    seed: Slot,
    counter: Slot,
    offset: Slot,
    dropout_p: float,
    is_causal: bool,
    scale: float,
) -> Args:
    if dropout_p or type(offset.spec) is not int:
        return None
    return q, k, v, mask, OUT, OUT1, int(is_causal), offset, float(scale)


@native("_attention_backward", "attention_backward", accepts=first_float)
def attention_backward(
    g: Slot,
    g_lse: Slot,
    q: Slot,
    k: Slot,
    v: Slot,
    mask: Slot | None,
    out: list[Array],
    lse: Slot,
    seed: Slot,
    counter: Slot,
    offset: Slot,
    dropout_p: float,
    is_causal: bool,
    scale: float,
    by_mask: bool,
) -> Args:
    if dropout_p or by_mask or type(offset.spec) is not int:
        return None
    views = (g, g_lse, q, k, v, mask, out, lse, OUT, OUT1, OUT2)
    return *views, int(is_causal), offset, float(scale)


# --- what needs a look at values: dropout, whose key and counter are longer than 64 bits ---------


def _words(seed: int, counter: int) -> Ints:
    """Key and counter in pieces of 32 bits, least significant first."""
    low = 0xFFFFFFFF
    return seed & low, seed >> 32 & low, *(counter >> 32 * i & low for i in range(4))


if module is not None:
    _forward, _backward = module.Kernel("attention"), module.Kernel("attention_backward")

    @kernel("_attention", priority=9, accepts=first_float, widen=False, into=True, label="native")
    def attention_with_dropout(
        q: Array,
        k: Array,
        v: Array,
        mask: Array | None,
        seed: int,
        counter: int,
        offset: int,
        dropout_p: float,
        is_causal: bool,
        scale: float,
        *,
        out: list[Array],
    ) -> None:
        how = (int(is_causal), int(offset), *_words(seed, counter), float(scale), float(dropout_p))
        _forward(q, k, v, mask, *out, *how)

    @kernel("_attention_backward", priority=9, accepts=first_float, widen=False, into=True, label="native")
    def attention_backward_with_dropout(
        g: Array,
        g_lse: Array,
        q: Array,
        k: Array,
        v: Array,
        mask: Array | None,
        y: Array,
        lse: Array,
        seed: int,
        counter: int,
        offset: int,
        dropout_p: float,
        is_causal: bool,
        scale: float,
        by_mask: bool,
        *,
        out: list[Array],
    ) -> None:
        if by_mask:
            arrays = [widen(x) for x in (g, g_lse, q, k, v, mask, y, lse)]
            rest: list[Any] = [seed, counter, offset, dropout_p, is_causal, scale, by_mask]
            for to, made in zip(out, by_reference(*arrays, *rest), strict=True):
                np.copyto(to, made, casting="unsafe")
            return
        how = (int(is_causal), int(offset), *_words(seed, counter), float(scale), float(dropout_p))
        _backward(g, g_lse, q, k, v, mask, y, lse, *out[:3], *how)
