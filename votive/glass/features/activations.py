"""Which features fire: top-k over rows or batches, and the jump with its straight-through gradients."""

from __future__ import annotations

from typing import Any

import votive

from ...autograd import Function
from ...tensor import Tensor


def top_k(pre: Tensor, k: int) -> Tensor:
    """The k largest of each row where they are positive, zeros elsewhere.

    >>> from votive.glass.features.activations import top_k
    >>> top_k(votive.tensor([[3.0, -1.0, 2.0, 1.0]]), 2)
    tensor([[3., 0., 2., 0.]])
    """
    found, index = pre.topk(k, -1, sorted=False)
    return votive.zeros_like(pre).scatter(-1, index, found.relu())


def batch_top_k(pre: Tensor, k: int) -> Tensor:
    """The k largest per row on average, over all rows together (Bussmann et al. 2024).

    >>> from votive.glass.features.activations import batch_top_k
    >>> batch_top_k(votive.tensor([[3.0, 2.0], [1.0, 0.5]]), 1)
    tensor([[3., 2.],
            [0., 0.]])
    """
    flat = pre.reshape(-1)
    rows = flat.numel() // pre.shape[-1]
    return top_k(flat, k * rows).reshape(pre.shape)


class JumpReLU(Function):
    """`x` where it is above its threshold, else 0; Rajamanoharan et al. 2024, equations 11 and 12.

    The threshold's gradient is that of a kernel density estimate with a rectangle of width `bandwidth`.

    >>> from votive.glass.features.activations import JumpReLU
    >>> JumpReLU.apply(votive.tensor([0.5, 2.0]), votive.tensor([1.0, 1.0]), 0.1)
    tensor([0., 2.])
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, threshold: Tensor, bandwidth: float) -> Tensor:
        ctx.save_for_backward(x, threshold)
        ctx.bandwidth = bandwidth
        return x * (x > threshold)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor, None]:
        x, threshold = ctx.saved_tensors
        near = ((x - threshold).abs() < ctx.bandwidth / 2) * g
        slope = -(threshold / ctx.bandwidth) * near.sum(tuple(range(x.dim() - threshold.dim())))
        return (x > threshold) * g, slope, None


class Jump(Function):
    """1 where `x` is above its threshold, else 0: summed it is the number of features that fire.

    >>> from votive.glass.features.activations import Jump
    >>> Jump.apply(votive.tensor([0.5, 2.0]), votive.tensor([1.0, 1.0]), 0.1)
    tensor([0., 1.])
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, threshold: Tensor, bandwidth: float) -> Tensor:
        ctx.save_for_backward(x, threshold)
        ctx.bandwidth = bandwidth
        return (x > threshold).to(x.dtype)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[None, Tensor, None]:
        x, threshold = ctx.saved_tensors
        near = ((x - threshold).abs() < ctx.bandwidth / 2) * g
        return None, -near.sum(tuple(range(x.dim() - threshold.dim()))) / ctx.bandwidth, None
