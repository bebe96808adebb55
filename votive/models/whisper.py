"""Whisper, an encoder of sound and a decoder of text. arXiv:2212.04356.

`whisper_layers.py` holds the layers, `votive.speech` what turns sound into mels and windows into a
text. Parameter names are those of Hugging Face checkpoints; OpenAI's are known too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import votive
from votive import nn

from ..io.source import WeightSource
from ..tensor import Tensor
from .config import Config
from .cross_cache import Cache
from .output import Seq2SeqLMOutput, Seq2SeqModelOutput
from .pretrained import PreTrainedModel
from .seq2seq import Encoded, answer, encoded, predicted, prepared, shifted
from .whisper_layers import WhisperDecoder, WhisperEncoder, sinusoids

if TYPE_CHECKING:
    from ..generation import GenerationConfig

# Width, layers and heads; the decoder of turbo alone has fewer layers.
_SIZES = {
    "tiny": (384, 4, 6),
    "base": (512, 6, 8),
    "small": (768, 12, 12),
    "medium": (1024, 24, 16),
    "large": (1280, 32, 20),
}
SIZES = (
    "tiny.en",
    "tiny",
    "base.en",
    "base",
    "small.en",
    "small",
    "medium.en",
    "medium",
    "large-v1",
    "large-v2",
    "large-v3",
    "large-v3-turbo",
    "large",
    "turbo",
)


@dataclass(kw_only=True)
class WhisperConfig(Config):
    """The numbers of a Whisper; `WhisperConfig.of_size("base")` knows those that were published.

    >>> votive.models.WhisperConfig.of_size("large-v3-turbo").decoder_layers
    4
    """

    model_type = "whisper"

    vocab_size: int = 51865
    num_mel_bins: int = 80
    encoder_layers: int = 4
    encoder_attention_heads: int = 6
    decoder_layers: int = 4
    decoder_attention_heads: int = 6
    decoder_ffn_dim: int = 1536
    encoder_ffn_dim: int = 1536
    encoder_layerdrop: float = 0.0
    decoder_layerdrop: float = 0.0
    decoder_start_token_id: int = 50257
    is_encoder_decoder: bool = True
    activation_function: str = "gelu"
    d_model: int = 384
    dropout: float = 0.0
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0
    init_std: float = 0.02
    scale_embedding: bool = False
    max_source_positions: int = 1500
    max_target_positions: int = 448
    pad_token_id: int | None = 50256
    bos_token_id: int | None = 50256
    eos_token_id: int | list[int] | None = 50256
    suppress_tokens: list[int] | None = None
    begin_suppress_tokens: list[int] | None = field(default_factory=lambda: [220, 50256])
    apply_spec_augment: bool = False
    median_filter_width: int = 7
    tie_word_embeddings: bool = True

    @classmethod
    def of_size(cls, name: str) -> Self:
        """The configuration of a published model: tiny, base, small, medium (each also with .en),
        large-v1, large-v2, large-v3 and large-v3-turbo; `large` and `turbo` are the newest.

        >>> votive.models.WhisperConfig.of_size("tiny.en").vocab_size
        51864
        """
        if name not in SIZES:
            raise ValueError(f"WhisperConfig.of_size: no {name!r}; known: {', '.join(SIZES)}.")
        name = {"large": "large-v3", "turbo": "large-v3-turbo"}.get(name, name)
        kind = name.removesuffix(".en").partition("-")[0]
        width, layers, heads = _SIZES[kind]
        english, third = name.endswith(".en"), "v3" in name
        # The vocabulary of English alone has one token less, and so all that follow.
        end = 50256 if english else 50257
        return cls(
            d_model=width,
            encoder_layers=layers,
            encoder_attention_heads=heads,
            decoder_layers=4 if name.endswith("turbo") else layers,
            decoder_attention_heads=heads,
            encoder_ffn_dim=4 * width,
            decoder_ffn_dim=4 * width,
            num_mel_bins=128 if third else 80,
            vocab_size=51864 if english else 51866 if third else 51865,
            decoder_start_token_id=end + 1,
            pad_token_id=end,
            bos_token_id=end,
            eos_token_id=end,
            begin_suppress_tokens=[220, end],
        )

    @property
    def hidden_size(self) -> int:
        return self.d_model

    @property
    def num_hidden_layers(self) -> int:
        return self.encoder_layers

    @property
    def num_attention_heads(self) -> int:
        return self.encoder_attention_heads

    @property
    def max_position_embeddings(self) -> int:
        return self.max_target_positions


class _Whisper(PreTrainedModel):
    """What all Whisper classes share."""

    config_class = WhisperConfig

    def init_weights(self, module: nn.Module) -> None:
        std = self.config.init_std
        if isinstance(module, (nn.Linear, nn.Embedding, nn.Conv1d)):
            nn.init.normal_(module.weight, std=std)
        if isinstance(module, (nn.Linear, nn.Conv1d)) and module.bias is not None:
            nn.init.zeros_(module.bias)
        if isinstance(module, nn.Embedding) and module.padding_idx is not None:
            nn.init.zeros_(module.weight[module.padding_idx])
        if isinstance(module, WhisperEncoder):
            table = module.embed_positions
            table.__dict__["_started"] = True  # or it would be drawn after this
            with votive.no_grad():
                table.weight.copy_(sinusoids(*table.weight.shape))

    def adapted(self, source: WeightSource) -> WeightSource:
        from .whisper_names import from_openai

        return from_openai(source)


class WhisperModel(_Whisper):
    """The encoder and the decoder without a head.

    >>> config = votive.models.WhisperConfig(vocab_size=60, d_model=8, encoder_layers=1,
    ...     decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=2,
    ...     max_source_positions=4, encoder_ffn_dim=8, decoder_ffn_dim=8, pad_token_id=50)
    >>> model = votive.models.WhisperModel(config)
    >>> ids = votive.tensor([[51, 52]])
    >>> model(votive.zeros(1, 80, 8), decoder_input_ids=ids).last_hidden_state.shape
    votive.Size([1, 2, 8])
    """

    ignored = (*PreTrainedModel.ignored, r"^proj_out\.")

    def __init__(self, config: WhisperConfig) -> None:
        super().__init__(config)
        self.encoder = WhisperEncoder(config)
        self.decoder = WhisperDecoder(config)
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        """The table of token embeddings."""
        return self.decoder.embed_tokens

    def get_encoder(self) -> WhisperEncoder:
        """What makes `encoder_outputs` of mels."""
        return self.encoder

    def freeze_encoder(self) -> None:
        """Let training leave the encoder as it is."""
        self.encoder.requires_grad_(False)

    def forward(
        self,
        input_features: Tensor | None = None,
        attention_mask: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        decoder_attention_mask: Tensor | None = None,
        encoder_outputs: Encoded | tuple[Tensor, ...] | None = None,
        past_key_values: Cache | None = None,
        decoder_inputs_embeds: Tensor | None = None,
        decoder_position_ids: Tensor | None = None,
        use_cache: bool | None = None,
        output_attentions: bool = False,
        output_hidden_states: bool = False,
    ) -> Seq2SeqModelOutput:
        wanted: dict[str, Any] = {"output_attentions": output_attentions, "output_hidden_states": output_hidden_states}
        if encoder_outputs is None:
            if input_features is None:
                raise ValueError(f"{type(self).__name__}: give input_features or encoder_outputs.")
            if self.config.apply_spec_augment and self.training:
                raise NotImplementedError(
                    f"{type(self).__name__}: apply_spec_augment is not supported; mask the mels "
                    "before, and set it to False."
                )
            encoder_outputs = self.encoder(input_features, attention_mask, **wanted)
        encoder = encoded(encoder_outputs)
        cache = prepared(self, past_key_values, use_cache, decoder_input_ids, decoder_inputs_embeds)
        found, crossed = self.decoder(
            self.embedded(decoder_input_ids, decoder_inputs_embeds),
            decoder_attention_mask,
            encoder.last_hidden_state,
            cache,
            decoder_position_ids,
            **wanted,
        )
        return answer(found, crossed, cache, encoder)


class WhisperForConditionalGeneration(_Whisper):
    """Whisper with a head that predicts the next token of what was said.

    >>> config = votive.models.WhisperConfig(vocab_size=60, d_model=8, encoder_layers=1,
    ...     decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=2,
    ...     max_source_positions=4, encoder_ffn_dim=8, decoder_ffn_dim=8, pad_token_id=50,
    ...     decoder_start_token_id=51)
    >>> model = votive.models.WhisperForConditionalGeneration(config)
    >>> model(votive.zeros(1, 80, 8), labels=votive.tensor([[3, 50]])).logits.shape
    votive.Size([1, 2, 60])
    """

    tied = {"proj_out.weight": "model.decoder.embed_tokens.weight"}
    # A step of a search needs the logits of its last position only.
    takes_logits_to_keep = True

    def __init__(self, config: WhisperConfig) -> None:
        super().__init__(config)
        self.model = WhisperModel(config)
        self.proj_out = nn.Linear(config.d_model, config.vocab_size, bias=False)
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        """The table of token embeddings."""
        return self.model.get_input_embeddings()

    def get_encoder(self) -> WhisperEncoder:
        """What makes `encoder_outputs` of mels."""
        return self.model.encoder

    def freeze_encoder(self) -> None:
        """Let training leave the encoder as it is."""
        self.model.freeze_encoder()

    def forward(
        self,
        input_features: Tensor | None = None,
        attention_mask: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        decoder_attention_mask: Tensor | None = None,
        encoder_outputs: Encoded | tuple[Tensor, ...] | None = None,
        past_key_values: Cache | None = None,
        decoder_inputs_embeds: Tensor | None = None,
        decoder_position_ids: Tensor | None = None,
        labels: Tensor | None = None,
        use_cache: bool | None = None,
        output_attentions: bool = False,
        output_hidden_states: bool = False,
        logits_to_keep: int = 0,
    ) -> Seq2SeqLMOutput:
        """As WhisperModel; from `labels` (-100 is left out) come the decoder's ids and the loss.

        With `logits_to_keep`, only so many last positions get logits.
        """
        if labels is not None and decoder_input_ids is None and decoder_inputs_embeds is None:
            decoder_input_ids = self.shifted(labels)
        found = self.model(
            input_features,
            attention_mask,
            decoder_input_ids,
            decoder_attention_mask,
            encoder_outputs,
            past_key_values,
            decoder_inputs_embeds,
            decoder_position_ids,
            use_cache,
            output_attentions,
            output_hidden_states,
        )
        x = found.last_hidden_state
        logits = self.proj_out(x[:, -logits_to_keep:] if logits_to_keep else x)
        return predicted(found, logits, labels)

    def shifted(self, labels: Tensor) -> Tensor:
        """What the decoder reads to predict `labels`: a start, then all but the last."""
        if labels.shape[1] > self.config.max_target_positions:
            raise ValueError(
                f"{type(self).__name__}: labels have {labels.shape[1]} positions and the model "
                f"{self.config.max_target_positions}."
            )
        return shifted(labels, self.config.decoder_start_token_id, self.config.pad_token_id)

    def generate(self, input_features: Tensor | None = None, **settings: Any) -> Any:
        """The tokens of what was said; see votive.speech.generate."""
        return votive.speech.generate(self, input_features, **settings)

    def detect_language(
        self,
        input_features: Tensor | None = None,
        encoder_outputs: Encoded | tuple[Tensor, ...] | None = None,
        generation_config: GenerationConfig | None = None,
    ) -> Any:
        """The token of the language of each recording, (batch,); see votive.speech."""
        return votive.speech.detect_language_ids(self, input_features, encoder_outputs, generation_config)
