"""T5, an encoder and a decoder of texts; also T5 v1.1, Flan-T5 and mT5. arXiv:1910.10683.

Attention knows positions only by a learned bias per distance, which the first layer has and all
share; it is not scaled. Parameter names are those of Hugging Face checkpoints.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

import votive
from votive import nn
from votive.nn import functional as F

from .attention import Sight, attend, attention_weights, causal_sight, full_sight
from .config import Config
from .cross_cache import EncoderDecoderCache
from .output import BaseModelOutput, Seq2SeqLMOutput, Seq2SeqModelOutput
from .pretrained import PreTrainedModel, activation


@dataclass(kw_only=True)
class T5Config(Config):
    """The numbers of a T5. `scale_decoder_outputs` is true of the first T5 and false since v1.1.

    >>> config = votive.models.T5Config(feed_forward_proj="gated-gelu", num_layers=4)
    >>> config.is_gated, config.num_decoder_layers
    (True, 4)
    """

    model_type = "t5"

    vocab_size: int = 32128
    d_model: int = 512
    d_kv: int = 64
    d_ff: int = 2048
    num_layers: int = 6
    num_decoder_layers: int | None = None
    num_heads: int = 8
    relative_attention_num_buckets: int = 32
    relative_attention_max_distance: int = 128
    dropout_rate: float = 0.1
    layer_norm_epsilon: float = 1e-6
    initializer_factor: float = 1.0
    feed_forward_proj: str = "relu"
    is_encoder_decoder: bool = True
    pad_token_id: int | None = 0
    eos_token_id: int | list[int] | None = 1
    decoder_start_token_id: int | None = None
    tie_word_embeddings: bool = True
    scale_decoder_outputs: bool | None = None

    def __post_init__(self) -> None:
        if self.num_decoder_layers is None:
            self.num_decoder_layers = self.num_layers
        if self.decoder_start_token_id is None:
            self.decoder_start_token_id = self.pad_token_id
        if self.scale_decoder_outputs is None:
            self.scale_decoder_outputs = self.tie_word_embeddings
        kind = self.feed_forward_proj.split("-")
        if len(kind) > 2 or (len(kind) == 2 and kind[0] != "gated"):
            raise ValueError(
                "T5Config: feed_forward_proj must be an activation or 'gated-' and one, got "
                f"{self.feed_forward_proj!r}."
            )

    @property
    def is_gated(self) -> bool:
        return self.feed_forward_proj.startswith("gated-")

    @property
    def act(self) -> str:
        # Written so in all files, but trained with the other form.
        if self.feed_forward_proj == "gated-gelu":
            return "gelu_new"
        return self.feed_forward_proj.split("-")[-1]

    @property
    def hidden_size(self) -> int:
        return self.d_model

    @property
    def num_hidden_layers(self) -> int:
        return self.num_layers

    @property
    def num_attention_heads(self) -> int:
        return self.num_heads

    def to_dict(self) -> dict[str, Any]:
        # Files say by this whether the head is scaled; whether it is shared shows in the weights.
        return {**super().to_dict(), "tie_word_embeddings": self.scale_decoder_outputs}


def distance_buckets(buckets: int, furthest: int, both_ways: bool) -> np.ndarray:
    """The bucket of each distance 0, 1, … `furthest`: exact when near, coarser with its logarithm.

    >>> from votive.models.t5 import distance_buckets
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


