"""Attention with its projections: torch's multi_head_attention_forward over other operators."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

from ..core import dtype as dt
from ..core.errors import fail
from .attention import scaled_dot_product_attention
from .registry import F, composite

if TYPE_CHECKING:
    from collections.abc import Callable

    from .types import Sequence, Tensor

OP = "multi_head_attention_forward"


def _require(condition: bool, text: str | Callable[[], str]) -> None:
    """torch states these rules as assertions, so the error is one here too. Text with sizes is made when it is read:
    where sizes are expressions, writing one fixes it.
    """
    if not condition:
        fail(AssertionError, OP, text if isinstance(text, str) else text())


def _check_ranks(query: Tensor, key: Tensor, value: Tensor, padding: Tensor | None, mask: Tensor | None) -> bool:
    """Whether the query is a batch; key, value and masks must then be one, and else not."""
    if query.ndim not in (2, 3):
        _require(False, f"query must be (L, N, E) or (L, E), got {tuple(query.shape)}.")
    batched = query.ndim == 3
    for name, x in (("key", key), ("value", value)):
        _require(x.ndim == query.ndim, f"{name} must have as many dimensions as query, got {x.ndim} and {query.ndim}.")
    if padding is not None:
        want = 2 if batched else 1
        _require(
            padding.ndim == want, f"key_padding_mask needs {want} dimensions beside this query, got {padding.ndim}."
        )
    if mask is not None:
        _require(mask.ndim in (2, 3), f"attn_mask needs 2 or 3 dimensions, got {mask.ndim}.")
    return batched


def _additive(mask: Tensor | None, name: str, kind: dt.dtype) -> Tensor | None:
    """A mask as numbers to be added: True in a bool mask hides."""
    if mask is None:
        return None
    if mask.dtype is not dt.bool_:
        _require(mask.dtype.is_floating_point, f"{name} must be bool or float, got {mask.dtype}.")
        return mask
    blank = F.zeros(mask.shape, dtype=kind, device=mask.device)
    return blank.masked_fill_(mask, -math.inf)


def _merge_causal(mask: Tensor | None, padding: Tensor | None, is_causal: bool, need_weights: bool) -> tuple[Any, bool]:
    """The mask to use, and whether the causal rule replaces it.

    `is_causal` only promises that the mask is the causal one; with padding or with weights asked
    for, the mask itself is what counts.
    """
    if is_causal and mask is None:
        fail(RuntimeError, OP, "is_causal is a hint about attn_mask, which is missing.")
    if is_causal and padding is None and not need_weights:
        return None, True
    return mask, is_causal and padding is None


def _shaped_mask(mask: Tensor | None, rows: int, columns: int, batch_heads: int) -> Tensor | None:
    if mask is None:
        return None
    want = (rows, columns) if mask.ndim == 2 else (batch_heads, rows, columns)
    if tuple(mask.shape) != want:
        fail(RuntimeError, OP, f"attn_mask must have shape {want}, got {tuple(mask.shape)}.")
    return mask.unsqueeze(0) if mask.ndim == 2 else mask


def _projections(
    query: Tensor, key: Tensor, value: Tensor, weights: Sequence[Tensor], bias: Tensor | None
) -> tuple[Any, ...]:
    biases = (None,) * 3 if bias is None else bias.chunk(3)
    given = zip((query, key, value), weights, biases, strict=True)
    return tuple(F.linear(x, w, b) for x, w, b in given)


def _in_weights(
    query: Tensor, key: Tensor, value: Tensor, packed: Tensor | None, separate: tuple[Any, Any, Any] | None
) -> tuple[Tensor, ...]:
    """The three projection matrices, from one that holds them all or as they are given."""
    if separate is None:
        _require(
            key.shape == value.shape,
            lambda: f"key and value differ in shape, {tuple(key.shape)} and {tuple(value.shape)}.",
        )
        if packed is None:
            fail(RuntimeError, OP, "in_proj_weight is missing.")
        return packed.chunk(3)
    _require(
        key.shape[:2] == value.shape[:2],
        lambda: f"key and value differ in length or batch, {tuple(key.shape)} and {tuple(value.shape)}.",
    )
    for name, w in zip("qkv", separate, strict=True):
        _require(w is not None, f"use_separate_proj_weight needs {name}_proj_weight.")
    return separate


def _longer(mask: Tensor | None) -> Tensor | None:
    """A mask with one more key, which everyone sees."""
    if mask is None:
        return None
    return F.cat([mask, F.zeros_like(mask.narrow(-1, 0, 1))], -1)


def _given(x: Tensor, name: str, batch_heads: int, head_dim: int) -> Tensor:
    _require(
        x.shape[0] == batch_heads and x.shape[2] == head_dim,
        lambda: f"{name} must be ({batch_heads}, S, {head_dim}), got {tuple(x.shape)}.",
    )
    return x


def _explicit(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout_p: float) -> tuple[Any, Any]:
    """Attention whose weights are wanted: (heads of all samples, length, features)."""
    scores = F.matmul(q * math.sqrt(1 / q.shape[-1]), k.transpose(-2, -1))
    weights = F.softmax(scores if mask is None else scores + mask, -1)
    if dropout_p > 0:
        weights = F.dropout(weights, dropout_p, True)
    return F.matmul(weights, v), weights


@composite(namespaces=("nn.functional",), method=False)
def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Any, Any]:
    """Queries, keys and values projected, split into heads, attended, merged and projected.

    Query is (L, N, E) or (L, E), key and value (S, N, E). Gives the output and the weights, or None
    in their place. Bool masks say what is hidden, unlike in scaled_dot_product_attention.

    >>> x, i = votive.tensor([[1.0, 2.0]]), votive.eye(2)
    >>> packed = votive.cat([i, i, i])
    >>> votive.nn.functional.multi_head_attention_forward(
    ...     x, x, x, 2, 1, packed, None, None, None, False, 0.0, i, None)
    (tensor([[1., 2.]]), tensor([[1.]]))
    """
    batched = _check_ranks(query, key, value, key_padding_mask, attn_mask)
    if attn_mask is not None and key_padding_mask is not None:
        if attn_mask.dtype is not key_padding_mask.dtype:
            warnings.warn(f"{OP}: attn_mask and key_padding_mask differ in dtype; use one.", stacklevel=2)
    if not batched:
        query, key, value = (x.unsqueeze(1) for x in (query, key, value))
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    length, samples, embed = query.shape
    padding = _additive(key_padding_mask, "key_padding_mask", query.dtype)
    attn_mask, is_causal = _merge_causal(attn_mask, padding, is_causal, need_weights)
    mask = _additive(attn_mask, "attn_mask", query.dtype)

    _require(embed == embed_dim_to_check, f"expected {embed_dim_to_check} features, got {embed}.")
    head_dim = embed // num_heads
    _require(head_dim * num_heads == embed, f"{num_heads} heads do not divide {embed} features.")
    separate = (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else None
    weights_in = _in_weights(query, key, value, in_proj_weight, separate)
    q, k, v = _projections(query, key, value, weights_in, in_proj_bias)

    every = samples * num_heads
    mask = _shaped_mask(mask, length, key.shape[0], every)
    if bias_k is not None and bias_v is not None:
        _require(static_k is None, "bias_k cannot be added to static_k.")
        _require(static_v is None, "bias_v cannot be added to static_v.")
        k = F.cat([k, bias_k.repeat(1, samples, 1)])
        v = F.cat([v, bias_v.repeat(1, samples, 1)])
        mask, padding = _longer(mask), _longer(padding)
    else:
        _require(bias_k is None and bias_v is None, "give both bias_k and bias_v, or neither.")

    def split(x: Tensor) -> Tensor:  # (S, N, E) -> (N * heads, S, head_dim)
        return x.reshape(x.shape[0], every, head_dim).transpose(0, 1)

    q = split(q)
    k = split(k) if static_k is None else _given(static_k, "static_k", every, head_dim)
    v = split(v) if static_v is None else _given(static_v, "static_v", every, head_dim)
    if add_zero_attn:
        k, v = (F.cat([x, F.zeros_like(x.detach().narrow(1, 0, 1))], 1) for x in (k, v))
        mask, padding = _longer(mask), _longer(padding)
    keys = k.shape[1]

    if padding is not None:
        given = tuple(padding.shape)
        _require(given == (samples, keys), lambda: f"key_padding_mask must be {(samples, keys)}, got {given}.")
        padding = padding.reshape(samples, 1, 1, keys).expand(-1, num_heads, -1, -1)
        padding = padding.reshape(every, 1, keys)
        mask = padding if mask is None else mask + padding
    dropout_p = dropout_p if training else 0.0

    weights = None
    if need_weights:
        _require(not (is_causal and mask is None), "is_causal needs a mask when weights are asked.")
        out, weights = _explicit(q, k, v, mask, dropout_p)
    else:
        q, k, v = (x.reshape(samples, num_heads, -1, head_dim) for x in (q, k, v))
        if mask is not None:
            alone = mask.shape[0] == 1
            mask = mask.unsqueeze(0) if alone else mask.reshape(samples, num_heads, -1, keys)
        out = scaled_dot_product_attention(q, k, v, mask, dropout_p, is_causal)
        out = out.reshape(every, length, head_dim)
    out = out.transpose(0, 1).reshape(length * samples, embed)
    out = F.linear(out, out_proj_weight, out_proj_bias)
    out = out.reshape(length, samples, out.shape[1])
    if weights is not None:
        weights = weights.reshape(samples, num_heads, length, keys)
        if average_attn_weights:
            weights = weights.mean(1)
    if not batched:
        out = out.squeeze(1)
        weights = None if weights is None else weights.squeeze(0)
    return out, weights
