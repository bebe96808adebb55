"""Marian, translators from one language to another. Junczys-Dowmunt et al. 2018, arXiv:1804.00344."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .encoder_decoder import Seq2SeqConfig, seq2seq_classes


@dataclass(kw_only=True)
class MarianConfig(Seq2SeqConfig):
    """The numbers of a Marian; both sides may have vocabularies of their own.

    >>> config = votive.models.MarianConfig(share_encoder_decoder_embeddings=False, decoder_vocab_size=9)
    >>> config.design.decoder.vocabulary
    9
    """

    model_type = "marian"

    vocab_size: int = 58101
    decoder_vocab_size: int | None = None
    share_encoder_decoder_embeddings: bool = True
    decoder_start_token_id: int | None = 58100
    pad_token_id: int | None = 58100
    eos_token_id: int | list[int] | None = 0
    bos_token_id: int | None = None
    forced_eos_token_id: int | list[int] | None = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.decoder_vocab_size = self.decoder_vocab_size or self.vocab_size

    def side(self, name: str) -> dict[str, Any]:
        found = super().side(name)
        if name == "decoder":
            own = self.vocab_size if self.share_encoder_decoder_embeddings else self.decoder_vocab_size
            found |= {"vocabulary": own, "scales_given": True}
        return found

    def choices(self) -> dict[str, Any]:
        return {
            "embedding_norm": False,
            "places": "sines",
            "places_offset": 0,
            "one_table": self.tie_word_embeddings and self.share_encoder_decoder_embeddings,
            "names_shared": self.share_encoder_decoder_embeddings,
        }


MarianModel, MarianMTModel, MarianForCausalLM = seq2seq_classes(
    "Marian", MarianConfig, heads=("ForConditionalGeneration", "ForCausalLM"), writes="MTModel"
)