class T5Attention(nn.Module):
    """Attention to the own text, or to another; the first of a stack holds the bias."""

    def __init__(self, config: Any, layer_idx: int, *, causal: bool, bias: bool) -> None:
        super().__init__()
        self.layer_idx, self.heads, self.causal = layer_idx, config.num_heads, causal
        self.dropout = config.dropout_rate
        inner = config.num_heads * config.d_kv
        self.q = nn.Linear(config.d_model, inner, bias=False)
        self.k = nn.Linear(config.d_model, inner, bias=False)
        self.v = nn.Linear(config.d_model, inner, bias=False)
        self.o = nn.Linear(inner, config.d_model, bias=False)
        if bias:
            count, self.furthest = (
                config.relative_attention_num_buckets, config.relative_attention_max_distance
            )  # fmt: skip
            self.relative_attention_bias = nn.Embedding(count, config.num_heads)
            table = distance_buckets(count, self.furthest, both_ways=not causal)
            self.register_buffer("buckets", votive.from_numpy(table), persistent=False)
            self.half = 0 if causal else count // 2

    def bias(self, queries: int, keys: int) -> Any:
        """What is added to the scores of the last `queries` of `keys` positions."""
        device = self.buckets.device
        at = votive.arange(keys - queries, keys, device=device).unsqueeze(1)
        ahead = votive.arange(keys, device=device) - at  # (queries, keys)
        # What a causal layer does not see counts as here.
        distance = (-ahead).clamp(min=0) if self.causal else ahead.abs()
        bucket = self.buckets[distance.clamp(max=self.furthest)]
        if self.half:
            bucket = bucket + (ahead > 0).long() * self.half
        return self.relative_attention_bias(bucket).permute(2, 0, 1).unsqueeze(0)  # (1, H, Q, K)

    def split(self, x: Any) -> Any:
        return x.view(*x.shape[:2], self.heads, -1).transpose(1, 2)  # (B, H, T, D)

    def forward(
        self, x: Any, sight: Sight, other: Any = None, cache: Any = None, weights: bool = False
    ) -> tuple[Any, Any]:
        text = x if other is None else other
        q = self.split(self.q(x))

        def pair() -> tuple[Any, Any]:
            return self.split(self.k(text)), self.split(self.v(text))

        if cache is None:
            k, v = pair()
        elif other is None:
            k, v = cache.update(*pair(), self.layer_idx)
        else:
            k, v = cache.cross(self.layer_idx, pair)
        dropout = self.dropout if self.training else 0.0
        y = attend(q, k, v, sight, dropout=dropout, scale=1.0)
        seen = attention_weights(q, k, sight, scale=1.0) if weights else None
        return self.o(y.transpose(1, 2).flatten(2)), seen


class T5Part(nn.Module):
    """One step of a block: norm, net, and what comes out is added to what came in."""

    def __init__(self, config: Any, name: str, net: nn.Module) -> None:
        super().__init__()
        self.name = name
        setattr(self, name, net)
        self.layer_norm = nn.RMSNorm(config.d_model, eps=config.layer_norm_epsilon)
        self.dropout = nn.Dropout(config.dropout_rate)

    def forward(self, x: Any, *args: Any) -> tuple[Any, Any]:
        y = getattr(self, self.name)(self.layer_norm(x), *args)
        y, seen = y if isinstance(y, tuple) else (y, None)
        x = x + self.dropout(y)
        if x.dtype == votive.float16:
            # The models were trained in bfloat16, whose range is wider.
            most = votive.finfo(x.dtype).max - 1000
            x = x.clamp(-most, most)
        return x, seen


class T5Dense(nn.Module):
    """`wo(act(wi(x)))`, or with a gate `wo(act(wi_0(x)) * wi_1(x))`."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.gated = config.is_gated
        for name in ("wi_0", "wi_1") if self.gated else ("wi",):
            setattr(self, name, nn.Linear(config.d_model, config.d_ff, bias=False))
        self.wo = nn.Linear(config.d_ff, config.d_model, bias=False)
        self.dropout = nn.Dropout(config.dropout_rate)
        self.act_fn = activation(config.act)

    def forward(self, x: Any) -> Any:
        y = self.act_fn(self.wi_0(x)) * self.wi_1(x) if self.gated else self.act_fn(self.wi(x))
        return self.wo(self.dropout(y))


class T5Block(nn.Module):
    """Attention to the own text, in a decoder also to the encoder's, then the MLP."""

    def __init__(self, config: Any, layer_idx: int, *, decoder: bool) -> None:
        super().__init__()
        own = T5Attention(config, layer_idx, causal=decoder, bias=layer_idx == 0)
        self.layer = nn.ModuleList([T5Part(config, "SelfAttention", own)])
        if decoder:
            other = T5Attention(config, layer_idx, causal=False, bias=False)
            self.layer.append(T5Part(config, "EncDecAttention", other))
        self.layer.append(T5Part(config, "DenseReluDense", T5Dense(config)))


