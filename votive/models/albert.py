"""ALBERT, whose layers share weights and whose embeddings are narrow. Lan et al. 2019, arXiv:1909.11942."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from votive import nn
from votive.nn import functional as F

from ..tensor import Tensor
from .text_encoder import EncoderConfig, EncoderDesign, EncoderHead, encoder_classes
from .text_encoder.masked import OrderOutput, add_words, tied_words, word_scores


@dataclass(kw_only=True)
class AlbertConfig(EncoderConfig):
    """The numbers of an ALBERT: `num_hidden_groups` of layers are used `num_hidden_layers` times in all.

    >>> votive.models.AlbertConfig(num_hidden_groups=2).design.groups
    (2, 1)
    """

    model_type = "albert"

    vocab_size: int = 30000
    embedding_size: int = 128
    hidden_size: int = 4096
    num_hidden_groups: int = 1
    num_attention_heads: int = 64
    intermediate_size: int = 16384
    inner_group_num: int = 1
    hidden_act: str = "gelu_new"
    hidden_dropout_prob: float = 0.0
    attention_probs_dropout_prob: float = 0.0
    type_vocab_size: int = 2
    classifier_dropout_prob: float = 0.1
    bos_token_id: int | None = 2
    eos_token_id: int | list[int] | None = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("num_hidden_groups", "inner_group_num"):
            if getattr(self, name) < 1:
                raise ValueError(f"AlbertConfig: {name} must be 1 or more, got {getattr(self, name)}.")

    def choices(self) -> dict[str, Any]:
        return {
            "narrow": self.embedding_size,
            "layer": "grouped",
            "groups": (self.num_hidden_groups, self.inner_group_num),
            "o": "dense",
            "pooler": "plain",
        }

    def heads(self) -> dict[str, Any]:
        return {"masked": "flat", "masked_name": "predictions", "dropout": self.classifier_dropout_prob}


(
    AlbertModel,
    AlbertForMaskedLM,
    AlbertForSequenceClassification,
    AlbertForTokenClassification,
    AlbertForQuestionAnswering,
    AlbertForMultipleChoice,
) = encoder_classes("Albert", AlbertConfig, "albert")


class OrderHead(nn.ModuleDict):
    """Scores of whether two texts are in order, from the pooler."""

    def __init__(self, d: EncoderDesign, labels: int) -> None:
        super().__init__({"dropout": nn.Dropout(d.head.dropout), "classifier": nn.Linear(d.width, labels)})

    def forward(self, x: Tensor) -> Tensor:
        return self["classifier"](self["dropout"](x))


class AlbertForPreTraining(EncoderHead):
    """ALBERT that fills gaps and says whether two texts are in order.

    >>> config = votive.models.AlbertConfig(vocab_size=10, embedding_size=4, hidden_size=8, intermediate_size=16,
    ...     num_hidden_layers=1, num_attention_heads=2)
    >>> votive.models.AlbertForPreTraining(config)(votive.tensor([[1, 2, 3]])).sop_logits.shape
    votive.Size([1, 2])
    """

    config_class = AlbertConfig
    base_model_prefix = "albert"
    model_class = AlbertModel
    tied = tied_words("albert", AlbertConfig().design)

    def add(self, d: EncoderDesign) -> None:
        self.add_encoder(d, pooled=True)
        add_words(self, d)
        self.sop_classifier = OrderHead(d, self.config.label_count)

    def forward(
        self,
        input_ids: Tensor | None = None,
        *args: Any,
        labels: Tensor | None = None,
        sentence_order_label: Tensor | None = None,
        **kwargs: Any,
    ) -> OrderOutput:
        """As the encoder; there is a loss where both kinds of labels are given."""
        found = self.encoded(input_ids, *args, **kwargs)
        assert found.last_hidden_state is not None, "an encoder gives it"
        words, order = word_scores(self, found.last_hidden_state), self.sop_classifier(found.pooler_output)
        loss = None
        if labels is not None and sentence_order_label is not None:
            loss = F.cross_entropy(words.flatten(0, 1).float(), labels.flatten())
            loss = loss + F.cross_entropy(order.float(), sentence_order_label.flatten())
        return OrderOutput(
            loss=loss,
            prediction_logits=words,
            sop_logits=order,
            hidden_states=found.hidden_states,
            attentions=found.attentions,
        )
