"""Instance normalisation."""

from __future__ import annotations

from ...core import dtype as dt
from ...core.device import DeviceLike
from ...tensor import Tensor
from .. import functional as F
from .batchnorm import LazyNormBase, NormBase


class _InstanceNorm(NormBase):
    """Instance normalisation for any number of dimensions."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: DeviceLike = None,
        dtype: dt.dtype | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        feature_dim = input.dim() - self._dims[0]
        if self.affine and input.size(feature_dim) != self.num_features:
            raise ValueError(
                f"expected input's size at dim={feature_dim} to match num_features "
                f"({self.num_features}), but got: {input.size(feature_dim)}."
            )
        batched = input if input.dim() > self._dims[0] else input.unsqueeze(0)
        out = F.instance_norm(
            batched,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            self.momentum if self.momentum is not None else 0.0,
            self.eps,
        )
        return out if batched is input else out.squeeze(0)


class InstanceNorm1d(_InstanceNorm):
    """Instance normalisation of (N, C, L) or (C, L).

    >>> votive.nn.InstanceNorm1d(2)(votive.tensor([[[1.0, 3.0], [2.0, 6.0]]]))
    tensor([[[-1.0000,  1.0000],
             [-1.0000,  1.0000]]])
    """

    _dims = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Instance normalisation of (N, C, H, W) or (C, H, W).

    >>> votive.nn.InstanceNorm2d(2)(votive.ones(1, 2, 2, 2)).sum()
    tensor(0.)
    """

    _dims = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Instance normalisation of (N, C, D, H, W) or (C, D, H, W).

    >>> votive.nn.InstanceNorm3d(2)(votive.ones(1, 2, 2, 2, 2)).sum()
    tensor(0.)
    """

    _dims = (4, 5)


class LazyInstanceNorm1d(LazyNormBase, _InstanceNorm):
    """An InstanceNorm1d that learns `num_features` from its first input.

    >>> votive.nn.LazyInstanceNorm1d()(votive.ones(2, 3, 4)).shape
    votive.Size([2, 3, 4])
    """

    cls_to_become = InstanceNorm1d
    _dims = InstanceNorm1d._dims


class LazyInstanceNorm2d(LazyNormBase, _InstanceNorm):
    """An InstanceNorm2d that learns `num_features` from its first input.

    >>> votive.nn.LazyInstanceNorm2d()(votive.ones(2, 3, 4, 4)).shape
    votive.Size([2, 3, 4, 4])
    """

    cls_to_become = InstanceNorm2d
    _dims = InstanceNorm2d._dims


class LazyInstanceNorm3d(LazyNormBase, _InstanceNorm):
    """An InstanceNorm3d that learns `num_features` from its first input.

    >>> votive.nn.LazyInstanceNorm3d()(votive.ones(2, 3, 2, 2, 2)).shape
    votive.Size([2, 3, 2, 2, 2])
    """

    cls_to_become = InstanceNorm3d
    _dims = InstanceNorm3d._dims
