"""MobileNetV2 with torchvision's names. Sandler et al. 2018, arXiv:1801.04381.

Blocks widen, filter each channel by itself and narrow again; the narrow ends are linear.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from votive import nn

from ...tensor import Tensor
from ..ops.layers import Conv2dNormActivation
from ..types import Layer, Weights
from .weights import build, registered

_conv = partial(Conv2dNormActivation, activation_layer=nn.ReLU6)


def make_divisible(value: float, divisor: int, least: int | None = None) -> int:
    """A width near `value` that `divisor` divides, and that is not more than a tenth narrower.

    >>> from votive.vision.models.mobilenetv2 import make_divisible
    >>> make_divisible(32 * 0.35, 8), make_divisible(17, 8)
    (16, 16)
    """
    found = max(divisor if least is None else least, int(value + divisor / 2) // divisor * divisor)
    return found + divisor if found < 0.9 * value else found


class InvertedResidual(nn.Module):
    """Widen by `expand_ratio`, filter each channel, narrow; with a shortcut where shapes allow it.

    >>> block = votive.vision.models.mobilenetv2.InvertedResidual(8, 8, 1, expand_ratio=6)
    >>> block(votive.ones(1, 8, 4, 4)).shape, block.use_res_connect
    (votive.Size([1, 8, 4, 4]), True)
    """

    def __init__(self, inp: int, oup: int, stride: int, expand_ratio: float, norm_layer: Layer | None = None) -> None:
        super().__init__()
        if stride not in (1, 2):
            raise ValueError(f"InvertedResidual: stride must be 1 or 2, got {stride}.")
        norm = nn.BatchNorm2d if norm_layer is None else norm_layer
        hidden = round(inp * expand_ratio)
        self.stride, self.out_channels = stride, oup
        self.use_res_connect = stride == 1 and inp == oup
        parts: list[nn.Module] = []
        if expand_ratio != 1:
            parts.append(_conv(inp, hidden, 1, norm_layer=norm))
        parts += [
            _conv(hidden, hidden, 3, stride, groups=hidden, norm_layer=norm),
            nn.Conv2d(hidden, oup, 1, bias=False),
            norm(oup),
        ]
        self.conv = nn.Sequential(*parts)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.conv(x) if self.use_res_connect else self.conv(x)


# Table 2 of the paper: expansion, channels, repeats, stride of the first.
_STAGES = [[1, 16, 1, 1], [6, 24, 2, 2], [6, 32, 3, 2], [6, 64, 4, 2], [6, 96, 3, 1], [6, 160, 3, 2], [6, 320, 1, 1]]


class MobileNetV2(nn.Module):
    """A network of light blocks over pictures (batch, 3, height, width).

    >>> votive.vision.models.MobileNetV2(num_classes=10, width_mult=0.35).last_channel
    1280
    """

    def __init__(
        self,
        num_classes: int = 1000,
        width_mult: float = 1.0,
        inverted_residual_setting: list[list[int]] | None = None,
        round_nearest: int = 8,
        block: Layer | None = None,
        norm_layer: Layer | None = None,
        dropout: float = 0.2,
    ) -> None:
        super().__init__()
        make = InvertedResidual if block is None else block
        norm = nn.BatchNorm2d if norm_layer is None else norm_layer
        stages = _STAGES if inverted_residual_setting is None else inverted_residual_setting
        if not stages or any(len(row) != 4 for row in stages):
            raise ValueError(
                "MobileNetV2: inverted_residual_setting must be rows of 4 numbers (expansion, "
                f"channels, repeats, stride), got {stages}."
            )
        width = make_divisible(32 * width_mult, round_nearest)
        # The last convolution does not become narrower, as in the paper.
        self.last_channel = make_divisible(1280 * max(1.0, width_mult), round_nearest)
        parts: list[nn.Module] = [_conv(3, width, stride=2, norm_layer=norm)]
        for expansion, channels, repeats, stride in stages:
            wide = make_divisible(channels * width_mult, round_nearest)
            for i in range(repeats):
                parts.append(make(width, wide, stride if i == 0 else 1, expansion, norm_layer=norm))
                width = wide
        parts.append(_conv(width, self.last_channel, 1, norm_layer=norm))
        self.features = nn.Sequential(*parts)
        self.classifier = nn.Sequential(nn.Dropout(p=dropout), nn.Linear(self.last_channel, num_classes))
        for module in self.modules():
            _start(module)

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.features(x).mean((2, 3)))


def _start(module: nn.Module) -> None:
    """Start values of one layer."""
    if isinstance(module, nn.Conv2d):
        nn.init.kaiming_normal_(module.weight, mode="fan_out")
    elif isinstance(module, (nn.BatchNorm2d, nn.GroupNorm)):
        nn.init.ones_(module.weight)
    elif isinstance(module, nn.Linear):
        nn.init.normal_(module.weight, 0.0, 0.01)
    else:
        return
    if module.bias is not None:
        nn.init.zeros_(module.bias)


@registered
def mobilenet_v2(*, weights: Weights | None = None, progress: bool = True, **kwargs: Any) -> MobileNetV2:
    """MobileNetV2; `weights` is a file or a state dict, `progress` has nothing to show here.

    >>> sum(p.numel() for p in votive.vision.models.mobilenet_v2().parameters())
    3504872
    """
    return build(partial(MobileNetV2, **kwargs), weights)
