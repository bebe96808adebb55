"""ResNet, ResNeXt and Wide ResNet with torchvision's names. He et al. 2015, arXiv:1512.03385.

The stride of a bottleneck is in its 3x3 convolution ("v1.5"), as in torchvision's weights. ResNeXt
is arXiv:1611.05431, Wide ResNet arXiv:1605.07146.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import votive
from votive import nn

from ...tensor import Tensor
from ..types import Layer, Weights
from .weights import build, registered


def conv3x3(inputs: int, outputs: int, stride: int = 1, groups: int = 1, dilation: int = 1) -> nn.Conv2d:
    """A convolution that keeps the size at stride 1; a norm follows, so it has no bias.

    >>> from votive.vision.models.resnet import conv3x3
    >>> conv3x3(2, 4, stride=2)(votive.ones(1, 2, 8, 8)).shape
    votive.Size([1, 4, 4, 4])
    """
    return nn.Conv2d(inputs, outputs, 3, stride, padding=dilation, groups=groups, bias=False, dilation=dilation)


def conv1x1(inputs: int, outputs: int, stride: int = 1) -> nn.Conv2d:
    """A convolution of single pixels without a bias.

    >>> from votive.vision.models.resnet import conv1x1
    >>> conv1x1(2, 4)(votive.ones(1, 2, 8, 8)).shape
    votive.Size([1, 4, 8, 8])
    """
    return nn.Conv2d(inputs, outputs, 1, stride, bias=False)


class BasicBlock(nn.Module):
    """Two 3x3 convolutions beside a shortcut.

    >>> votive.vision.models.resnet.BasicBlock(4, 4)(votive.ones(1, 4, 8, 8)).shape
    votive.Size([1, 4, 8, 8])
    """

    expansion = 1

    def __init__(
        self,
        inplanes: int,
        planes: int,
        stride: int = 1,
        downsample: nn.Module | None = None,
        groups: int = 1,
        base_width: int = 64,
        dilation: int = 1,
        norm_layer: Layer | None = None,
    ) -> None:
        super().__init__()
        if groups != 1 or base_width != 64:
            raise ValueError(
                f"BasicBlock: takes groups=1 and base_width=64 only, got groups={groups}, "
                f"base_width={base_width}; use Bottleneck."
            )
        if dilation > 1:
            raise NotImplementedError("BasicBlock: dilation must be 1; use Bottleneck.")
        norm = nn.BatchNorm2d if norm_layer is None else norm_layer
        self.conv1 = conv3x3(inplanes, planes, stride)
        self.bn1 = norm(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = conv3x3(planes, planes)
        self.bn2 = norm(planes)
        self.downsample, self.stride = downsample, stride

    def forward(self, x: Tensor) -> Tensor:
        short = x if self.downsample is None else self.downsample(x)
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        y += short
        return self.relu(y)


class Bottleneck(nn.Module):
    """A 3x3 convolution between two of single pixels that shrink and grow, beside a shortcut.

    >>> votive.vision.models.resnet.Bottleneck(16, 4)(votive.ones(1, 16, 8, 8)).shape
    votive.Size([1, 16, 8, 8])
    """

    expansion = 4

    def __init__(
        self,
        inplanes: int,
        planes: int,
        stride: int = 1,
        downsample: nn.Module | None = None,
        groups: int = 1,
        base_width: int = 64,
        dilation: int = 1,
        norm_layer: Layer | None = None,
    ) -> None:
        super().__init__()
        norm = nn.BatchNorm2d if norm_layer is None else norm_layer
        width = int(planes * (base_width / 64.0)) * groups
        self.conv1 = conv1x1(inplanes, width)
        self.bn1 = norm(width)
        self.conv2 = conv3x3(width, width, stride, groups, dilation)
        self.bn2 = norm(width)
        self.conv3 = conv1x1(width, planes * self.expansion)
        self.bn3 = norm(planes * self.expansion)
        self.relu = nn.ReLU(inplace=True)
        self.downsample, self.stride = downsample, stride

    def forward(self, x: Tensor) -> Tensor:
        short = x if self.downsample is None else self.downsample(x)
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        y += short
        return self.relu(y)


class ResNet(nn.Module):
    """Four stages of blocks over pictures (batch, 3, height, width), and a head of classes.

    >>> net = votive.vision.models.ResNet(votive.vision.models.resnet.BasicBlock, [1, 1, 1, 1])
    >>> net(votive.ones(1, 3, 64, 64)).shape
    votive.Size([1, 1000])
    """

    def __init__(
        self,
        block: Any,
        layers: list[int],
        num_classes: int = 1000,
        zero_init_residual: bool = False,
        groups: int = 1,
        width_per_group: int = 64,
        replace_stride_with_dilation: list[bool] | None = None,
        norm_layer: Layer | None = None,
    ) -> None:
        super().__init__()
        swap = replace_stride_with_dilation or [False, False, False]
        if len(swap) != 3:
            raise ValueError(
                "ResNet: replace_stride_with_dilation must be None or 3 values, one for each "
                f"stage after the first, got {swap}."
            )
        self._norm_layer = nn.BatchNorm2d if norm_layer is None else norm_layer
        self.inplanes, self.dilation = 64, 1
        self.groups, self.base_width = groups, width_per_group
        self.conv1 = nn.Conv2d(3, self.inplanes, 7, stride=2, padding=3, bias=False)
        self.bn1 = self._norm_layer(self.inplanes)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        self.layer1 = self._make_layer(block, 64, layers[0])
        self.layer2 = self._make_layer(block, 128, layers[1], 2, swap[0])
        self.layer3 = self._make_layer(block, 256, layers[2], 2, swap[1])
        self.layer4 = self._make_layer(block, 512, layers[3], 2, swap[2])
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(512 * block.expansion, num_classes)
        self._start(zero_init_residual)

    def _start(self, zero_init_residual: bool) -> None:
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(module, (nn.BatchNorm2d, nn.GroupNorm)):
                nn.init.ones_(module.weight)
                nn.init.zeros_(module.bias)
        if not zero_init_residual:
            return
        # Each block then begins as the identity, which trains a little better (arXiv:1706.02677).
        for module in self.modules():
            last = "bn3" if isinstance(module, Bottleneck) else "bn2"
            if isinstance(module, (BasicBlock, Bottleneck)):
                nn.init.zeros_(getattr(module, last).weight)

    def _make_layer(self, block: Any, planes: int, blocks: int, stride: int = 1, dilate: bool = False) -> nn.Sequential:
        norm, before = self._norm_layer, self.dilation
        if dilate:
            self.dilation *= stride
            stride = 1
        downsample = None
        wide = planes * block.expansion
        if stride != 1 or self.inplanes != wide:
            downsample = nn.Sequential(conv1x1(self.inplanes, wide, stride), norm(wide))
        shared = self.groups, self.base_width
        made = [block(self.inplanes, planes, stride, downsample, *shared, before, norm)]
        self.inplanes = wide
        for _ in range(1, blocks):
            made.append(block(wide, planes, 1, None, *shared, self.dilation, norm))
        return nn.Sequential(*made)

    def forward(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(votive.flatten(self.avgpool(x), 1))


# Name: (block, blocks per stage, groups, width per group).
_KINDS: dict[str, tuple[type[BasicBlock | Bottleneck], list[int], int, int]] = {
    "resnet18": (BasicBlock, [2, 2, 2, 2], 1, 64),
    "resnet34": (BasicBlock, [3, 4, 6, 3], 1, 64),
    "resnet50": (Bottleneck, [3, 4, 6, 3], 1, 64),
    "resnet101": (Bottleneck, [3, 4, 23, 3], 1, 64),
    "resnet152": (Bottleneck, [3, 8, 36, 3], 1, 64),
    "resnext50_32x4d": (Bottleneck, [3, 4, 6, 3], 32, 4),
    "resnext101_32x8d": (Bottleneck, [3, 4, 23, 3], 32, 8),
    "resnext101_64x4d": (Bottleneck, [3, 4, 23, 3], 64, 4),
    "wide_resnet50_2": (Bottleneck, [3, 4, 6, 3], 1, 128),
    "wide_resnet101_2": (Bottleneck, [3, 4, 23, 3], 1, 128),
}


def _built(name: str, weights: Weights | None, settings: dict[str, Any]) -> ResNet:
    block, layers, groups, width = _KINDS[name]
    settings = {"groups": groups, "width_per_group": width, **settings}
    return build(partial(ResNet, block, layers, **settings), weights)


@registered
def resnet18(*, weights: Weights | None = None, progress: bool = True, **kwargs: Any) -> ResNet:
    """ResNet-18; `weights` is a file or a state dict, `progress` has nothing to show here.

    >>> sum(p.numel() for p in votive.vision.models.resnet18().parameters())
    11689512
    """
    return _built("resnet18", weights, kwargs)


@registered
def resnet34(*, weights: Weights | None = None, progress: bool = True, **kwargs: Any) -> ResNet:
    """ResNet-34, as `resnet18`.

    >>> len(votive.vision.models.resnet34(num_classes=10).layer3)
    6
    """
    return _built("resnet34", weights, kwargs)


@registered
def resnet50(*, weights: Weights | None = None, progress: bool = True, **kwargs: Any) -> ResNet:
    """ResNet-50, of bottlenecks; as `resnet18`.

    >>> votive.vision.models.resnet50(num_classes=10).fc.in_features
    2048
    """
    return _built("resnet50", weights, kwargs)


@registered
def resnet101(*, weights: Weights | None = None, progress: bool = True, **kwargs: Any) -> ResNet:
    """ResNet-101, as `resnet18`.

    >>> with votive.nn.init.skipped():
    ...     net = votive.vision.models.resnet101(num_classes=10)
    >>> len(net.layer3)
    23
    """
    return _built("resnet101", weights, kwargs)


@registered
def resnet152(*, weights: Weights | None = None, progress: bool = True, **kwargs: Any) -> ResNet:
    """ResNet-152, as `resnet18`.

    >>> with votive.nn.init.skipped():
    ...     net = votive.vision.models.resnet152(num_classes=10)
    >>> len(net.layer3)
    36
    """
    return _built("resnet152", weights, kwargs)


@registered
def resnext50_32x4d(*, weights: Weights | None = None, progress: bool = True, **kwargs: Any) -> ResNet:
    """ResNeXt-50 of 32 groups of width 4, as `resnet18`.

    >>> with votive.nn.init.skipped():
    ...     net = votive.vision.models.resnext50_32x4d()
    >>> net.layer1[0].conv2.groups
    32
    """
    return _built("resnext50_32x4d", weights, kwargs)


@registered
def resnext101_32x8d(*, weights: Weights | None = None, progress: bool = True, **kwargs: Any) -> ResNet:
    """ResNeXt-101 of 32 groups of width 8, as `resnet18`.

    >>> with votive.nn.init.skipped():
    ...     net = votive.vision.models.resnext101_32x8d()
    >>> net.layer1[0].conv2.in_channels
    256
    """
    return _built("resnext101_32x8d", weights, kwargs)


@registered
def resnext101_64x4d(*, weights: Weights | None = None, progress: bool = True, **kwargs: Any) -> ResNet:
    """ResNeXt-101 of 64 groups of width 4, as `resnet18`.

    >>> with votive.nn.init.skipped():
    ...     net = votive.vision.models.resnext101_64x4d()
    >>> net.layer1[0].conv2.groups
    64
    """
    return _built("resnext101_64x4d", weights, kwargs)


@registered
def wide_resnet50_2(*, weights: Weights | None = None, progress: bool = True, **kwargs: Any) -> ResNet:
    """ResNet-50 with bottlenecks twice as wide, as `resnet18`.

    >>> with votive.nn.init.skipped():
    ...     net = votive.vision.models.wide_resnet50_2()
    >>> net.layer1[0].conv2.in_channels
    128
    """
    return _built("wide_resnet50_2", weights, kwargs)


@registered
def wide_resnet101_2(*, weights: Weights | None = None, progress: bool = True, **kwargs: Any) -> ResNet:
    """ResNet-101 with bottlenecks twice as wide, as `resnet18`.

    >>> with votive.nn.init.skipped():
    ...     net = votive.vision.models.wide_resnet101_2()
    >>> net.layer1[0].conv2.in_channels
    128
    """
    return _built("wide_resnet101_2", weights, kwargs)
