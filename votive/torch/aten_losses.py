"""Losses as they stand at the top of torch: positional arguments, and the reduction as a number."""

from __future__ import annotations

from typing import Any

from ..nn import functional as F
from ..tensor import Tensor


def _named(reduction: int) -> str:
    if reduction not in (0, 1, 2):
        raise ValueError(f"reduction: 0 (none), 1 (mean) or 2 (sum), got {reduction!r}.")
    return {0: "none", 1: "mean", 2: "sum"}[reduction]


def _reduced(loss: Tensor, reduction: int) -> Tensor:
    how = _named(reduction)
    return loss if how == "none" else loss.mean() if how == "mean" else loss.sum()


def binary_cross_entropy_with_logits(
    input: Tensor, target: Tensor, weight: Tensor | None = None, pos_weight: Tensor | None = None, reduction: int = 0
) -> Tensor:
    """`nn.functional.binary_cross_entropy_with_logits` with the reduction as a number."""
    return F.binary_cross_entropy_with_logits(
        input, target, weight=weight, pos_weight=pos_weight, reduction=_named(reduction)
    )


def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 0
) -> Tensor:
    """`nn.functional.cosine_embedding_loss` with the reduction as a number."""
    return F.cosine_embedding_loss(input1, input2, target, margin=margin, reduction=_named(reduction))


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: int = 0,
    zero_infinity: bool = False,
) -> Tensor:
    """`nn.functional.ctc_loss` with the reduction as a number."""
    return F.ctc_loss(
        log_probs,
        targets,
        input_lengths,
        target_lengths,
        blank,
        reduction=_named(reduction),
        zero_infinity=zero_infinity,
    )


def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, reduction: int = 0) -> Tensor:
    """`nn.functional.hinge_embedding_loss` with the reduction as a number."""
    return F.hinge_embedding_loss(input, target, margin=margin, reduction=_named(reduction))


def kl_div(input: Tensor, target: Tensor, reduction: int = 0, *, log_target: bool = False) -> Tensor:
    """`nn.functional.kl_div` with the reduction as a number."""
    return _reduced(F.kl_div(input, target, reduction="none", log_target=log_target), reduction)


def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 0
) -> Tensor:
    """`nn.functional.margin_ranking_loss` with the reduction as a number."""
    return F.margin_ranking_loss(input1, input2, target, margin=margin, reduction=_named(reduction))


def poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: int) -> Tensor:
    """`nn.functional.poisson_nll_loss` with the reduction as a number."""
    return F.poisson_nll_loss(input, target, log_input=log_input, full=full, eps=eps, reduction=_named(reduction))


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: int = 0,
) -> Tensor:
    """`nn.functional.triplet_margin_loss` with the reduction as a number."""
    return F.triplet_margin_loss(
        anchor, positive, negative, margin=margin, p=p, eps=eps, swap=swap, reduction=_named(reduction)
    )
