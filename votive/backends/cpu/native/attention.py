"""Attention and its gradients on native kernels."""

from __future__ import annotations

from typing import Any

from ....core import dtype as dt
from .rows import OUT, OUT1, OUT2, native

_KNOWN = frozenset((dt.float32, dt.float64, *dt.HALF))


def _takes(q: Any, *rest: Any) -> bool:
    return q.dtype in _KNOWN


@native("_attention", "attention", accepts=_takes)
def attention(
    q: Any, k: Any, v: Any, mask: Any, seed: Any, counter: Any, offset: Any, dropout_p: float,
    is_causal: bool, scale: float,
) -> Any:  # fmt: skip
    if dropout_p or type(offset.spec) is not int:
        return None
    return q, k, v, mask, OUT, OUT1, int(is_causal), offset, float(scale)


@native("_attention_backward", "attention_backward", accepts=lambda g, *rest: g.dtype in _KNOWN)
def attention_backward(
    g: Any, g_lse: Any, q: Any, k: Any, v: Any, mask: Any, out: Any, lse: Any, seed: Any,
    counter: Any, offset: Any, dropout_p: float, is_causal: bool, scale: float, by_mask: bool,
) -> Any:  # fmt: skip
    if dropout_p or by_mask or type(offset.spec) is not int:
        return None
    views = (g, g_lse, q, k, v, mask, out, lse, OUT, OUT1, OUT2)
    return *views, int(is_causal), offset, float(scale)
