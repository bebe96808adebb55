"""How evenly a mixture uses its experts. Knows no model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import votive
from votive.nn import functional as F

from ...tensor import Tensor


def load_balancing_loss(logits: Sequence[Tensor], top_k: int, attention_mask: Tensor | None = None) -> Any:
    """How unevenly experts are used: E sum_e (share of tokens of e) (mean chance of e).

    `logits` are those of each layer, (tokens, experts); padding in `attention_mask` (batch,
    positions) does not count, nor do positions before those of `logits`.
    Fedus et al. 2021, arXiv:2101.03961, equations 4 to 6.

    >>> votive.models.load_balancing_loss((votive.zeros(4, 2),), top_k=2)
    tensor(2.)
    """
    experts = logits[0].shape[-1]
    chances = F.softmax(votive.cat(list(logits)), -1).float()  # (L N, E)
    chosen = F.one_hot(chances.topk(top_k, -1)[1], experts).sum(1).float()
    if attention_mask is None:
        return experts * (chosen.mean(0) * chances.mean(0)).sum()
    tokens = logits[0].shape[0] // attention_mask.shape[0]
    real = (
        attention_mask[:, attention_mask.shape[1] - tokens :].flatten().float().repeat(len(logits)).unsqueeze(1)
    )  # (L N, 1)
    used, likely = (chosen * real).sum(0) / real.sum(), (chances * real).sum(0) / real.sum()
    return experts * (used * likely).sum()
