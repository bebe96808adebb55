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


def wrapped(labels: Tensor, pad: int | None) -> Tensor:
    """`shifted`, with the last label of each text in front: models of many languages end texts with the language.

    >>> from votive.models.seq2seq import wrapped
    >>> wrapped(votive.tensor([[5, 2, 9, -100]]), 1)
    tensor([[9, 5, 2, 9]])
    """
    if pad is None:
        raise ValueError("labels: the model's configuration has no pad_token_id to put where labels are -100.")
    ids = labels.masked_fill(labels == -100, pad)
    last = ids.gather(1, (ids != pad).sum(1, keepdim=True) - 1)
    return votive.cat([last, ids[:, :-1]], 1)


def last_of(states: Tensor, ids: Tensor, end: int | list[int] | None) -> Tensor:
    """The states (batch, features) at the last end of each text; texts have the same number of ends, one or more.

    >>> from votive.models.seq2seq import last_of
    >>> last_of(votive.tensor([[[1.0], [2.0], [3.0]]]), votive.tensor([[7, 2, 1]]), 2)
    tensor([[2.]])
    """
    if not isinstance(end, int):
        raise ValueError(f"texts are classified at their ends: eos_token_id must be one token, got {end!r}.")
    ends = ids == end
    counts = ends.sum(1)
    if not bool((counts == counts[0]).all()):
        raise ValueError("All examples must have the same number of <eos> tokens.")
    if not int(counts[0]):
        raise ValueError("Each example must contain at least one <eos> token.")
    places = votive.arange(ids.shape[1], device=ids.device)
    at = (ends.long() * places).max(1)[0]
    return states[votive.arange(ids.shape[0], device=ids.device), at]