class T5Stack(nn.Module):
    """Blocks, and a norm; an encoder, or a decoder that looks at what an encoder gave."""

    def __init__(self, config: Any, *, decoder: bool) -> None:
        super().__init__()
        self.decoder = decoder
        count = config.num_decoder_layers if decoder else config.num_layers
        self.block = nn.ModuleList(T5Block(config, i, decoder=decoder) for i in range(count))
        self.final_layer_norm = nn.RMSNorm(config.d_model, eps=config.layer_norm_epsilon)
        self.dropout = nn.Dropout(config.dropout_rate)

    def forward(
        self, x: Any, attention_mask: Any = None, other: Any = None, other_mask: Any = None,
        cache: Any = None, output_attentions: bool = False, output_hidden_states: bool = False,
    ) -> tuple[BaseModelOutput, Any]:  # fmt: skip
        T = x.shape[1]
        keys = T + (0 if cache is None else cache.get_seq_length())
        if self.decoder:
            sight = causal_sight(attention_mask, T, keys, like=x)
        else:
            sight = full_sight(attention_mask)
        sight = _biased(self.block[0].layer[0].SelfAttention.bias(T, keys), sight)
        across = full_sight(other_mask) if other is not None else Sight()
        x = self.dropout(x)
        states, attentions, crossed = [], [], []
        for block in self.block:
            if output_hidden_states:
                states.append(x)
            x, seen = block.layer[0](x, sight, None, cache, output_attentions)
            attentions.append(seen)
            if other is not None:
                x, seen = block.layer[1](x, across, other, cache, output_attentions)
                crossed.append(seen)
            x, _ = block.layer[-1](x)
        x = self.dropout(self.final_layer_norm(x))
        if output_hidden_states:
            states.append(x)
        found = BaseModelOutput(
            last_hidden_state=x, past_key_values=cache,
            hidden_states=tuple(states) if output_hidden_states else None,
            attentions=tuple(attentions) if output_attentions else None,
        )  # fmt: skip
        return found, tuple(crossed) if output_attentions and crossed else None


def _biased(bias: Any, sight: Sight) -> Sight:
    """The bias, and minus infinity where a query does not see a key."""
    mask = sight.mask
    if sight.is_causal:
        mask = votive.ones(bias.shape[-2:], dtype=votive.bool, device=bias.device).tril()
    if mask is None:
        return Sight(bias)
    if mask.dtype != votive.bool:
        return Sight(bias + mask)
    return Sight(bias.masked_fill(~mask, -math.inf))


class _T5(PreTrainedModel):
    """What all T5 classes share."""

    config_class: Any = T5Config
    base_model_prefix = "transformer"
    ignored = (
        r"^(encoder|decoder)\.embed_tokens\.weight$",  # the shared table
        r"EncDecAttention\.relative_attention_bias",  # in the first files, never used
    )

    def get_input_embeddings(self) -> Any:
        """The table of token embeddings, shared by encoder and decoder."""
        return self.shared

    def adapted(self, source: Any) -> Any:
        names = set(source.names())
        table = "encoder.embed_tokens.weight"
        if "shared.weight" not in names and table in names:
            source = source.renamed({table: "shared.weight"})
        if hasattr(self, "lm_head") and not self.config.scale_decoder_outputs:
            self.config.tie_word_embeddings = "lm_head.weight" not in names
            self.lm_head.weight = nn.Parameter(votive.empty_like(self.shared.weight))
            self.tie_weights()
        return source

    def init_weights(self, module: nn.Module) -> None:
        """Start values after the widths, so that scores need no scaling."""
        config, factor = self.config, self.config.initializer_factor
        wide, inner = config.d_model**-0.5, (config.num_heads * config.d_kv) ** -0.5
        if isinstance(module, T5Attention):
            nn.init.normal_(module.q.weight, std=factor * (config.d_model * config.d_kv) ** -0.5)
            nn.init.normal_(module.k.weight, std=factor * wide)
            nn.init.normal_(module.v.weight, std=factor * wide)
            nn.init.normal_(module.o.weight, std=factor * inner)
            if hasattr(module, "relative_attention_bias"):
                nn.init.normal_(module.relative_attention_bias.weight, std=factor * wide)
        elif isinstance(module, T5Dense):
            for name, p in module.named_parameters():
                std = config.d_ff**-0.5 if name.startswith("wo") else wide
                nn.init.normal_(p, std=factor * std)
        elif module is self:
            nn.init.normal_(self.shared.weight, std=factor)
            if hasattr(self, "lm_head"):
                nn.init.normal_(self.lm_head.weight, std=factor)

    def encode(self, input_ids: Any, inputs_embeds: Any, attention_mask: Any, **wanted: Any) -> Any:
        """What the encoder makes of a text."""
        x = self.embedded(input_ids, inputs_embeds)
        return self.encoder(x, attention_mask, **wanted)[0]


