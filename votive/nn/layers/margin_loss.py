"""Losses that keep scores or distances apart by a margin, as modules."""

from __future__ import annotations

from collections.abc import Callable

from ...tensor import Tensor
from .. import functional as F
from .loss import Loss, WeightedLoss
from .reshaping import PairwiseDistance


class HingeEmbeddingLoss(Loss):
    """Distances of similar (1) and dissimilar (-1) pairs.

    >>> votive.nn.HingeEmbeddingLoss()(votive.tensor([0.3]), votive.tensor([1.0]))
    tensor(0.3000)
    """

    def __init__(
        self, margin: float = 1.0, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.hinge_embedding_loss(input, target, margin=self.margin, reduction=self.reduction)


class MultiLabelMarginLoss(Loss):
    """Hinge loss over several labels per sample.

    >>> votive.nn.MultiLabelMarginLoss()(votive.zeros(1, 2), votive.tensor([[1, -1]]))
    tensor(0.5000)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_margin_loss(input, target, reduction=self.reduction)


class MultiLabelSoftMarginLoss(WeightedLoss):
    """Binary cross entropy per label, averaged.

    >>> votive.nn.MultiLabelSoftMarginLoss()(votive.zeros(1, 2), votive.ones(1, 2))
    tensor(0.6931)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_soft_margin_loss(input, target, weight=self.weight, reduction=self.reduction)


class SoftMarginLoss(Loss):
    """`log(1 + exp(-y x))`, averaged.

    >>> votive.nn.SoftMarginLoss()(votive.zeros(1), votive.ones(1))
    tensor(0.6931)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.soft_margin_loss(input, target, reduction=self.reduction)


class MultiMarginLoss(WeightedLoss):
    """Hinge loss of one class against the others.

    >>> votive.nn.MultiMarginLoss()(votive.zeros(1, 2), votive.tensor([0]))
    tensor(0.5000)
    """

    def __init__(
        self,
        p: int = 1,
        margin: float = 1.0,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        if p not in (1, 2):
            raise ValueError("only p == 1 and p == 2 supported")
        if weight is not None and weight.dim() != 1:
            raise ValueError(f"weight must be one-dimensional, got {weight.dim()} dimensions.")
        self.p = p
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multi_margin_loss(
            input, target, p=self.p, margin=self.margin, weight=self.weight, reduction=self.reduction
        )


class _MarginLoss(Loss):
    """A loss with a margin, zero by default."""

    def __init__(
        self, margin: float = 0.0, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin


class CosineEmbeddingLoss(_MarginLoss):
    """Cosine distances of similar (1) and dissimilar (-1) pairs.

    >>> x = votive.ones(1, 2)
    >>> votive.nn.CosineEmbeddingLoss()(x, x, votive.ones(1)).round(decimals=4).abs()
    tensor(0.)
    """

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.cosine_embedding_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class MarginRankingLoss(_MarginLoss):
    """`max(0, -y (x1 - x2) + margin)`, averaged.

    >>> votive.nn.MarginRankingLoss()(votive.zeros(1), votive.ones(1), votive.ones(1))
    tensor(1.)
    """

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.margin_ranking_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class TripletMarginLoss(Loss):
    """An anchor nearer to the positive than to the negative by `margin`.

    >>> a = votive.zeros(1, 2)
    >>> votive.nn.TripletMarginLoss()(a, a, a)
    tensor(1.)
    """

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        if margin <= 0:
            raise ValueError(f"TripletMarginLoss: expected margin to be greater than 0, got {margin}")
        self.margin = margin
        self.p = p
        self.eps = eps
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_loss(
            anchor,
            positive,
            negative,
            margin=self.margin,
            p=self.p,
            eps=self.eps,
            swap=self.swap,
            reduction=self.reduction,
        )


class TripletMarginWithDistanceLoss(Loss):
    """Triplet loss with a distance of one's own.

    >>> a = votive.zeros(1, 2)
    >>> votive.nn.TripletMarginWithDistanceLoss()(a, a, a)
    tensor(1.)
    """

    def __init__(
        self,
        *,
        distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(None, None, reduction)
        if margin <= 0:
            raise ValueError(f"TripletMarginWithDistanceLoss: expected margin to be greater than 0, got {margin}")
        self.distance_function = distance_function if distance_function is not None else PairwiseDistance()
        self.margin = margin
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_with_distance_loss(
            anchor,
            positive,
            negative,
            distance_function=self.distance_function,
            margin=self.margin,
            swap=self.swap,
            reduction=self.reduction,
        )
