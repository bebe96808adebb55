"""T5, an encoder and a decoder of texts; also T5 v1.1, Flan-T5 and mT5. arXiv:1910.10683.

`t5_stack.py` holds the layers. Parameter names are those of Hugging Face checkpoints.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar

import votive
from votive import nn

from ..io.source import WeightSource
from ..tensor import Tensor
from .config import Config, LabeledConfig
from .cross_cache import Cache
from .loading import differ
from .output import BaseModelOutput, Seq2SeqLMOutput, Seq2SeqModelOutput
from .pretrained import CausalLM, PreTrainedModel
from .seq2seq import Encoded, answer, encoded, predicted, prepared, shifted
from .t5_stack import T5Attention, T5Dense, T5Stack

# In files, of models with a head; a model without it leaves them.
_HEADS = (r"^lm_head\.", r"^(classification_head|classifier|qa_outputs)\.")


@dataclass(kw_only=True)
class T5Config(LabeledConfig):
    """The numbers of a T5. `scale_decoder_outputs` is true of the first T5 and false since v1.1.

    >>> config = votive.models.T5Config(feed_forward_proj="gated-gelu", num_layers=4)
    >>> config.is_gated, config.num_decoder_layers
    (True, 4)
    """

    model_type = "t5"
    # Each layer has distances of its own, not the first for all.
    own_distances: ClassVar[bool] = False

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
    tie_word_embeddings: bool | None = True  # type: ignore[assignment]  # null in some files
    scale_decoder_outputs: bool | None = None
    classifier_dropout: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.num_decoder_layers is None:
            self.num_decoder_layers = self.num_layers
        if self.decoder_start_token_id is None:
            self.decoder_start_token_id = self.pad_token_id
        if self.tie_word_embeddings is None:  # only a plain no means one
            self.tie_word_embeddings = True
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


class T5Base(PreTrainedModel):
    """What all T5 classes share."""

    config_class: ClassVar[type[Config]] = T5Config
    base_model_prefix = "transformer"
    ignored: ClassVar[tuple[str, ...]] = (
        r"^(transformer\.)?(encoder|decoder)\.embed_tokens\.weight$",  # the shared table
        r"EncDecAttention\.relative_attention_bias",  # in the first files, never used
    )

    def glass_parts(self) -> dict[str, Any]:
        """The steps of the blocks are the layers: each adds what its net says to the stream."""
        stack = getattr(self, "decoder", self.encoder)
        steps = [step for block in stack.block for step in block.layer]
        return {"layers": steps, "norm": stack.final_layer_norm}

    def get_input_embeddings(self) -> nn.Module:
        """The table of token embeddings, shared by encoder and decoder."""
        return self.shared

    def adapted(self, source: WeightSource) -> WeightSource:
        names = set(source.names())
        prefix = "transformer." if any(name.startswith("transformer.") for name in names) else ""
        table, shared = f"{prefix}encoder.embed_tokens.weight", f"{prefix}shared.weight"
        if shared not in names and table in names:
            source = source.renamed({table: shared})
        for name in sorted(n for n in names if re.search(self.ignored[0], n)):
            if shared in source and name in source and differ(source, name, shared):
                raise ValueError(
                    f"{type(self).__name__}: {name} is another table than {shared}; encoder "
                    "and decoder with embeddings of their own are not supported."
                )
        if hasattr(self, "lm_head") and not self.config.scale_decoder_outputs:
            # Since v1.1 the head may be the shared table or not; configurations do not tell.
            self.config.tie_word_embeddings = not _differs(source, "lm_head.weight")
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
        elif module is self and "shared" in self._modules:
            nn.init.normal_(self.shared.weight, std=factor)

    def encode(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        output_attentions: bool = False,
        output_hidden_states: bool = False,
    ) -> BaseModelOutput:
        """What the encoder makes of a text; `encoder_outputs` of a decoder that writes on."""
        found, _ = self.encoder(
            self.embedded(input_ids, inputs_embeds),
            attention_mask,
            output_attentions=output_attentions,
            output_hidden_states=output_hidden_states,
        )
        return found

    def shifted(self, labels: Tensor) -> Tensor:
        """What the decoder reads to predict `labels`: a start, then all but the last."""
        return shifted(labels, self.config.decoder_start_token_id, self.config.pad_token_id)


def _differs(source: WeightSource, name: str) -> bool:
    """Whether a file has such a tensor, and it is not the shared table again."""
    if name not in source or "shared.weight" not in source:
        return name in source
    return differ(source, name, "shared.weight")


class T5EncoderModel(T5Base):
    """T5's encoder alone, as text embeddings use it.

    >>> config = votive.models.T5Config(vocab_size=10, d_model=8, d_kv=4, d_ff=16, num_layers=1,
    ...     num_heads=2)
    >>> votive.models.T5EncoderModel(config)(votive.tensor([[3, 4, 1]])).last_hidden_state.shape
    votive.Size([1, 3, 8])
    """

    ignored = (*T5Base.ignored, r"^(transformer\.)?decoder\.", *_HEADS)

    def __init__(self, config: T5Config) -> None:
        super().__init__(config)
        self.shared = nn.Embedding(config.vocab_size, config.d_model)
        self.encoder = T5Stack(config, decoder=False)
        self.post_init()

    def forward(self, *args: Any, **kwargs: Any) -> BaseModelOutput:
        """As `encode`."""
        return self.encode(*args, **kwargs)


class T5Model(T5Base):
    """The encoder and the decoder without a head.

    >>> config = votive.models.T5Config(vocab_size=10, d_model=8, d_kv=4, d_ff=16, num_layers=1,
    ...     num_heads=2)
    >>> model = votive.models.T5Model(config)
    >>> ids = votive.tensor([[3, 4, 1]])
    >>> model(ids, decoder_input_ids=ids[:, :2]).last_hidden_state.shape
    votive.Size([1, 2, 8])
    """

    ignored = (*T5Base.ignored, *_HEADS)

    def __init__(self, config: T5Config) -> None:
        super().__init__(config)
        self.shared = nn.Embedding(config.vocab_size, config.d_model)
        self.encoder = T5Stack(config, decoder=False)
        self.decoder = T5Stack(config, decoder=True)
        self.add_head(config)
        self.post_init()

    def add_head(self, config: T5Config) -> None:
        """Nothing, here; a model that predicts has one."""

    def get_encoder(self) -> Any:
        """What makes `encoder_outputs` of ids and a mask."""
        return self.encode

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        decoder_attention_mask: Tensor | None = None,
        encoder_outputs: Encoded | tuple[Tensor, ...] | None = None,
        past_key_values: Cache | None = None,
        inputs_embeds: Tensor | None = None,
        decoder_inputs_embeds: Tensor | None = None,
        use_cache: bool | None = None,
        output_attentions: bool = False,
        output_hidden_states: bool = False,
    ) -> Seq2SeqModelOutput:
        wanted: dict[str, Any] = {"output_attentions": output_attentions, "output_hidden_states": output_hidden_states}
        if encoder_outputs is None:
            encoder_outputs = self.encode(input_ids, attention_mask, inputs_embeds, **wanted)
        encoder = encoded(encoder_outputs)
        cache = prepared(self, past_key_values, use_cache, decoder_input_ids, decoder_inputs_embeds)
        found, crossed = self.decoder(
            self.embedded(decoder_input_ids, decoder_inputs_embeds),
            decoder_attention_mask,
            encoder.last_hidden_state,
            attention_mask,
            cache,
            **wanted,
        )
        return answer(found, crossed, cache, encoder)


class T5ForConditionalGeneration(T5Model, CausalLM):
    """T5 with a head that predicts the next token of its text.

    >>> config = votive.models.T5Config(vocab_size=10, d_model=8, d_kv=4, d_ff=16, num_layers=1,
    ...     num_heads=2)
    >>> model = votive.models.T5ForConditionalGeneration(config)
    >>> model(votive.tensor([[3, 4, 1]]), labels=votive.tensor([[5, 1]])).logits.shape
    votive.Size([1, 2, 10])
    """

    tied = {"lm_head.weight": "shared.weight"}
    ignored = T5Base.ignored

    def add_head(self, config: T5Config) -> None:
        self.lm_head = nn.Linear(config.d_model, config.vocab_size, bias=False)
        nn.init.normal_(self.lm_head.weight, std=config.initializer_factor)

    def forward(self, *args: Any, labels: Tensor | None = None, **kwargs: Any) -> Seq2SeqLMOutput:  # type: ignore[override]
        """As T5Model; from `labels` (-100 is left out) come the decoder's ids and the loss."""
        given = kwargs.get("decoder_input_ids"), kwargs.get("decoder_inputs_embeds")
        if labels is not None and given == (None, None) and len(args) < 3:
            kwargs["decoder_input_ids"] = self.shifted(labels)
        found = super().forward(*args, **kwargs)
        x = found.last_hidden_state
        if self.config.scale_decoder_outputs:
            x = x * self.config.d_model**-0.5
        logits = self.lm_head(x)
        return predicted(found, logits, labels)
