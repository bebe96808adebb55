"""RoBERTa and XLM-RoBERTa: a BERT with other positions and heads. arXiv:1907.11692, 1911.02116.

Positions are counted from `pad_token_id + 1`, and padding has a position of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import votive
from votive import nn
from votive.nn import functional as F

from ..tensor import Tensor
from .bert import BertConfig, BertModel, _Bert, class_output, masked_output
from .output import PredictionOutput


@dataclass(kw_only=True)
class RobertaConfig(BertConfig):
    """The numbers of a RoBERTa.

    >>> votive.models.RobertaConfig().pad_token_id
    1
    """

    model_type = "roberta"
    same_network = ("roberta", "xlm-roberta")

    vocab_size: int = 50265
    pad_token_id: int | None = 1
    bos_token_id: int | None = 0
    eos_token_id: int | list[int] | None = 2


@dataclass(kw_only=True)
class XLMRobertaConfig(RobertaConfig):
    """The numbers of an XLM-RoBERTa: the same net, trained on many languages.

    >>> votive.models.XLMRobertaConfig().model_type
    'xlm-roberta'
    """

    model_type = "xlm-roberta"

    vocab_size: int = 30522


class _Roberta(_Bert):
    """What all RoBERTa classes share."""

    config_class = RobertaConfig
    base_model_prefix = "roberta"


class RobertaModel(_Roberta, BertModel):
    """The encoder.

    >>> config = votive.models.RobertaConfig(vocab_size=10, hidden_size=8, intermediate_size=16,
    ...     num_hidden_layers=1, num_attention_heads=2)
    >>> votive.models.RobertaModel(config)(votive.tensor([[0, 5, 2]])).last_hidden_state.shape
    votive.Size([1, 3, 8])
    """

    def positions(self, x: Tensor, input_ids: Tensor | None) -> Tensor:
        pad: Any = self.config.pad_token_id
        if x.shape[1] + pad >= self.config.max_position_embeddings:
            raise IndexError(
                f"{type(self).__name__}: {x.shape[1]} positions are asked for; it has learned "
                f"{self.config.max_position_embeddings - pad - 1}."
            )
        if input_ids is None:
            return votive.arange(pad + 1, pad + 1 + x.shape[1], device=x.device)
        real = (input_ids != pad).long()
        return real.cumsum(1) * real + pad


class RobertaForMaskedLM(_Roberta):
    """RoBERTa that fills gaps.

    >>> config = votive.models.RobertaConfig(vocab_size=10, hidden_size=8, intermediate_size=16,
    ...     num_hidden_layers=1, num_attention_heads=2)
    >>> votive.models.RobertaForMaskedLM(config)(votive.tensor([[0, 5, 2]])).logits.shape
    votive.Size([1, 3, 10])
    """

    ignored = (*_Roberta.ignored, r"\bpooler\.")
    tied = {
        "lm_head.decoder.weight": "roberta.embeddings.word_embeddings.weight",
        "lm_head.decoder.bias": "lm_head.bias",
    }

    def __init__(self, config: RobertaConfig) -> None:
        super().__init__(config)
        self.roberta = RobertaModel(config, add_pooling_layer=False)
        self.lm_head = RobertaLMHead(config)
        self.post_init()

    def forward(
        self, input_ids: Tensor | None = None, *args: Any, labels: Tensor | None = None, **kwargs: Any
    ) -> PredictionOutput:
        """As the encoder, and `labels` with -100 where nothing is to be predicted."""
        found = self.roberta(input_ids, *args, **kwargs)
        return masked_output(self.lm_head(found.last_hidden_state), labels, found)


class RobertaLMHead(nn.Module):
    """Scores of all words for each position; the words' own embeddings are its weights."""

    def __init__(self, config: RobertaConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)
        self.layer_norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.decoder = nn.Linear(config.hidden_size, config.vocab_size)
        self.bias = nn.Parameter(votive.zeros(config.vocab_size))

    def forward(self, x: Tensor) -> Tensor:
        return self.decoder(self.layer_norm(F.gelu(self.dense(x))))


class RobertaClassifier(nn.ModuleDict):
    """Scores of classes, from the first position."""

    def __init__(self, config: RobertaConfig) -> None:
        width, p = config.hidden_size, config.classifier_dropout
        super().__init__(
            {
                "dense": nn.Linear(width, width),
                "dropout": nn.Dropout(config.hidden_dropout_prob if p is None else p),
                "out_proj": nn.Linear(width, config.label_count),
            }
        )

    def forward(self, x: Tensor) -> Tensor:
        x = votive.tanh(self["dense"](self["dropout"](x[:, 0])))
        return self["out_proj"](self["dropout"](x))


class RobertaForSequenceClassification(_Roberta):
    """RoBERTa that gives a text one of `num_labels` classes, several, or a number.

    >>> config = votive.models.RobertaConfig(vocab_size=10, hidden_size=8, intermediate_size=16,
    ...     num_hidden_layers=1, num_attention_heads=2)
    >>> model = votive.models.RobertaForSequenceClassification(config)
    >>> model(votive.tensor([[0, 5, 2]])).logits.shape
    votive.Size([1, 2])
    """

    ignored = (*_Roberta.ignored, r"\bpooler\.")

    def __init__(self, config: RobertaConfig) -> None:
        super().__init__(config)
        self.roberta = RobertaModel(config, add_pooling_layer=False)
        self.classifier = RobertaClassifier(config)
        self.post_init()

    def forward(
        self, input_ids: Tensor | None = None, *args: Any, labels: Tensor | None = None, **kwargs: Any
    ) -> PredictionOutput:
        """As the encoder, and `labels`: classes (batch,), or values per class."""
        found = self.roberta(input_ids, *args, **kwargs)
        logits = self.classifier(found.last_hidden_state)
        return class_output(logits, labels, self.config, found)


class XLMRobertaModel(RobertaModel):
    """XLM-RoBERTa's encoder.

    >>> votive.models.XLMRobertaModel.config_class.model_type
    'xlm-roberta'
    """

    config_class = XLMRobertaConfig


class XLMRobertaForMaskedLM(RobertaForMaskedLM):
    """XLM-RoBERTa that fills gaps.

    >>> votive.models.XLMRobertaForMaskedLM.config_class.model_type
    'xlm-roberta'
    """

    config_class = XLMRobertaConfig


class XLMRobertaForSequenceClassification(RobertaForSequenceClassification):
    """XLM-RoBERTa that classifies texts.

    >>> votive.models.XLMRobertaForSequenceClassification.config_class.model_type
    'xlm-roberta'
    """

    config_class = XLMRobertaConfig
