"""What attention shares: who sees whom, and weights on request. Knows no parameters."""

from __future__ import annotations

import math
from typing import NamedTuple

import votive
from votive import nn
from votive.core import dtype as dt
from votive.core.mode import only_shown
from votive.nn import SlidingWindowCache
from votive.nn import functional as F
from votive.nn.layers.grouped_attention import visible
from votive.ops.registry import F as ops

from ..surface.block_attention import as_numbers
from ..tensor import Tensor
from .cross_cache import Cache

Weights = list[Tensor] | None  # where layers put their attention weights, (batch, heads, queries, keys)


class AttentionMask(NamedTuple):
    """Which keys the queries see: a mask for the attention function, or its plain causal rule.

    With `last`, only so many last keys are looked at, and the mask is for these. `padding` (batch, queries) is what
    mixers without keys leave out: False at padding.

    >>> votive.models.AttentionMask(is_causal=True)
    AttentionMask(attn_mask=None, is_causal=True, last=None, padding=None)
    """

    attn_mask: Tensor | None = None
    is_causal: bool = False
    last: int | None = None
    padding: Tensor | None = None

    def biased(self, bias: Tensor) -> AttentionMask:
        """The same, with a bias (batch, heads, queries, keys) added to the scores."""
        mask = self.attn_mask
        if self.is_causal:
            mask = _causal(bias)
        if mask is not None:
            bias = bias.masked_fill(~mask, -math.inf) if mask.dtype == dt.bool_ else bias + mask
        return AttentionMask(bias, last=self.last, padding=self.padding)


def _causal(scores: Tensor) -> Tensor:
    return votive.ones(scores.shape[-2:], dtype=dt.bool_, device=scores.device).tril()


def causal_mask(
    attention_mask: Tensor | None,
    queries: int,
    keys: int,
    *,
    window: int | None = None,
    chunk: int | None = None,
    cache: Cache | None = None,
    device: votive.device | str,
) -> AttentionMask:
    """The last `queries` of `keys` positions see themselves and those before.

    `attention_mask` is (batch, keys) with 0 at padding, or (batch, 1, queries, keys) and then says
    all: True or 0.0 where a query sees a key. With `window`, only so many last positions are seen,
    and no more than a `cache` that forgets still has. With `chunk`, only positions of the same
    chunk of so many are, counted from the first that is no padding.

    >>> from votive.models.attention import causal_mask
    >>> causal_mask(None, 3, 3, device="cpu")
    AttentionMask(attn_mask=None, is_causal=True, last=None, padding=None)
    >>> causal_mask(votive.tensor([[0, 1]]), 1, 2, device="cpu").attn_mask
    tensor([[[[False,  True]]]])
    """
    if attention_mask is not None and attention_mask.dim() == 4:
        return AttentionMask(attention_mask)
    if attention_mask is not None:
        if attention_mask.dim() != 2 or attention_mask.shape[1] != keys:
            raise ValueError(
                f"attention_mask must be (batch, {keys}), one value for each position so far and each new one; "
                f"got shape {tuple(attention_mask.shape)}."
            )
    if chunk is not None and keys > chunk:
        return _chunked(attention_mask, queries, keys, chunk, cache, device)
    padding = None if attention_mask is None else attention_mask[:, -queries:].bool()
    # Windows that differ by layer are the layers' own.
    if isinstance(cache, SlidingWindowCache) and isinstance(cache.window, int):
        window = cache.window if window is None else min(window, cache.window)
    last = None
    if window is not None and keys - queries >= window:
        # Keys before the first query's window are nobody's: the work does not grow with the text.
        keys = last = window - 1 + queries
    if attention_mask is not None:
        attention_mask = (attention_mask if last is None else attention_mask[:, -keys:]).bool()
        if bool(attention_mask.all()):
            attention_mask = None
    if queries == 1:  # the newest sees all that are left
        seen = None if attention_mask is None else attention_mask[:, None, None, :]
        return AttentionMask(seen, last=last, padding=padding)
    window = None if window is None or keys <= window else window
    if attention_mask is None and window is None and queries == keys:
        return AttentionMask(None, True, padding=padding)
    seen = visible(queries, keys, window, device)  # (queries, keys)
    if attention_mask is not None:
        seen = seen & attention_mask[:, None, None, :]  # (batch, 1, queries, keys)
    return AttentionMask(seen, last=last, padding=padding)


