"""The heads of encoders: classes of texts and of positions, spans, choices. Knows designs, not families."""

from __future__ import annotations

from typing import Any, ClassVar

import votive
from votive import nn
from votive.nn import functional as F

from ...tensor import Tensor
from ..activations import activation
from ..decoder.norms import made_norm
from ..losses import answer_output, averaged, choice_output, class_output, token_output
from ..output import EncoderOutput, PredictionOutput, QuestionAnsweringOutput
from .config import EncoderConfig
from .design import EncoderDesign
from .layer import first_of
from .model import EncoderBase, EncoderModel


class ClassNet(nn.ModuleDict):
    """Scores of classes, from the first position by a net of two products."""

    def __init__(self, d: EncoderDesign, labels: int) -> None:
        super().__init__(
            {
                "dense": nn.Linear(d.width, d.width),
                "dropout": nn.Dropout(d.head.dropout),
                "out_proj": nn.Linear(d.width, labels),
            }
        )
        self.act_fn = activation(d.head.classify_act)

    def forward(self, x: Tensor) -> Tensor:
        x = self.act_fn(self["dense"](self["dropout"](x[:, 0])))
        return self["out_proj"](self["dropout"](x))


class ContextPooler(nn.ModuleDict):
    """One vector for a text, from its first position; the head's own."""

    def __init__(self, d: EncoderDesign) -> None:
        dropout = nn.Dropout(d.head.net_dropout)
        super().__init__({"dense": nn.Linear(d.width, d.width), "dropout": dropout})
        self.act_fn = activation(d.head.classify_act)

    def forward(self, x: Tensor) -> Tensor:
        return self.act_fn(self["dense"](self["dropout"](x[:, 0])))


class PredictionHead(nn.ModuleDict):
    """A product, an activation and a norm, before scores of words or classes."""

    def __init__(self, d: EncoderDesign) -> None:
        norm = made_norm(d.norm, d.width, d.eps)
        super().__init__({"dense": nn.Linear(d.width, d.width, bias=d.head.masked_dense_bias), "norm": norm})
        self.act_fn = activation(d.head.classify_act)

    def forward(self, x: Tensor) -> Tensor:
        return self["norm"](self.act_fn(self["dense"](x)))


class Summary(nn.ModuleDict):
    """One vector for a text, in one of several ways that ELECTRA's configuration names."""

    def __init__(self, d: EncoderDesign) -> None:
        options = d.head.extra
        self.kind, self.dropout = options["kind"], options["dropout"]
        self.act_fn = activation(options["act"]) if options["act"] else None
        super().__init__({"summary": nn.Linear(d.width, d.width)} if options["product"] else {})

    def forward(self, x: Tensor) -> Tensor:
        y = x.mean(1) if self.kind == "mean" else x[:, 0 if self.kind == "first" else -1]
        if "summary" in self:
            y = self["summary"](y)
        y = y if self.act_fn is None else self.act_fn(y)
        return F.dropout(y, self.dropout, self.training) if self.dropout else y


