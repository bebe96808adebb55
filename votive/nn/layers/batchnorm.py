"""Batch normalisation, and what it shares with instance normalisation."""

from __future__ import annotations

from typing import Any

import votive

from ...core import dtype as dt
from ...core.device import DeviceLike
from ...tensor import Tensor
from .. import functional as F
from .. import init
from ..factory import FactoryKwargs
from ..lazy import LazyModuleMixin
from ..module import Module
from ..parameter import Parameter, UninitializedBuffer, UninitializedParameter


def reset_affine(weight: Parameter | None, bias: Parameter | None) -> None:
    """Let a norm begin without scale and shift."""
    if weight is not None:
        init.ones_(weight)
    if bias is not None:
        init.zeros_(bias)


class NormBase(Module):
    """Affine parameters and running statistics per channel."""

    weight: Parameter | None
    bias: Parameter | None
    _dims: tuple[int, ...]  # that an input may have

    _version = 2

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: DeviceLike = None,
        dtype: dt.dtype | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        made = FactoryKwargs(device=device, dtype=dtype)
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            self.register_parameter(name, Parameter(votive.empty(num_features, **made)) if wanted else None)
        tracks = track_running_stats
        self.register_buffer("running_mean", votive.zeros(num_features, **made) if tracks else None)
        self.register_buffer("running_var", votive.ones(num_features, **made) if tracks else None)
        count = votive.tensor(0, dtype=votive.long, device=device) if tracks else None
        self.register_buffer("num_batches_tracked", count)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        self.reset_running_stats()
        reset_affine(self.weight, self.bias)

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() not in self._dims:
            wanted = " or ".join(f"{d}D" for d in self._dims)
            raise ValueError(f"expected {wanted} input (got {input.dim()}D input)")

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, "
            f"affine={self.affine}, bias={self.bias is not None}, "
            f"track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, local_metadata: dict[str, Any], *rest: Any
    ) -> None:
        version = local_metadata.get("version")
        key = prefix + "num_batches_tracked"
        if (version is None or version < 2) and self.track_running_stats and key not in state_dict:
            state_dict[key] = (
                self.num_batches_tracked
                if self.num_batches_tracked is not None
                else votive.tensor(0, dtype=votive.long)
            )
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)


class _BatchNorm(NormBase):
    """Batch normalisation for any number of dimensions."""

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        factor = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:  # cumulative average
                factor = 1.0 / float(self.num_batches_tracked)
        by_batch = self.training or (self.running_mean is None and self.running_var is None)
        keeps = not self.training or self.track_running_stats
        return F.batch_norm(
            input,
            self.running_mean if keeps else None,
            self.running_var if keeps else None,
            self.weight,
            self.bias,
            by_batch,
            factor,
            self.eps,
        )


class BatchNorm1d(_BatchNorm):
    """Batch normalisation of (N, C) or (N, C, L).

    >>> votive.nn.BatchNorm1d(2)(votive.tensor([[1.0, 2.0], [3.0, 4.0]])).detach()
    tensor([[-1.0000, -1.0000],
            [ 1.0000,  1.0000]])
    """

    _dims = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Batch normalisation of (N, C, H, W).

    >>> votive.nn.BatchNorm2d(3)(votive.ones(2, 3, 4, 4)).shape
    votive.Size([2, 3, 4, 4])
    """

    _dims = (4,)


class BatchNorm3d(_BatchNorm):
    """Batch normalisation of (N, C, D, H, W).

    >>> votive.nn.BatchNorm3d(3)(votive.ones(2, 3, 2, 2, 2)).shape
    votive.Size([2, 3, 2, 2, 2])
    """

    _dims = (5,)


class LazyNormBase(LazyModuleMixin, NormBase):
    """Learns `num_features` from the first input."""

    weight: UninitializedParameter | None
    bias: UninitializedParameter | None

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: DeviceLike = None,
        dtype: dt.dtype | None = None,
        *,
        bias: bool = True,
    ) -> None:
        made = FactoryKwargs(device=device, dtype=dtype)
        super().__init__(0, eps, momentum, False, False, **made)
        self.affine = affine
        self.track_running_stats = track_running_stats
        if affine:
            self.weight = UninitializedParameter(**made)
            if bias:
                self.bias = UninitializedParameter(**made)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(**made)
            self.running_var = UninitializedBuffer(**made)
            self.num_batches_tracked = votive.tensor(0, dtype=votive.long, device=device)

    def reset_parameters(self) -> None:
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        if not self.has_uninitialized_params():
            return
        self.num_features = input.shape[1]
        for tensor in (self.weight, self.bias, self.running_mean, self.running_var):
            if tensor is not None:
                tensor.materialize((self.num_features,))
        self.reset_parameters()


class LazyBatchNorm1d(LazyNormBase, _BatchNorm):
    """A BatchNorm1d that learns `num_features` from its first input.

    >>> votive.nn.LazyBatchNorm1d()(votive.ones(2, 3)).shape
    votive.Size([2, 3])
    """

    cls_to_become = BatchNorm1d
    _dims = BatchNorm1d._dims


class LazyBatchNorm2d(LazyNormBase, _BatchNorm):
    """A BatchNorm2d that learns `num_features` from its first input.

    >>> votive.nn.LazyBatchNorm2d()(votive.ones(2, 3, 2, 2)).shape
    votive.Size([2, 3, 2, 2])
    """

    cls_to_become = BatchNorm2d
    _dims = BatchNorm2d._dims


class LazyBatchNorm3d(LazyNormBase, _BatchNorm):
    """A BatchNorm3d that learns `num_features` from its first input.

    >>> votive.nn.LazyBatchNorm3d()(votive.ones(2, 3, 2, 2, 2)).shape
    votive.Size([2, 3, 2, 2, 2])
    """

    cls_to_become = BatchNorm3d
    _dims = BatchNorm3d._dims