class T5EncoderModel(_T5):
    """T5's encoder alone, as text embeddings use it.

    >>> config = votive.models.T5Config(vocab_size=10, d_model=8, d_kv=4, d_ff=16, num_layers=1,
    ...     num_heads=2)
    >>> votive.models.T5EncoderModel(config)(votive.tensor([[3, 4, 1]])).last_hidden_state.shape
    votive.Size([1, 3, 8])
    """

    ignored = (*_T5.ignored, r"^decoder\.", r"^lm_head\.")

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.shared = nn.Embedding(config.vocab_size, config.d_model)
        self.encoder = T5Stack(config, decoder=False)
        self.post_init()

    def forward(
        self, input_ids: Any = None, attention_mask: Any = None, inputs_embeds: Any = None,
        output_attentions: bool = False, output_hidden_states: bool = False,
    ) -> BaseModelOutput:  # fmt: skip
        return self.encode(
            input_ids, inputs_embeds, attention_mask, output_attentions=output_attentions,
            output_hidden_states=output_hidden_states,
        )  # fmt: skip


class T5Model(_T5):
    """The encoder and the decoder without a head.

    >>> config = votive.models.T5Config(vocab_size=10, d_model=8, d_kv=4, d_ff=16, num_layers=1,
    ...     num_heads=2)
    >>> model = votive.models.T5Model(config)
    >>> ids = votive.tensor([[3, 4, 1]])
    >>> model(ids, decoder_input_ids=ids[:, :2]).last_hidden_state.shape
    votive.Size([1, 2, 8])
    """

    ignored = (*_T5.ignored, r"^lm_head\.")

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.shared = nn.Embedding(config.vocab_size, config.d_model)
        self.encoder = T5Stack(config, decoder=False)
        self.decoder = T5Stack(config, decoder=True)
        self.post_init()

    def get_encoder(self) -> Any:
        """What `encoder_outputs` come from: called with ids and a mask."""
        return self.encoder_of

    def encoder_of(self, input_ids: Any = None, attention_mask: Any = None, **wanted: Any) -> Any:
        """What the encoder makes of a text; give it as `encoder_outputs` to decode step by step."""
        embeds = wanted.pop("inputs_embeds", None)
        return self.encode(input_ids, embeds, attention_mask, **wanted)

    def forward(
        self, input_ids: Any = None, attention_mask: Any = None, decoder_input_ids: Any = None,
        decoder_attention_mask: Any = None, encoder_outputs: Any = None,
        past_key_values: Any = None, inputs_embeds: Any = None, decoder_inputs_embeds: Any = None,
        use_cache: bool | None = None, output_attentions: bool = False,
        output_hidden_states: bool = False,
    ) -> Seq2SeqModelOutput:  # fmt: skip
        wanted: dict[str, Any] = {
            "output_attentions": output_attentions, "output_hidden_states": output_hidden_states
        }  # fmt: skip
        if encoder_outputs is None:
            encoder_outputs = self.encode(input_ids, inputs_embeds, attention_mask, **wanted)
        elif not isinstance(encoder_outputs, BaseModelOutput):
            encoder_outputs = BaseModelOutput(last_hidden_state=encoder_outputs[0])
        cache = past_key_values
        if cache is not None or use_cache:
            cache = EncoderDecoderCache.of(cache)
        if decoder_input_ids is None and decoder_inputs_embeds is None:
            raise ValueError(
                f"{type(self).__name__}: the decoder needs decoder_input_ids; a text begins with "
                f"decoder_start_token_id={self.config.decoder_start_token_id}."
            )
        found, crossed = self.decoder(
            self.embedded(decoder_input_ids, decoder_inputs_embeds), decoder_attention_mask,
            encoder_outputs.last_hidden_state, attention_mask, cache, **wanted,
        )  # fmt: skip
        return Seq2SeqModelOutput(
            last_hidden_state=found.last_hidden_state, past_key_values=cache,
            decoder_hidden_states=found.hidden_states, decoder_attentions=found.attentions,
            cross_attentions=crossed, encoder_last_hidden_state=encoder_outputs.last_hidden_state,
            encoder_hidden_states=encoder_outputs.hidden_states,
            encoder_attentions=encoder_outputs.attentions,
        )  # fmt: skip


