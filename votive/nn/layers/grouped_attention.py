"""Attention whose query heads share key and value heads, as language models use it."""

from __future__ import annotations

import math

import votive

from ...core import dtype as dt
from ...core.device import DeviceLike
from ...tensor import Tensor
from .. import functional as F
from ..factory import FactoryKwargs
from ..module import Module
from .kv_cache import KVCache
from .linear import Linear
from .normalization import RMSNorm
from .rope import RotaryEmbedding


def visible(queries: int, keys: int, window: int | None = None, device: DeviceLike = None) -> Tensor:
    """Which keys each query sees, (queries, keys), when the last query stands at the last key."""
    at = votive.arange(keys - queries, keys, device=device).unsqueeze(1)
    key = votive.arange(keys, device=device)
    return key <= at if window is None else (key <= at) & (key > at - window)


class GroupedQueryAttention(Module):
    """Self-attention of (N, T, embed_dim) with fewer key and value heads than query heads.

    `rope` is a layer like RotaryEmbedding that rotates queries and keys, `qk_norm` norms both per
    head before, `window` lets a position see only so many last ones. With a cache, the input
    continues what the cache has seen. Ainslie et al. 2023, arXiv:2305.13245.

    >>> rope = votive.nn.RotaryEmbedding(4)
    >>> attention = votive.nn.GroupedQueryAttention(16, 4, 2, rope=rope, qk_norm=True)
    >>> x, cache = votive.ones(1, 5, 16), votive.nn.DynamicCache()
    >>> attention(x).shape
    votive.Size([1, 5, 16])
    >>> steps = [attention(x[:, i : i + 1], cache=cache) for i in range(5)]
    >>> votive.allclose(votive.cat(steps, 1), attention(x), atol=1e-6)
    True
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        num_kv_heads: int | None = None,
        head_dim: int | None = None,
        bias: bool = False,
        out_bias: bool | None = None,
        qk_norm: bool = False,
        norm_eps: float = 1e-6,
        rope: Module | None = None,
        dropout: float = 0.0,
        is_causal: bool = True,
        window: int | None = None,
        scale: float | None = None,
        device: DeviceLike = None,
        dtype: dt.dtype | None = None,
    ) -> None:
        super().__init__()
        num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        if head_dim is None and embed_dim % num_heads:
            raise ValueError(
                f"GroupedQueryAttention: {num_heads} heads do not divide {embed_dim} features; give head_dim."
            )
        if num_heads % num_kv_heads:
            raise ValueError(f"GroupedQueryAttention: {num_kv_heads} key heads do not divide {num_heads} query heads.")
        made = FactoryKwargs(device=device, dtype=dtype)
        self.embed_dim = embed_dim
        self.num_heads = num_heads
        self.num_kv_heads = num_kv_heads
        self.head_dim = embed_dim // num_heads if head_dim is None else head_dim
        self.dropout = dropout
        self.is_causal = is_causal
        self.window = window
        self.scale = scale
        wide, narrow = num_heads * self.head_dim, num_kv_heads * self.head_dim
        self.q_proj = Linear(embed_dim, wide, bias=bias, **made)
        self.k_proj = Linear(embed_dim, narrow, bias=bias, **made)
        self.v_proj = Linear(embed_dim, narrow, bias=bias, **made)
        self.o_proj = Linear(wide, embed_dim, bias=bias if out_bias is None else out_bias, **made)
        self.q_norm = RMSNorm(self.head_dim, eps=norm_eps, **made) if qk_norm else None
        self.k_norm = RMSNorm(self.head_dim, eps=norm_eps, **made) if qk_norm else None
        self.rope = rope

    def forward(
        self,
        input: Tensor,
        attn_mask: Tensor | None = None,
        *,
        cache: KVCache | None = None,
        layer_idx: int = 0,
        position_ids: Tensor | None = None,
    ) -> Tensor:
        samples, length, _ = input.shape
        # (N, T, heads * D) -> (N, heads, T, D); norm, rotation and cache then read whole rows.
        q, k, v = (
            proj(input).view(samples, length, -1, self.head_dim).transpose(1, 2).contiguous()
            for proj in (self.q_proj, self.k_proj, self.v_proj)
        )
        if self.q_norm is not None and self.k_norm is not None:
            q, k = self.q_norm(q), self.k_norm(k)
        if self.rope is not None:
            offset = 0 if cache is None else cache.get_seq_length(layer_idx)
            q, k = (self.rope(x, offset=offset, position_ids=position_ids) for x in (q, k))
            if cache is not None and layer_idx == 0 and isinstance(self.rope, RotaryEmbedding):
                self.rope.check_cache(cache)
        if cache is not None:
            k, v = cache.update(k, v, layer_idx)
        mask, causal = self._mask(attn_mask, length, k.shape[2], input)
        out = F.scaled_dot_product_attention(
            q,
            k,
            v,
            mask,
            self.dropout if self.training else 0.0,
            causal,
            scale=self.scale,
            enable_gqa=self.num_kv_heads != self.num_heads,
        )
        return self.o_proj(out.transpose(1, 2).reshape(samples, length, -1))

    def _mask(self, given: Tensor | None, queries: int, keys: int, input: Tensor) -> tuple[Tensor | None, bool]:
        """The mask to pass, and whether the plain causal rule says all that is needed."""
        if not self.is_causal:
            return given, False
        window = None if self.window is None or keys <= self.window else self.window
        if window is None and queries == 1:
            return given, False
        if window is None and queries == keys and given is None:
            return None, True
        seen = visible(queries, keys, window, input.device)
        if given is None:
            return seen, False
        if given.dtype == dt.bool_:
            return given & seen, False
        return votive.where(seen, given, -math.inf), False

    def extra_repr(self) -> str:
        text = f"{self.embed_dim}, num_heads={self.num_heads}, num_kv_heads={self.num_kv_heads}"
        text += f", head_dim={self.head_dim}"
        if self.dropout:
            text += f", dropout={self.dropout}"
        if not self.is_causal:
            text += ", is_causal=False"
        return text if self.window is None else f"{text}, window={self.window}"
