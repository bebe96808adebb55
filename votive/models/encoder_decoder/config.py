"""What configurations of encoders with decoders share: sizes in the words of BART, and the design that follows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from ..config import LabeledConfig
from .design import Seq2SeqDesign, Side

# Settings of a search that files from before generation_config.json say in config.json.
SEARCH = (
    "forced_bos_token_id", "forced_eos_token_id", "num_beams", "length_penalty", "early_stopping", "max_length",
    "min_length", "no_repeat_ngram_size", "encoder_no_repeat_ngram_size", "repetition_penalty", "bad_words_ids",
)  # fmt: skip


@dataclass(kw_only=True)
class Seq2SeqConfig(LabeledConfig):
    """A configuration in the words of BART; families say in `choices` where they differ from it.

    >>> votive.models.BartConfig(encoder_layers=3, d_model=64).num_hidden_layers
    3
    """

    # How many classes there are where files do not say.
    classes: ClassVar[int] = 2

    vocab_size: int = 50265
    max_position_embeddings: int = 1024
    encoder_layers: int = 12
    encoder_ffn_dim: int = 4096
    encoder_attention_heads: int = 16
    decoder_layers: int = 12
    decoder_ffn_dim: int = 4096
    decoder_attention_heads: int = 16
    encoder_layerdrop: float = 0.0
    decoder_layerdrop: float = 0.0
    activation_function: str = "gelu"
    d_model: int = 1024
    dropout: float = 0.1
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0
    classifier_dropout: float = 0.0
    init_std: float = 0.02
    scale_embedding: bool = False
    is_encoder_decoder: bool = True
    is_decoder: bool = False
    pad_token_id: int | None = 1
    bos_token_id: int | None = 0
    eos_token_id: int | list[int] | None = 2
    decoder_start_token_id: int | None = None
    forced_bos_token_id: int | None = None
    forced_eos_token_id: int | list[int] | None = None
    tie_word_embeddings: bool = True

    def __post_init__(self) -> None:
        if self.id2label is None and self.num_labels is None:
            self.num_labels = self.classes
        super().__post_init__()

    @classmethod
    def adapt(cls, values: dict[str, Any]) -> dict[str, Any]:
        values = super().adapt(values)
        for other, name in (
            ("hidden_size", "d_model"),
            ("num_hidden_layers", "encoder_layers"),
            ("num_attention_heads", "encoder_attention_heads"),
        ):
            if other in values:
                found = values.pop(other)
                values.setdefault(name, found)
        return values

    @property
    def hidden_size(self) -> int:
        return self.d_model

    @property
    def num_hidden_layers(self) -> int:
        return self.encoder_layers

    @property
    def num_attention_heads(self) -> int:
        return self.encoder_attention_heads

    def choices(self) -> dict[str, Any]:
        """Fields of the design that are not a BART's."""
        return {}

    def side(self, name: str) -> dict[str, Any]:
        """Fields of one of the two stacks."""
        return {
            "vocabulary": self.vocab_size,
            "layers": getattr(self, f"{name}_layers"),
            "heads": getattr(self, f"{name}_attention_heads"),
            "inner": getattr(self, f"{name}_ffn_dim"),
            "positions": self.max_position_embeddings,
            "scale": math.sqrt(self.d_model) if self.scale_embedding else 1.0,
            "layer_drop": getattr(self, f"{name}_layerdrop"),
        }

    @property
    def design(self) -> Seq2SeqDesign:
        """What the model is made of."""
        sizes = {
            "width": self.d_model,
            "encoder": Side(**self.side("encoder")),
            "decoder": Side(**self.side("decoder")),
            "act": self.activation_function,
            "dropout": self.dropout,
            "attention_dropout": self.attention_dropout,
            "net_dropout": self.activation_dropout,
            "embedding_norm": True,
            "places_offset": 2,
            "padding": self.pad_token_id,
            "one_table": self.tie_word_embeddings,
        }
        return Seq2SeqDesign(**{**sizes, **self.choices()})

    def search(self) -> dict[str, Any]:
        """Settings of a search, as a model has them that comes without a generation_config.json.

        >>> votive.models.BartConfig().search()
        {'forced_eos_token_id': 2}
        """
        found = {name: getattr(self, name, None) for name in SEARCH}
        return {name: value for name, value in found.items() if value is not None}