class T5ForConditionalGeneration(T5Model):
    """T5 with a head that predicts the next token of its text.

    >>> config = votive.models.T5Config(vocab_size=10, d_model=8, d_kv=4, d_ff=16, num_layers=1,
    ...     num_heads=2)
    >>> model = votive.models.T5ForConditionalGeneration(config)
    >>> model(votive.tensor([[3, 4, 1]]), labels=votive.tensor([[5, 1]])).logits.shape
    votive.Size([1, 2, 10])
    """

    tied = {"lm_head.weight": "shared.weight"}
    ignored = _T5.ignored

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.lm_head = nn.Linear(config.d_model, config.vocab_size, bias=False)
        self.post_init()

    def forward(self, *args: Any, labels: Any = None, **kwargs: Any) -> Seq2SeqLMOutput:  # type: ignore[override]
        """As T5Model; from `labels` (-100 is left out) come the decoder's ids and the loss."""
        told = kwargs.get("decoder_input_ids"), kwargs.get("decoder_inputs_embeds")
        if labels is not None and told == (None, None) and len(args) < 3:
            kwargs["decoder_input_ids"] = self.shifted(labels)
        found = super().forward(*args, **kwargs)
        x = found.last_hidden_state
        if self.config.scale_decoder_outputs:
            x = x * self.config.d_model**-0.5
        logits = self.lm_head(x)
        loss = None
        if labels is not None:
            loss = F.cross_entropy(logits.flatten(0, 1).float(), labels.flatten())
        rest = {k: v for k, v in found.items() if k != "last_hidden_state"}
        return Seq2SeqLMOutput(loss=loss, logits=logits, **rest)

    def shifted(self, labels: Any) -> Any:
        """What the decoder reads to predict `labels`: a start, then all but the last."""
        start = votive.full_like(labels[:, :1], self.config.decoder_start_token_id)
        ids = votive.cat([start, labels[:, :-1]], 1)
        return ids.masked_fill(ids == -100, self.config.pad_token_id)


@dataclass(kw_only=True)
class MT5Config(T5Config):
    """The numbers of an mT5: a T5 v1.1 of many languages.

    >>> votive.models.MT5Config().scale_decoder_outputs
    False
    """

    model_type = "mt5"

    vocab_size: int = 250112
    d_ff: int = 1024
    num_layers: int = 8
    num_heads: int = 6
    feed_forward_proj: str = "gated-gelu"
    tie_word_embeddings: bool = False


class MT5EncoderModel(T5EncoderModel):
    """mT5's encoder alone."""

    config_class = MT5Config


class MT5Model(T5Model):
    """mT5 without a head."""

    config_class = MT5Config


class MT5ForConditionalGeneration(T5ForConditionalGeneration):
    """mT5 with its head."""

    config_class = MT5Config
