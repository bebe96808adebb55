"""The heads that encoders are trained with: gaps filled, sentences in order, tokens replaced. Knows no family."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import votive
from votive import nn
from votive.nn import functional as F

from ...tensor import Tensor
from ...utils.output import ModelOutput
from ..activations import activation
from ..losses import masked_output, shown
from ..output import PredictionOutput
from .design import EncoderDesign
from .heads import EncoderHead, PredictionHead


@dataclass
class PreTrainingOutput(ModelOutput):
    """Of BERT's two heads of training: scores of words, and of whether one text follows the other.

    >>> from votive.models.text_encoder.masked import PreTrainingOutput
    >>> list(PreTrainingOutput(prediction_logits=votive.ones(1, 2, 3)).keys())
    ['prediction_logits']
    """

    loss: Tensor | None = None
    prediction_logits: Tensor | None = None
    seq_relationship_logits: Tensor | None = None
    hidden_states: tuple[Tensor, ...] | None = None
    attentions: tuple[Tensor, ...] | None = None


@dataclass
class OrderOutput(ModelOutput):
    """Of ALBERT's two heads of training: scores of words, and of whether two texts are in order.

    >>> from votive.models.text_encoder.masked import OrderOutput
    >>> list(OrderOutput(sop_logits=votive.ones(1, 2)).keys())
    ['sop_logits']
    """

    loss: Tensor | None = None
    prediction_logits: Tensor | None = None
    sop_logits: Tensor | None = None
    hidden_states: tuple[Tensor, ...] | None = None
    attentions: tuple[Tensor, ...] | None = None


class Transform(nn.ModuleDict):
    """What stands before the scores of words."""

    def __init__(self, d: EncoderDesign) -> None:
        h = d.head
        self.names = (h.masked_dense, h.masked_norm)
        norm = nn.LayerNorm(d.embedded, eps=d.eps)
        super().__init__({h.masked_dense: nn.Linear(d.width, d.embedded), h.masked_norm: norm})
        self.act_fn = activation(h.masked_act or d.act)

    def forward(self, x: Tensor) -> Tensor:
        dense, norm = self.names
        return self[norm](self.act_fn(self[dense](x)))


class WordScores(nn.Module):
    """Scores of all words for each position; the words' own embeddings are its weights."""

    def __init__(self, d: EncoderDesign, *, nested: bool) -> None:
        super().__init__()
        self.names = None if nested else (d.head.masked_dense, d.head.masked_norm)
        made = Transform(d)
        if nested:
            self.transform = made
        else:
            for name, child in made.items():
                setattr(self, name, child)
        self.act_fn = made.act_fn
        self.decoder = nn.Linear(d.embedded, d.vocabulary, bias=d.head.masked_bias)
        if d.head.shared_bias:
            self.bias = nn.Parameter(votive.zeros(d.vocabulary))

    def forward(self, x: Tensor) -> Tensor:
        if self.names is None:
            return self.decoder(self.transform(x))
        dense, norm = (getattr(self, name) for name in self.names)
        return self.decoder(norm(self.act_fn(dense(x))))


class SharedScores(nn.ModuleDict):
    """Scores of all words by their embeddings, which the caller gives."""

    def __init__(self, d: EncoderDesign) -> None:
        super().__init__({"lm_head": _SharedScores(d)})

    def forward(self, x: Tensor, table: Tensor) -> Tensor:
        return self["lm_head"](x, table)


class _SharedScores(nn.Module):
    def __init__(self, d: EncoderDesign) -> None:
        super().__init__()
        self.dense, self.LayerNorm = nn.Linear(d.width, d.width), nn.LayerNorm(d.width, eps=d.eps)
        self.act_fn = activation(d.act)
        self.bias = nn.Parameter(votive.zeros(d.vocabulary))

    def forward(self, x: Tensor, table: Tensor) -> Tensor:
        return F.linear(self.LayerNorm(self.act_fn(self.dense(x))), table, self.bias)


class TrainingHeads(nn.ModuleDict):
    """What files call `cls`: scores of words, and of whether texts follow each other, or one of both."""

    def __init__(self, d: EncoderDesign, *, words: bool = True, sequence: bool = False) -> None:
        found: dict[str, nn.Module] = {"predictions": WordScores(d, nested=True)} if words else {}
        if sequence:
            found["seq_relationship"] = nn.Linear(d.width, 2)
        super().__init__(found)

    def forward(self, x: Tensor, pooled: Tensor | None = None) -> Any:
        if "predictions" not in self:
            return self["seq_relationship"](x)
        words = self["predictions"](x)
        return words if pooled is None else (words, self["seq_relationship"](pooled))


def add_words(model: EncoderHead, d: EncoderDesign) -> None:
    """The modules of the head that fills gaps, under the names that files have for them."""
    h = d.head
    if h.masked == "nested":
        setattr(model, h.masked_name, TrainingHeads(d))
    elif h.masked == "flat":
        setattr(model, h.masked_name, WordScores(d, nested=False))
    elif h.masked == "shared":
        setattr(model, h.masked_name, SharedScores(d))
    else:
        if h.masked == "apart" and h.classify == "head":
            setattr(model, h.masked_name, PredictionHead(d))
        elif h.masked == "apart" and h.masked_name:
            setattr(model, h.masked_name, Transform(d))
        elif h.masked == "apart":
            for name, child in Transform(d).items():
                setattr(model, name, child)
        setattr(model, h.masked_decoder, nn.Linear(d.embedded, d.vocabulary, bias=h.masked_bias))


