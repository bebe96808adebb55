"""BlenderBot, which answers in conversations, large and small. Roller et al. 2020, arXiv:2004.13637."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .encoder_decoder import Seq2SeqConfig, seq2seq_classes

_HEADS = ("ForConditionalGeneration", "ForCausalLM")


@dataclass(kw_only=True)
class BlenderbotConfig(Seq2SeqConfig):
    """The numbers of a BlenderBot.

    >>> votive.models.BlenderbotConfig().search()["encoder_no_repeat_ngram_size"]
    3
    """

    model_type = "blenderbot"

    vocab_size: int = 8008
    max_position_embeddings: int = 128
    encoder_layers: int = 2
    encoder_ffn_dim: int = 10240
    encoder_attention_heads: int = 32
    decoder_layers: int = 24
    decoder_ffn_dim: int = 10240
    decoder_attention_heads: int = 32
    d_model: int = 2560
    decoder_start_token_id: int | None = 1
    pad_token_id: int | None = 0
    bos_token_id: int | None = 1
    encoder_no_repeat_ngram_size: int = 3
    forced_eos_token_id: int | list[int] | None = 2

    def choices(self) -> dict[str, Any]:
        return {"pre_norm": True, "last_norm": True, "embedding_norm": False, "places_offset": 0}


BlenderbotModel, BlenderbotForConditionalGeneration, BlenderbotForCausalLM = seq2seq_classes(
    "Blenderbot", BlenderbotConfig, heads=_HEADS
)


@dataclass(kw_only=True)
class BlenderbotSmallConfig(Seq2SeqConfig):
    """The numbers of a small BlenderBot, whose decoder norms embeddings before it adds positions.

    >>> votive.models.BlenderbotSmallConfig().design.decoder.norm_first
    True
    """

    model_type = "blenderbot-small"

    max_position_embeddings: int = 512
    encoder_layers: int = 8
    encoder_ffn_dim: int = 2048
    decoder_layers: int = 8
    decoder_ffn_dim: int = 2048
    d_model: int = 512
    decoder_start_token_id: int | None = 1
    pad_token_id: int | None = 0
    bos_token_id: int | None = 1
    forced_eos_token_id: int | list[int] | None = 2

    def side(self, name: str) -> dict[str, Any]:
        # The norm takes the scale away again.
        found = super().side(name)
        return {**found, "scale": 1.0, "norm_first": True} if name == "decoder" else found

    def choices(self) -> dict[str, Any]:
        return {"places_offset": 0}


BlenderbotSmallModel, BlenderbotSmallForConditionalGeneration, BlenderbotSmallForCausalLM = seq2seq_classes(
    "BlenderbotSmall", BlenderbotSmallConfig, heads=_HEADS
)
