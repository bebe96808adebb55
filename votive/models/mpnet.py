"""MPNet, an encoder whose scores know distances. Song et al. 2020, arXiv:2004.09297."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .text_encoder import EncoderConfig, encoder_classes
from .text_encoder.model import PlainEncoder


@dataclass(kw_only=True)
class MPNetConfig(EncoderConfig):
    """The numbers of an MPNet.

    >>> votive.models.MPNetConfig().design.buckets
    (32, 32)
    """

    model_type = "mpnet"

    vocab_size: int = 30527
    relative_attention_num_buckets: int = 32
    pad_token_id: int | None = 1
    bos_token_id: int | None = 0
    eos_token_id: int | list[int] | None = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.relative_attention_num_buckets < 32:
            raise ValueError(
                "MPNetConfig: relative_attention_num_buckets must be 32 or more, of which 32 are used; got "
                f"{self.relative_attention_num_buckets}."
            )

    def choices(self) -> dict[str, Any]:
        return {
            # Whatever the token of padding is said to be, positions are counted from 1, which it is in all files.
            "padding": 1,
            "places": "padded",
            "places_padding": 1,
            "wrapped": "attn",
            "q": "q",
            "k": "k",
            "v": "v",
            "o": "o",
            "buckets": (self.relative_attention_num_buckets, 32),
        }

    def heads(self) -> dict[str, Any]:
        return {
            "masked": "flat",
            "masked_name": "lm_head",
            "masked_norm": "layer_norm",
            "masked_act": "gelu",
            "classify": "net",
            "choose": "pooled",
            "choice_dropout": self.hidden_dropout_prob,
        }


(
    MPNetModel,
    MPNetForMaskedLM,
    MPNetForSequenceClassification,
    MPNetForTokenClassification,
    MPNetForQuestionAnswering,
    MPNetForMultipleChoice,
) = encoder_classes("MPNet", MPNetConfig, "mpnet", base=PlainEncoder)
