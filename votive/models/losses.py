"""What heads answer, and their losses against labels, the same for every family. Knows no modules."""

from __future__ import annotations

from typing import Any, Protocol

import votive
from votive.nn import functional as F

from ..tensor import Tensor
from .config import Config
from .output import PredictionOutput, QuestionAnsweringOutput

PROBLEMS = ("regression", "single_label_classification", "multi_label_classification")


class Found(Protocol):
    """What of a model's answer a head passes on."""

    @property
    def hidden_states(self) -> tuple[Tensor, ...] | None: ...

    @property
    def attentions(self) -> tuple[Tensor, ...] | None: ...


def shown(found: Found) -> dict[str, Any]:
    """The fields of every answer that were asked for.

    >>> from votive.models.losses import shown
    >>> shown(votive.models.EncoderOutput())
    {'hidden_states': None, 'attentions': None}
    """
    return {"hidden_states": found.hidden_states, "attentions": found.attentions}


def masked_output(logits: Tensor, labels: Tensor | None, found: Found) -> PredictionOutput:
    """Word scores, and their cross entropy against labels; -100 is left out.

    >>> from votive.models.losses import masked_output
    >>> masked_output(votive.zeros(1, 2, 4), votive.tensor([[1, -100]]), votive.models.EncoderOutput()).loss
    tensor(1.3863)
    """
    loss = None
    if labels is not None:
        loss = F.cross_entropy(logits.flatten(0, -2).float(), labels.flatten(), ignore_index=-100)
    return PredictionOutput(loss=loss, logits=logits, **shown(found))


def class_loss(logits: Tensor, labels: Tensor, config: Config) -> Tensor:
    """The loss that `problem_type` names, or that fits the number of classes and the labels.

    >>> from votive.models.losses import class_loss
    >>> class_loss(votive.zeros(1, 2), votive.tensor([1]), votive.models.BertConfig())
    tensor(0.6931)
    """
    kind = config.problem_type
    if kind is None:
        whole = not labels.is_floating_point()
        kind = "regression" if config.num_labels == 1 else PROBLEMS[1 if whole else 2]
    if kind == "regression":
        return F.mse_loss(logits.view(labels.shape).float(), labels.float())
    if kind == "single_label_classification":
        return F.cross_entropy(logits.float(), labels.flatten())
    if kind == "multi_label_classification":
        return F.binary_cross_entropy_with_logits(logits.float(), labels.float())
    raise ValueError(f"problem_type must be {', '.join(map(repr, PROBLEMS[:2]))} or {PROBLEMS[2]!r}, got {kind!r}.")


def class_output(logits: Tensor, labels: Tensor | None, config: Config, found: Found) -> PredictionOutput:
    """Class scores of texts or pictures, and their loss.

    >>> from votive.models.losses import class_output
    >>> class_output(votive.zeros(1, 2), None, votive.models.BertConfig(), votive.models.EncoderOutput()).logits
    tensor([[0., 0.]])
    """
    loss = None if labels is None else class_loss(logits, labels, config)
    return PredictionOutput(loss=loss, logits=logits, **shown(found))


def token_output(
    logits: Tensor, labels: Tensor | None, found: Found, counted: Tensor | None = None
) -> PredictionOutput:
    """Class scores of positions, and their cross entropy; -100 is left out, and where `counted` is 0.

    >>> from votive.models.losses import token_output
    >>> token_output(votive.zeros(1, 2, 2), votive.tensor([[1, -100]]), votive.models.EncoderOutput()).loss
    tensor(0.6931)
    """
    if labels is not None and counted is not None:
        labels = labels.masked_fill(counted != 1, -100)
    return masked_output(logits, labels, found)


def choice_output(logits: Tensor, labels: Tensor | None, choices: int, found: Found) -> PredictionOutput:
    """A score for each of several texts, from scores (texts, 1), and their cross entropy against the right one.

    >>> from votive.models.losses import choice_output
    >>> choice_output(votive.zeros(4, 1), None, 2, votive.models.EncoderOutput()).logits.shape
    votive.Size([2, 2])
    """
    logits = logits.view(-1, choices)
    loss = None if labels is None else F.cross_entropy(logits.float(), labels)
    return PredictionOutput(loss=loss, logits=logits, **shown(found))


def answer_output(
    logits: Tensor, start_positions: Tensor | None, end_positions: Tensor | None, found: Found
) -> QuestionAnsweringOutput:
    """Where an answer begins and ends, from scores (batch, positions, 2); ends outside of the text do not count.

    >>> from votive.models.losses import answer_output
    >>> start, end = votive.tensor([1]), votive.tensor([99])
    >>> answer_output(votive.zeros(1, 4, 2), start, start, votive.models.EncoderOutput()).loss
    tensor(1.3863)
    """
    start, end = span_scores(logits)
    return QuestionAnsweringOutput(
        loss=span_loss(start, end, start_positions, end_positions), start_logits=start, end_logits=end, **shown(found)
    )


def span_scores(logits: Tensor) -> tuple[Tensor, Tensor]:
    """The two columns of scores (batch, positions, 2).

    >>> from votive.models.losses import span_scores
    >>> [part.shape for part in span_scores(votive.zeros(1, 4, 2))]
    [votive.Size([1, 4]), votive.Size([1, 4])]
    """
    if logits.shape[-1] != 2:
        raise ValueError(
            f"question answering scores beginnings and ends, so num_labels must be 2, got {logits.shape[-1]}."
        )
    start, end = logits.unbind(-1)
    return start.contiguous(), end.contiguous()


def span_loss(start: Tensor, end: Tensor, at: Tensor | None, until: Tensor | None) -> Tensor | None:
    """The mean cross entropy of beginnings and ends, where both are given.

    >>> from votive.models.losses import span_loss
    >>> scores, place = votive.zeros(1, 4), votive.tensor([3])
    >>> span_loss(scores, scores, place, place)
    tensor(1.3863)
    """
    if at is None or until is None:
        return None
    length = start.shape[1]
    losses = []
    for scores, places in ((start, at), (end, until)):
        places = places.squeeze(-1) if places.dim() > 1 else places
        losses.append(F.cross_entropy(scores.float(), places.clamp(0, length), ignore_index=length))
    return (losses[0] + losses[1]) / 2


def averaged(x: Tensor, attention_mask: Tensor | None) -> Tensor:
    """The mean (batch, features) of the positions that are no padding.

    >>> from votive.models.losses import averaged
    >>> averaged(votive.tensor([[[1.0], [3.0]]]), votive.tensor([[1, 0]]))
    tensor([[1.]])
    """
    if attention_mask is None:
        return x.mean(1)
    mask = attention_mask.to(x.dtype)
    return votive.div((x * mask.unsqueeze(-1)).sum(1), mask.sum(1, keepdim=True))
