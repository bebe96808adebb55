"""EfficientNet-Lite, the EfficientNets for small devices. Knows pictures, no files.

The structure is EfficientNet-B0's (Tan & Le 2019, arXiv:1905.11946, table 1) with the changes that
TensorFlow's `efficientnet/lite` states: no squeeze-and-excitation, ReLU6 in place of swish, and a
stem, a head and a first and last stage that do not grow with the network. Parameters are named as
in the PyTorch checkpoints that circulate (`conv_stem`, `blocks.0.0.conv_dw`, `conv_head`, …).
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import votive
from votive import nn
from votive.nn import functional as F

from ...tensor import Tensor
from ..types import Weights
from .mobilenetv2 import make_divisible
from .weights import build, registered

# Kernel, repeats, channels, expansion, stride of the first.
_STAGES = [
    (3, 1, 16, 1, 1),
    (3, 2, 24, 6, 2),
    (5, 2, 40, 6, 2),
    (3, 3, 80, 6, 2),
    (5, 3, 112, 6, 1),
    (5, 4, 192, 6, 2),
    (3, 1, 320, 6, 1),
]
# Name: width, depth, size of the pictures, dropout.
_KINDS = {
    "efficientnet_lite0": (1.0, 1.0, 224, 0.2),
    "efficientnet_lite1": (1.0, 1.1, 240, 0.2),
    "efficientnet_lite2": (1.1, 1.2, 260, 0.3),
    "efficientnet_lite3": (1.2, 1.4, 280, 0.3),
    "efficientnet_lite4": (1.4, 1.8, 300, 0.3),
}


class SameConv2d(nn.Conv2d):
    """A convolution padded as TensorFlow's "same": at stride 2 the odd pixel is on the far side.

    >>> from votive.vision.models.efficientnet_lite import SameConv2d
    >>> SameConv2d(1, 1, 3, stride=2)(votive.ones(1, 1, 7, 8)).shape
    votive.Size([1, 1, 4, 4])
    """

    def forward(self, x: Tensor) -> Tensor:
        pads: list[int] = []
        for size, k, s, d in zip(x.shape[2:], self.kernel_size, self.stride, self.dilation):
            total = max((-(-size // s) - 1) * s + (k - 1) * d + 1 - size, 0)
            pads = [total // 2, total - total // 2, *pads]  # the last dimension comes first
        return super().forward(F.pad(x, pads) if any(pads) else x)


class LiteBlock(nn.Module):
    """Widen, filter each channel, narrow; without the first step where the expansion is 1.

    >>> block = votive.vision.models.efficientnet_lite.LiteBlock(8, 8, 3, 1, 6)
    >>> block(votive.ones(1, 8, 4, 4)).shape
    votive.Size([1, 8, 4, 4])
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        kernel: int,
        stride: int,
        expansion: int,
        *,
        same_padding: bool = True,
        norm_eps: float = 1e-3,
        norm_momentum: float = 0.01,
        drop: float = 0.0,
    ) -> None:
        super().__init__()
        wide = inputs * expansion
        self.shortcut, self.drop = stride == 1 and inputs == outputs, drop

        norm = partial(nn.BatchNorm2d, eps=norm_eps, momentum=norm_momentum)

        def filters() -> nn.Conv2d:
            return conv(wide, wide, kernel, stride, groups=wide, same_padding=same_padding)

        self.wider = expansion != 1
        if self.wider:
            self.conv_pw, self.bn1 = nn.Conv2d(inputs, wide, 1, bias=False), norm(wide)
            self.conv_dw, self.bn2 = filters(), norm(wide)
            self.conv_pwl, self.bn3 = nn.Conv2d(wide, outputs, 1, bias=False), norm(outputs)
        else:
            self.conv_dw, self.bn1 = filters(), norm(wide)
            self.conv_pw, self.bn2 = nn.Conv2d(wide, outputs, 1, bias=False), norm(outputs)
        self.act = nn.ReLU6(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        if self.wider:
            y = self.act(self.bn1(self.conv_pw(x)))
            y = self.bn3(self.conv_pwl(self.act(self.bn2(self.conv_dw(y)))))
        else:
            y = self.bn2(self.conv_pw(self.act(self.bn1(self.conv_dw(x)))))
        if not self.shortcut:
            return y
        if self.drop and self.training:
            # Stochastic depth, arXiv:1603.09382: a sample skips the block, the rest make up for it.
            kept = votive.rand(y.shape[0], 1, 1, 1, device=y.device) >= self.drop
            y = y * kept.to(y.dtype) / (1 - self.drop)
        return x + y


def conv(inputs: int, outputs: int, kernel: int, stride: int, *, groups: int = 1, same_padding: bool) -> nn.Conv2d:
    """A convolution without a bias, padded TensorFlow's way or evenly.

    >>> from votive.vision.models.efficientnet_lite import conv
    >>> conv(1, 1, 3, 2, same_padding=False)(votive.ones(1, 1, 8, 8)).shape
    votive.Size([1, 1, 4, 4])
    """
    if same_padding and stride > 1:
        return SameConv2d(inputs, outputs, kernel, stride, groups=groups, bias=False)
    # At stride 1 both ways are the same, and padding inside the convolution costs nothing.
    return nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)


