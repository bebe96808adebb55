"""Attention of pixels to each other and to a text, and the transformer block that is made of it.

The scores are added up in float32 whatever the type of the numbers, so `upcast_attention` asks for nothing more.
"""

from __future__ import annotations

import votive
from votive import nn
from votive.nn import functional as F

from ...tensor import Tensor
from .embeddings import activation


class Attention(nn.Module):
    """Attention of (batch, positions, features), or of a picture (batch, channels, height, width), to itself or others.

    `older` marks the blocks whose weights had other names in the first files.
    """

    def __init__(
        self,
        query_dim: int,
        heads: int,
        dim_head: int,
        *,
        cross_attention_dim: int | None = None,
        bias: bool = False,
        out_bias: bool = True,
        dropout: float = 0.0,
        norm_num_groups: int | None = None,
        eps: float = 1e-5,
        residual: bool = False,
        rescale_output_factor: float = 1.0,
        older: bool = False,
    ) -> None:
        super().__init__()
        inner, keys = heads * dim_head, cross_attention_dim or query_dim
        self.heads, self.residual, self.rescale, self.older = heads, residual, rescale_output_factor, older
        self.group_norm = None if norm_num_groups is None else nn.GroupNorm(norm_num_groups, query_dim, eps=eps)
        self.to_q = nn.Linear(query_dim, inner, bias=bias)
        self.to_k, self.to_v = nn.Linear(keys, inner, bias=bias), nn.Linear(keys, inner, bias=bias)
        self.to_out = nn.ModuleList([nn.Linear(inner, query_dim, bias=out_bias), nn.Dropout(dropout)])

    def forward(
        self, hidden_states: Tensor, encoder_hidden_states: Tensor | None = None, attention_mask: Tensor | None = None
    ) -> Tensor:
        """`attention_mask` (batch, 1, keys) is added to the scores."""
        x, shape = hidden_states, hidden_states.shape
        if len(shape) == 4:
            x = x.flatten(2)  # (B, C, HW)
            if self.group_norm is not None:
                x = self.group_norm(x)
            x = x.transpose(1, 2)
        elif self.group_norm is not None:
            x = self.group_norm(x.transpose(1, 2)).transpose(1, 2)
        others = x if encoder_hidden_states is None else encoder_hidden_states
        q, k, v = (
            y.view(y.shape[0], y.shape[1], self.heads, -1).transpose(1, 2)  # (B, heads, positions, features)
            for y in (self.to_q(x), self.to_k(others), self.to_v(others))
        )
        if attention_mask is not None:
            attention_mask = _fitting(attention_mask, k)
        x = F.scaled_dot_product_attention(q, k, v, attn_mask=attention_mask).transpose(1, 2).flatten(2)
        x = self.to_out[1](self.to_out[0](x))
        if len(shape) == 4:
            x = x.transpose(1, 2).reshape(shape)
        if self.residual:
            x = x + hidden_states
        return x if self.rescale == 1.0 else x / self.rescale


def _fitting(mask: Tensor, k: Tensor) -> Tensor:
    """A mask (batch, 1, keys) for the scores (batch, heads, queries, keys)."""
    if mask.dim() != 3 or mask.shape[-1] != k.shape[2]:
        raise ValueError(
            f"Attention: the mask has shape {tuple(mask.shape)}, and there are {k.shape[2]} keys for "
            f"{k.shape[0]} samples; a mask has one number for each key."
        )
    return mask.unsqueeze(1)


class GEGLU(nn.Module):
    """`a * gelu(b)` of a product (a, b): Shazeer 2020, arXiv:2002.05202."""

    def __init__(self, dim: int, inner: int) -> None:
        super().__init__()
        self.proj = nn.Linear(dim, 2 * inner)

    def forward(self, x: Tensor) -> Tensor:
        a, gate = self.proj(x).chunk(2, dim=-1)
        return a * F.gelu(gate)


class GELU(nn.Module):
    """`gelu` of a product."""

    def __init__(self, dim: int, inner: int, approximate: str = "none") -> None:
        super().__init__()
        self.proj, self.approximate = nn.Linear(dim, inner), approximate

    def forward(self, x: Tensor) -> Tensor:
        return F.gelu(self.proj(x), approximate=self.approximate)


class QuickGELU(nn.Module):
    """`x sigmoid(1.702 x)` of a product."""

    def __init__(self, dim: int, inner: int) -> None:
        super().__init__()
        self.proj = nn.Linear(dim, inner)

    def forward(self, x: Tensor) -> Tensor:
        x = self.proj(x)
        return x * votive.sigmoid(1.702 * x)


class ProjectedActivation(nn.Module):
    """An activation of a product."""

    def __init__(self, dim: int, inner: int, name: str) -> None:
        super().__init__()
        self.proj, self.activation = nn.Linear(dim, inner), activation(name)

    def forward(self, x: Tensor) -> Tensor:
        return self.activation(self.proj(x))