class EncoderHead(EncoderBase):
    """An encoder and what stands on it."""

    model_class: ClassVar[type[EncoderModel]] = EncoderModel
    pools: ClassVar[bool] = False  # whether the head reads the pooler

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__(config)
        self.add(self.design)
        self.post_init()

    def add(self, d: EncoderDesign) -> None:
        """Make the encoder and the head's own modules."""
        self.add_encoder(d, pooled=False)

    def add_encoder(self, d: EncoderDesign, *, pooled: bool) -> None:
        """The encoder, with its pooler if the head reads it."""
        if pooled:
            assert d.pooler, "a head that reads the pooler asks for one"
        config: Any = self.config
        setattr(self, self.base_model_prefix, self.model_class(config, add_pooling_layer=pooled))

    def add_reader(self, d: EncoderDesign, kind: str, labels: int) -> None:
        """Modules that turn what the encoder gives into scores of texts."""
        width = d.width
        self.add_encoder(d, pooled=kind == "pooled")
        if kind == "net":
            self.classifier: nn.Module = ClassNet(d, labels)
            return
        if kind == "context":
            self.pooler = ContextPooler(d)
        elif kind == "head":
            self.head = PredictionHead(d)
            self.drop = nn.Dropout(d.head.dropout)
        elif kind == "layer":
            self.pre_classifier = nn.Linear(width, width)
        elif kind == "late":
            self.dense = nn.Linear(width, width)
        elif kind == "summary":
            self.sequence_summary = Summary(d)
        self.classifier = nn.Linear(width, labels)
        if kind in ("pooled", "context", "layer"):
            self.dropout = nn.Dropout(d.head.dropout)

    def read(self, kind: str, found: EncoderOutput, attention_mask: Tensor | None) -> Tensor:
        """Scores of texts, (batch, labels)."""
        x, h = found.last_hidden_state, self.design.head
        assert x is not None, "an encoder gives it"
        if kind == "pooled":
            assert found.pooler_output is not None, "built with a pooler"
            return self.classifier(self.dropout(found.pooler_output))
        if kind == "net":
            return self.classifier(x)
        if kind == "context":
            return self.classifier(self.dropout(self.pooler(x)))
        if kind == "summary":
            return self.classifier(self.sequence_summary(x))
        if kind == "layer":
            return self.classifier(self.dropout(F.relu(self.pre_classifier(x[:, 0]))))
        if kind == "late":
            if h.pooling == "late":
                return averaged(self.classifier(F.gelu(self.dense(x))), attention_mask)
            y = averaged(x, attention_mask) if h.pooling == "mean" else x[:, 0]
            return self.classifier(F.gelu(self.dense(y)))
        return self.classifier(self.drop(self.head(self.pooled(x, attention_mask))))

    def pooled(self, x: Tensor, attention_mask: Tensor | None) -> Tensor:
        """What of the positions a head reads: the first, or the mean."""
        return averaged(x, attention_mask) if self.design.head.pooling == "mean" else x[:, 0]

    def encoded(self, *args: Any, **kwargs: Any) -> EncoderOutput:
        """What the encoder gives."""
        found: EncoderOutput = self.bare(*args, **kwargs)
        return found


class EncoderForSequenceClassification(EncoderHead):
    """An encoder that gives a text one of `num_labels` classes, several, or a number.

    >>> config = votive.models.BertConfig(vocab_size=10, hidden_size=8, intermediate_size=16,
    ...     num_hidden_layers=1, num_attention_heads=2, num_labels=3)
    >>> votive.models.BertForSequenceClassification(config)(votive.tensor([[1, 2, 3]])).logits.shape
    votive.Size([1, 3])
    """

    def add(self, d: EncoderDesign) -> None:
        self.add_reader(d, d.head.classify, self.config.label_count)

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        *args: Any,
        labels: Tensor | None = None,
        **kwargs: Any,
    ) -> PredictionOutput:
        """As the encoder, and `labels`: classes (batch,), or values per class."""
        found = self.encoded(input_ids, attention_mask, *args, **kwargs)
        logits = self.read(self.design.head.classify, found, attention_mask)
        if self.design.head.soft_labels and labels is not None and self.config.problem_type is None:
            loss = soft_loss(logits, labels)
            return PredictionOutput(
                loss=loss,
                logits=logits.view(-1).to(labels.dtype) if logits.shape[1] == 1 else logits,
                hidden_states=found.hidden_states,
                attentions=found.attentions,
            )
        return class_output(logits, labels, self.config, found)


def soft_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """DeBERTa's loss: of a number, of classes of which negative ones are left out, or of shares of all classes.

    >>> from votive.models.text_encoder.heads import soft_loss
    >>> soft_loss(votive.zeros(2, 2), votive.tensor([1, -1]))
    tensor(0.6931)
    """
    if logits.shape[1] == 1:
        return F.mse_loss(logits.view(-1).to(labels.dtype), labels.view(-1))
    if labels.dim() == 1 or labels.shape[-1] == 1:
        classes = labels.long().view(-1)
        if not bool((classes >= 0).any()):
            return logits.sum() * 0.0
        return F.cross_entropy(logits.float(), classes.masked_fill(classes < 0, -100))
    return -(F.log_softmax(logits, -1) * labels).sum(-1).mean()


