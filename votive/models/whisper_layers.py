"""The blocks of Whisper: attention, layers, and the stacks that read sound and write text.

Parameter names are those of Hugging Face checkpoints. Knows no vocabulary and no windows.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import votive
from votive import nn
from votive.nn import functional as F
from votive.nn.fused_linear import feed_forward

from ..tensor import Tensor
from .activations import activation
from .attention import AttentionMask, Weights, causal_mask, shown_weights
from .cross_attention import CrossAttention
from .cross_cache import EncoderDecoderCache
from .output import BaseModelOutput
from .stack import Trace

if TYPE_CHECKING:
    from .whisper import WhisperConfig


def sinusoids(length: int, channels: int, max_timescale: float = 10000.0) -> Any:
    """Positions as sines and cosines of falling frequency, (length, channels).

    >>> from votive.models.whisper_layers import sinusoids
    >>> sinusoids(2, 4)[1]
    tensor([8.4147e-01, 1.0000e-04, 5.4030e-01, 1.0000e+00])
    """
    if channels % 2:
        raise ValueError(f"sinusoids: channels must be even, got {channels}.")
    step = math.log(max_timescale) / (channels // 2 - 1)
    angle = votive.arange(length).unsqueeze(1) * votive.exp(-step * votive.arange(channels // 2))
    return votive.cat([angle.sin(), angle.cos()], 1)


class Chosen(list[Any]):
    """Collects (layer, weights) of some heads only, {layer: heads}: all would fill the memory."""

    def __init__(self, heads: dict[int, list[int]]) -> None:
        super().__init__()
        self.heads = heads


class WhisperAttention(CrossAttention):
    """Attention to the own positions, or to those of an encoder; keys have no bias."""

    def __init__(self, config: WhisperConfig, heads: int, layer_idx: int = 0) -> None:
        super().__init__(heads, layer_idx, config.attention_dropout)
        width = config.d_model
        if width % heads:
            raise ValueError(f"WhisperAttention: d_model={width} is no multiple of {heads} heads.")
        self.k_proj = nn.Linear(width, width, bias=False)
        self.v_proj = nn.Linear(width, width)
        self.q_proj = nn.Linear(width, width)
        self.out_proj = nn.Linear(width, width)

    def look(self, q: Tensor, k: Tensor, v: Tensor, mask: AttentionMask, weights: Weights) -> Tensor:
        shared = q.shape[0] // k.shape[0]
        if shared > 1:
            # Beams of one recording: their queries stand in a row before the keys they share.
            q = q.unflatten(0, (-1, shared)).transpose(1, 2).flatten(2, 3)  # (B, H, W * T, D)
        y = super().look(q, k, v, mask, None)
        if isinstance(weights, Chosen):
            heads = weights.heads.get(self.layer_idx)
            if heads:
                chosen = shown_weights(q[:, heads], k[:, heads], mask)
                weights.append((self.layer_idx, _apart(chosen, shared)))
        elif weights is not None:
            weights.append(_apart(shown_weights(q, k, mask), shared))
        return _apart(y, shared)


def _apart(y: Tensor, shared: int) -> Any:
    """What was computed for several beams in a row, (B, H, W * T, N), a sample for each again."""
    if shared <= 1:
        return y
    return y.unflatten(2, (shared, -1)).transpose(1, 2).flatten(0, 1)


class _Layer(nn.Module):
    """What layers of both stacks end with: norm, MLP, and what comes out is added."""

    def __init__(self, config: WhisperConfig, inner: int) -> None:
        super().__init__()
        self.dropout, self.activation_dropout = config.dropout, config.activation_dropout
        self.activation_fn = activation(config.activation_function)
        self.fc1 = nn.Linear(config.d_model, inner)
        self.fc2 = nn.Linear(inner, config.d_model)
        self.final_layer_norm = nn.LayerNorm(config.d_model)

    def dropped(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.dropout, self.training) if self.training else x

    def mlp(self, x: Tensor) -> Tensor:
        y = self.final_layer_norm(x)
        if self.training and self.activation_dropout:
            y = F.dropout(self.activation_fn(self.fc1(y)), self.activation_dropout, True)
            return x + self.dropped(self.fc2(y))
        return x + self.dropped(feed_forward(self.fc1, self.activation_fn, self.fc2, y))


class WhisperEncoderLayer(_Layer):
    """Attention of each sound to all others, then the MLP."""

    def __init__(self, config: WhisperConfig) -> None:
        super().__init__(config, config.encoder_ffn_dim)
        self.self_attn = WhisperAttention(config, config.encoder_attention_heads)
        self.self_attn_layer_norm = nn.LayerNorm(config.d_model)

    def forward(self, x: Tensor, weights: Weights = None) -> Tensor:
        y = self.self_attn(self.self_attn_layer_norm(x), AttentionMask(), weights=weights)
        x = self.mlp(x + self.dropped(y))
        if x.dtype == votive.float16:
            # Sums of layers leave the range of float16 before the last norm brings them back.
            most = votive.finfo(x.dtype).max - 1000
            x = x.clamp(-most, most)
        return x


class WhisperDecoderLayer(_Layer):
    """Attention to the text so far, attention to the sound, then the MLP."""

    def __init__(self, config: WhisperConfig, layer_idx: int) -> None:
        super().__init__(config, config.decoder_ffn_dim)
        self.self_attn = WhisperAttention(config, config.decoder_attention_heads, layer_idx)
        self.self_attn_layer_norm = nn.LayerNorm(config.d_model)
        self.encoder_attn = WhisperAttention(config, config.decoder_attention_heads, layer_idx)
        self.encoder_attn_layer_norm = nn.LayerNorm(config.d_model)

    def forward(
        self,
        x: Tensor,
        mask: AttentionMask,
        other: Tensor | None = None,
        cache: EncoderDecoderCache | None = None,
        weights: Weights = None,
        crossed: Weights = None,
    ) -> Tensor:
        y = self.self_attn(self.self_attn_layer_norm(x), mask, None, cache, weights)
        x = x + self.dropped(y)
        if other is not None:
            y = self.encoder_attn(self.encoder_attn_layer_norm(x), AttentionMask(), other, cache, crossed)
            x = x + self.dropped(y)
        return self.mlp(x)


class _Stack(nn.Module):
    """What both stacks share: layers that training may leave out, and a record of them."""

    layerdrop = 0.0

    def skipped(self) -> bool:
        """Whether training leaves the next layer out. arXiv:1909.11556."""
        return bool(self.training and self.layerdrop and float(votive.rand(())) < self.layerdrop)


class WhisperEncoder(_Stack):
    """Two convolutions, the second with a stride of two, then layers: from mels to states."""

    def __init__(self, config: WhisperConfig) -> None:
        super().__init__()
        width = config.d_model
        self.num_mel_bins, self.layerdrop = config.num_mel_bins, config.encoder_layerdrop
        self.frames = 2 * config.max_source_positions
        self.dropout = nn.Dropout(config.dropout)
        self.conv1 = nn.Conv1d(config.num_mel_bins, width, 3, padding=1)
        self.conv2 = nn.Conv1d(width, width, 3, stride=2, padding=1)
        self.embed_positions = nn.Embedding(config.max_source_positions, width)
        self.embed_positions.requires_grad_(False)
        self.layers = nn.ModuleList(WhisperEncoderLayer(config) for _ in range(config.encoder_layers))
        self.layer_norm = nn.LayerNorm(width)

    def forward(
        self,
        input_features: Tensor,
        attention_mask: Tensor | None = None,
        output_attentions: bool = False,
        output_hidden_states: bool = False,
    ) -> BaseModelOutput:
        """States (batch, positions, features) of mels (batch, mels, frames).

        The mask is taken and not used: Whisper was trained on silence as it is.
        """
        shape = tuple(input_features.shape)
        if len(shape) != 3 or shape[1:] != (self.num_mel_bins, self.frames):
            raise ValueError(
                f"WhisperEncoder: input_features must be (batch, {self.num_mel_bins}, "
                f"{self.frames}), got {shape}; WhisperFeatureExtractor(feature_size="
                f"{self.num_mel_bins}) makes them."
            )
        x = F.gelu(self.conv1(input_features))
        x = F.gelu(self.conv2(x)).transpose(1, 2)  # (B, T, C)
        places = votive.arange(self.frames // 2, device=x.device)
        x = self.dropout(x + self.embed_positions(places))
        trace = Trace(output_attentions, output_hidden_states)
        for layer in self.layers:
            trace.add_state(x)
            if not self.skipped():
                x = layer(x, trace.weights)
        x = self.layer_norm(x)
        trace.add_state(x)
        return BaseModelOutput(last_hidden_state=x, hidden_states=trace.hidden_states, attentions=trace.attentions)


class WhisperDecoder(_Stack):
    """Embeddings of tokens and learned positions, then layers that look at an encoder's states."""

    def __init__(self, config: WhisperConfig) -> None:
        super().__init__()
        width = config.d_model
        self.layerdrop = config.decoder_layerdrop
        self.dropout = nn.Dropout(config.dropout)
        self.scale = math.sqrt(width) if config.scale_embedding else 1.0
        self.embed_tokens = nn.Embedding(config.vocab_size, width, config.pad_token_id)
        self.embed_positions = nn.Embedding(config.max_target_positions, width)
        self.layers = nn.ModuleList(WhisperDecoderLayer(config, i) for i in range(config.decoder_layers))
        self.layer_norm = nn.LayerNorm(width)

    def look(self, states: Tensor, cache: EncoderDecoderCache) -> None:
        """Let a cache hold what all layers see of an encoder's states."""
        for i, layer in enumerate(self.layers):
            cache.cross(i, partial(layer.encoder_attn.pair, states))

    def positions(self, count: int, past: int, position_ids: Tensor | None) -> Tensor:
        """Embeddings of the next positions, or of those that are given."""
        table = self.embed_positions.weight
        if position_ids is not None:
            return self.embed_positions(position_ids)
        if past + count > table.shape[0]:
            raise ValueError(
                f"WhisperDecoder: {past + count} positions are asked for and the model has "
                f"{table.shape[0]}; give shorter texts or prompts."
            )
        return self.embed_positions(votive.arange(past, past + count, device=table.device))

    def forward(
        self,
        x: Tensor,
        attention_mask: Tensor | None = None,
        other: Tensor | None = None,
        cache: EncoderDecoderCache | None = None,
        position_ids: Tensor | None = None,
        output_attentions: bool = False,
        output_hidden_states: bool = False,
        crossed: Weights = None,
    ) -> tuple[BaseModelOutput, Any]:
        """States of embeddings `x`, and attention weights to `other`, the encoder's states."""
        T = x.shape[1]
        past = 0 if cache is None else cache.get_seq_length()
        mask = causal_mask(attention_mask, T, past + T, device=x.device)
        x = x * self.scale if self.scale != 1.0 else x
        x = self.dropout(x + self.positions(T, past, position_ids))
        trace = Trace(output_attentions, output_hidden_states)
        crossed = [] if output_attentions and crossed is None else crossed
        for layer in self.layers:
            trace.add_state(x)
            if not self.skipped():
                x = layer(x, mask, other, cache, trace.weights, crossed)
        x = self.layer_norm(x)
        trace.add_state(x)
        found = BaseModelOutput(
            last_hidden_state=x, past_key_values=cache, hidden_states=trace.hidden_states, attentions=trace.attentions
        )
        return found, tuple(crossed) if crossed else None
