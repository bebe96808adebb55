"""The focal loss of dense detectors."""

from __future__ import annotations

from ...nn import functional as NF
from ...ops.registry import F
from ...tensor import Tensor


def reduced(op: str, loss: Tensor, reduction: str) -> Tensor:
    """The loss, its mean or its sum; the mean of nothing is 0."""
    if reduction == "none":
        return loss
    if reduction == "mean":
        return loss.mean() if loss.numel() > 0 else 0.0 * loss.sum()
    if reduction == "sum":
        return loss.sum()
    raise ValueError(f"{op}: reduction must be 'none', 'mean' or 'sum', got {reduction!r}.")


def sigmoid_focal_loss(
    inputs: Tensor, targets: Tensor, alpha: float = 0.25, gamma: float = 2, reduction: str = "none"
) -> Tensor:
    """Cross entropy of logits and 0/1 targets times `(1 - p_t)^gamma` (Lin et al. 2017).

    `alpha` weighs the positive class against the negative one; -1 leaves that out.

    >>> votive.vision.ops.sigmoid_focal_loss(votive.zeros(2), votive.tensor([0.0, 1.0]))
    tensor([0.1300, 0.0433])
    """
    op = "sigmoid_focal_loss"
    if not 0 <= alpha <= 1 and alpha != -1:
        raise ValueError(f"{op}: alpha must be in the range [0, 1] or -1 for none, got {alpha}.")
    p = F.sigmoid(inputs)
    wrong = p * (1 - targets) + (1 - p) * targets  # 1 - p_t
    loss = NF.binary_cross_entropy_with_logits(inputs, targets, reduction="none") * wrong**gamma
    if alpha >= 0:
        loss = loss * (alpha * targets + (1 - alpha) * (1 - targets))
    # torch's mean of an empty loss is NaN here, unlike that of the box losses.
    return loss.mean() if reduction == "mean" else reduced(op, loss, reduction)
