"""Attention as encoders have it, by a design: products, rotation, the fused operator. Knows no layer."""

from __future__ import annotations

from typing import Any

from votive import nn

from ...tensor import Tensor
from ..attention import AttentionMask, Weights, attend, self_attention
from .design import EncoderDesign


class EncoderAttention(nn.Module):
    """Attention of all positions to all that the mask shows; some have the product behind it inside."""

    def __init__(self, d: EncoderDesign, layer_idx: int) -> None:
        super().__init__()
        self.layer_idx = layer_idx
        self.heads, self.shared, self.head_dim = d.heads, d.shared or d.heads, d.head_dim
        self.dropout, self.turns_values = d.attention_dropout, d.turns_values
        sizes = [count * d.head_dim for count in (self.heads, self.shared, self.shared)]
        self.names = (d.fused,) if d.fused else (d.q, d.k, d.v)
        for name, size in zip(self.names, [sum(sizes)] if d.fused else sizes, strict=True):
            setattr(self, name, nn.Linear(d.width, size, bias=d.qkv_bias))
        self.sizes, self.out_name = sizes, d.o
        if d.o:
            setattr(self, d.o, nn.Linear(sizes[0], d.width, bias=d.out_bias))

    def forward(self, x: Tensor, mask: AttentionMask, weights: Weights = None, places: Any = None) -> Tensor:
        """`places` rotates queries and keys, if there is one."""
        dropout = self.dropout if self.training else 0.0
        plain = places is None and len(self.names) == 3 and self.sizes[0] == self.sizes[1] == x.shape[-1]
        if plain:
            q_proj, k_proj, v_proj = (getattr(self, name) for name in self.names)
            y = self_attention(x, (q_proj, k_proj, v_proj), self.heads, mask, dropout, weights)
            return getattr(self, self.out_name)(y) if self.out_name else y
        q, k, v = (part.unflatten(-1, (-1, self.head_dim)).transpose(1, 2) for part in self.project(x))  # (B, H, T, D)
        if places is not None:
            q, k = places(q), places(k)
            v = places(v) if self.turns_values else v
        y = attend(q, k, v, mask, dropout=dropout, weights=weights).transpose(1, 2).flatten(2)
        return getattr(self, self.out_name)(y) if self.out_name else y

    def project(self, x: Tensor) -> tuple[Tensor, ...]:
        """Queries, keys and values, (batch, positions, heads * features) each."""
        if len(self.names) == 1:
            return tuple(getattr(self, self.names[0])(x).split(self.sizes, -1))
        return tuple(getattr(self, name)(x) for name in self.names)
