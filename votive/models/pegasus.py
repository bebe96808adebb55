"""PEGASUS, which was trained to write the sentences that a text misses most. Zhang et al. 2019, arXiv:1912.08777."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .encoder_decoder import Seq2SeqConfig, seq2seq_classes


@dataclass(kw_only=True)
class PegasusConfig(Seq2SeqConfig):
    """The numbers of a PEGASUS.

    >>> votive.models.PegasusConfig().design.places
    'sines'
    """

    model_type = "pegasus"

    decoder_start_token_id: int | None = 0
    pad_token_id: int | None = 0
    bos_token_id: int | None = None
    eos_token_id: int | list[int] | None = 1
    forced_eos_token_id: int | list[int] | None = 1

    def side(self, name: str) -> dict[str, Any]:
        return {**super().side(name), "scales_given": name == "decoder"}

    def choices(self) -> dict[str, Any]:
        return {"pre_norm": True, "last_norm": True, "embedding_norm": False, "places": "sines", "places_offset": 0}


PegasusModel, PegasusForConditionalGeneration, PegasusForCausalLM = seq2seq_classes(
    "Pegasus", PegasusConfig, heads=("ForConditionalGeneration", "ForCausalLM")
)
