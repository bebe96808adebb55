"""Batch normalisation by the statistics of all ranks' batches together."""

from __future__ import annotations

import sys
from typing import Any

import votive

from ...autograd.function import Function, once_differentiable
from ...core import dtype as dt
from ...core.device import DeviceLike
from ...tensor import Tensor
from ..module import Module
from .batchnorm import _BatchNorm


class SyncBatchNorm(_BatchNorm):
    """Batch normalisation by mean and variance of the batches of all ranks of a group; alone it is the usual one.

    >>> def both():
    ...     x = votive.full((1, 1), float(votive.distributed.get_rank()))
    ...     return votive.nn.SyncBatchNorm(1)(x).item()
    >>> [round(y, 3) for y in votive.distributed.simulate(both, 2)]
    [-1.0, 1.0]
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: DeviceLike = None,
        dtype: dt.dtype | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        if process_group is not None and not hasattr(process_group, "transport"):
            raise ValueError(
                f"SyncBatchNorm: process_group must be a group that this rank is in, got {process_group!r}."
            )
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")

    def forward(self, input: Tensor) -> Tensor:
        group = self._group() if self.training else None
        if group is None:
            return super().forward(input)
        self._check_input_dim(input)
        if input.shape[1] != self.num_features:
            raise ValueError(
                f"SyncBatchNorm: expected {self.num_features} channels, got the shape {tuple(input.shape)}."
            )
        factor = 0.0 if self.momentum is None else self.momentum
        if self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:  # cumulative average
                factor = 1.0 / float(self.num_batches_tracked)
        y, mean, var, count = _Normalised.apply(input, self.weight, self.bias, self.eps, group)
        if self.track_running_stats and self.running_mean is not None:
            with votive.no_grad():
                self.running_mean.mul_(1 - factor).add_(mean, alpha=factor)
                self.running_var.mul_(1 - factor).add_(var * (count / (count - 1)), alpha=factor)
        return y

    def _group(self) -> Any:
        """The group whose batches count, None where there is no other rank."""
        # Not imported for this: nobody can have set up a group without it.
        distributed = sys.modules.get("votive.distributed")
        if distributed is None or not distributed.is_initialized():
            return None
        group = distributed.group.WORLD if self.process_group is None else self.process_group
        return group if group.size() > 1 else None

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """A module whose batch normalisations of any kind are of this class, with the same weights and statistics.

        >>> votive.nn.SyncBatchNorm.convert_sync_batchnorm(votive.nn.Sequential(votive.nn.BatchNorm2d(3)))
        Sequential(
          (0): SyncBatchNorm(3, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)
        )
        """
        made = module
        if isinstance(module, _BatchNorm) and not isinstance(module, SyncBatchNorm):
            made = cls(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
                process_group,
            )
            made.training = module.training
            for name in ("weight", "bias"):
                setattr(made, name, getattr(module, name))
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                setattr(made, name, getattr(module, name))
        for name, child in module.named_children():
            made.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return made


class _Normalised(Function):
    """(x - mean) / sqrt(var + eps) * weight + bias, with mean and var of all ranks; also gives these and the count."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float, group: Any) -> Any:
        from ...distributed import all_gather_into_tensor

        wide = _wide(x)
        dims = [d for d in range(x.dim()) if d != 1]
        channels, count = x.shape[1], x.numel() // max(x.shape[1], 1)
        mean = wide.mean(dims) if count else wide.new_zeros(channels)
        around = wide - _along(mean, wide)
        mine = votive.cat([mean, around.square().sum(dims), wide.new_tensor([float(count)])])
        every = mine.new_empty(group.size(), 2 * channels + 1)
        all_gather_into_tensor(every, mine, group)
        # Chan, Golub, LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances", (2.1).
        means, squares, counts = every[:, :channels], every[:, channels:-1], every[:, -1:]
        total = int(counts.sum())
        if total < 2:
            raise ValueError(f"Expected more than 1 value per channel when training, got {total} on all ranks together")
        mean = (means * counts).sum(0) / total
        var = (squares + (means - mean).square() * counts).sum(0) / total
        scale = (var + eps).rsqrt()
        around = wide - _along(mean, wide)
        y = around * _along(scale if weight is None else scale * weight, wide)
        if bias is not None:
            y = y + _along(bias, wide)
        ctx.save_for_backward(x, weight, mean, scale)
        ctx.group, ctx.total, ctx.has_bias = group, total, bias is not None
        count_of_all = votive.tensor(total)
        ctx.mark_non_differentiable(mean, var, count_of_all)
        return y.to(x.dtype), mean, var, count_of_all

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor, *_: Any) -> Any:
        from ...distributed import all_reduce

        x, weight, mean, scale = ctx.saved_tensors
        dims = [d for d in range(x.dim()) if d != 1]
        wide, wide_g = _wide(x), _wide(g)
        around = (wide - _along(mean, wide)) * _along(scale, wide)
        sums = votive.cat([wide_g.sum(dims), (wide_g * around).sum(dims)])
        channels = x.shape[1]
        by_bias, by_weight = sums[:channels].clone(), sums[channels:].clone()
        by_x = None
        if ctx.needs_input_grad[0]:
            all_reduce(sums, group=ctx.group)
            sums /= ctx.total
            part = wide_g - _along(sums[:channels], wide) - around * _along(sums[channels:], wide)
            by_x = (part * _along(scale if weight is None else scale * weight, wide)).to(x.dtype)
        return (
            by_x,
            None if weight is None else by_weight.to(weight.dtype),
            by_bias if ctx.has_bias else None,
            None,
            None,
        )


def _wide(x: Tensor) -> Tensor:
    """Half types as float32."""
    return x.float() if x.dtype in (dt.float16, dt.bfloat16) else x


def _along(values: Tensor, x: Tensor) -> Tensor:
    """A number per channel in the shape that meets an input."""
    return values.view(1, -1, *(1,) * (x.dim() - 2))
