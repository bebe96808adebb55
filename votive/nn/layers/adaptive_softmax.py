"""Softmax over many classes in clusters by frequency: Grave et al. 2017, arXiv:1609.04309."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import votive

from ...core import dtype as dt
from ...core.device import DeviceLike
from ...tensor import Tensor
from .. import functional as F
from ..containers import ModuleList, Sequential
from ..factory import FactoryKwargs
from ..module import Module
from .linear import Linear


class _ASMoutput(NamedTuple):
    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """Log-probability of the target and its mean negative, rare classes by smaller projections.

    >>> layer = votive.nn.AdaptiveLogSoftmaxWithLoss(16, 20, cutoffs=[5, 10])
    >>> result = layer(votive.ones(3, 16), votive.tensor([0, 7, 19]))
    >>> result.output.shape, result.loss.shape, layer.log_prob(votive.ones(3, 16)).shape
    (votive.Size([3]), votive.Size([]), votive.Size([3, 20]))
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: DeviceLike = None,
        dtype: dt.dtype | None = None,
    ) -> None:
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        whole = all(int(c) == c for c in cutoffs)
        rising = all(a < b for a, b in pairwise([0, *cutoffs, n_classes]))
        if not (whole and rising):
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing "
                "order, where each value is between 1 and n_classes-1"
            )
        made = FactoryKwargs(device=device, dtype=dtype)
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = cutoffs[0]
        self.n_clusters = len(cutoffs)
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, bias=head_bias, **made)
        self.tail = ModuleList()
        for i, (start, stop) in enumerate(pairwise(self.cutoffs)):
            width = int(in_features // div_value ** (i + 1))
            self.tail.append(
                Sequential(
                    Linear(in_features, width, bias=False, **made), Linear(width, stop - start, bias=False, **made)
                )
            )

    def reset_parameters(self) -> None:
        self.head.reset_parameters()
        for layer in self.tail.modules():
            if isinstance(layer, Linear):
                layer.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> _ASMoutput:
        _check_ranks(input_, target_)
        single = target_.dim() == 0
        input, target = (input_[None], target_[None]) if single else (input_, target_)
        if bool(((target < 0) | (target >= self.n_classes)).any()):
            low, high = target.min().item(), target.max().item()
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], "
                f"but values in range [{low}, {high}] were found. "
            )
        entry = target  # the column of the head: a frequent class, or a cluster of rare ones
        inside = votive.zeros(len(target), dtype=input.dtype, device=input.device)
        for i, (start, stop) in enumerate(pairwise(self.cutoffs)):
            member = (target >= start) & (target < stop)
            rows = member.nonzero().squeeze(1)
            if rows.numel() == 0:
                continue
            scores = F.log_softmax(self.tail[i](input.index_select(0, rows)), 1)
            wanted = (target.index_select(0, rows) - start).unsqueeze(1)
            inside = inside.index_add(0, rows, scores.gather(1, wanted).squeeze(1))
            entry = entry.masked_fill(member, self.shortlist_size + i)
        head = F.log_softmax(self.head(input), 1)
        output = inside + head.gather(1, entry.unsqueeze(1)).squeeze(1)
        return _ASMoutput(output.squeeze(0) if single else output, -output.mean())

    def log_prob(self, input: Tensor) -> Any:
        """Log-probabilities of all classes, for inputs (N, in_features).

        >>> layer = votive.nn.AdaptiveLogSoftmaxWithLoss(8, 20, cutoffs=[5])
        >>> layer.log_prob(votive.ones(1, 8)).shape
        votive.Size([1, 20])
        """
        return self._full(input, F.log_softmax(self.head(input), 1))

    def _full(self, input: Tensor, head: Tensor) -> Any:
        short = self.shortlist_size
        parts = [head[:, :short]]
        for i, project in enumerate(self.tail):
            parts.append(F.log_softmax(project(input), 1) + head[:, short + i, None])
        return votive.cat(parts, 1)

    def predict(self, input: Tensor) -> Any:
        """The likeliest class of each input; the rare ones are looked at only where needed.

        >>> layer = votive.nn.AdaptiveLogSoftmaxWithLoss(8, 20, cutoffs=[5])
        >>> layer.predict(votive.ones(3, 8)).shape
        votive.Size([3])
        """
        head = F.log_softmax(self.head(input), 1)
        best = head.argmax(1)
        rows = (best >= self.shortlist_size).nonzero().squeeze(1)
        if rows.numel() == 0:
            return best
        full = self._full(input.index_select(0, rows), head.index_select(0, rows))
        return best.index_copy(0, rows, full.argmax(1))


def _check_ranks(input: Tensor, target: Tensor) -> None:
    if target.dim() > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if target.dim() == 1 and input.size(0) != target.size(0):
        raise RuntimeError("Input and target should have the same size in the batch dimension.")
    if input.dim() != target.dim() + 1:
        raise RuntimeError(
            f"{target.dim()}D target tensor expects {target.dim() + 1}D input tensors, "
            f"but found inputs with size {input.size()}"
        )
