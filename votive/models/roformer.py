"""RoFormer, a BERT whose positions are rotations. Su et al. 2021, arXiv:2104.09864."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import votive

from ..tensor import Tensor
from .decoder.design import Rope
from .output import EncoderOutput
from .sine_tables import paired_sines
from .text_encoder import EncoderConfig, EncoderModel, encoder_classes
from .text_encoder.model import EncoderBase


@dataclass(kw_only=True)
class RoFormerConfig(EncoderConfig):
    """The numbers of a RoFormer.

    >>> votive.models.RoFormerConfig().embedding_size
    768
    """

    model_type = "roformer"

    vocab_size: int = 50000
    embedding_size: int | None = None
    max_position_embeddings: int = 1536
    type_vocab_size: int = 2
    rotary_value: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.embedding_size is None:
            self.embedding_size = self.hidden_size

    def choices(self) -> dict[str, Any]:
        return {
            "narrow": self.embedding_size,
            "project": "embeddings_project",
            "places": "",
            "ropes": (Rope(interleaved=True),),
            "turns_values": self.rotary_value,
            "pooler": "",
            "pools": False,
        }

    def heads(self) -> dict[str, Any]:
        summary = {
            "kind": self.extra.get("summary_type", "last"),
            "product": self.extra.get("summary_use_proj", False),
            "act": self.extra.get("summary_activation"),
            "dropout": self.extra.get("summary_last_dropout", 0.0),
        }
        return {"classify": "net", "classify_act": self.hidden_act, "choose": "summary", "extra": summary}


_ANGLES = r"encoder\.embed_positions\.weight$"


class _Filed(EncoderBase):
    """Files have the sines of positions, although they are no weights."""

    def filed(self, weights: dict[str, Any]) -> dict[str, Any]:
        config, prefix = self.config, "" if self.bare is self else f"{self.base_model_prefix}."
        head = config.hidden_size // config.num_attention_heads
        table = votive.from_numpy(paired_sines(config.max_position_embeddings, head)).to(self.dtype)
        return {**weights, f"{prefix}encoder.embed_positions.weight": table}


class _RoFormer(EncoderModel):
    """An encoder whose positions cannot be told."""

    ignored = (*EncoderModel.ignored, _ANGLES)

    def forward(  # type: ignore[override]
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        output_attentions: bool = False,
        output_hidden_states: bool = False,
    ) -> EncoderOutput:
        return self.encode(
            input_ids, attention_mask, token_type_ids, None, inputs_embeds, output_attentions, output_hidden_states
        )


(
    RoFormerModel,
    RoFormerForMaskedLM,
    RoFormerForSequenceClassification,
    RoFormerForTokenClassification,
    RoFormerForQuestionAnswering,
    RoFormerForMultipleChoice,
) = encoder_classes("RoFormer", RoFormerConfig, "roformer", base=_RoFormer, mixin=_Filed)
