"""A reader of pictures and a writer of texts as one model, as TrOCR is. Knows neither of the two.

Parameter names are those of Hugging Face checkpoints.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self

import votive
from votive import nn

from ..io.source import WeightSource
from ..tensor import Tensor
from .auto import AutoConfig, AutoModel, AutoModelForCausalLM
from .config import Config
from .cross_cache import Cache
from .output import Seq2SeqLMOutput
from .pretrained import CausalLM, PreTrainedModel
from .seq2seq import Encoded, answer, encoded, predicted, prepared, shifted

_IDS = ("bos_token_id", "eos_token_id", "pad_token_id", "decoder_start_token_id")


@dataclass(kw_only=True)
class VisionEncoderDecoderConfig(Config):
    """Both configurations; what is not said of tokens is the decoder's.

    >>> config = votive.models.VisionEncoderDecoderConfig(
    ...     encoder={"model_type": "vit"}, decoder={"model_type": "trocr", "d_model": 64})
    >>> config.decoder.hidden_size, config.decoder_start_token_id
    (64, 2)
    """

    model_type = "vision-encoder-decoder"

    encoder: Any = field(default_factory=dict)
    decoder: Any = field(default_factory=dict)
    decoder_start_token_id: int | None = None
    is_encoder_decoder: bool = True

    def __post_init__(self) -> None:
        for name in ("encoder", "decoder"):
            given = getattr(self, name)
            if isinstance(given, dict):
                if "model_type" not in given:
                    raise ValueError(
                        f"VisionEncoderDecoderConfig: {name} must be a configuration or a dict "
                        f"with a model_type, got {given!r}."
                    )
                setattr(self, name, AutoConfig.from_dict(given))
        self.decoder.is_decoder = True
        for name in _IDS:
            if getattr(self, name) is None:
                setattr(self, name, getattr(self.decoder, name, None))

    @classmethod
    def from_encoder_decoder_configs(cls, encoder: Any, decoder: Any, **values: Any) -> Self:
        """One configuration from two.

        >>> from votive.models import TrOCRConfig, ViTConfig, VisionEncoderDecoderConfig
        >>> VisionEncoderDecoderConfig.from_encoder_decoder_configs(
        ...     ViTConfig(), TrOCRConfig()).encoder.model_type
        'vit'
        """
        return cls(encoder=encoder, decoder=decoder, **values)

    @property
    def vocab_size(self) -> int:
        return self.decoder.vocab_size

    @property
    def hidden_size(self) -> int:
        return self.decoder.hidden_size

    @property
    def num_hidden_layers(self) -> int:
        return self.decoder.num_hidden_layers

    @property
    def max_position_embeddings(self) -> int:
        return self.decoder.max_position_embeddings

    def to_dict(self) -> dict[str, Any]:
        """What config.json holds, the two as objects in it."""
        parts = {n: getattr(self, n).to_dict() for n in ("encoder", "decoder")}
        return {**super().to_dict(), **parts}


class VisionEncoderDecoderModel(CausalLM):
    """A model that writes what it sees: TrOCR with a ViT, a DeiT or a BEiT.

    >>> from votive.models import TrOCRConfig, ViTConfig, VisionEncoderDecoderConfig
    >>> config = VisionEncoderDecoderConfig(
    ...     encoder=ViTConfig(image_size=16, patch_size=8, hidden_size=8, intermediate_size=16,
    ...         num_hidden_layers=1, num_attention_heads=2),
    ...     decoder=TrOCRConfig(vocab_size=10, d_model=8, decoder_layers=1,
    ...         decoder_attention_heads=2, decoder_ffn_dim=16))
    >>> model = votive.models.VisionEncoderDecoderModel(config).eval()
    >>> model.generate(votive.ones(1, 3, 16, 16), min_new_tokens=3, max_new_tokens=3).shape
    votive.Size([1, 4])
    """

    config_class = VisionEncoderDecoderConfig
    base_model_prefix = "vision_encoder_decoder"

    def __init__(self, config: Any = None, encoder: Any = None, decoder: Any = None) -> None:
        if config is None:
            if encoder is None or decoder is None:
                raise ValueError("VisionEncoderDecoderModel: give a configuration, or an encoder and a decoder.")
            config = VisionEncoderDecoderConfig(encoder=encoder.config, decoder=decoder.config)
        if not isinstance(config, VisionEncoderDecoderConfig):
            raise TypeError(
                "VisionEncoderDecoderModel: give a VisionEncoderDecoderConfig, or use "
                f"from_pretrained(path); got {type(config).__name__}."
            )
        if config.decoder.model_type != "trocr":
            raise ValueError(
                "VisionEncoderDecoderModel: only TrOCR's decoder can look at a picture here, got "
                f"{config.decoder.model_type!r}."
            )
        inner = config.decoder.cross_attention_hidden_size
        if inner is not None and inner != config.encoder.hidden_size:
            raise ValueError(
                f"VisionEncoderDecoderModel: the decoder's cross_attention_hidden_size={inner} "
                f"must be the encoder's hidden_size={config.encoder.hidden_size}."
            )
        super().__init__(config)
        self.encoder = AutoModel.from_config(config.encoder) if encoder is None else encoder
        self.decoder = AutoModelForCausalLM.from_config(config.decoder) if decoder is None else decoder
        if inner is None and config.encoder.hidden_size != config.decoder.hidden_size:
            self.enc_to_dec_proj = nn.Linear(config.encoder.hidden_size, config.decoder.hidden_size)
        self.post_init()

    @classmethod
    def from_encoder_decoder_pretrained(cls, encoder: Any, decoder: Any) -> Self:
        """A model from the folders of its two parts.

        >>> hasattr(votive.models.VisionEncoderDecoderModel, "from_encoder_decoder_pretrained")
        True
        """
        settings = AutoConfig.from_pretrained(decoder)
        settings.is_decoder = True
        # Attention to the picture is new to a decoder of texts, so it may be missing.
        writer = AutoModelForCausalLM.from_pretrained(decoder, config=settings, strict=False)
        return cls(encoder=AutoModel.from_pretrained(encoder), decoder=writer)

    def ties(self) -> dict[str, str]:
        """Those of the decoder; encoder and decoder share nothing."""
        found = {} if "decoder" not in self._modules else self.decoder.ties()
        return {f"decoder.{a}": f"decoder.{b}" for a, b in found.items()}

    def _tying(self) -> tuple[str, Any]:
        return "decoder.", self.decoder

    def _untie(self, names: list[str]) -> None:
        self.decoder._untie([name.removeprefix("decoder.") for name in names])

    def load_weights(self, source: WeightSource, **options: Any) -> Any:
        """Fill the parameters; the names of each part are what that part understands."""
        rules = {f"{n}.": _spelling(getattr(self, n)) for n in ("encoder", "decoder")}

        def named(name: str) -> str | None:
            for prefix, rule in rules.items():
                if name.startswith(prefix):
                    new = rule(name.removeprefix(prefix))
                    return None if new is None else prefix + new
            return name

        inside = [n.removeprefix("encoder.") for n in source.names() if n.startswith("encoder.")]
        if not any(n.startswith("pooler.") for n in inside):
            self.encoder.pooler = None  # nothing looks at it
        return super().load_weights(source.renamed(named), **options)

    def get_input_embeddings(self) -> nn.Module:
        """The decoder's table of token embeddings."""
        return self.decoder.get_input_embeddings()

    def get_encoder(self) -> Any:
        """What makes `encoder_outputs` of pictures."""
        return self.encoder

    def get_decoder(self) -> Any:
        """What writes."""
        return self.decoder

    def generate(self, pixel_values: Tensor | None = None, **kwargs: Any) -> Any:
        """Write what pictures (batch, channels, height, width) say; else as generation.generate."""
        from ..generation import generate

        if kwargs.get("encoder_outputs") is None:
            if pixel_values is None:
                raise ValueError("generate: give pixel_values, or encoder_outputs made from them.")
            wanted = {name: kwargs.get(name, False) for name in ("output_attentions", "output_hidden_states")}
            with votive.no_grad():
                kwargs["encoder_outputs"] = self.encoder(pixel_values.to(self.device), **wanted)
        return generate(self, **kwargs)

    def forward(
        self,
        pixel_values: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        decoder_attention_mask: Tensor | None = None,
        encoder_outputs: Encoded | tuple[Tensor, ...] | None = None,
        past_key_values: Cache | None = None,
        decoder_inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,
        use_cache: bool | None = None,
        output_attentions: bool = False,
        output_hidden_states: bool = False,
        attention_mask: Tensor | None = None,
        interpolate_pos_encoding: bool = False,
    ) -> Seq2SeqLMOutput:
        """From `labels` (-100 is left out) come the decoder's ids and the loss.

        `attention_mask` (batch, tokens of the picture) is 0 where the decoder is not to look.
        """
        wanted: dict[str, Any] = {"output_attentions": output_attentions, "output_hidden_states": output_hidden_states}
        if encoder_outputs is None:
            encoder_outputs = self.encoder(pixel_values, interpolate_pos_encoding=interpolate_pos_encoding, **wanted)
        encoder = encoded(encoder_outputs)
        x = encoder.last_hidden_state
        if hasattr(self, "enc_to_dec_proj"):
            x = self.enc_to_dec_proj(x)
        if labels is not None and decoder_input_ids is None and decoder_inputs_embeds is None:
            decoder_input_ids = self.shifted(labels)
        cache = prepared(self, past_key_values, use_cache, decoder_input_ids, decoder_inputs_embeds)
        found = self.decoder(
            decoder_input_ids,
            attention_mask=decoder_attention_mask,
            encoder_hidden_states=x,
            encoder_attention_mask=attention_mask,
            past_key_values=cache,
            inputs_embeds=decoder_inputs_embeds,
            use_cache=use_cache,
            **wanted,
        )
        made = answer(found, found.cross_attentions, found.past_key_values, encoder)
        return predicted(made, found.logits, labels)

    def shifted(self, labels: Tensor) -> Tensor:
        """What the decoder reads to write `labels`: a start, then all but the last."""
        start, pad = self.config.decoder_start_token_id, self.config.pad_token_id
        if start is None or pad is None:
            raise ValueError(
                "VisionEncoderDecoderModel: labels need decoder_start_token_id and pad_token_id in the configuration."
            )
        return shifted(labels, start, pad)


def _spelling(part: PreTrainedModel) -> Callable[[str], str | None]:
    """How a part's names in files become its own; None for what it does not need."""

    def rule(name: str) -> str | None:
        for pattern, new in part.renames.items():
            name = re.sub(pattern, new, name)
        return None if any(re.search(p, name) for p in part.ignored) else name

    return rule
