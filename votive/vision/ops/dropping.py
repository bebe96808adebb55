"""Dropping residual branches and blocks of feature maps at random while training."""

from __future__ import annotations

import math

from ... import nn
from ...nn import functional as NF
from ...ops.registry import F
from ...tensor import Tensor


def _check_probability(op: str, p: float) -> None:
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"{op}: drop probability has to be between 0 and 1, but got {p}.")


def stochastic_depth(input: Tensor, p: float, mode: str, training: bool = True) -> Tensor:
    """Zero the whole input (`mode="batch"`) or single rows ("row") with probability p.

    What survives is divided by 1 - p, so that the mean stays (Huang et al. 2016).

    >>> votive.vision.ops.stochastic_depth(votive.ones(2, 2), p=1.0, mode="row")
    tensor([[0., 0.],
            [0., 0.]])
    """
    op = "stochastic_depth"
    _check_probability(op, p)
    if mode not in ("batch", "row"):
        raise ValueError(f"{op}: mode has to be either 'batch' or 'row', but got {mode!r}.")
    if not training or p == 0.0:
        return input
    rows = input.shape[0] if mode == "row" else 1
    shape = (rows, *(1,) * (input.ndim - 1))
    kept = F.empty(shape, dtype=input.dtype, device=input.device).bernoulli_(1.0 - p)
    return input * (kept / (1.0 - p) if p < 1.0 else kept)


class StochasticDepth(nn.Module):
    """`stochastic_depth` as a module: it drops only while training.

    >>> votive.vision.ops.StochasticDepth(0.5, "row").eval()(votive.ones(2))
    tensor([1., 1.])
    """

    def __init__(self, p: float, mode: str) -> None:
        super().__init__()
        self.p, self.mode = p, mode

    def forward(self, input: Tensor) -> Tensor:
        return stochastic_depth(input, self.p, self.mode, self.training)

    def extra_repr(self) -> str:
        return f"p={self.p}, mode={self.mode}"


def _drop_block(
    op: str, input: Tensor, p: float, block_size: int, inplace: bool, eps: float, training: bool, n: int
) -> Tensor:
    _check_probability(op, p)
    if input.ndim != n + 2:
        raise ValueError(f"{op}: input should be {n + 2} dimensional, got {input.ndim} dimensions.")
    if not training or p == 0.0:
        return input
    sizes = tuple(input.shape)[2:]
    block = min(block_size, *sizes)
    if block % 2 == 0:
        raise ValueError(f"{op}: block size should be odd, got {block} which is even.")
    # Ghiasi et al. 2018, equation 1: the rate of block centres that drops a fraction p of elements.
    inner = tuple(s - block + 1 for s in sizes)
    gamma = p * math.prod(sizes) / (block**n * math.prod(inner))
    shape = (*tuple(input.shape)[:2], *inner)
    centres = F.empty(shape, dtype=input.dtype, device=input.device).bernoulli_(min(gamma, 1.0))
    centres = NF.pad(centres, [block // 2] * (2 * n))
    pool = NF.max_pool2d if n == 2 else NF.max_pool3d
    kept = 1 - pool(centres, kernel_size=block, stride=1, padding=block // 2)
    scale = kept.numel() / (eps + kept.sum())
    if inplace:
        return input.mul_(kept).mul_(scale)
    return input * kept * scale


def drop_block2d(
    input: Tensor, p: float, block_size: int, inplace: bool = False, eps: float = 1e-06, training: bool = True
) -> Tensor:
    """Zero square blocks of (N, C, H, W) and scale the rest (DropBlock, Ghiasi et al. 2018).

    >>> votive.vision.ops.drop_block2d(votive.ones(1, 1, 3, 3), 0.5, 3, training=False).sum()
    tensor(9.)
    """
    return _drop_block("drop_block2d", input, p, block_size, inplace, eps, training, 2)


def drop_block3d(
    input: Tensor, p: float, block_size: int, inplace: bool = False, eps: float = 1e-06, training: bool = True
) -> Tensor:
    """Zero cubic blocks of (N, C, D, H, W) and scale the rest.

    >>> votive.vision.ops.drop_block3d(votive.ones(1, 1, 3, 3, 3), 0.5, 3, training=False).sum()
    tensor(27.)
    """
    return _drop_block("drop_block3d", input, p, block_size, inplace, eps, training, 3)


class DropBlock2d(nn.Module):
    """`drop_block2d` as a module: it drops only while training.

    >>> votive.vision.ops.DropBlock2d(0.5, 3).eval()(votive.ones(1, 1, 3, 3)).sum()
    tensor(9.)
    """

    def __init__(self, p: float, block_size: int, inplace: bool = False, eps: float = 1e-06) -> None:
        super().__init__()
        self.p, self.block_size, self.inplace, self.eps = p, block_size, inplace, eps

    def forward(self, input: Tensor) -> Tensor:
        return drop_block2d(input, self.p, self.block_size, self.inplace, self.eps, self.training)

    def extra_repr(self) -> str:
        return f"p={self.p}, block_size={self.block_size}, inplace={self.inplace}"


class DropBlock3d(DropBlock2d):
    """`drop_block3d` as a module: it drops only while training.

    >>> votive.vision.ops.DropBlock3d(0.5, 3).eval()(votive.ones(1, 1, 3, 3, 3)).sum()
    tensor(27.)
    """

    def forward(self, input: Tensor) -> Tensor:
        return drop_block3d(input, self.p, self.block_size, self.inplace, self.eps, self.training)