class EfficientNetLite(nn.Module):
    """A network over pictures (batch, 3, height, width), grown by a width and a depth.

    Checkpoints that come from TensorFlow are padded its way and have `norm_eps=1e-3`, which are the
    defaults; those trained in PyTorch want `same_padding=False, norm_eps=1e-5`.

    >>> net = votive.vision.models.EfficientNetLite(num_classes=10)
    >>> net.eval()(votive.ones(1, 3, 64, 64)).shape
    votive.Size([1, 10])
    """

    def __init__(
        self,
        num_classes: int = 1000,
        width_mult: float = 1.0,
        depth_mult: float = 1.0,
        *,
        dropout: float = 0.2,
        drop_connect: float = 0.2,
        same_padding: bool = True,
        norm_eps: float = 1e-3,
        norm_momentum: float = 0.01,
    ) -> None:
        super().__init__()
        norm = partial(nn.BatchNorm2d, eps=norm_eps, momentum=norm_momentum)
        block = partial(LiteBlock, same_padding=same_padding, norm_eps=norm_eps, norm_momentum=norm_momentum)
        width = 32
        self.conv_stem = conv(3, width, 3, 2, same_padding=same_padding)
        self.bn1 = norm(width)
        counts = [
            repeats if i in (0, len(_STAGES) - 1) else math.ceil(repeats * depth_mult)
            for i, (_, repeats, *_) in enumerate(_STAGES)
        ]
        stages, at, total = [], 0, sum(counts)
        for (kernel, _, channels, expansion, stride), count in zip(_STAGES, counts):
            wide, blocks = make_divisible(channels * width_mult, 8), []
            for i in range(count):
                step = stride if i == 0 else 1
                blocks.append(block(width, wide, kernel, step, expansion, drop=drop_connect * at / total))
                width, at = wide, at + 1
            stages.append(nn.Sequential(*blocks))
        self.blocks = nn.Sequential(*stages)
        self.conv_head = nn.Conv2d(width, 1280, 1, bias=False)
        self.bn2 = norm(1280)
        self.act = nn.ReLU6(inplace=True)
        self.dropout = nn.Dropout(dropout)
        self.classifier = nn.Linear(1280, num_classes)
        for module in self.modules():
            _start(module)

    def forward(self, x: Tensor) -> Tensor:
        x = self.act(self.bn1(self.conv_stem(x)))
        x = self.act(self.bn2(self.conv_head(self.blocks(x))))
        return self.classifier(self.dropout(x.mean((2, 3))))


def _start(module: nn.Module) -> None:
    """Start values of one layer, those of the published training."""
    if isinstance(module, nn.Conv2d):
        height, width = module.kernel_size
        nn.init.normal_(module.weight, 0.0, math.sqrt(2.0 / (height * width * module.out_channels)))
    elif isinstance(module, nn.Linear):
        spread = 1.0 / math.sqrt(module.out_features)
        nn.init.uniform_(module.weight, -spread, spread)
        nn.init.zeros_(module.bias)


def _built(name: str, weights: Weights | None, settings: dict[str, Any]) -> EfficientNetLite:
    width, depth, _, dropout = _KINDS[name]
    settings = {"width_mult": width, "depth_mult": depth, "dropout": dropout, **settings}
    return build(partial(EfficientNetLite, **settings), weights)


@registered
def efficientnet_lite0(*, weights: Weights | None = None, progress: bool = True, **kwargs: Any) -> EfficientNetLite:
    """EfficientNet-Lite0, for pictures of 224 pixels; `weights` is a file or a state dict.

    >>> sum(p.numel() for p in votive.vision.models.efficientnet_lite0().parameters())
    4652008
    """
    return _built("efficientnet_lite0", weights, kwargs)


@registered
def efficientnet_lite1(*, weights: Weights | None = None, progress: bool = True, **kwargs: Any) -> EfficientNetLite:
    """EfficientNet-Lite1, for pictures of 240 pixels; as `efficientnet_lite0`.

    >>> len(votive.vision.models.efficientnet_lite1(num_classes=2).blocks[1])
    3
    """
    return _built("efficientnet_lite1", weights, kwargs)


@registered
def efficientnet_lite2(*, weights: Weights | None = None, progress: bool = True, **kwargs: Any) -> EfficientNetLite:
    """EfficientNet-Lite2, for pictures of 260 pixels; as `efficientnet_lite0`.

    >>> len(votive.vision.models.efficientnet_lite2(num_classes=2).blocks[3])
    4
    """
    return _built("efficientnet_lite2", weights, kwargs)


@registered
def efficientnet_lite3(*, weights: Weights | None = None, progress: bool = True, **kwargs: Any) -> EfficientNetLite:
    """EfficientNet-Lite3, for pictures of 280 pixels; as `efficientnet_lite0`.

    >>> len(votive.vision.models.efficientnet_lite3(num_classes=2).blocks[3])
    5
    """
    return _built("efficientnet_lite3", weights, kwargs)


@registered
def efficientnet_lite4(*, weights: Weights | None = None, progress: bool = True, **kwargs: Any) -> EfficientNetLite:
    """EfficientNet-Lite4, for pictures of 300 pixels; as `efficientnet_lite0`.

    >>> len(votive.vision.models.efficientnet_lite4(num_classes=2).blocks[5])
    8
    """
    return _built("efficientnet_lite4", weights, kwargs)
