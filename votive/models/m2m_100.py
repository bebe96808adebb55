"""M2M100, which translates between a hundred languages, and NLLB, between two hundred. arXiv:2010.11125, 2207.04672."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .encoder_decoder import Seq2SeqConfig, seq2seq_classes


@dataclass(kw_only=True)
class M2M100Config(Seq2SeqConfig):
    """The numbers of an M2M100; files of NLLB say the same.

    >>> votive.models.M2M100Config().design.places
    'counted'
    """

    model_type = "m2m_100"

    vocab_size: int = 128112
    encoder_layerdrop: float = 0.05
    decoder_layerdrop: float = 0.05
    activation_function: str = "relu"
    attention_dropout: float = 0.1
    decoder_start_token_id: int | None = 2
    scale_embedding: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.pad_token_id is None:
            raise ValueError("M2M100Config: positions are counted from behind pad_token_id, so there must be one.")

    def choices(self) -> dict[str, Any]:
        return {"pre_norm": True, "last_norm": True, "embedding_norm": False, "places": "counted", "head_bias": False}


M2M100Model, M2M100ForConditionalGeneration = seq2seq_classes(
    "M2M100", M2M100Config, heads=("ForConditionalGeneration",)
)