class FeedForward(nn.Module):
    """A product with an activation, and a product back; `net` as diffusers numbers it."""

    def __init__(self, dim: int, dropout: float = 0.0, activation_fn: str = "geglu", mult: int = 4) -> None:
        super().__init__()
        inner = dim * mult
        first: nn.Module
        if activation_fn == "geglu":
            first = GEGLU(dim, inner)
        elif activation_fn in ("gelu", "gelu-approximate"):
            first = GELU(dim, inner, "tanh" if activation_fn == "gelu-approximate" else "none")
        elif activation_fn == "geglu-approximate":
            first = QuickGELU(dim, inner)
        elif activation_fn == "linear-silu":
            first = ProjectedActivation(dim, inner, "silu")
        else:
            raise ValueError(f"activation_fn={activation_fn!r} is not known; it may be 'geglu', 'gelu' or others.")
        self.net = nn.ModuleList([first, nn.Dropout(dropout), nn.Linear(inner, dim)])

    def forward(self, x: Tensor) -> Tensor:
        for part in self.net:
            x = part(x)
        return x


class BasicTransformerBlock(nn.Module):
    """Attention to the picture, attention to the text, a feed-forward net: a norm before each, a sum behind.

    With `only_cross_attention` the first looks at the text as well; without a text the second looks at the picture.
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        dim_head: int,
        *,
        cross_attention_dim: int | None,
        only_cross_attention: bool = False,
        dropout: float = 0.0,
        activation_fn: str = "geglu",
    ) -> None:
        super().__init__()
        self.only_cross_attention = only_cross_attention
        self.norm1 = nn.LayerNorm(dim)
        first = cross_attention_dim if only_cross_attention else None
        self.attn1 = Attention(dim, heads, dim_head, cross_attention_dim=first, dropout=dropout)
        self.norm2, self.attn2 = None, None
        if cross_attention_dim is not None:
            self.norm2 = nn.LayerNorm(dim)
            self.attn2 = Attention(dim, heads, dim_head, cross_attention_dim=cross_attention_dim, dropout=dropout)
        self.norm3 = nn.LayerNorm(dim)
        self.ff = FeedForward(dim, dropout, activation_fn)

    def forward(
        self,
        x: Tensor,
        encoder_hidden_states: Tensor | None = None,
        attention_mask: Tensor | None = None,
        encoder_attention_mask: Tensor | None = None,
    ) -> Tensor:
        text = encoder_hidden_states if self.only_cross_attention else None
        x = x + self.attn1(self.norm1(x), text, attention_mask)
        if self.attn2 is not None and self.norm2 is not None:
            x = x + self.attn2(self.norm2(x), encoder_hidden_states, encoder_attention_mask)
        return x + self.ff(self.norm3(x))


class Transformer2DModel(nn.Module):
    """Transformer blocks over the pixels of a map (batch, channels, height, width), added to it."""

    def __init__(
        self,
        channels: int,
        heads: int,
        layers: int,
        *,
        cross_attention_dim: int | None,
        groups: int,
        use_linear_projection: bool = False,
        only_cross_attention: bool = False,
    ) -> None:
        super().__init__()
        inner = heads * (channels // heads)
        self.linear = use_linear_projection
        self.norm = nn.GroupNorm(groups, channels, eps=1e-6)
        made = nn.Linear if use_linear_projection else lambda a, b: nn.Conv2d(a, b, 1)
        self.proj_in: nn.Module = made(channels, inner)
        self.transformer_blocks = nn.ModuleList(
            BasicTransformerBlock(
                inner,
                heads,
                channels // heads,
                cross_attention_dim=cross_attention_dim,
                only_cross_attention=only_cross_attention,
            )
            for _ in range(layers)
        )
        self.proj_out: nn.Module = made(inner, channels)

    def forward(
        self,
        hidden_states: Tensor,
        encoder_hidden_states: Tensor | None = None,
        attention_mask: Tensor | None = None,
        encoder_attention_mask: Tensor | None = None,
    ) -> Tensor:
        B, _, H, W = hidden_states.shape
        x = self.norm(hidden_states)
        if not self.linear:
            x = self.proj_in(x)
        x = x.flatten(2).transpose(1, 2)  # (B, HW, C)
        if self.linear:
            x = self.proj_in(x)
        for block in self.transformer_blocks:
            x = block(x, encoder_hidden_states, attention_mask, encoder_attention_mask)
        if self.linear:
            x = self.proj_out(x)
        x = x.transpose(1, 2).reshape(B, -1, H, W)
        if not self.linear:
            x = self.proj_out(x)
        return x + hidden_states
