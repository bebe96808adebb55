"""The blocks of T5: attention with a bias per distance, and stacks of it. Knows no words.

Attention knows positions only by a learned bias per distance, which the first layer has and all
share, or which each has; it is not scaled. Parameter names are those of Hugging Face checkpoints.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

import votive
from votive import nn
from votive.nn.fused_linear import linear_activation

from ..tensor import Tensor
from .activations import activation
from .attention import AttentionMask, Weights, causal_mask, padding_mask
from .cross_attention import CrossAttention
from .cross_cache import EncoderDecoderCache
from .output import BaseModelOutput
from .stack import Trace

if TYPE_CHECKING:
    from .t5 import T5Config


def distance_buckets(buckets: int, furthest: int, both_ways: bool) -> np.ndarray:
    """The bucket of each distance 0, 1, … `furthest`: exact when near, coarser with its logarithm.

    >>> from votive.models.t5_stack import distance_buckets
    >>> distance_buckets(8, 16, both_ways=False).tolist()
    [0, 1, 2, 3, 4, 4, 5, 5, 6, 6, 6, 6, 7, 7, 7, 7, 7]
    """
    count = buckets // 2 if both_ways else buckets
    exact = count // 2
    distance = np.arange(furthest + 1)
    # In float32, as the models were trained: at the edges of buckets, rounding decides.
    ratio = np.log(np.maximum(distance, 1).astype(np.float32) / np.float32(exact))
    ratio = ratio / np.float32(math.log(furthest / exact)) * np.float32(count - exact)
    far = np.minimum(exact + ratio.astype(np.int64), count - 1)
    return np.where(distance < exact, distance, far)


class T5Attention(CrossAttention):
    """Attention to the own text, or to another; the first of a stack holds the bias."""

    products = ("q", "k", "v", "o")
    scale = 1.0

    def __init__(self, config: T5Config, layer_idx: int, *, causal: bool, bias: bool) -> None:
        super().__init__(config.num_heads, layer_idx, config.dropout_rate)
        self.causal = causal
        inner = config.num_heads * config.d_kv
        self.q = nn.Linear(config.d_model, inner, bias=False)
        self.k = nn.Linear(config.d_model, inner, bias=False)
        self.v = nn.Linear(config.d_model, inner, bias=False)
        self.o = nn.Linear(inner, config.d_model, bias=False)
        if bias:
            count, self.furthest = (config.relative_attention_num_buckets, config.relative_attention_max_distance)
            self.relative_attention_bias = nn.Embedding(count, config.num_heads)
            table = distance_buckets(count, self.furthest, both_ways=not causal)
            self.register_buffer("buckets", votive.from_numpy(table), persistent=False)
            self.ahead = 0 if causal else count // 2

    def bias(self, queries: int, keys: int) -> Tensor:
        """What is added to the scores of the last `queries` of `keys` positions."""
        device = self.buckets.device
        at = votive.arange(keys - queries, keys, device=device).unsqueeze(1)
        ahead = votive.arange(keys, device=device) - at  # (queries, keys)
        # What a causal layer does not see counts as here.
        distance = (-ahead).clamp(min=0) if self.causal else ahead.abs()
        bucket = self.buckets[distance.clamp(max=self.furthest)]
        if self.ahead:
            bucket = bucket + (ahead > 0).long() * self.ahead
        return self.relative_attention_bias(bucket).permute(2, 0, 1).unsqueeze(0)  # (1, H, Q, K)


class T5Part(nn.Module):
    """One step of a block: norm, net, and what comes out is added to what came in."""

    def __init__(self, config: T5Config, name: str, net: nn.Module) -> None:
        super().__init__()
        self.name = name
        setattr(self, name, net)
        self.layer_norm = nn.RMSNorm(config.d_model, eps=config.layer_norm_epsilon)
        self.dropout = nn.Dropout(config.dropout_rate)

    def forward(self, x: Tensor, *args: Any) -> Tensor:
        x = x + self.dropout(getattr(self, self.name)(self.layer_norm(x), *args))
        if x.dtype == votive.float16:
            # The models were trained in bfloat16, whose range is wider.
            most = votive.finfo(x.dtype).max - 1000
            x = x.clamp(-most, most)
        return x


class T5Dense(nn.Module):
    """`wo(act(wi(x)))`, or with a gate `wo(act(wi_0(x)) * wi_1(x))`."""

    def __init__(self, config: T5Config) -> None:
        super().__init__()
        self.gated = config.is_gated
        for name in ("wi_0", "wi_1") if self.gated else ("wi",):
            setattr(self, name, nn.Linear(config.d_model, config.d_ff, bias=False))
        self.wo = nn.Linear(config.d_ff, config.d_model, bias=False)
        self.dropout = nn.Dropout(config.dropout_rate)
        self.act_fn = activation(config.act)

    def forward(self, x: Tensor) -> Tensor:
        if self.gated:
            y = linear_activation(self.wi_0, self.act_fn, x) * self.wi_1(x)
        else:
            y = linear_activation(self.wi, self.act_fn, x)
        return self.wo(self.dropout(y))


class T5Block(nn.Module):
    """Attention to the own text, in a decoder also to the encoder's, then the MLP."""

    def __init__(self, config: T5Config, layer_idx: int, *, decoder: bool) -> None:
        super().__init__()
        own = T5Attention(config, layer_idx, causal=decoder, bias=config.own_distances or layer_idx == 0)
        self.layer = nn.ModuleList([T5Part(config, "SelfAttention", own)])
        if decoder:
            other = T5Attention(config, layer_idx, causal=False, bias=False)
            self.layer.append(T5Part(config, "EncDecAttention", other))
        self.layer.append(T5Part(config, "DenseReluDense", T5Dense(config)))

    def forward(
        self,
        x: Tensor,
        mask: AttentionMask,
        across: AttentionMask,
        other: Tensor | None = None,
        cache: EncoderDecoderCache | None = None,
        weights: Weights = None,
        crossed: Weights = None,
    ) -> Tensor:
        x = self.layer[0](x, mask, None, cache, weights)
        if other is not None:
            x = self.layer[1](x, across, other, cache, crossed)
        return self.layer[-1](x)


