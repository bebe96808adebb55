"""What decoder attention shares: who sees whom, and weights on request. Knows no parameters."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import votive
from votive.core.mode import only_shown
from votive.nn import SlidingWindowCache
from votive.nn import functional as F
from votive.nn.layers.grouped_attention import visible
from votive.ops.registry import F as ops


class Sight(NamedTuple):
    """Which keys the queries see: a mask for the attention function, or its plain causal rule.

    With `last`, only so many last keys are looked at, and the mask is for these.

    >>> votive.models.Sight(is_causal=True)
    Sight(mask=None, is_causal=True, last=None)
    """

    mask: Any = None
    is_causal: bool = False
    last: int | None = None


def causal_sight(
    attention_mask: Any, queries: int, keys: int, *, window: int | None = None, cache: Any = None, like: Any
) -> Sight:
    """Sight of the last `queries` of `keys` positions, each on itself and those before.

    `attention_mask` is (batch, keys) with 0 at padding, or (batch, 1, queries, keys) and then says
    all: True or 0.0 where a query sees a key. With `window`, only so many last positions are seen,
    and no more than a `cache` that forgets still has.

    >>> from votive.models.attention import causal_sight
    >>> causal_sight(None, 3, 3, like=votive.ones(1))
    Sight(mask=None, is_causal=True, last=None)
    >>> causal_sight(votive.tensor([[0, 1]]), 1, 2, like=votive.ones(1)).mask
    tensor([[[[False,  True]]]])
    """
    if attention_mask is not None and attention_mask.dim() == 4:
        return Sight(attention_mask)
    if attention_mask is not None:
        if attention_mask.dim() != 2 or attention_mask.shape[1] != keys:
            raise ValueError(
                f"attention_mask must be (batch, {keys}), a value for each position so far and "
                f"each new one, got {tuple(attention_mask.shape)}."
            )
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
        return Sight(None if attention_mask is None else attention_mask[:, None, None, :], last=last)
    window = None if window is None or keys <= window else window
    if attention_mask is None and window is None and queries == keys:
        return Sight(None, True)
    seen = visible(queries, keys, window, like.device)  # (queries, keys)
    if attention_mask is None:
        return Sight(seen, last=last)
    return Sight(seen & attention_mask[:, None, None, :], last=last)  # (batch, 1, queries, keys)


def full_sight(attention_mask: Any) -> Sight:
    """Sight of every position on all that are not padding."""
    if attention_mask is None or attention_mask.dim() == 4:
        return Sight(attention_mask)
    if attention_mask.dim() != 2:
        raise ValueError(
            "attention_mask must be (batch, positions) or (batch, 1, queries, keys), got "
            f"{tuple(attention_mask.shape)}."
        )
    mask = attention_mask.bool()
    return Sight() if bool(mask.all()) else Sight(mask[:, None, None, :])


def _of_last(mask: Any, k: Any) -> Any:
    """The mask of the keys that are there: a cache with a window gives the last ones only."""
    if mask is None or mask.shape[-1] <= k.shape[2]:
        return mask
    return mask[..., -k.shape[2] :]


def _unseen(sight: Sight, k: Any) -> int:
    """How many of the first keys nobody looks at."""
    return 0 if sight.last is None else max(k.shape[2] - sight.last, 0)


def attend(q: Any, k: Any, v: Any, sight: Sight, *, dropout: float = 0.0, scale: float | None = None) -> Any:
    """Attention of (batch, heads, positions, features); key heads may be fewer than query heads.

    >>> q, k = votive.ones(1, 4, 2, 8), votive.ones(1, 2, 3, 8)
    >>> votive.models.attend(q, k, k, votive.models.Sight()).shape
    votive.Size([1, 4, 2, 8])
    """
    if _unseen(sight, k):
        k, v = k[:, :, -sight.last :], v[:, :, -sight.last :]  # type: ignore[operator]
    return F.scaled_dot_product_attention(
        q, k, v, _of_last(sight.mask, k), dropout, sight.is_causal, scale=scale, enable_gqa=k.shape[1] != q.shape[1]
    )


def attention_weights(q: Any, k: Any, sight: Sight, *, scale: float | None = None, cap: float | None = None) -> Any:
    """The weights (batch, heads, queries, keys) that `attend` uses, made beside it.

    The fused kernel never holds them, so asking for them leaves its result as it is. `cap` bends
    scores, so that none is larger: `cap * tanh(score / cap)`.

    >>> q = votive.ones(1, 1, 2, 4)
    >>> votive.models.attention_weights(q, q, votive.models.Sight(is_causal=True))[0, 0]
    tensor([[1.0000, 0.0000],
            [0.5000, 0.5000]])
    """
    unseen = _unseen(sight, k)
    if unseen:
        rest = attention_weights(q, k[:, :, unseen:], sight, scale=scale, cap=cap)
        return F.pad(rest, (unseen, 0))
    if k.shape[1] != q.shape[1]:
        k = k.repeat_interleave(q.shape[1] // k.shape[1], 1)
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    scores = (q @ k.transpose(-2, -1)).float() * scale
    if cap is not None:
        scores = cap * votive.tanh(scores / cap)
    mask = _of_last(sight.mask, k)
    if sight.is_causal:
        mask = votive.ones(scores.shape[-2:], dtype=votive.bool, device=q.device).tril()
    if mask is not None and mask.dtype == votive.bool:
        scores = scores.masked_fill(~mask, -math.inf)
        # A query that sees nothing has no weights, rather than undefined ones.
        return F.softmax(scores, -1).masked_fill(~mask, 0.0).to(q.dtype)
    if mask is not None:
        scores = scores + mask
        blind = (scores == -math.inf).all(-1, keepdim=True)
        return F.softmax(scores.masked_fill(blind, 0.0), -1).masked_fill(blind, 0.0).to(q.dtype)
    return F.softmax(scores, -1).to(q.dtype)


def shown_weights(q: Any, k: Any, sight: Sight, *, scale: float | None = None) -> Any:
    """`attention_weights` for a report: the model itself computes with the fused operator.

    >>> q = votive.ones(1, 1, 2, 4)
    >>> votive.models.attention.shown_weights(q, q, votive.models.Sight())[0, 0, 0]
    tensor([0.5000, 0.5000])
    """
    with only_shown("attention"):
        return attention_weights(q, k, sight, scale=scale)


def next_token_loss(logits: Any, labels: Any) -> Any:
    """Cross entropy of each position against the label after it; -100 is left out."""
    # Labels move instead of logits: these are the largest tensor of a training step.
    last = labels.new_full((labels.shape[0], 1), -100)
    after = votive.cat([labels[:, 1:], last], 1)
    return ops._wide_cross_entropy(logits.flatten(0, 1), after.flatten())
