"""Heads for whole texts on what a decoder says: classes, and where answers are. Knows designs, not families."""

from __future__ import annotations

from typing import Any

import votive
from votive import nn

from ...tensor import Tensor
from ..losses import class_loss, span_loss, span_scores
from ..output import Seq2SeqQuestionAnsweringModelOutput, Seq2SeqSequenceClassifierOutput
from ..seq2seq import last_of
from .model import Seq2SeqHead


class ClassificationHead(nn.Module):
    """`out_proj(tanh(dense(x)))`, with dropout before both."""

    def __init__(self, width: int, classes: int, dropout: float) -> None:
        super().__init__()
        self.dense, self.out_proj = nn.Linear(width, width), nn.Linear(width, classes)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        return self.out_proj(self.dropout(votive.tanh(self.dense(self.dropout(x)))))


class Seq2SeqForSequenceClassification(Seq2SeqHead):
    """A model that gives a text a class, by what its decoder says at the text's end.

    >>> config = votive.models.BartConfig(vocab_size=10, d_model=8, encoder_layers=1, decoder_layers=1,
    ...     encoder_ffn_dim=8, decoder_ffn_dim=8, encoder_attention_heads=2, decoder_attention_heads=2)
    >>> votive.models.BartForSequenceClassification(config)(votive.tensor([[3, 4, 2]])).logits.shape
    votive.Size([1, 3])
    """

    def add(self) -> None:
        config = self.config
        self.classification_head = ClassificationHead(config.d_model, config.label_count, config.classifier_dropout)

    def forward(
        self, input_ids: Tensor | None = None, *args: Any, labels: Tensor | None = None, **kwargs: Any
    ) -> Seq2SeqSequenceClassifierOutput:
        """As the model, and `labels`: classes (batch,), or values per class. Texts end with the same number of ends."""
        if input_ids is None:
            raise NotImplementedError(
                f"{type(self).__name__}: it looks for the ends of texts in input_ids, which must be given."
            )
        found = self.bare(input_ids, *args, **kwargs)
        logits = self.classification_head(last_of(found.last_hidden_state, input_ids, self.config.eos_token_id))
        loss = None if labels is None else class_loss(logits, labels, self.config)
        rest = {name: value for name, value in found.items() if name != "last_hidden_state"}
        return Seq2SeqSequenceClassifierOutput(loss=loss, logits=logits, **rest)


class Seq2SeqForQuestionAnswering(Seq2SeqHead):
    """A model that finds where in a text an answer begins and ends.

    >>> config = votive.models.BartConfig(vocab_size=10, d_model=8, encoder_layers=1, decoder_layers=1,
    ...     encoder_ffn_dim=8, decoder_ffn_dim=8, encoder_attention_heads=2, decoder_attention_heads=2)
    >>> votive.models.BartForQuestionAnswering(config)(votive.tensor([[3, 4, 2]])).start_logits.shape
    votive.Size([1, 3])
    """

    def add(self) -> None:
        self.config.num_labels = 2  # a beginning and an end
        self.qa_outputs = nn.Linear(self.config.d_model, 2)

    def forward(
        self,
        input_ids: Tensor | None = None,
        *args: Any,
        start_positions: Tensor | None = None,
        end_positions: Tensor | None = None,
        **kwargs: Any,
    ) -> Seq2SeqQuestionAnsweringModelOutput:
        """As the model, and where answers begin and end, (batch,) each."""
        found = self.bare(input_ids, *args, **kwargs)
        start, end = span_scores(self.qa_outputs(found.last_hidden_state))
        rest = {name: value for name, value in found.items() if name != "last_hidden_state"}
        loss = span_loss(start, end, start_positions, end_positions)
        return Seq2SeqQuestionAnsweringModelOutput(loss=loss, start_logits=start, end_logits=end, **rest)
