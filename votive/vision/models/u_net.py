"""U-Net, which gives each pixel a class. Ronneberger et al. 2015, arXiv:1505.04597.

Convolutions are padded and followed by batch norm, as is usual since; parameters are named as in
the PyTorch checkpoints that circulate (`inc.double_conv.0`, `down1.maxpool_conv.1`, `up1.up`, …).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import votive
from votive import nn
from votive.nn import functional as F

from ...tensor import Tensor
from ..types import Weights
from .weights import build, registered


class DoubleConv(nn.Module):
    """Twice: a 3x3 convolution, a norm, a ReLU.

    >>> votive.vision.models.u_net.DoubleConv(3, 8)(votive.ones(1, 3, 4, 4)).shape
    votive.Size([1, 8, 4, 4])
    """

    def __init__(self, inputs: int, outputs: int, middle: int | None = None) -> None:
        super().__init__()
        middle = outputs if middle is None else middle
        self.double_conv = nn.Sequential(
            nn.Conv2d(inputs, middle, 3, padding=1, bias=False),
            nn.BatchNorm2d(middle),
            nn.ReLU(inplace=True),
            nn.Conv2d(middle, outputs, 3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(inplace=True),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.double_conv(x)


class Down(nn.Module):
    """Half the size, then two convolutions.

    >>> votive.vision.models.u_net.Down(3, 8)(votive.ones(1, 3, 4, 4)).shape
    votive.Size([1, 8, 2, 2])
    """

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.maxpool_conv = nn.Sequential(nn.MaxPool2d(2), DoubleConv(inputs, outputs))

    def forward(self, x: Tensor) -> Tensor:
        return self.maxpool_conv(x)


class Up(nn.Module):
    """Twice the size, joined with what the way down had at that size, then two convolutions.

    >>> up = votive.vision.models.u_net.Up(8, 4)
    >>> up(votive.ones(1, 8, 2, 2), votive.ones(1, 4, 5, 4)).shape
    votive.Size([1, 4, 5, 4])
    """

    def __init__(self, inputs: int, outputs: int, bilinear: bool = False) -> None:
        super().__init__()
        if bilinear:
            self.up: nn.Module = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
            self.conv = DoubleConv(inputs, outputs, inputs // 2)
        else:
            self.up = nn.ConvTranspose2d(inputs, inputs // 2, 2, stride=2)
            self.conv = DoubleConv(inputs, outputs)

    def forward(self, x: Tensor, short: Tensor) -> Tensor:
        x = self.up(x)
        # Halving an odd size lost a pixel, which is put back around what came up.
        high, wide = short.shape[2] - x.shape[2], short.shape[3] - x.shape[3]
        if high or wide:
            x = F.pad(x, [wide // 2, wide - wide // 2, high // 2, high - high // 2])
        return self.conv(votive.cat([short, x], 1))


class OutConv(nn.Module):
    """Scores of the classes for each pixel."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.conv(x)


class UNet(nn.Module):
    """Scores (batch, n_classes, height, width) for the pixels of pictures of any size from 16 on.

    With `bilinear`, pictures grow by interpolation instead of learned filters. `width` is that of
    the first stage; each of the four on the way down is twice as wide.

    >>> net = votive.vision.models.UNet(n_channels=3, n_classes=2, width=4)
    >>> net(votive.ones(1, 3, 37, 50)).shape
    votive.Size([1, 2, 37, 50])
    """

    def __init__(self, n_channels: int = 3, n_classes: int = 2, bilinear: bool = False, *, width: int = 64) -> None:
        super().__init__()
        if width < 1 or (bilinear and width % 2):
            raise ValueError(f"UNet: width must be positive, and even if bilinear, got {width}.")
        self.n_channels, self.n_classes, self.bilinear = n_channels, n_classes, bilinear
        a, b, c, d, e = (width * 2**i for i in range(5))
        less = 2 if bilinear else 1  # interpolation does not narrow, so the stage before does
        self.inc = DoubleConv(n_channels, a)
        self.down1, self.down2, self.down3 = Down(a, b), Down(b, c), Down(c, d)
        self.down4 = Down(d, e // less)
        self.up1, self.up2 = Up(e, d // less, bilinear), Up(d, c // less, bilinear)
        self.up3, self.up4 = Up(c, b // less, bilinear), Up(b, a, bilinear)
        self.outc = OutConv(a, n_classes)

    def forward(self, x: Tensor) -> Tensor:
        if x.dim() != 4 or x.shape[1] != self.n_channels or min(x.shape[2:]) < 16:
            raise ValueError(
                f"UNet: takes pictures (batch, {self.n_channels}, height, width) of at least 16 x "
                f"16 pixels, got {tuple(x.shape)}."
            )
        a = self.inc(x)
        b = self.down1(a)
        c = self.down2(b)
        d = self.down3(c)
        x = self.up1(self.down4(d), d)
        return self.outc(self.up4(self.up3(self.up2(x, c), b), a))


@registered
def unet(*, weights: Weights | None = None, progress: bool = True, **kwargs: Any) -> UNet:
    """A U-Net; `weights` is a file or a state dict, `progress` has nothing to show here.

    >>> sum(p.numel() for p in votive.vision.models.unet().parameters())
    31037698
    """
    # The file of the best-known checkpoint also lists the values that masks have.
    if isinstance(weights, Mapping):
        weights = {k: v for k, v in weights.items() if k != "mask_values"}
    return build(partial(UNet, **kwargs), weights)
