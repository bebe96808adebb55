"""What models return: records with the field names of transformers, also usable as tuples."""

from __future__ import annotations

from dataclasses import dataclass

from ..tensor import Tensor
from ..utils.output import ModelOutput as ModelOutput
from .cross_cache import Cache


@dataclass
class BaseModelOutput(ModelOutput):
    """Of a model without a head: the last hidden state, (batch, positions, features).

    >>> list(votive.models.BaseModelOutput(last_hidden_state=votive.ones(1, 2, 3)).keys())
    ['last_hidden_state']
    """

    last_hidden_state: Tensor | None = None
    past_key_values: Cache | None = None
    hidden_states: tuple[Tensor, ...] | None = None
    attentions: tuple[Tensor, ...] | None = None


@dataclass
class CausalLMOutput(ModelOutput):
    """Of a model that predicts the next token: logits (batch, positions, vocabulary).

    >>> votive.models.CausalLMOutput(logits=votive.ones(1, 2, 3))[0].shape
    votive.Size([1, 2, 3])
    """

    loss: Tensor | None = None
    logits: Tensor | None = None
    past_key_values: Cache | None = None
    hidden_states: tuple[Tensor, ...] | None = None
    attentions: tuple[Tensor, ...] | None = None


@dataclass
class MoeModelOutput(BaseModelOutput):
    """Of a mixture of experts: per layer that has them, logits (tokens, experts) of its router.

    >>> list(votive.models.MoeModelOutput(last_hidden_state=votive.ones(1, 2, 3)).keys())
    ['last_hidden_state']
    """

    router_logits: tuple[Tensor, ...] | None = None


@dataclass
class MoeCausalLMOutput(ModelOutput):
    """Of a mixture of experts that predicts the next token; `aux_loss` asks for even use.

    >>> votive.models.MoeCausalLMOutput(logits=votive.ones(1, 2, 3))[0].shape
    votive.Size([1, 2, 3])
    """

    loss: Tensor | None = None
    aux_loss: Tensor | None = None
    logits: Tensor | None = None
    past_key_values: Cache | None = None
    hidden_states: tuple[Tensor, ...] | None = None
    attentions: tuple[Tensor, ...] | None = None
    router_logits: tuple[Tensor, ...] | None = None


@dataclass
class EncoderOutput(ModelOutput):
    """Of an encoder: the last hidden state, and one vector for the text if it has a pooler.

    >>> list(votive.models.EncoderOutput(last_hidden_state=votive.ones(1, 2, 3)).keys())
    ['last_hidden_state']
    """

    last_hidden_state: Tensor | None = None
    pooler_output: Tensor | None = None
    hidden_states: tuple[Tensor, ...] | None = None
    attentions: tuple[Tensor, ...] | None = None


@dataclass
class PredictionOutput(ModelOutput):
    """Of an encoder with a head: logits per position or per text.

    >>> votive.models.PredictionOutput(logits=votive.ones(1, 2, 3))[0].shape
    votive.Size([1, 2, 3])
    """

    loss: Tensor | None = None
    logits: Tensor | None = None
    hidden_states: tuple[Tensor, ...] | None = None
    attentions: tuple[Tensor, ...] | None = None


@dataclass
class QuestionAnsweringOutput(ModelOutput):
    """Of a model that finds answers in texts: scores (batch, positions) of where one begins and ends.

    >>> list(votive.models.QuestionAnsweringOutput(start_logits=votive.ones(1, 2)).keys())
    ['start_logits']
    """

    loss: Tensor | None = None
    start_logits: Tensor | None = None
    end_logits: Tensor | None = None
    hidden_states: tuple[Tensor, ...] | None = None
    attentions: tuple[Tensor, ...] | None = None


@dataclass
class Seq2SeqModelOutput(ModelOutput):
    """Of an encoder and a decoder without a head.

    >>> list(votive.models.Seq2SeqModelOutput(last_hidden_state=votive.ones(1, 2, 3)).keys())
    ['last_hidden_state']
    """

    last_hidden_state: Tensor | None = None
    past_key_values: Cache | None = None
    decoder_hidden_states: tuple[Tensor, ...] | None = None
    decoder_attentions: tuple[Tensor, ...] | None = None
    cross_attentions: tuple[Tensor, ...] | None = None
    encoder_last_hidden_state: Tensor | None = None
    encoder_hidden_states: tuple[Tensor, ...] | None = None
    encoder_attentions: tuple[Tensor, ...] | None = None


@dataclass
class Seq2SeqLMOutput(ModelOutput):
    """Of an encoder and a decoder that predicts the next token of another text.

    >>> votive.models.Seq2SeqLMOutput(logits=votive.ones(1, 2, 3))[0].shape
    votive.Size([1, 2, 3])
    """

    loss: Tensor | None = None
    logits: Tensor | None = None
    past_key_values: Cache | None = None
    decoder_hidden_states: tuple[Tensor, ...] | None = None
    decoder_attentions: tuple[Tensor, ...] | None = None
    cross_attentions: tuple[Tensor, ...] | None = None
    encoder_last_hidden_state: Tensor | None = None
    encoder_hidden_states: tuple[Tensor, ...] | None = None
    encoder_attentions: tuple[Tensor, ...] | None = None


@dataclass
class Seq2SeqSequenceClassifierOutput(ModelOutput):
    """Of an encoder and a decoder that give a text a class.

    >>> list(votive.models.Seq2SeqSequenceClassifierOutput(logits=votive.ones(1, 2)).keys())
    ['logits']
    """

    loss: Tensor | None = None
    logits: Tensor | None = None
    past_key_values: Cache | None = None
    decoder_hidden_states: tuple[Tensor, ...] | None = None
    decoder_attentions: tuple[Tensor, ...] | None = None
    cross_attentions: tuple[Tensor, ...] | None = None
    encoder_last_hidden_state: Tensor | None = None
    encoder_hidden_states: tuple[Tensor, ...] | None = None
    encoder_attentions: tuple[Tensor, ...] | None = None


@dataclass
class Seq2SeqQuestionAnsweringModelOutput(ModelOutput):
    """Of an encoder and a decoder that find answers: scores (batch, positions) of where one begins and ends.

    >>> list(votive.models.Seq2SeqQuestionAnsweringModelOutput(start_logits=votive.ones(1, 2)).keys())
    ['start_logits']
    """

    loss: Tensor | None = None
    start_logits: Tensor | None = None
    end_logits: Tensor | None = None
    past_key_values: Cache | None = None
    decoder_hidden_states: tuple[Tensor, ...] | None = None
    decoder_attentions: tuple[Tensor, ...] | None = None
    cross_attentions: tuple[Tensor, ...] | None = None
    encoder_last_hidden_state: Tensor | None = None
    encoder_hidden_states: tuple[Tensor, ...] | None = None
    encoder_attentions: tuple[Tensor, ...] | None = None
