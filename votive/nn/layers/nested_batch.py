"""Nested batches in layers of attention: padded on the way in, and nested again on the way out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...nested.convert import gathered, padded
from ...nested.tensor import NestedTensor, nested_like
from ...ops.registry import F
from ...tensor import Tensor


def opened(x: Any, name: str) -> tuple[Tensor, Tensor]:
    """A batch padded with zeros, and a mask that is True on the padding."""
    if not isinstance(x, NestedTensor) or x.ndim != 3 or x._ragged != 1:
        raise RuntimeError(f"{name}: nested tensors have the components (length, embedding) here.")
    dense = padded(x, 0.0)
    lengths = F.tensor([n for _, n in x._rows.limits], device=dense.device)
    return dense, F.arange(dense.shape[1], device=dense.device).unsqueeze(0) >= lengths.unsqueeze(1)


def closed(dense: Tensor, like: NestedTensor) -> Any:
    """The components of a padded batch, with the lengths of a nested one."""
    return nested_like(like, gathered(dense, like._rows))


def encoded(x: Any, name: str, run: Callable[[Tensor, Tensor], Tensor], *masks: Tensor | None) -> Any:
    """What `run(batch, padding)` makes of a nested batch, nested again."""
    if any(m is not None for m in masks):
        raise RuntimeError(f"{name}: the lengths of a nested tensor are its mask; pass no other.")
    dense, padding = opened(x, name)
    return closed(run(dense, padding), x)


def attended(
    run: Callable[..., tuple[Tensor, Tensor | None]], query: Any, key: Any, value: Any, *masks: Tensor | None
) -> tuple[Any, Tensor | None]:
    """Attention between nested batches; weights, where they are wanted, are padded with zeros."""
    name = "MultiheadAttention"
    if any(m is not None for m in masks):
        raise RuntimeError(f"{name}: the lengths of nested tensors are their mask; pass no other.")
    q, unasked = opened(query, name)
    k, padding = (q, unasked) if key is query else opened(key, name)
    v = q if value is query else k if value is key else opened(value, name)[0]
    out, weights = run(q, k, v, key_padding_mask=padding)
    if weights is not None:
        rows = unasked if weights.dim() == 3 else unasked.unsqueeze(1)
        weights = weights.masked_fill(rows.unsqueeze(-1), 0.0)
    return closed(out, query), weights
