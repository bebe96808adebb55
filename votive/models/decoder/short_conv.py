"""Convolutions over the last few positions, a filter for each channel, and a mixer of little more. Knows no layer."""

from __future__ import annotations

import math

import votive
from votive import nn

from ...tensor import Tensor
from ..attention import AttentionMask, Weights
from ..config import Config
from ..opened import wide
from .attention import Rotate
from .design import Design
from .mixer import StateMixer


def unpadded(x: Tensor, mask: AttentionMask) -> Tensor:
    """Zeros where the text is padding, which a state would else remember.

    >>> from votive.models.decoder.short_conv import unpadded
    >>> mask = votive.models.AttentionMask(padding=votive.tensor([[False, True]]))
    >>> unpadded(votive.ones(1, 2, 1), mask).flatten()
    tensor([0., 1.])
    """
    return x if mask.padding is None else x * mask.padding.unsqueeze(-1).to(x.dtype)


class CausalConv(nn.Module):
    """A filter for each channel over a position and those before it; its weight is a `Conv1d`'s with groups.

    >>> from votive.models.decoder.short_conv import CausalConv
    >>> conv = CausalConv(2, 3, bias=False)
    >>> conv(votive.ones(1, 6, 2)).shape
    votive.Size([1, 4, 2])
    """

    def __init__(self, channels: int, width: int, bias: bool) -> None:
        super().__init__()
        self.channels, self.width = channels, width
        self.weight = nn.Parameter(votive.zeros(channels, 1, width))
        self.bias = nn.Parameter(votive.zeros(channels)) if bias else None

    def start_values(self, config: Config) -> None:
        """Normal values, or those of a `Conv1d` where the configuration starts wide."""
        if getattr(config, "starts_wide", False):
            nn.init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        else:
            nn.init.normal_(self.weight, std=getattr(config, "conv_std", config.initializer_range))

    def before(self, x: Tensor, kept: Tensor | None) -> Tensor:
        """Positions (batch, positions, channels) behind those that are kept of earlier ones, or behind zeros.

        The last `width - 1` of them are what is to be kept.
        """
        if kept is None:
            return nn.functional.pad(x, (0, 0, self.width - 1, 0))
        return votive.cat([kept.to(x.dtype), x], 1)

    def kept(self, whole: Tensor) -> Tensor:
        """What the next positions need of these."""
        return whole[:, whole.shape[1] - (self.width - 1) :].clone()

    def forward(self, whole: Tensor) -> Tensor:
        """The filtered positions behind the first `width - 1`."""
        T = whole.shape[1] - self.width + 1
        weight = self.weight.squeeze(1).t().to(wide(whole.dtype))  # (width, channels)
        if T == 1:
            y = (whole * weight).sum(1, keepdim=True)
        else:
            y = whole[:, :T] * weight[0]
            for i in range(1, self.width):
                y = y + whole[:, i : i + T] * weight[i]
        return (y if self.bias is None else y + self.bias.to(y.dtype)).to(whole.dtype)

    def extra_repr(self) -> str:
        return f"{self.channels}, width={self.width}, bias={self.bias is not None}"


class ShortConv(StateMixer):
    """`out_proj(c * conv(b * x))`, where b, c and x are products of the input: Liquid AI 2025, LFM2."""

    def __init__(self, d: Design, layer_idx: int) -> None:
        super().__init__()
        self.layer_idx = layer_idx
        bias: bool = d.extra["conv_bias"]
        self.in_proj = nn.Linear(d.width, 3 * d.width, bias=bias)
        self.conv = CausalConv(d.width, d.extra["conv_width"], bias)
        self.out_proj = nn.Linear(d.width, d.width, bias=bias)

    def forward(
        self, x: Tensor, rope: Rotate, mask: AttentionMask, cache: nn.KVCache | None = None, weights: Weights = None
    ) -> Tensor:
        b, c, x = self.in_proj(unpadded(x, mask)).chunk(3, -1)  # (B, T, C)
        kept = None if cache is None else cache.states(self.layer_idx)
        whole = self.conv.before(b * x, None if kept is None else kept[0])
        if cache is not None:
            cache.keep(self.layer_idx, [self.conv.kept(whole)], x.shape[1])
        return self.out_proj(c * self.conv(whole))
