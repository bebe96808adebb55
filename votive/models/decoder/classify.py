"""Classes of texts by what a decoder makes of their last token. Knows designs, not families."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import votive
from votive import nn

from ...tensor import Tensor
from ..cross_cache import Cache
from ..losses import class_loss
from ..output import PredictionOutput
from .config import DecoderConfig
from .model import Decoder, DecoderBase


@dataclass
class DecoderClassOutput(PredictionOutput):
    """Of a decoder with a head for classes: logits (batch, classes), and the cache that was filled.

    >>> from votive.models.decoder.classify import DecoderClassOutput
    >>> list(DecoderClassOutput(logits=votive.ones(1, 2)).keys())
    ['logits']
    """

    past_key_values: Cache | None = None


class DecoderForSequenceClassification(DecoderBase):
    """A decoder that gives a text one of `num_labels` classes, several, or a number, from its last token.

    >>> sizes = {"vocab_size": 10, "hidden_size": 8, "intermediate_size": 16, "num_hidden_layers": 1}
    >>> config = votive.models.LlamaConfig.from_dict(
    ...     {**sizes, "num_attention_heads": 2, "num_labels": 3, "pad_token_id": 0})
    >>> votive.models.LlamaForSequenceClassification(config)(votive.tensor([[1, 2, 3], [4, 5, 0]])).logits.shape
    votive.Size([2, 3])
    """

    model_class: ClassVar[type[Decoder]] = Decoder
    reader: ClassVar[str] = "score"  # what the product that gives the scores is called

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__(config)
        d = self.design
        setattr(self, self.base_model_prefix, self.model_class(config))
        setattr(self, self.reader, nn.Linear(d.embedding_width or d.width, name_classes(config), bias=False))
        self.post_init()

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        *args: Any,
        labels: Tensor | None = None,
        **kwargs: Any,
    ) -> DecoderClassOutput:
        """As the decoder, and `labels`: classes (batch,), or values per class."""
        found = getattr(self, self.base_model_prefix)(input_ids, attention_mask, *args, **kwargs)
        states = found.last_hidden_state
        last = last_tokens(input_ids, attention_mask, states, self.config.pad_token_id)
        logits = getattr(self, self.reader)(states[votive.arange(len(states), device=states.device), last])
        return DecoderClassOutput(
            loss=None if labels is None else class_loss(logits, labels, self.config),
            logits=logits,
            hidden_states=found.hidden_states,
            attentions=found.attentions,
            past_key_values=found.past_key_values,
        )


def name_classes(config: DecoderConfig) -> int:
    """How many classes a configuration has: as many as `num_labels` or `id2label` say, else 2; each gets a name.

    >>> config = votive.models.LlamaConfig.from_dict({"num_labels": 3})
    >>> votive.models.decoder.classify.name_classes(config), config.id2label[2]
    (3, 'LABEL_2')
    """
    more = config.extra
    named = {int(i): name for i, name in (more.get("id2label") or {}).items()}
    count = more.get("num_labels")
    count = (len(named) or 2) if count is None else int(count)
    if count != len(named):
        named = {i: f"LABEL_{i}" for i in range(count)}
    more.update(num_labels=count, id2label=named, label2id={name: i for i, name in named.items()})
    more.setdefault("problem_type", None)
    return count


def last_tokens(ids: Tensor | None, mask: Tensor | None, states: Tensor, pad: int | None) -> Tensor:
    """Where each text has its last token: one that is no padding token, as in transformers, and that the mask shows.

    >>> from votive.models.decoder.classify import last_tokens
    >>> ids = votive.tensor([[5, 6, 0], [7, 8, 9]])
    >>> last_tokens(ids, None, votive.zeros(2, 3, 4), 0)
    tensor([1, 2])
    """
    batch, length = states.shape[:2]
    seen = [] if mask is None or mask.dim() != 2 else [mask[:, -length:] != 0]
    if ids is not None and pad is not None:
        seen.append(ids != pad)
    if not seen and batch > 1 and ids is not None:
        raise ValueError(
            "Cannot handle batch sizes > 1 if no padding token is defined; set config.pad_token_id, or give "
            "attention_mask."
        )
    counted = votive.ones(batch, length, device=states.device)
    for part in seen:
        counted = counted * part
    return (votive.arange(length, device=states.device) * counted).argmax(-1)