class EncoderForTokenClassification(EncoderHead):
    """An encoder that gives each position one of `num_labels` classes.

    >>> config = votive.models.BertConfig(vocab_size=10, hidden_size=8, intermediate_size=16,
    ...     num_hidden_layers=1, num_attention_heads=2, num_labels=3)
    >>> votive.models.BertForTokenClassification(config)(votive.tensor([[1, 2, 4]])).logits.shape
    votive.Size([1, 3, 3])
    """

    def add(self, d: EncoderDesign) -> None:
        self.add_encoder(d, pooled=False)
        h = d.head
        if h.classify == "head":
            self.head, self.drop = PredictionHead(d), nn.Dropout(h.dropout)
        self.classifier = nn.Linear(d.width, self.config.label_count)
        self.dropout = nn.Dropout(h.dropout if h.token_dropout is None else h.token_dropout)

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        *args: Any,
        labels: Tensor | None = None,
        **kwargs: Any,
    ) -> PredictionOutput:
        """As the encoder, and `labels` (batch, positions) with -100 where nothing is to be learned."""
        found = self.encoded(input_ids, attention_mask, *args, **kwargs)
        x = found.last_hidden_state
        x = self.drop(self.head(x)) if self.design.head.classify == "head" else self.dropout(x)
        counted = None if self.design.head.counts_padding else attention_mask
        return token_output(self.classifier(x), labels, found, counted)


class EncoderForQuestionAnswering(EncoderHead):
    """An encoder that finds where in a text an answer begins and ends.

    >>> config = votive.models.BertConfig(vocab_size=10, hidden_size=8, intermediate_size=16,
    ...     num_hidden_layers=1, num_attention_heads=2)
    >>> votive.models.BertForQuestionAnswering(config)(votive.tensor([[1, 2, 3]])).start_logits.shape
    votive.Size([1, 3])
    """

    def add(self, d: EncoderDesign) -> None:
        if self.config.label_count != 2:
            raise ValueError(
                f"{type(self).__name__}: answers have a beginning and an end, so num_labels must be 2, got "
                f"{self.config.label_count}."
            )
        self.add_encoder(d, pooled=False)
        if d.head.classify == "head":
            self.head, self.drop = PredictionHead(d), nn.Dropout(d.head.dropout)
            self.classifier = nn.Linear(d.width, 2)
            return
        self.qa_outputs = nn.Linear(d.width, 2)
        self.dropout = nn.Dropout(d.head.answer_dropout)

    def forward(
        self,
        input_ids: Tensor | None = None,
        *args: Any,
        start_positions: Tensor | None = None,
        end_positions: Tensor | None = None,
        **kwargs: Any,
    ) -> QuestionAnsweringOutput:
        """As the encoder, and where answers begin and end, (batch,) each."""
        found = self.encoded(input_ids, *args, **kwargs)
        x = found.last_hidden_state
        if self.design.head.classify == "head":
            logits = self.classifier(self.drop(self.head(x)))
        else:
            logits = self.qa_outputs(self.dropout(x))
        return answer_output(logits, start_positions, end_positions, found)


class EncoderForMultipleChoice(EncoderHead):
    """An encoder that chooses one of several texts: its inputs are (batch, choices, positions).

    >>> config = votive.models.BertConfig(vocab_size=10, hidden_size=8, intermediate_size=16,
    ...     num_hidden_layers=1, num_attention_heads=2)
    >>> votive.models.BertForMultipleChoice(config)(votive.tensor([[[1, 2, 3], [4, 5, 6]]])).logits.shape
    votive.Size([1, 2])
    """

    @property
    def kind(self) -> str:
        """How texts are read."""
        return self.design.head.choose or self.design.head.classify

    def add(self, d: EncoderDesign) -> None:
        self.add_reader(d, self.kind, 1)
        if d.head.choice_dropout is not None:
            self.dropout = nn.Dropout(d.head.choice_dropout)

    def pooled(self, x: Tensor, attention_mask: Tensor | None) -> Tensor:
        mean = self.design.head.pooling == "mean"
        return averaged(x, attention_mask) if mean else first_of(x, attention_mask)

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        *args: Any,
        labels: Tensor | None = None,
        **kwargs: Any,
    ) -> PredictionOutput:
        """As the encoder, for several texts each, and `labels` (batch,): which is right."""
        texts = kwargs.get("inputs_embeds") if input_ids is None else input_ids
        if not isinstance(texts, votive.Tensor) or texts.dim() != (3 if input_ids is not None else 4):
            raise ValueError(
                f"{type(self).__name__}: give input_ids of shape (batch, choices, positions), or inputs_embeds of "
                "shape (batch, choices, positions, features)."
            )
        flat = [_flat(value) for value in (input_ids, attention_mask, *args)]
        found = self.encoded(*flat, **{name: _flat(value) for name, value in kwargs.items()})
        return choice_output(self.read(self.kind, found, flat[1]), labels, texts.shape[1], found)


def _flat(value: Any) -> Any:
    return value.flatten(0, 1) if isinstance(value, votive.Tensor) else value