class T5Stack(nn.Module):
    """Blocks, and a norm; an encoder, or a decoder that looks at what an encoder gave."""

    def __init__(self, config: T5Config, *, decoder: bool) -> None:
        super().__init__()
        self.decoder = decoder
        count = config.num_decoder_layers if decoder else config.num_layers
        assert count is not None, "the configuration fills it in"
        self.block = nn.ModuleList(T5Block(config, i, decoder=decoder) for i in range(count))
        self.final_layer_norm = nn.RMSNorm(config.d_model, eps=config.layer_norm_epsilon)
        self.dropout = nn.Dropout(config.dropout_rate)

    def forward(
        self,
        x: Tensor,
        attention_mask: Tensor | None = None,
        other: Tensor | None = None,
        other_mask: Tensor | None = None,
        cache: EncoderDecoderCache | None = None,
        output_attentions: bool = False,
        output_hidden_states: bool = False,
    ) -> tuple[BaseModelOutput, Any]:
        T = x.shape[1]
        keys = T + (0 if cache is None else cache.get_seq_length())
        if self.decoder:
            mask = causal_mask(attention_mask, T, keys, device=x.device)
        else:
            mask = padding_mask(attention_mask)
        seen = mask
        across = padding_mask(other_mask) if other is not None else AttentionMask()
        x = self.dropout(x)
        trace = Trace(output_attentions, output_hidden_states)
        crossed: Weights = [] if output_attentions else None
        for block in self.block:
            trace.add_state(x)
            own = block.layer[0].SelfAttention
            if "relative_attention_bias" in own._modules:
                mask = seen.biased(own.bias(T, keys))
            x = block(x, mask, across, other, cache, trace.weights, crossed)
        x = self.dropout(self.final_layer_norm(x))
        trace.add_state(x)
        found = BaseModelOutput(
            last_hidden_state=x, past_key_values=cache, hidden_states=trace.hidden_states, attentions=trace.attentions
        )
        return found, tuple(crossed) if crossed else None
