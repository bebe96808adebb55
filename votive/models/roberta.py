"""RoBERTa and XLM-RoBERTa: a BERT with other positions and heads. arXiv:1907.11692, 1911.02116.

Positions are counted from `pad_token_id + 1`, and padding has a position of its own. CamemBERT is the same net;
XLM-RoBERTa-XL norms before each part (arXiv:2105.00572).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from .bert import BertConfig
from .text_encoder import encoder_classes


@dataclass(kw_only=True)
class RobertaConfig(BertConfig):
    """The numbers of a RoBERTa.

    >>> votive.models.RobertaConfig().pad_token_id
    1
    """

    model_type = "roberta"
    same_network: ClassVar[tuple[str, ...]] = ("roberta", "xlm-roberta", "camembert")

    vocab_size: int = 50265
    pad_token_id: int | None = 1
    bos_token_id: int | None = 0
    eos_token_id: int | list[int] | None = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.pad_token_id is None:
            raise ValueError(f"{type(self).__name__}: pad_token_id must be an id: positions are counted from it.")

    def choices(self) -> dict[str, Any]:
        return {"places": "padded", "places_padding": self.pad_token_id}

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
    RobertaModel,
    RobertaForMaskedLM,
    RobertaForSequenceClassification,
    RobertaForTokenClassification,
    RobertaForQuestionAnswering,
    RobertaForMultipleChoice,
) = encoder_classes("Roberta", RobertaConfig, "roberta")


@dataclass(kw_only=True)
class XLMRobertaConfig(RobertaConfig):
    """The numbers of an XLM-RoBERTa: the same net, trained on many languages.

    >>> votive.models.XLMRobertaConfig().model_type
    'xlm-roberta'
    """

    model_type = "xlm-roberta"

    vocab_size: int = 30522


(
    XLMRobertaModel,
    XLMRobertaForMaskedLM,
    XLMRobertaForSequenceClassification,
    XLMRobertaForTokenClassification,
    XLMRobertaForQuestionAnswering,
    XLMRobertaForMultipleChoice,
) = encoder_classes("XLMRoberta", XLMRobertaConfig, "roberta")


@dataclass(kw_only=True)
class CamembertConfig(RobertaConfig):
    """The numbers of a CamemBERT: the same net, trained on French. Martin et al. 2019, arXiv:1911.03894.

    >>> votive.models.CamembertConfig().model_type
    'camembert'
    """

    model_type = "camembert"

    vocab_size: int = 30522


(
    CamembertModel,
    CamembertForMaskedLM,
    CamembertForSequenceClassification,
    CamembertForTokenClassification,
    CamembertForQuestionAnswering,
    CamembertForMultipleChoice,
) = encoder_classes("Camembert", CamembertConfig, "roberta")


@dataclass(kw_only=True)
class XLMRobertaXLConfig(RobertaConfig):
    """The numbers of an XLM-RoBERTa-XL, whose norms stand before attention and net.

    >>> votive.models.XLMRobertaXLConfig().design.pre_norm
    True
    """

    model_type = "xlm-roberta-xl"
    same_network: ClassVar[tuple[str, ...]] = ()

    vocab_size: int = 250880
    hidden_size: int = 2560
    num_hidden_layers: int = 36
    num_attention_heads: int = 32
    intermediate_size: int = 10240
    max_position_embeddings: int = 514
    type_vocab_size: int = 1
    layer_norm_eps: float = 1e-5

    def choices(self) -> dict[str, Any]:
        own = {"pre_norm": True, "last_norm": "LayerNorm", "embedding_norm": "", "net_end_dropout": 0.0}
        return {**super().choices(), **own}

    def heads(self) -> dict[str, Any]:
        return {**super().heads(), "counts_padding": False}


(
    XLMRobertaXLModel,
    XLMRobertaXLForMaskedLM,
    XLMRobertaXLForSequenceClassification,
    XLMRobertaXLForTokenClassification,
    XLMRobertaXLForQuestionAnswering,
    XLMRobertaXLForMultipleChoice,
) = encoder_classes("XLMRobertaXL", XLMRobertaXLConfig, "roberta")
