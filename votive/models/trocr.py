"""TrOCR's decoder, which writes what a picture says. Li et al. 2021, arXiv:2109.10282.

Alone it is a decoder of texts; `vision_encoder_decoder.py` lets it look at a picture. Parameter
names are those of Hugging Face checkpoints.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

import votive
from votive import nn
from votive.nn import functional as F

from ..tensor import Tensor
from .activations import activation
from .attention import AttentionMask, Weights, causal_mask, padding_mask
from .config import Config
from .cross_attention import CrossAttention
from .cross_cache import Cache, EncoderDecoderCache
from .output import CausalLMOutput
from .pretrained import CausalLM
from .stack import Trace


@dataclass(kw_only=True)
class TrOCRConfig(Config):
    """The numbers of TrOCR's decoder; `is_decoder` asks for attention to a picture.

    >>> votive.models.TrOCRConfig(d_model=64).hidden_size
    64
    """

    model_type = "trocr"

    vocab_size: int = 50265
    d_model: int = 1024
    decoder_layers: int = 12
    decoder_attention_heads: int = 16
    decoder_ffn_dim: int = 4096
    activation_function: str = "gelu"
    max_position_embeddings: int = 512
    dropout: float = 0.1
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0
    decoder_layerdrop: float = 0.0
    decoder_start_token_id: int = 2
    init_std: float = 0.02
    scale_embedding: bool = False
    use_learned_position_embeddings: bool = True
    layernorm_embedding: bool = True
    cross_attention_hidden_size: int | None = None
    is_decoder: bool = False
    pad_token_id: int | None = 1
    bos_token_id: int | None = 0
    eos_token_id: int | list[int] | None = 2
    tie_word_embeddings: bool = True

    def __post_init__(self) -> None:
        if self.d_model % self.decoder_attention_heads:
            raise ValueError(
                f"TrOCRConfig: d_model={self.d_model} does not split into {self.decoder_attention_heads} heads."
            )
        if not self.use_learned_position_embeddings and self.pad_token_id is None:
            raise ValueError("TrOCRConfig: computed positions need a pad_token_id to begin after.")

    @property
    def hidden_size(self) -> int:
        return self.d_model

    @property
    def num_hidden_layers(self) -> int:
        return self.decoder_layers

    @property
    def num_attention_heads(self) -> int:
        return self.decoder_attention_heads


class TrOCRAttention(CrossAttention):
    """Attention to the own text, or to what an encoder made of a picture."""

    def __init__(self, config: TrOCRConfig, layer_idx: int, keys: int | None = None) -> None:
        super().__init__(config.decoder_attention_heads, layer_idx, config.attention_dropout)
        width = config.d_model
        keys = width if keys is None else keys
        self.k_proj, self.v_proj = nn.Linear(keys, width), nn.Linear(keys, width)
        self.q_proj, self.out_proj = nn.Linear(width, width), nn.Linear(width, width)


class TrOCRDecoderLayer(nn.Module):
    """Attention to the text, attention to the picture, MLP; each is added and normed."""

    def __init__(self, config: TrOCRConfig, layer_idx: int) -> None:
        super().__init__()
        width = config.d_model
        self.self_attn = TrOCRAttention(config, layer_idx)
        self.self_attn_layer_norm = nn.LayerNorm(width)
        if config.is_decoder:
            keys = config.cross_attention_hidden_size
            self.encoder_attn = TrOCRAttention(config, layer_idx, keys)
            self.encoder_attn_layer_norm = nn.LayerNorm(width)
        self.fc1 = nn.Linear(width, config.decoder_ffn_dim)
        self.fc2 = nn.Linear(config.decoder_ffn_dim, width)
        self.final_layer_norm = nn.LayerNorm(width)
        self.dropout = nn.Dropout(config.dropout)
        self.activation_dropout = nn.Dropout(config.activation_dropout)
        self.act_fn = activation(config.activation_function)

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
        y = self.dropout(self.self_attn(x, mask, None, cache, weights))
        x = self.self_attn_layer_norm(x + y)
        if other is not None:
            y = self.dropout(self.encoder_attn(x, across, other, cache, crossed))
            x = self.encoder_attn_layer_norm(x + y)
        y = self.fc2(self.activation_dropout(self.act_fn(self.fc1(x))))
        return self.final_layer_norm(x + self.dropout(y))


def sinusoids(count: int, width: int, padding: int | None = None) -> np.ndarray:
    """Positions as sines and then cosines of falling frequencies; that of padding is zero.

    >>> from votive.models.trocr import sinusoids
    >>> sinusoids(2, 4).round(2).tolist()
    [[0.0, 0.0, 1.0, 1.0], [0.8399999737739563, 0.0, 0.5400000214576721, 1.0]]
    """
    half = width // 2
    slow = np.exp(np.arange(half, dtype=np.float32) * np.float32(-math.log(10000) / (half - 1)))
    angles = np.arange(count, dtype=np.float32)[:, None] * slow[None]
    table = np.zeros((count, width), dtype=np.float32)
    table[:, :half], table[:, half : 2 * half] = np.sin(angles), np.cos(angles)
    if padding is not None:
        table[padding] = 0
    return table


class TrOCRPositions(nn.Module):
    """Positions that were learned. The first two rows belong to none."""

    offset = 2

    def __init__(self, config: TrOCRConfig) -> None:
        super().__init__()
        count = config.max_position_embeddings + self.offset
        self.weight = nn.Parameter(votive.zeros(count, config.d_model))
        nn.init.normal_(self.weight, std=config.init_std)

    def forward(self, x: Tensor, input_ids: Tensor | None, position_ids: Tensor | None, past: int) -> Tensor:
        if position_ids is None:
            position_ids = votive.arange(past, past + x.shape[1], device=x.device).unsqueeze(0)
        most = self.weight.shape[0] - self.offset
        if past + x.shape[1] > most:
            raise IndexError(
                f"TrOCRForCausalLM: {past + x.shape[1]} positions are asked for; it has learned "
                f"max_position_embeddings={most}."
            )
        return F.embedding(position_ids + self.offset, self.weight)


class TrOCRSinusoids(nn.Module):
    """Positions that are computed, counted from the token of padding on and without it."""

    def __init__(self, config: TrOCRConfig) -> None:
        super().__init__()
        assert config.pad_token_id is not None, "the configuration asks for it"
        self.padding, self.width = config.pad_token_id, config.d_model
        self.table(config.max_position_embeddings)

    def table(self, count: int) -> None:
        """Make room for so many positions."""
        made = sinusoids(count + self.padding + 1, self.width, self.padding)
        self.register_buffer("weights", votive.from_numpy(made), persistent=False)

    def forward(self, x: Tensor, input_ids: Tensor | None, position_ids: Tensor | None, past: int) -> Tensor:
        if position_ids is not None:
            at = position_ids + self.padding + 1
        elif input_ids is None:
            raise ValueError(
                "TrOCRForCausalLM: computed positions are counted in input_ids; with inputs_embeds give position_ids."
            )
        else:
            real = (input_ids != self.padding).long()
            at = (real.cumsum(1) + past) * real + self.padding
        if past + x.shape[1] + self.padding + 1 > self.weights.shape[0]:
            self.table(past + x.shape[1])
        return self.weights.to(x.device, x.dtype)[at]


class TrOCRDecoder(nn.Module):
    """Words and positions, then layers."""

    def __init__(self, config: TrOCRConfig) -> None:
        super().__init__()
        self.config = config
        self.scale = math.sqrt(config.d_model) if config.scale_embedding else 1.0
        self.embed_tokens = nn.Embedding(config.vocab_size, config.d_model, padding_idx=config.pad_token_id)
        learned = config.use_learned_position_embeddings
        self.embed_positions: Any = TrOCRPositions(config) if learned else TrOCRSinusoids(config)
        self.layernorm_embedding = nn.LayerNorm(config.d_model) if config.layernorm_embedding else None
        self.layers = nn.ModuleList(TrOCRDecoderLayer(config, i) for i in range(config.decoder_layers))
        self.dropout = nn.Dropout(config.dropout)

    def forward(
        self,
        x: Tensor,
        input_ids: Tensor,
        position_ids: Tensor,
        attention_mask: Tensor,
        other: Tensor,
        other_mask: Tensor,
        cache: EncoderDecoderCache,
        attentions: bool,
        hidden: bool,
    ) -> tuple[Any, Trace, Any]:
        """The last state, and on request all states, weights and weights across."""
        past, T = 0 if cache is None else int(cache.get_seq_length()), x.shape[1]
        x = x + self.embed_positions(x, input_ids, position_ids, past)
        if self.layernorm_embedding is not None:
            x = self.layernorm_embedding(x)
        x = self.dropout(x)
        mask = causal_mask(attention_mask, T, past + T, device=x.device)
        across = None if other is None else padding_mask(other_mask)
        trace = Trace(attentions, hidden)
        crossed: Weights = [] if attentions and other is not None else None
        for layer in self.layers:
            trace.add_state(x)
            # Some layers are left out while training, arXiv:1909.11556.
            drop = self.config.decoder_layerdrop if self.training else 0.0
            if drop and float(votive.rand(())) < drop:
                continue
            x = layer(x, mask, other, across, cache, trace.weights, crossed)
        trace.add_state(x)
        return x, trace, None if crossed is None else tuple(crossed)


@dataclass
class CausalLMOutputWithCrossAttentions(CausalLMOutput):
    """Of a decoder that also looks at something else: the weights of that, too.

    >>> from votive.models.trocr import CausalLMOutputWithCrossAttentions
    >>> list(CausalLMOutputWithCrossAttentions(logits=votive.ones(1, 2, 3)).keys())
    ['logits']
    """

    cross_attentions: tuple[Tensor, ...] | None = None


class TrOCRForCausalLM(CausalLM):
    """The decoder with a head that predicts the next token.

    >>> config = votive.models.TrOCRConfig(vocab_size=10, d_model=8, decoder_layers=1,
    ...     decoder_attention_heads=2, decoder_ffn_dim=16)
    >>> votive.models.TrOCRForCausalLM(config)(votive.tensor([[2, 3, 4]])).logits.shape
    votive.Size([1, 3, 10])
    """

    config_class = TrOCRConfig
    tied = {"output_projection.weight": "model.decoder.embed_tokens.weight"}

    def __init__(self, config: TrOCRConfig) -> None:
        super().__init__(config)
        self.model = nn.ModuleDict({"decoder": TrOCRDecoder(config)})
        self.output_projection = nn.Linear(config.d_model, config.vocab_size, bias=False)
        self.post_init()

    def init_weights(self, module: nn.Module) -> None:
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=self.config.init_std)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)
        if isinstance(module, nn.Embedding) and module.padding_idx is not None:
            nn.init.zeros_(module.weight[module.padding_idx])

    def get_input_embeddings(self) -> nn.Module:
        """The table of token embeddings."""
        return self.model["decoder"].embed_tokens

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        encoder_hidden_states: Tensor | None = None,
        encoder_attention_mask: Tensor | None = None,
        past_key_values: Cache | None = None,
        inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,
        use_cache: bool | None = None,
        position_ids: Tensor | None = None,
        output_attentions: bool = False,
        output_hidden_states: bool = False,
        logits_to_keep: int = 0,
    ) -> CausalLMOutputWithCrossAttentions:
        """`labels` are the tokens that each position is to give, -100 where none; not shifted."""
        if encoder_hidden_states is not None and not self.config.is_decoder:
            raise ValueError("TrOCRForCausalLM: it looks at no encoder; build it with is_decoder=True.")
        cache = past_key_values
        if cache is None and use_cache:
            cache = nn.DynamicCache()
        if cache is not None and encoder_hidden_states is not None:
            cache = EncoderDecoderCache.of(cache)
        x = self.embedded(input_ids, inputs_embeds)
        decoder = self.model["decoder"]
        if inputs_embeds is None and decoder.scale != 1.0:
            x = x * decoder.scale
        x, trace, crossed = decoder(
            x,
            input_ids,
            position_ids,
            attention_mask,
            encoder_hidden_states,
            encoder_attention_mask,
            cache,
            output_attentions,
            output_hidden_states,
        )
        logits = self.output_projection(x[:, -logits_to_keep:] if logits_to_keep else x)
        loss = None
        if labels is not None:
            loss = F.cross_entropy(logits.flatten(0, 1).float(), labels.flatten())
        return CausalLMOutputWithCrossAttentions(
            loss=loss,
            logits=logits,
            past_key_values=cache,
            hidden_states=trace.hidden_states,
            attentions=trace.attentions,
            cross_attentions=crossed,
        )
