"""Attention of a decoder to its own text or to what an encoder gave. Subclasses hold the products."""

from __future__ import annotations

from typing import ClassVar

from votive import nn

from ..tensor import Tensor
from .attention import AttentionMask, Weights, attend
from .cross_cache import EncoderDecoderCache, Pair


def split_heads(x: Tensor, heads: int) -> Tensor:
    """(batch, positions, features) as (batch, heads, positions, features of a head)."""
    return x.view(*x.shape[:2], heads, x.shape[2] // heads).transpose(1, 2)


class CrossAttention(nn.Module):
    """Attention that looks at itself and what came before, or at `other`, an encoder's states."""

    # What files call the products: of queries, keys, values, and behind attention.
    products: ClassVar[tuple[str, str, str, str]] = ("q_proj", "k_proj", "v_proj", "out_proj")
    scale: ClassVar[float | None] = None  # 1 / sqrt(width of a head)

    def __init__(self, heads: int, layer_idx: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.layer_idx, self.dropout = heads, layer_idx, dropout

    def pair(self, x: Tensor) -> Pair:
        """Keys and values of what is looked at."""
        k, v = (getattr(self, name)(x) for name in self.products[1:3])
        return split_heads(k, self.heads), split_heads(v, self.heads)

    def forward(
        self,
        x: Tensor,
        mask: AttentionMask,
        other: Tensor | None = None,
        cache: EncoderDecoderCache | None = None,
        weights: Weights = None,
    ) -> Tensor:
        return getattr(self, self.products[3])(self.attended(x, mask, other, cache, weights))

    def attended(
        self,
        x: Tensor,
        mask: AttentionMask,
        other: Tensor | None = None,
        cache: EncoderDecoderCache | None = None,
        weights: Weights = None,
    ) -> Tensor:
        """What queries see, (batch, positions, features), before the last product."""
        q = split_heads(getattr(self, self.products[0])(x), self.heads)
        if cache is None:
            k, v = self.pair(x if other is None else other)
        elif other is None:
            k, v = cache.update(*self.pair(x), self.layer_idx)
        else:
            k, v = cache.cross(self.layer_idx, lambda: self.pair(other))
        return self.look(q, k, v, mask, weights).transpose(1, 2).flatten(2)

    def look(self, q: Tensor, k: Tensor, v: Tensor, mask: AttentionMask, weights: Weights) -> Tensor:
        """What the queries see; how much of each key goes into `weights`, if that is asked for."""
        dropout = self.dropout if self.training else 0.0
        return attend(q, k, v, mask, dropout=dropout, scale=self.scale, weights=weights)
