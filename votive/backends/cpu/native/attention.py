"""Attention and its gradients on native kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base import kernel
from ...common.attention import How
from ...common.slot import Slot
from ..arrays import Args, Array
from ..reference.attention import attention_backward as by_reference
from ..rows import widen
from .dtypes import first_float
from .loader import module
from .rows import OUT, OUT1, OUT2, native


@native("_attention", "attention", accepts=first_float)
def attention(q: Slot, k: Slot, v: Slot, mask: Slot | None, *how: Any) -> Args:
    return _arranged((q, k, v, mask, OUT, OUT1), How(*how))


@native("_attention_backward", "attention_backward", accepts=first_float)
def attention_backward(
    g: Slot, g_lse: Slot, q: Slot, k: Slot, v: Slot, mask: Slot | None, out: Slot, lse: Slot, *how: Any
) -> Args:
    return _arranged((g, g_lse, q, k, v, mask, out, lse, OUT, OUT1, OUT2), How(*how))


def _arranged(views: tuple[Any, ...], how: How) -> Args:
    if how.dropout_p or how.by_mask or type(how.offset.spec) is not int:
        return None
    return *views, int(how.is_causal), how.offset, float(how.scale)


# --- what needs a look at values: dropout, whose key and counter are longer than 64 bits ---------


def _numbers(how: How) -> tuple[Any, ...]:
    """What the kernel is told, with key and counter in pieces of 32 bits, least significant first."""
    low = 0xFFFFFFFF
    words = (how.seed & low, how.seed >> 32 & low, *(how.counter >> 32 * i & low for i in range(4)))
    return int(how.is_causal), int(how.offset), *words, float(how.scale), float(how.dropout_p)


if module is not None:
    _forward, _backward = module.Kernel("attention"), module.Kernel("attention_backward")

    @kernel("_attention", priority=9, accepts=first_float, widen=False, into=True, label="native")
    def attention_with_dropout(q: Array, k: Array, v: Array, mask: Array | None, *how: Any, out: list[Array]) -> None:
        _forward(q, k, v, mask, *out, *_numbers(How(*how)))

    @kernel("_attention_backward", priority=9, accepts=first_float, widen=False, into=True, label="native")
    def attention_backward_with_dropout(*args: Any, out: list[Array]) -> None:
        arrays, how = args[:8], How(*args[8:])
        if how.by_mask:
            for to, made in zip(out, by_reference(*[widen(x) for x in arrays], *how), strict=True):
                np.copyto(to, made, casting="unsafe")
            return
        _backward(*arrays, *out[:3], *_numbers(how))
