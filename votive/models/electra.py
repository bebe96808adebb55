"""ELECTRA, which is trained to find words that were put in the place of others. Clark et al. 2020, arXiv:2003.10555."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from votive import nn
from votive.nn import functional as F

from ..tensor import Tensor
from .activations import activation
from .bert import BertConfig
from .losses import shown
from .output import PredictionOutput
from .text_encoder import EncoderDesign, EncoderHead, encoder_classes

_SUMMARIES = ("first", "last", "mean", "cls_index")


@dataclass(kw_only=True)
class ElectraConfig(BertConfig):
    """The numbers of an ELECTRA; a generator and a discriminator have the same.

    >>> votive.models.ElectraConfig().embedding_size
    128
    """

    model_type = "electra"

    embedding_size: int = 128
    hidden_size: int = 256
    num_attention_heads: int = 4
    intermediate_size: int = 1024
    summary_type: str = "first"
    summary_use_proj: bool = True
    summary_activation: str | None = "gelu"
    summary_last_dropout: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.summary_type not in _SUMMARIES:
            raise ValueError(
                f"ElectraConfig: summary_type must be one of {', '.join(map(repr, _SUMMARIES))}, got "
                f"{self.summary_type!r}."
            )

    def choices(self) -> dict[str, Any]:
        return {"narrow": self.embedding_size, "project": "embeddings_project", "pooler": "", "pools": False}

    def heads(self) -> dict[str, Any]:
        summary = {
            "kind": self.summary_type,
            "product": self.summary_use_proj,
            "act": self.summary_activation,
            "dropout": self.summary_last_dropout,
        }
        return {
            "masked": "apart",
            "masked_name": "generator_predictions",
            "masked_act": "gelu",
            "masked_decoder": "generator_lm_head",
            "classify": "net",
            "classify_act": "gelu",
            "choose": "summary",
            "extra": summary,
        }


(
    ElectraModel,
    ElectraForMaskedLM,
    ElectraForSequenceClassification,
    ElectraForTokenClassification,
    ElectraForQuestionAnswering,
    ElectraForMultipleChoice,
) = encoder_classes("Electra", ElectraConfig, "electra")


class Discriminator(nn.ModuleDict):
    """A score for each position: whether its word was put in the place of another."""

    def __init__(self, d: EncoderDesign) -> None:
        super().__init__({"dense": nn.Linear(d.width, d.width), "dense_prediction": nn.Linear(d.width, 1)})
        self.act_fn = activation(d.act)

    def forward(self, x: Tensor) -> Tensor:
        return self["dense_prediction"](self.act_fn(self["dense"](x))).squeeze(-1)


class ElectraForPreTraining(EncoderHead):
    """ELECTRA that finds words which were put in the place of others.

    >>> config = votive.models.ElectraConfig(vocab_size=10, embedding_size=4, hidden_size=8, intermediate_size=16,
    ...     num_hidden_layers=1, num_attention_heads=2)
    >>> votive.models.ElectraForPreTraining(config)(votive.tensor([[1, 2, 3]])).logits.shape
    votive.Size([1, 3])
    """

    config_class = ElectraConfig
    base_model_prefix = "electra"
    model_class = ElectraModel
    ignored = (*EncoderHead.ignored, r"^generator_")

    def add(self, d: EncoderDesign) -> None:
        self.add_encoder(d, pooled=False)
        self.discriminator_predictions = Discriminator(d)

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        *args: Any,
        labels: Tensor | None = None,
        **kwargs: Any,
    ) -> PredictionOutput:
        """As the encoder, and `labels` (batch, positions): 1 where a word was replaced; padding does not count."""
        found = self.encoded(input_ids, attention_mask, *args, **kwargs)
        logits = self.discriminator_predictions(found.last_hidden_state)
        loss = None
        if labels is not None and attention_mask is not None:
            counted = attention_mask == 1
            loss = F.binary_cross_entropy_with_logits(logits[counted].float(), labels[counted].float())
        elif labels is not None:
            loss = F.binary_cross_entropy_with_logits(logits.float(), labels.float())
        return PredictionOutput(loss=loss, logits=logits, **shown(found))
