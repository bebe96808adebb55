"""Losses as modules over the functions of the same meaning."""

from __future__ import annotations

from collections.abc import Sequence

from ...tensor import Tensor
from .. import functional as F
from ..module import Module


def _reduction(size_average: bool | None, reduce: bool | None, reduction: str) -> str:
    """The reduction meant by torch's two old flags, if they are given."""
    if size_average is None and reduce is None:
        return reduction
    average = True if size_average is None else size_average
    return ("mean" if average else "sum") if (reduce is None or reduce) else "none"


class Loss(Module):
    """A loss with a reduction."""

    def __init__(self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = _reduction(size_average, reduce, reduction)


class WeightedLoss(Loss):
    """A loss with a weight per class or element, kept as a buffer."""

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


class L1Loss(Loss):
    """Mean absolute difference.

    >>> votive.nn.L1Loss()(votive.zeros(2), votive.tensor([1.0, 3.0]))
    tensor(2.)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.l1_loss(input, target, reduction=self.reduction)


class MSELoss(Loss):
    """Mean squared difference.

    >>> votive.nn.MSELoss()(votive.zeros(2), votive.tensor([1.0, 3.0]))
    tensor(5.)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.mse_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(Loss):
    """Squared below `beta`, absolute above.

    >>> votive.nn.SmoothL1Loss()(votive.zeros(1), votive.tensor([3.0]))
    tensor(2.5000)
    """

    def __init__(
        self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean", beta: float = 1.0
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(Loss):
    """Squared below `delta`, linear above.

    >>> votive.nn.HuberLoss()(votive.zeros(1), votive.tensor([3.0]))
    tensor(2.5000)
    """

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction=reduction)
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


class NLLLoss(WeightedLoss):
    """Negative log-likelihood of log-probabilities.

    >>> votive.nn.NLLLoss()(votive.tensor([[-1.0, -2.0]]), votive.tensor([1]))
    tensor(2.)
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.nll_loss(input, target, weight=self.weight, ignore_index=self.ignore_index, reduction=self.reduction)


class NLLLoss2d(NLLLoss):
    """The old name of NLLLoss on images.

    >>> votive.nn.NLLLoss2d()(votive.zeros(1, 2, 1, 1), votive.zeros(1, 1, 1).long()).abs()
    tensor(0.)
    """


class CrossEntropyLoss(WeightedLoss):
    """Cross entropy of logits with classes or class probabilities.

    >>> votive.nn.CrossEntropyLoss()(votive.zeros(1, 2), votive.tensor([1]))
    tensor(0.6931)
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(
            input,
            target,
            weight=self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


class PoissonNLLLoss(Loss):
    """Negative log-likelihood of counts.

    >>> votive.nn.PoissonNLLLoss()(votive.zeros(1), votive.ones(1))
    tensor(1.)
    """

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        size_average: bool | None = None,
        eps: float = 1e-8,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_input = log_input
        self.full = full
        self.eps = eps

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:
        return F.poisson_nll_loss(
            log_input, target, log_input=self.log_input, full=self.full, eps=self.eps, reduction=self.reduction
        )


class GaussianNLLLoss(Loss):
    """Negative log-likelihood of values under predicted mean and variance.

    >>> votive.nn.GaussianNLLLoss()(votive.zeros(1), votive.ones(1), votive.ones(1))
    tensor(0.5000)
    """

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(None, None, reduction)
        self.full = full
        self.eps = eps

    def forward(self, input: Tensor, target: Tensor, var: Tensor) -> Tensor:
        return F.gaussian_nll_loss(input, target, var, full=self.full, eps=self.eps, reduction=self.reduction)


class KLDivLoss(Loss):
    """Kullback-Leibler divergence from log-probabilities.

    >>> x = votive.tensor([[0.5, 0.5]])
    >>> votive.nn.KLDivLoss(reduction="batchmean")(x.log(), x)
    tensor(0.)
    """

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        log_target: bool = False,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class BCELoss(WeightedLoss):
    """Binary cross entropy of probabilities.

    >>> votive.nn.BCELoss()(votive.tensor([0.5]), votive.ones(1))
    tensor(0.6931)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy(input, target, weight=self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(Loss):
    """Binary cross entropy of logits.

    >>> votive.nn.BCEWithLogitsLoss()(votive.zeros(1), votive.ones(1))
    tensor(0.6931)
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(
            input, target, self.weight, pos_weight=self.pos_weight, reduction=self.reduction
        )


class CTCLoss(Loss):
    """Connectionist temporal classification (Graves et al. 2006).

    >>> logits = votive.zeros(3, 1, 2).log_softmax(2)
    >>> votive.nn.CTCLoss()(logits, votive.tensor([[1]]), votive.tensor([3]), votive.tensor([1]))
    tensor(0.2877)
    """

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> None:
        super().__init__(reduction=reduction)
        self.blank = blank
        self.zero_infinity = zero_infinity

    def forward(
        self,
        log_probs: Tensor,
        targets: Tensor,
        input_lengths: Tensor | Sequence[int],
        target_lengths: Tensor | Sequence[int],
    ) -> Tensor:
        return F.ctc_loss(
            log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction, self.zero_infinity
        )
