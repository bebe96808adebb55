"""mT5, a T5 v1.1 of many languages, and UMT5. Xue et al. 2020, arXiv:2010.11934; Chung et al. 2023, 2304.09151."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .t5 import T5Config
from .t5_heads import t5_classes


@dataclass(kw_only=True)
class MT5Config(T5Config):
    """The numbers of an mT5: a T5 v1.1 of many languages.

    >>> votive.models.MT5Config().scale_decoder_outputs
    False
    """

    model_type = "mt5"

    vocab_size: int = 250112
    d_ff: int = 1024
    num_layers: int = 8
    num_heads: int = 6
    feed_forward_proj: str = "gated-gelu"
    tie_word_embeddings: bool = False

    def __post_init__(self) -> None:
        self.scale_decoder_outputs = False
        super().__post_init__()


(
    MT5EncoderModel,
    MT5Model,
    MT5ForConditionalGeneration,
    MT5ForSequenceClassification,
    MT5ForTokenClassification,
    MT5ForQuestionAnswering,
) = t5_classes("MT5", MT5Config)


@dataclass(kw_only=True)
class UMT5Config(T5Config):
    """The numbers of a UMT5, each of whose layers has biases of its own for distances.

    >>> votive.models.UMT5Config().own_distances
    True
    """

    model_type = "umt5"
    own_distances: ClassVar[bool] = True

    vocab_size: int = 250112
    d_ff: int = 1024
    num_layers: int = 8
    num_heads: int = 6
    feed_forward_proj: str = "gated-gelu"


(
    UMT5EncoderModel,
    UMT5Model,
    UMT5ForConditionalGeneration,
    UMT5ForSequenceClassification,
    UMT5ForTokenClassification,
    UMT5ForQuestionAnswering,
) = t5_classes("UMT5", UMT5Config)
