"""mBART, a BART of many languages whose norms stand before attention and net. Liu et al. 2020, arXiv:2001.08210."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .encoder_decoder import Seq2SeqConfig, seq2seq_classes


@dataclass(kw_only=True)
class MBartConfig(Seq2SeqConfig):
    """The numbers of an mBART; texts begin with the token of their language, which ends their labels.

    >>> votive.models.MBartConfig().design.start
    'last'
    """

    model_type = "mbart"

    forced_eos_token_id: int | list[int] | None = 2

    def choices(self) -> dict[str, Any]:
        return {"pre_norm": True, "last_norm": True, "reads_source": True, "start": "last"}


(
    MBartModel,
    MBartForConditionalGeneration,
    MBartForCausalLM,
    MBartForSequenceClassification,
    MBartForQuestionAnswering,
) = seq2seq_classes("MBart", MBartConfig)