def _chunked(
    attention_mask: Tensor | None, queries: int, keys: int, chunk: int, cache: Cache | None, device: votive.device | str
) -> AttentionMask:
    if isinstance(cache, SlidingWindowCache):
        raise ValueError("attention in chunks needs all keys of its chunk; use a DynamicCache or a StaticCache.")
    at = votive.arange(keys, device=device)
    seen = visible(queries, keys, None, device)
    if attention_mask is None:
        return AttentionMask(seen & (at[-queries:, None] // chunk == at // chunk))
    real = attention_mask.bool()
    at = at - (real.cumsum(-1) == 0).sum(-1, keepdim=True)  # (batch, keys)
    same = votive.div(at[:, -queries:, None], chunk, rounding_mode="floor") == votive.div(
        at[:, None], chunk, rounding_mode="floor"
    )
    return AttentionMask((seen & same & real[:, None])[:, None], padding=real[:, -queries:])


def padding_mask(attention_mask: Tensor | None) -> AttentionMask:
    """Every position sees all that are not padding."""
    if attention_mask is None or attention_mask.dim() == 4:
        return AttentionMask(attention_mask)
    if attention_mask.dim() != 2:
        raise ValueError(
            "attention_mask must be (batch, positions) or (batch, 1, queries, keys), got shape "
            f"{tuple(attention_mask.shape)}."
        )
    mask = attention_mask.bool()
    return AttentionMask() if bool(mask.all()) else AttentionMask(mask[:, None, None, :])


def _of_last(mask: Tensor | None, k: Tensor) -> Tensor | None:
    """The mask of the keys that are there: a cache with a window gives the last ones only."""
    if mask is None or mask.shape[-1] <= k.shape[2]:
        return mask
    return mask[..., -k.shape[2] :]


def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: AttentionMask,
    *,
    dropout: float = 0.0,
    scale: float | None = None,
    weights: Weights = None,
) -> Tensor:
    """Attention of (batch, heads, positions, features); key heads may be fewer than query heads.

    How much of each key was used is appended to `weights`, if that is given.

    >>> q, k = votive.ones(1, 4, 2, 8), votive.ones(1, 2, 3, 8)
    >>> votive.models.attend(q, k, k, votive.models.AttentionMask()).shape
    votive.Size([1, 4, 2, 8])
    """
    keys, values, last = k, v, mask.last
    if last is not None and k.shape[2] > last:
        keys, values = k[:, :, -last:], v[:, :, -last:]
    y = F.scaled_dot_product_attention(
        q,
        keys,
        values,
        _of_last(mask.attn_mask, keys),
        dropout,
        mask.is_causal,
        scale=scale,
        enable_gqa=k.shape[1] != q.shape[1],
    )
    if weights is not None:
        weights.append(shown_weights(q, k, mask, scale=scale))
    return y


def self_attention(
    x: Tensor,
    projections: tuple[nn.Module, nn.Module, nn.Module],
    heads: int,
    mask: AttentionMask,
    dropout: float,
    weights: Weights,
) -> Tensor:
    """Attention of (batch, positions, features) to itself, by products for queries, keys, values."""
    B, T, C = x.shape
    q, k, v = (part(x).view(B, T, heads, C // heads).transpose(1, 2) for part in projections)  # (B, H, T, D)
    return attend(q, k, v, mask, dropout=dropout, weights=weights).transpose(1, 2).reshape(x.shape)


def attention_weights(
    q: Tensor,
    k: Tensor,
    mask: AttentionMask,
    *,
    scale: float | None = None,
    cap: float | None = None,
    sinks: Tensor | None = None,
) -> Tensor:
    """The weights (batch, heads, queries, keys) that `attend` uses, made beside it.

    The fused kernel never holds them, so asking for them leaves its result as it is. `cap` bends
    scores, so that none is larger: `cap * tanh(score / cap)`. `sinks` (heads,) are scores of
    nothing, which take their share of the weights.

    >>> q = votive.ones(1, 1, 2, 4)
    >>> votive.models.attention_weights(q, q, votive.models.AttentionMask(is_causal=True))[0, 0]
    tensor([[1.0000, 0.0000],
            [0.5000, 0.5000]])
    """
    unseen = 0 if mask.last is None else max(k.shape[2] - mask.last, 0)
    if unseen:
        rest = attention_weights(q, k[:, :, unseen:], mask, scale=scale, cap=cap, sinks=sinks)
        return F.pad(rest, (unseen, 0))
    k = as_numbers(k, q.dtype)
    if k.shape[1] != q.shape[1]:
        k = k.repeat_interleave(q.shape[1] // k.shape[1], 1)
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    scores = (q @ k.transpose(-2, -1)).float() * scale
    if cap is not None:
        scores = cap * votive.tanh(scores / cap)
    seen = _causal(scores) if mask.is_causal else _of_last(mask.attn_mask, k)
    if seen is not None:
        scores = scores.masked_fill(~seen, -math.inf) if seen.dtype == dt.bool_ else scores + seen
    return softmax_with_sinks(scores, sinks).to(q.dtype)


def softmax_with_sinks(scores: Tensor, sinks: Tensor | None = None) -> Tensor:
    """The weights of scores (batch, heads, queries, keys), of which a score more of each head may take a share.

    >>> from votive.models.attention import softmax_with_sinks
    >>> softmax_with_sinks(votive.zeros(1, 1, 1, 1), votive.zeros(1))
    tensor([[[[0.5000]]]])
    """
    if sinks is not None:
        sink = sinks.to(scores.dtype).view(1, -1, 1, 1).expand(*scores.shape[:3], 1)
        return F.softmax(votive.cat([scores, sink], -1), -1)[..., :-1]
    # A query that sees nothing has no weights, rather than undefined ones.
    blind = (scores == -math.inf).all(-1, keepdim=True)
    return F.softmax(scores.masked_fill(blind, 0.0), -1).masked_fill(blind, 0.0)


def shown_weights(q: Tensor, k: Tensor, mask: AttentionMask, *, scale: float | None = None) -> Tensor:
    """`attention_weights` for a report: the model itself computes with the fused operator.

    >>> q = votive.ones(1, 1, 2, 4)
    >>> votive.models.attention.shown_weights(q, q, votive.models.AttentionMask())[0, 0, 0]
    tensor([0.5000, 0.5000])
    """
    with only_shown("attention"):
        return attention_weights(q, k, mask, scale=scale)


def next_token_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross entropy of each position against the label after it; -100 is left out."""
    # Labels move instead of logits: these are the largest tensor of a training step.
    last = labels.new_full((labels.shape[0], 1), -100)
    after = votive.cat([labels[:, 1:], last], 1)
    return ops._wide_cross_entropy(logits.flatten(0, 1), after.flatten())
