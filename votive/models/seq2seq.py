"""What models with an encoder and a decoder share: what they take, and what they answer.

Knows no family and no layers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import votive
from votive.nn import functional as F

from ..tensor import Tensor
from .cross_cache import Cache, EncoderDecoderCache
from .output import BaseModelOutput, CausalLMOutput, EncoderOutput, Seq2SeqLMOutput, Seq2SeqModelOutput

if TYPE_CHECKING:
    from .pretrained import PreTrainedModel

Encoded = BaseModelOutput | EncoderOutput


def prepared(
    model: PreTrainedModel, cache: Cache | None, use_cache: bool | None, ids: Tensor | None, embeds: Tensor | None
) -> EncoderDecoderCache | None:
    """The decoder's cache, if it has one; it must be given ids or embeddings."""
    if ids is None and embeds is None:
        raise ValueError(
            f"{type(model).__name__}: the decoder needs decoder_input_ids; a text begins with "
            f"decoder_start_token_id={model.config.decoder_start_token_id}."
        )
    return EncoderDecoderCache.of(cache) if cache is not None or use_cache else None


def encoded(given: Encoded | tuple[Tensor, ...]) -> Encoded:
    """What an encoder gave, which may be a tuple with the last hidden state first.

    >>> from votive.models.seq2seq import encoded
    >>> encoded((votive.ones(1, 2, 3),)).last_hidden_state.shape
    votive.Size([1, 2, 3])
    """
    return BaseModelOutput(last_hidden_state=given[0]) if isinstance(given, tuple | list) else given


def answer(
    found: BaseModelOutput | CausalLMOutput, crossed: tuple[Tensor, ...] | None, cache: Cache | None, encoder: Encoded
) -> Seq2SeqModelOutput:
    """What the decoder gave beside what the encoder did; one with a head gives no last state."""
    return Seq2SeqModelOutput(
        last_hidden_state=getattr(found, "last_hidden_state", None),
        past_key_values=cache,
        decoder_hidden_states=found.hidden_states,
        decoder_attentions=found.attentions,
        cross_attentions=crossed,
        encoder_last_hidden_state=encoder.last_hidden_state,
        encoder_hidden_states=encoder.hidden_states,
        encoder_attentions=encoder.attentions,
    )


def predicted(found: Seq2SeqModelOutput, logits: Tensor, labels: Tensor | None) -> Seq2SeqLMOutput:
    """The same with logits in place of the last hidden state, and their loss where labels are."""
    rest = {k: v for k, v in found.items() if k != "last_hidden_state"}
    return Seq2SeqLMOutput(loss=loss_of(logits, labels), logits=logits, **rest)


def loss_of(logits: Tensor, labels: Tensor | None) -> Tensor | None:
    """Cross entropy of each next token, where labels are given; -100 is left out."""
    if labels is None:
        return None
    return F.cross_entropy(logits.flatten(0, 1).float(), labels.flatten())


def shifted(labels: Tensor, start: int, pad: int | None) -> Tensor:
    """What a decoder reads to predict `labels`: a start, then all but the last.

    >>> from votive.models.seq2seq import shifted
    >>> shifted(votive.tensor([[5, -100, 7]]), 1, 0)
    tensor([[1, 5, 0]])
    """
    if pad is None:
        raise ValueError("labels: the model's configuration has no pad_token_id to put where labels are -100.")
    ids = votive.cat([votive.full_like(labels[:, :1], start), labels[:, :-1]], 1)
    return ids.masked_fill(ids == -100, pad)
