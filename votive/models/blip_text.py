"""BLIP's reader and writer of texts: BERT's layers, each of which looks at a picture, too. arXiv:2201.12086.

Knows no pictures, only the states that stand for one. Parameter names are those of Hugging Face checkpoints.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import votive
from votive import nn
from votive.nn import functional as F

from ..tensor import Tensor
from .activations import activation
from .attention import AttentionMask, Weights, causal_mask, padding_mask
from .config import Config
from .cross_attention import CrossAttention
from .cross_cache import Cache, EncoderDecoderCache
from .encoder import DenseOutput, Intermediate, intermediate_output
from .output import BaseModelOutput, Seq2SeqLMOutput
from .pretrained import CausalLM
from .seq2seq import Encoded, encoded
from .stack import Trace


@dataclass(kw_only=True)
class BlipTextConfig(Config):
    """The numbers of BLIP's reader and writer of texts.

    >>> votive.models.BlipTextConfig().sep_token_id
    102
    """

    model_type = "blip_text_model"

    vocab_size: int = 30524
    hidden_size: int = 768
    encoder_hidden_size: int = 768
    intermediate_size: int = 3072
    projection_dim: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 8
    max_position_embeddings: int = 512
    hidden_act: str = "gelu"
    layer_norm_eps: float = 1e-12
    hidden_dropout_prob: float = 0.0
    attention_probs_dropout_prob: float = 0.0
    initializer_range: float = 0.02
    bos_token_id: int | None = 30522
    eos_token_id: int | list[int] | None = 2
    pad_token_id: int | None = 0
    sep_token_id: int | None = 102
    is_decoder: bool = True
    tie_word_embeddings: bool = True
    label_smoothing: float = 0.0

    def __post_init__(self) -> None:
        if self.hidden_size % self.num_attention_heads:
            raise ValueError(
                f"BlipTextConfig: hidden_size={self.hidden_size} does not split into {self.num_attention_heads} heads."
            )

    @property
    def is_encoder_decoder(self) -> bool:
        """Whoever writes on looks at what was read before."""
        return True

    @property
    def decoder_start_token_id(self) -> int | None:
        """What a text begins with."""
        return self.bos_token_id


class BlipTextSelfAttention(CrossAttention):
    """Attention to the own text, or to states of `keys` features, without a product behind it."""

    products = ("query", "key", "value", "")

    def __init__(self, config: BlipTextConfig, layer_idx: int, keys: int) -> None:
        super().__init__(config.num_attention_heads, layer_idx, config.attention_probs_dropout_prob)
        width = config.hidden_size
        self.query, self.key, self.value = nn.Linear(width, width), nn.Linear(keys, width), nn.Linear(keys, width)

    def forward(
        self,
        x: Tensor,
        mask: AttentionMask,
        other: Tensor | None = None,
        cache: EncoderDecoderCache | None = None,
        weights: Weights = None,
    ) -> Tensor:
        return self.attended(x, mask, other, cache, weights)


class BlipTextAttention(nn.Module):
    """Attention, a product, and a norm of the stream with what it adds."""

    def __init__(self, config: BlipTextConfig, layer_idx: int, keys: int) -> None:
        super().__init__()
        width = config.hidden_size
        self.self = BlipTextSelfAttention(config, layer_idx, keys)
        self.output = DenseOutput(width, width, config.hidden_dropout_prob)
        self.output["LayerNorm"] = nn.LayerNorm(width, eps=config.layer_norm_eps)

    def forward(
        self,
        x: Tensor,
        mask: AttentionMask,
        other: Tensor | None = None,
        cache: EncoderDecoderCache | None = None,
        weights: Weights = None,
    ) -> Tensor:
        return self.output["LayerNorm"](x + self.output(self.self(x, mask, other, cache, weights)))


class BlipTextLayer(nn.Module):
    """Attention to the text, attention to what is seen, the net."""

    def __init__(self, config: BlipTextConfig, layer_idx: int) -> None:
        super().__init__()
        width, inner = config.hidden_size, config.intermediate_size
        self.attention = BlipTextAttention(config, layer_idx, width)
        if config.is_decoder:
            self.crossattention = BlipTextAttention(config, layer_idx, config.encoder_hidden_size)
        self.intermediate = Intermediate(width, inner, config.hidden_act)
        self.output = DenseOutput(inner, width, config.hidden_dropout_prob)
        self.output["LayerNorm"] = nn.LayerNorm(width, eps=config.layer_norm_eps)

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
        x = self.attention(x, mask, None, cache, weights)
        if other is not None:
            x = self.crossattention(x, across or AttentionMask(), other, cache, crossed)
        return self.output["LayerNorm"](x + intermediate_output(self.intermediate, self.output, x))


class BlipTextModel(nn.Module):
    """Words with positions, then layers; with `causal` each position sees only those before it.

    >>> config = votive.models.BlipTextConfig(vocab_size=10, hidden_size=8, intermediate_size=16, encoder_hidden_size=4,
    ...     num_hidden_layers=1, num_attention_heads=2)
    >>> model = votive.models.blip_text.BlipTextModel(config)
    >>> model(votive.tensor([[1, 2, 3]]), votive.ones(1, 5, 4))[0].last_hidden_state.shape
    votive.Size([1, 3, 8])
    """

    def __init__(self, config: BlipTextConfig) -> None:
        super().__init__()
        width, self.config = config.hidden_size, config
        self.embeddings = nn.ModuleDict(
            {
                "word_embeddings": nn.Embedding(config.vocab_size, width, padding_idx=config.pad_token_id),
                "position_embeddings": nn.Embedding(config.max_position_embeddings, width),
                "LayerNorm": nn.LayerNorm(width, eps=config.layer_norm_eps),
                "dropout": nn.Dropout(config.hidden_dropout_prob),
            }
        )
        self.encoder = nn.ModuleDict(
            {"layer": nn.ModuleList(BlipTextLayer(config, i) for i in range(config.num_hidden_layers))}
        )

    def forward(
        self,
        ids: Tensor,
        other: Tensor | None = None,
        mask: Tensor | None = None,
        other_mask: Tensor | None = None,
        cache: EncoderDecoderCache | None = None,
        causal: bool = False,
        attentions: bool = False,
        hidden: bool = False,
    ) -> tuple[BaseModelOutput, tuple[Tensor, ...] | None]:
        """States, and on request how much of what is seen each position looked at."""
        past, T = 0 if cache is None else cache.get_seq_length(), ids.shape[1]
        if past + T > self.config.max_position_embeddings:
            raise ValueError(
                f"BlipTextModel: the text has {past + T} tokens, the model was made for "
                f"max_position_embeddings={self.config.max_position_embeddings}; cut it."
            )
        places = votive.arange(past, past + T, device=ids.device).unsqueeze(0)
        x = self.embeddings["word_embeddings"](ids) + self.embeddings["position_embeddings"](places)
        x = self.embeddings["dropout"](self.embeddings["LayerNorm"](x))
        seen = causal_mask(mask, T, past + T, device=x.device) if causal else padding_mask(mask)
        across = None if other is None else padding_mask(other_mask)
        trace = Trace(attentions, hidden)
        crossed: list[Tensor] | None = [] if attentions and other is not None else None
        for layer in self.encoder["layer"]:
            trace.add_state(x)
            x = layer(x, seen, other, across, cache, trace.weights, crossed)
        trace.add_state(x)
        found = BaseModelOutput(last_hidden_state=x, hidden_states=trace.hidden_states, attentions=trace.attentions)
        return found, None if crossed is None else tuple(crossed)


class _Predictions(nn.Module):
    """A product, an activation and a norm, then scores of words."""

    def __init__(self, config: BlipTextConfig) -> None:
        super().__init__()
        width = config.hidden_size
        self.transform = nn.ModuleDict(
            {"dense": nn.Linear(width, width), "LayerNorm": nn.LayerNorm(width, eps=config.layer_norm_eps)}
        )
        self.act_fn = activation(config.hidden_act)
        self.decoder = nn.Linear(width, config.vocab_size)
        self.bias = nn.Parameter(votive.zeros(config.vocab_size))

    def forward(self, x: Tensor) -> Tensor:
        return self.decoder(self.transform["LayerNorm"](self.act_fn(self.transform["dense"](x))))


class BlipTextLMHeadModel(CausalLM):
    """A writer of texts about `encoder_hidden_states`, a picture's or a question's.

    >>> config = votive.models.BlipTextConfig(vocab_size=10, hidden_size=8, intermediate_size=16, encoder_hidden_size=4,
    ...     num_hidden_layers=1, num_attention_heads=2)
    >>> model = votive.models.blip_text.BlipTextLMHeadModel(config).eval()
    >>> model(votive.tensor([[1, 2]]), encoder_hidden_states=votive.ones(1, 5, 4)).logits.shape
    votive.Size([1, 2, 10])
    """

    config_class: ClassVar[type[Any]] = BlipTextConfig
    base_model_prefix = "bert"
    tied = {
        "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
        "cls.predictions.decoder.bias": "cls.predictions.bias",
    }

    def __init__(self, config: BlipTextConfig) -> None:
        super().__init__(config)
        self.bert = BlipTextModel(config)
        self.cls = nn.ModuleDict({"predictions": _Predictions(config)})
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        """The table of token embeddings."""
        return self.bert.embeddings["word_embeddings"]

    def get_output_embeddings(self) -> nn.Module:
        """What makes scores of words."""
        return self.cls["predictions"].decoder

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        encoder_hidden_states: Tensor | None = None,
        encoder_attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        past_key_values: Cache | None = None,
        use_cache: bool | None = None,
        output_attentions: bool = False,
        output_hidden_states: bool = False,
        logits_to_keep: int = 0,
        decoder_input_ids: Tensor | None = None,
        encoder_outputs: Encoded | tuple[Tensor, ...] | None = None,
    ) -> Seq2SeqLMOutput:
        """`labels` are the text itself; each position predicts the next, and -100 is left out.

        What searches texts calls the ids `decoder_input_ids` and what is looked at `encoder_outputs`, whose mask then
        is `attention_mask`.
        """
        if encoder_outputs is not None:
            input_ids, encoder_hidden_states = decoder_input_ids, encoded(encoder_outputs).last_hidden_state
            attention_mask, encoder_attention_mask = None, attention_mask
        if input_ids is None:
            raise ValueError("BlipTextLMHeadModel: give input_ids.")
        cache = EncoderDecoderCache.of(past_key_values) if past_key_values is not None or use_cache else None
        found, crossed = self.bert(
            input_ids,
            encoder_hidden_states,
            attention_mask,
            encoder_attention_mask,
            cache,
            True,
            output_attentions,
            output_hidden_states,
        )
        x = found.last_hidden_state
        logits = self.cls["predictions"](x[:, -logits_to_keep:] if logits_to_keep else x)
        loss = None
        if labels is not None:
            scores = logits[:, :-1].flatten(0, 1).float()
            loss = F.cross_entropy(scores, labels[:, 1:].flatten(), label_smoothing=self.config.label_smoothing)
        return Seq2SeqLMOutput(
            loss=loss,
            logits=logits,
            past_key_values=cache,
            decoder_hidden_states=found.hidden_states,
            decoder_attentions=found.attentions,
            cross_attentions=crossed,
        )
