"""Attention as decoders have it, by a design: products, norms, rotation, cache, the fused operator. Knows no layer."""

from __future__ import annotations

from collections.abc import Callable

import votive
from votive import nn
from votive.nn import functional as F
from votive.nn.points import point, wanted, where

from ...surface.block_attention import as_numbers
from ...tensor import Tensor
from ..attention import AttentionMask, Weights, attend, attention_weights
from ..opened import open_attend, open_heads, open_project
from .design import Design
from .norms import query_norm
from .products import Conv1D

Rotate = Callable[[Tensor], Tensor]  # rotates queries or keys, (batch, heads, positions, features)


class DecoderAttention(nn.Module):
    """Attention; groups of query heads may share a key and a value head."""

    def __init__(self, d: Design, layer_idx: int) -> None:
        super().__init__()
        self.layer_idx, self.counts, self.head_dim = layer_idx, (d.heads, d.shared, d.shared), d.head_dim
        self.dropout, self.cap, self.clip = d.attention_dropout, d.cap, d.clip
        self.clip_last = d.clip_last
        self.window, self.chunk, self.scale = d.window(layer_idx), d.chunk(layer_idx), d.scale
        if d.scale_by_layer:
            self.scale = (d.head_dim**-0.5 if d.scale is None else d.scale) / (layer_idx + 1)
        self.rope = d.rope(layer_idx)
        self.names = (d.q, d.k, d.v) if not d.fused else (d.fused,)
        self.out_name, self.layout = d.o, d.fused_layout
        self.sizes = [n * d.head_dim for n in self.counts]
        self.add_projections(d)
        self.qk_norm = d.qk_norm if d.norms_heads(layer_idx) else ""
        self.qk_names, self.norm_last, self.tempered = d.qk_names, d.qk_norm_last, d.tempers(layer_idx)
        if self.qk_norm:
            setattr(self, d.qk_names[0], query_norm(d, d.heads))
            setattr(self, d.qk_names[1], query_norm(d, d.shared))
        if d.sinks:
            self.sinks = nn.Parameter(votive.zeros(d.heads))
        self.has_sinks, self.sinks_shown = d.sinks, d.sinks_shown

    def add_projections(self, d: Design) -> None:
        """The products before and behind attention."""
        if d.transposed:
            setattr(self, d.fused, Conv1D(sum(self.sizes), d.width))
            # Each layer adds to the stream twice: smaller steps keep its size.
            setattr(self, d.o, Conv1D(d.width, self.sizes[0], (2 * d.layers) ** -0.5))
            return
        for name, size in zip(self.names, [sum(self.sizes)] if d.fused else self.sizes, strict=True):
            setattr(self, name, nn.Linear(d.width, size, bias=d.qkv_bias))
        setattr(self, d.o, nn.Linear(self.sizes[0], d.width, bias=d.out_bias))

    @property
    def product(self) -> nn.Module:
        """What turns the heads' results into what is added to the stream."""
        return getattr(self, self.out_name)

    def project(self, x: Tensor) -> tuple[Tensor, ...]:
        """Queries, keys and values, (batch, positions, heads * features) each."""
        if len(self.names) == 3:
            parts = tuple(getattr(self, name)(x) for name in self.names)
        else:
            parts = self.apart(getattr(self, self.names[0])(x))
        if not self.clip_last:
            parts = self.clipped(parts)
        if self.qk_norm == "whole":
            q_norm, k_norm = self.norms()
            parts = (q_norm(parts[0]), k_norm(parts[1]), parts[2])
        return self.clipped(parts) if self.clip_last else parts

    def clipped(self, parts: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """Queries, keys and values within a limit."""
        return parts if self.clip is None else tuple(part.clamp(-self.clip, self.clip) for part in parts)

    def apart(self, qkv: Tensor) -> tuple[Tensor, ...]:
        """Queries, keys and values of the one product that gives all."""
        if self.layout == "split":
            return tuple(qkv.split(self.sizes, -1))
        heads, shared, _ = self.counts
        if self.layout == "quarters":
            # As of four devices that each computed a quarter of the heads.
            q, v, k = (part.flatten(-2) for part in qkv.unflatten(-1, (4, -1)).chunk(3, -1))
            return q, k, v
        groups = qkv.unflatten(-1, (shared, heads // shared + 2, self.head_dim))
        parts = groups.split([heads // shared, 1, 1], -2)
        return tuple(part.flatten(-3) for part in parts)

    def norms(self) -> tuple[nn.Module, nn.Module]:
        """Those of queries and of keys."""
        return getattr(self, self.qk_names[0]), getattr(self, self.qk_names[1])

    def normed(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """Queries and keys (batch, positions, heads, features), normed by head if the design has it so."""
        if not self.qk_norm or self.qk_norm == "whole":
            return q, k
        q_norm, k_norm = self.norms()
        return q_norm(q), k_norm(k)

    def turned(self, q: Tensor, k: Tensor, rope: Rotate) -> tuple[Tensor, Tensor]:
        """Queries and keys (batch, positions, heads, features) as scores take them, heads first."""
        if not self.norm_last:
            q, k = self.normed(q, k)
        q, k = rope(q.transpose(1, 2)), rope(k.transpose(1, 2))  # (B, H, T, D), (B, KV, T, D)
        if self.norm_last:
            q, k = (part.transpose(1, 2) for part in self.normed(q.transpose(1, 2), k.transpose(1, 2)))
        return self.grown(q, rope), k

    def grown(self, q: Tensor, rope: Rotate) -> Tensor:
        """Queries (batch, heads, positions, features), larger far into the text if the design has it so."""
        return q * rope.growth.to(q.dtype) if self.tempered else q  # type: ignore[attr-defined]

    def forward(
        self, x: Tensor, rope: Rotate, mask: AttentionMask, cache: nn.KVCache | None = None, weights: Weights = None
    ) -> Tensor:
        at = where()
        if at is not None:
            return self.opened(at, x, rope, mask, cache, weights)
        B, T, _ = x.shape
        q, k, v = (part.view(B, T, -1, self.head_dim) for part in self.project(x))
        v = v.transpose(1, 2)  # (B, KV, T, D)
        q, k = self.turned(q, k, rope)
        if cache is not None:
            k, v = cache.update(k, v, self.layer_idx)
        y = self.look(q, k, v, mask, weights)
        return self.product(y.transpose(1, 2).reshape(B, T, -1))

    def opened(
        self, at: str, x: Tensor, rope: Rotate, mask: AttentionMask, cache: nn.KVCache | None, weights: Weights
    ) -> Tensor:
        """`forward`, with every value between the pieces shown."""
        q, k, v = open_project(self.project, x, self.head_dim)
        if not self.norm_last:
            q, k = self.normed(q, k)
        q, k, v = point(f"{at}.attn.q", q), point(f"{at}.attn.k", k), point(f"{at}.attn.v", v).transpose(1, 2)
        q, k = (rope(part.transpose(1, 2)).transpose(1, 2) for part in (q, k))
        if self.norm_last:
            q, k = self.normed(q, k)
        q = self.grown(q.transpose(1, 2), rope).transpose(1, 2)
        if self.rope is not None or self.norm_last or self.tempered:
            q, k = point(f"{at}.attn.rot_q", q), point(f"{at}.attn.rot_k", k)
        q, k = q.transpose(1, 2), k.transpose(1, 2)
        if cache is not None:
            k, v = cache.update(k, v, self.layer_idx)
        if wanted(f"{at}.attn.scores", f"{at}.attn.pattern"):
            y = open_attend(
                at,
                q,
                k,
                v,
                mask,
                scale=self.scale,
                cap=self.cap,
                dropout=self.dropout if self.training else 0.0,
                weights=weights,
                sinks=self.sinks if self.has_sinks else None,
            )
            if weights is not None:
                weights[-1] = self.shown(weights[-1])
        else:
            y = self.look(q, k, v, mask, weights)
        return open_heads(at, y.transpose(1, 2), self.product)

    def shown(self, seen: Tensor) -> Tensor:
        """Attention weights as they are given: of the keys alone, where sinks are not shown."""
        return seen if self.sinks_shown else seen / seen.sum(-1, keepdim=True).clamp(min=1e-30)

    def look(self, q: Tensor, k: Tensor, v: Tensor, mask: AttentionMask, weights: Weights) -> Tensor:
        """What the queries see; how much of each key goes into `weights`, if that is asked for."""
        dropout = self.dropout if self.training else 0.0
        if self.cap is None and not self.has_sinks:
            return attend(q, k, v, mask, dropout=dropout, scale=self.scale, weights=weights)
        sinks = self.sinks if self.has_sinks else None
        seen = attention_weights(q, k, mask, scale=self.scale, cap=self.cap, sinks=sinks)  # (B, H, T, K)
        v = as_numbers(v, q.dtype).repeat_interleave(q.shape[1] // v.shape[1], 1)
        if weights is not None:
            weights.append(self.shown(seen))
        return F.dropout(seen, dropout, dropout > 0) @ v
