"""The layers of both stacks: attention and a net, each normed and added as the design says. Knows no family."""

from __future__ import annotations

import votive
from votive import nn
from votive.nn import functional as F
from votive.nn.fused_linear import feed_forward

from ...tensor import Tensor
from ..activations import activation
from ..attention import AttentionMask, Weights
from ..cross_attention import CrossAttention
from ..cross_cache import EncoderDecoderCache
from .design import Seq2SeqDesign, Side


class Seq2SeqAttention(CrossAttention):
    """Attention to the own text, or to what an encoder gave."""

    def __init__(self, d: Seq2SeqDesign, side: Side, layer_idx: int) -> None:
        super().__init__(side.heads, layer_idx, d.attention_dropout)
        for name in ("k_proj", "v_proj", "q_proj", "out_proj"):
            setattr(self, name, nn.Linear(d.width, d.width))


class _Layer(nn.Module):
    """What layers of both stacks begin and end with."""

    def __init__(self, d: Seq2SeqDesign, side: Side, layer_idx: int) -> None:
        super().__init__()
        self.pre_norm, self.dropout, self.net_dropout = d.pre_norm, d.dropout, d.net_dropout
        self.act_fn = activation(d.act)
        self.self_attn = Seq2SeqAttention(d, side, layer_idx)
        self.self_attn_layer_norm = nn.LayerNorm(d.width)
        self.fc1 = nn.Linear(d.width, side.inner)
        self.fc2 = nn.Linear(side.inner, d.width)
        self.final_layer_norm = nn.LayerNorm(d.width)

    def added(self, x: Tensor, y: Tensor, norm: nn.Module) -> Tensor:
        """The stream with what a part says, which is normed where norms are of the stream."""
        y = x + (F.dropout(y, self.dropout, self.training) if self.training else y)
        return y if self.pre_norm else norm(y)

    def read(self, x: Tensor, norm: nn.Module) -> Tensor:
        """What a part reads of the stream."""
        return norm(x) if self.pre_norm else x

    def attended(
        self, x: Tensor, mask: AttentionMask, cache: EncoderDecoderCache | None = None, weights: Weights = None
    ) -> Tensor:
        """The stream behind attention to itself."""
        norm = self.self_attn_layer_norm
        return self.added(x, self.self_attn(self.read(x, norm), mask, None, cache, weights), norm)

    def netted(self, x: Tensor) -> Tensor:
        """The stream behind the net."""
        y = self.read(x, self.final_layer_norm)
        if self.training and self.net_dropout:
            y = self.fc2(F.dropout(self.act_fn(self.fc1(y)), self.net_dropout, True))
        else:
            y = feed_forward(self.fc1, self.act_fn, self.fc2, y)
        return self.added(x, y, self.final_layer_norm)


class EncoderLayer(_Layer):
    """Attention of each position to all others, then the net."""

    def forward(self, x: Tensor, mask: AttentionMask, weights: Weights = None) -> Tensor:
        x = self.netted(self.attended(x, mask, None, weights))
        if x.dtype == votive.float16:
            # Models that were trained in wider types leave the range of this one.
            most = votive.finfo(x.dtype).max - 1000
            x = x.clamp(-most, most)
        return x


class DecoderLayer(_Layer):
    """Attention to the text so far, attention to what was read, then the net."""

    def __init__(self, d: Seq2SeqDesign, side: Side, layer_idx: int) -> None:
        super().__init__(d, side, layer_idx)
        self.encoder_attn = Seq2SeqAttention(d, side, layer_idx)
        self.encoder_attn_layer_norm = nn.LayerNorm(d.width)

    def forward(
        self,
        x: Tensor,
        mask: AttentionMask,
        other: Tensor | None = None,
        across: AttentionMask | None = None,
        cache: EncoderDecoderCache | None = None,
        weights: Weights = None,
        crossed: Weights = None,
    ) -> Tensor:
        x = self.attended(x, mask, cache, weights)
        if other is not None:
            norm, across = self.encoder_attn_layer_norm, across or AttentionMask()
            x = self.added(x, self.encoder_attn(self.read(x, norm), across, other, cache, crossed), norm)
        return self.netted(x)
