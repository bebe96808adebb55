"""The nets that torchvision does not have, written down with torch.nn, for the tests to compare.

EfficientNet-Lite after TensorFlow's description, U-Net after the paper with padding and batch norm.
"""

from __future__ import annotations

import math
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="compares with torch")
nn, F = torch.nn, torch.nn.functional

LITE = [  # kernel, repeats, channels, expansion, stride
    (3, 1, 16, 1, 1),
    (3, 2, 24, 6, 2),
    (5, 2, 40, 6, 2),
    (3, 3, 80, 6, 2),
    (5, 3, 112, 6, 1),
    (5, 4, 192, 6, 2),
    (3, 1, 320, 6, 1),
]


def same(x: Any, conv: Any) -> Any:
    """A convolution as TensorFlow pads it."""
    k, s = conv.kernel_size[0], conv.stride[0]
    pads = []
    for size in (x.shape[3], x.shape[2]):
        total = max((math.ceil(size / s) - 1) * s + k - size, 0)
        pads += [total // 2, total - total // 2]
    return F.conv2d(F.pad(x, pads), conv.weight, None, s, 0, 1, conv.groups)


def lite_forward(net: dict[str, Any], x: Any) -> Any:
    """EfficientNet-Lite0 from a plain dict of modules, one line per step."""
    x = F.relu6(net["bn1"](same(x, net["conv_stem"])))
    for stage, (_, repeats, _, expansion, _) in enumerate(LITE):
        for i in range(repeats):
            part = {k.split(".")[3]: m for k, m in net.items() if k.startswith(f"blocks.{stage}.{i}.")}
            if expansion == 1:
                y = F.relu6(part["bn1"](same(x, part["conv_dw"])))
                y = part["bn2"](part["conv_pw"](y))
            else:
                y = F.relu6(part["bn1"](part["conv_pw"](x)))
                y = F.relu6(part["bn2"](same(y, part["conv_dw"])))
                y = part["bn3"](part["conv_pwl"](y))
            x = x + y if x.shape == y.shape and (i > 0) else y
    x = F.relu6(net["bn2"](net["conv_head"](x)))
    return net["classifier"](x.mean((2, 3)))


def lite_modules(classes: int) -> dict[str, Any]:
    """The layers of EfficientNet-Lite0 by name."""
    found: dict[str, Any] = {"conv_stem": nn.Conv2d(3, 32, 3, 2, bias=False), "bn1": _norm(32)}
    width = 32
    for stage, (kernel, repeats, channels, expansion, stride) in enumerate(LITE):
        for i in range(repeats):
            at, wide = f"blocks.{stage}.{i}.", width * expansion
            deep = nn.Conv2d(wide, wide, kernel, stride if i == 0 else 1, groups=wide, bias=False)
            if expansion == 1:
                found |= {at + "conv_dw": deep, at + "bn1": _norm(wide)}
                found |= {at + "conv_pw": nn.Conv2d(wide, channels, 1, bias=False)}
                found |= {at + "bn2": _norm(channels)}
            else:
                found |= {at + "conv_pw": nn.Conv2d(width, wide, 1, bias=False)}
                found |= {at + "bn1": _norm(wide), at + "conv_dw": deep, at + "bn2": _norm(wide)}
                found |= {at + "conv_pwl": nn.Conv2d(wide, channels, 1, bias=False)}
                found |= {at + "bn3": _norm(channels)}
            width = channels
    found |= {"conv_head": nn.Conv2d(width, 1280, 1, bias=False), "bn2": _norm(1280)}
    found["classifier"] = nn.Linear(1280, classes)
    return found


def _norm(width: int) -> Any:
    return nn.BatchNorm2d(width, eps=1e-3, momentum=0.01)


class Lite0(nn.Module):
    """EfficientNet-Lite0 as one torch module."""

    def __init__(self, classes: int = 1000) -> None:
        super().__init__()
        self.parts = lite_modules(classes)
        for name, module in self.parts.items():
            self.add_module(name.replace(".", "/"), module)

    def forward(self, x: Any) -> Any:
        return lite_forward(self.parts, x)

    def weights(self) -> dict[str, Any]:
        """The state dict, with dots in its names."""
        return {k.replace("/", "."): v for k, v in self.state_dict().items()}


class UNet(nn.Module):
    """U-Net with the layers in lists, in the order in which they run."""

    def __init__(self, inputs: int, classes: int, width: int, bilinear: bool) -> None:
        super().__init__()
        widths, less = [width * 2**i for i in range(5)], 2 if bilinear else 1
        self.bilinear = bilinear
        self.down = nn.ModuleList()
        for i, wide in enumerate(widths):
            outputs = wide // less if i == 4 else wide
            self.down.append(self.twice(inputs, outputs, outputs))
            inputs = outputs
        self.grow, self.up = nn.ModuleList(), nn.ModuleList()
        for i in (3, 2, 1, 0):
            both = widths[i + 1]
            outputs = widths[i] // less if i else widths[i]
            if not bilinear:
                self.grow.append(nn.ConvTranspose2d(both, both // 2, 2, stride=2))
            self.up.append(self.twice(both, both // 2 if bilinear else outputs, outputs))
        self.head = nn.Conv2d(widths[0], classes, 1)

    @staticmethod
    def twice(inputs: int, middle: int, outputs: int) -> Any:
        return nn.Sequential(
            nn.Conv2d(inputs, middle, 3, padding=1, bias=False),
            nn.BatchNorm2d(middle),
            nn.ReLU(),
            nn.Conv2d(middle, outputs, 3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
        )

    def forward(self, x: Any) -> Any:
        kept = []
        for i, stage in enumerate(self.down):
            x = stage(F.max_pool2d(x, 2) if i else x)
            kept.append(x)
        kept.pop()
        for i, stage in enumerate(self.up):
            if self.bilinear:
                x = F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=True)
            else:
                x = self.grow[i](x)
            short = kept.pop()
            high, wide = short.shape[2] - x.shape[2], short.shape[3] - x.shape[3]
            x = F.pad(x, [wide // 2, wide - wide // 2, high // 2, high - high // 2])
            x = stage(torch.cat([short, x], 1))
        return self.head(x)

    def weights(self) -> dict[str, Any]:
        """The state dict under the names of the usual checkpoints."""
        found = {}
        for name, value in self.state_dict().items():
            kind, *at = name.split(".")
            if kind == "head":
                found[f"outc.conv.{at[0]}"] = value
            elif kind == "grow":
                found[f"up{int(at[0]) + 1}.up.{at[1]}"] = value
            elif kind == "up":
                found[f"up{int(at[0]) + 1}.conv.double_conv." + ".".join(at[1:])] = value
            elif at[0] == "0":
                found["inc.double_conv." + ".".join(at[1:])] = value
            else:
                found[f"down{at[0]}.maxpool_conv.1.double_conv." + ".".join(at[1:])] = value
        return found
