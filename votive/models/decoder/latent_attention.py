"""Attention whose keys and values are made of a vector of few features, which is all that a cache keeps.

DeepSeek-AI 2024, arXiv:2405.04434, section 2.1. Knows no layer.
"""

from __future__ import annotations

from dataclasses import dataclass

import votive
from votive import nn
from votive.nn.points import point, wanted, where

from ...tensor import Tensor
from ..attention import AttentionMask, Weights
from ..opened import open_attend, open_heads, open_project
from .attention import DecoderAttention, Rotate
from .design import Design


@dataclass(frozen=True, kw_only=True)
class Latent:
    """The sizes of such attention; a design has them in `extra["latent"]`.

    >>> votive.models.DeepseekV2Config().design.extra["latent"].kv_rank
    512
    """

    q_rank: int | None  # of the vector that queries are made of; None where they are made of the stream
    kv_rank: int
    fixed: int  # features of a head that are not rotated
    turned: int  # those that are, which all heads' keys share
    value: int
    bias: bool = False
    eps: float = 1e-6


class LatentAttention(DecoderAttention):
    """Multi-head latent attention: `k, v = up(norm(down(x)))`, and a rotated part of keys that heads share."""

    latent = True

    def add_projections(self, d: Design) -> None:
        own: Latent = d.extra["latent"]
        self.own = own
        if own.q_rank is None:
            self.q_proj = nn.Linear(d.width, d.heads * d.head_dim, bias=False)
        else:
            self.q_a_proj = nn.Linear(d.width, own.q_rank, bias=own.bias)
            self.q_a_layernorm = nn.RMSNorm(own.q_rank, eps=own.eps)
            self.q_b_proj = nn.Linear(own.q_rank, d.heads * d.head_dim, bias=False)
        self.kv_a_proj_with_mqa = nn.Linear(d.width, own.kv_rank + own.turned, bias=own.bias)
        self.kv_a_layernorm = nn.RMSNorm(own.kv_rank, eps=own.eps)
        self.kv_b_proj = nn.Linear(own.kv_rank, d.heads * (own.fixed + own.value), bias=False)
        setattr(self, d.o, nn.Linear(d.heads * own.value, d.width, bias=own.bias))

    def queries(self, x: Tensor) -> Tensor:
        """Queries (batch, positions, heads * features) before rotation."""
        if self.own.q_rank is None:
            return self.q_proj(x)
        return self.q_b_proj(self.q_a_layernorm(self.q_a_proj(x)))

    def kept(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """What a cache keeps, before rotation: the vector of keys and values, and the keys' part that turns."""
        latent, turned = self.kv_a_proj_with_mqa(x).split([self.own.kv_rank, self.own.turned], -1)
        return self.kv_a_layernorm(latent), turned

    def made(self, latent: Tensor, turned: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values (..., positions, heads, features) of what a cache keeps (..., positions, features)."""
        own, heads = self.own, self.counts[0]
        both = self.kv_b_proj(latent).unflatten(-1, (heads, own.fixed + own.value))
        fixed, values = both.split([own.fixed, own.value], -1)
        shared = turned.unsqueeze(-2).expand(*turned.shape[:-1], heads, own.turned)
        return votive.cat([fixed, shared], -1), values

    def project(self, x: Tensor) -> tuple[Tensor, ...]:
        """Queries, keys and values, (batch, positions, heads * features) each, before rotation."""
        k, v = self.made(*self.kept(x))
        return self.queries(x), k.flatten(-2), v.flatten(-2)

    def rotated(self, part: Tensor, rope: Rotate) -> Tensor:
        """Queries or keys (batch, heads, positions, features) whose last features are rotated."""
        fixed, turned = part.split([self.own.fixed, self.own.turned], -1)
        return votive.cat([fixed, rope(turned)], -1)

    def forward(
        self, x: Tensor, rope: Rotate, mask: AttentionMask, cache: nn.KVCache | None = None, weights: Weights = None
    ) -> Tensor:
        at = where()
        if at is not None:
            return self.opened(at, x, rope, mask, cache, weights)
        q = self.rotated(self.queries(x).unflatten(-1, (-1, self.head_dim)).transpose(1, 2), rope)
        k, v = self.seen(x, rope, cache)
        y = self.look(q, k, v, mask, weights)
        return self.product(y.transpose(1, 2).flatten(2))

    def seen(self, x: Tensor, rope: Rotate, cache: nn.KVCache | None) -> tuple[Tensor, Tensor]:
        """Keys and values (batch, heads, positions, features) of all positions."""
        latent, turned = (part.unsqueeze(1) for part in self.kept(x))  # (B, 1, T, R)
        turned = rope(turned)
        if cache is not None:
            latent, turned = cache.update(latent, turned, self.layer_idx)
        k, v = self.made(latent.squeeze(1).to(x.dtype), turned.squeeze(1).to(x.dtype))
        return k.transpose(1, 2), v.transpose(1, 2)

    def opened(
        self, at: str, x: Tensor, rope: Rotate, mask: AttentionMask, cache: nn.KVCache | None, weights: Weights
    ) -> Tensor:
        sizes = self.head_dim, self.head_dim, self.own.value
        q, k, v = open_project(self.project, x, sizes)
        q, k, v = point(f"{at}.attn.q", q), point(f"{at}.attn.k", k), point(f"{at}.attn.v", v)
        q, k = (self.rotated(part.transpose(1, 2), rope).transpose(1, 2) for part in (q, k))
        q, k = point(f"{at}.attn.rot_q", q), point(f"{at}.attn.rot_k", k)
        q, k, v = (part.transpose(1, 2) for part in (q, k, v))
        if cache is not None:
            k, v = self.unedited(at, x, rope, cache, k, v)
        if wanted(f"{at}.attn.scores", f"{at}.attn.pattern"):
            dropout = self.dropout if self.training else 0.0
            y = open_attend(at, q, k, v, mask, scale=self.scale, dropout=dropout, weights=weights)
        else:
            y = self.look(q, k, v, mask, weights)
        return open_heads(at, y.transpose(1, 2), self.product)

    def unedited(
        self, at: str, x: Tensor, rope: Rotate, cache: nn.KVCache, k: Tensor, v: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Keys and values of all positions, where those of the new ones are as the model makes them."""
        plain_k, plain_v = (part.transpose(1, 2) for part in self.made(*self.kept(x)))
        if not (votive.equal(self.rotated(plain_k, rope), k) and votive.equal(plain_v, v)):
            raise ValueError(
                f"{at}: keys or values are edited while a cache is filled, which keeps what they are made of, and not "
                "them; run the whole text without a cache (use_cache=False)."
            )
        return self.seen(x, rope, cache)