def word_scores(model: EncoderHead, x: Tensor) -> Tensor:
    """Scores of words by those modules."""
    h = model.design.head
    if h.masked in ("nested", "flat"):
        return getattr(model, h.masked_name)(x)
    if h.masked == "shared":
        return getattr(model, h.masked_name)(x, model.get_input_embeddings().weight)
    if h.masked == "apart" and h.masked_name:
        x = getattr(model, h.masked_name)(x)
    elif h.masked == "apart":
        dense, norm = getattr(model, h.masked_dense), getattr(model, h.masked_norm)
        x = norm(activation(h.masked_act or model.design.act)(dense(x)))
    return getattr(model, h.masked_decoder)(x)


def tied_words(prefix: str, d: EncoderDesign) -> dict[str, str]:
    """Which parameters of the head are others: the embeddings, and the bias that has two names.

    >>> from votive.models.text_encoder.masked import tied_words
    >>> tied_words("bert", votive.models.BertConfig().design)["cls.predictions.decoder.bias"]
    'cls.predictions.bias'
    """
    h, table = d.head, f"{prefix}.{d.table_path}.weight"
    if h.masked == "shared":
        return {}
    if h.masked in ("apart", "plain"):
        return {f"{h.masked_decoder}.weight": table}
    at = f"{h.masked_name}.predictions" if h.masked == "nested" else h.masked_name
    found = {f"{at}.decoder.weight": table}
    return {**found, f"{at}.decoder.bias": f"{at}.bias"} if h.shared_bias else found


class EncoderForMaskedLM(EncoderHead):
    """An encoder that fills gaps.

    >>> config = votive.models.BertConfig(vocab_size=10, hidden_size=8, intermediate_size=16,
    ...     num_hidden_layers=1, num_attention_heads=2)
    >>> votive.models.BertForMaskedLM(config)(votive.tensor([[1, 2, 3]])).logits.shape
    votive.Size([1, 3, 10])
    """

    def add(self, d: EncoderDesign) -> None:
        self.add_encoder(d, pooled=False)
        add_words(self, d)
        # Another form of the head than the class was made for has other ties.
        self.__dict__["tied"] = tied_words(self.base_model_prefix, d)

    def forward(
        self, input_ids: Tensor | None = None, *args: Any, labels: Tensor | None = None, **kwargs: Any
    ) -> PredictionOutput:
        """As the encoder, and `labels` with -100 where nothing is to be predicted."""
        found = self.encoded(input_ids, *args, **kwargs)
        x, skipped = found.last_hidden_state, self.design.head.only_labeled
        assert x is not None, "an encoder gives it"
        if labels is not None and skipped is not None:
            labels = labels.flatten()
            wanted = labels != skipped
            x, labels = x.flatten(0, 1)[wanted], labels[wanted]
        return masked_output(word_scores(self, x), labels, found)


class EncoderForPreTraining(EncoderHead):
    """An encoder that fills gaps and says whether one text follows another.

    >>> config = votive.models.BertConfig(vocab_size=10, hidden_size=8, intermediate_size=16,
    ...     num_hidden_layers=1, num_attention_heads=2)
    >>> votive.models.BertForPreTraining(config)(votive.tensor([[1, 2, 3]])).seq_relationship_logits.shape
    votive.Size([1, 2])
    """

    def add(self, d: EncoderDesign) -> None:
        self.add_encoder(d, pooled=True)
        setattr(self, d.head.masked_name, TrainingHeads(d, sequence=True))

    def forward(
        self,
        input_ids: Tensor | None = None,
        *args: Any,
        labels: Tensor | None = None,
        next_sentence_label: Tensor | None = None,
        **kwargs: Any,
    ) -> PreTrainingOutput:
        """As the encoder; there is a loss where both kinds of labels are given."""
        found = self.encoded(input_ids, *args, **kwargs)
        words, follows = getattr(self, self.design.head.masked_name)(found.last_hidden_state, found.pooler_output)
        loss = None
        if labels is not None and next_sentence_label is not None:
            loss = F.cross_entropy(words.flatten(0, 1).float(), labels.flatten())
            loss = loss + F.cross_entropy(follows.float(), next_sentence_label.flatten())
        return PreTrainingOutput(loss=loss, prediction_logits=words, seq_relationship_logits=follows, **shown(found))


class EncoderForNextSentencePrediction(EncoderHead):
    """An encoder that says whether one text follows another.

    >>> config = votive.models.BertConfig(vocab_size=10, hidden_size=8, intermediate_size=16,
    ...     num_hidden_layers=1, num_attention_heads=2)
    >>> votive.models.BertForNextSentencePrediction(config)(votive.tensor([[1, 2, 3]])).logits.shape
    votive.Size([1, 2])
    """

    def add(self, d: EncoderDesign) -> None:
        self.add_encoder(d, pooled=True)
        setattr(self, d.head.masked_name, TrainingHeads(d, words=False, sequence=True))

    def forward(
        self, input_ids: Tensor | None = None, *args: Any, labels: Tensor | None = None, **kwargs: Any
    ) -> PredictionOutput:
        """As the encoder, and `labels` (batch,): 0 where the second text follows, 1 where it is any."""
        found = self.encoded(input_ids, *args, **kwargs)
        logits = getattr(self, self.design.head.masked_name)(found.pooler_output)
        loss = None if labels is None else F.cross_entropy(logits.float(), labels.flatten())
        return PredictionOutput(loss=loss, logits=logits, **shown(found))
