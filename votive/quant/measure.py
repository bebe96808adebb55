"""How far a quantized language model is from the original: perplexity, and the divergence of what they predict.

Knows models by what they give: logits, or something that has them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..nn import Module
from ..nn import functional as F
from ..tensor import Tensor
from .calibration import evaluating


@dataclass(frozen=True)
class Divergence:
    """Means over all predicted tokens: perplexities, KL divergence from the original in nats, same first choice."""

    tokens: int
    perplexity_original: float
    perplexity: float
    kl_divergence: float
    same_top: float


def _logits(model: Module, tokens: Tensor) -> Tensor:
    made: Any = model(tokens)
    found = made if isinstance(made, Tensor) else getattr(made, "logits", None)
    if not isinstance(found, Tensor) or found.ndim != 3:
        raise TypeError(f"divergence: the model must give logits (batch, tokens, words), got {type(made).__name__}.")
    return found.float()


def divergence(original: Module, quantized: Module, data: Iterable[Tensor]) -> Divergence:
    """Compare two language models on token numbers, (batch, tokens) each.

    >>> words = votive.tensor([[1, 2, 3, 1]])
    >>> model = votive.nn.Sequential(votive.nn.Embedding(4, 32), votive.nn.Linear(32, 4))
    >>> found = votive.quant.divergence(model, model, [words])
    >>> found.tokens, found.kl_divergence, found.same_top
    (3, 0.0, 1.0)
    """
    count, same = 0, 0
    losses = [0.0, 0.0]
    kl = 0.0
    with evaluating(original), evaluating(quantized):
        for tokens in data:
            if tokens.ndim != 2:
                raise ValueError(f"divergence: tokens are (batch, tokens), got shape {tuple(tokens.shape)}.")
            if tokens.shape[1] < 2:
                continue
            target = tokens[:, 1:].reshape(-1)
            rows = [F.log_softmax(_logits(m, tokens)[:, :-1].flatten(0, 1), dim=-1) for m in (original, quantized)]
            for i, row in enumerate(rows):
                losses[i] += float(F.nll_loss(row, target, reduction="sum"))
            kl += float((rows[0].exp() * (rows[0] - rows[1])).sum())
            same += int((rows[0].argmax(-1) == rows[1].argmax(-1)).sum())
            count += target.numel()
    if not count:
        raise ValueError("divergence: needs texts of at least two tokens.")
    first, second = (math.exp(min(loss / count, 700)) for loss in losses)
    return Divergence(count, first, second, max(kl / count, 0.0), same / count)
