"""ResNet-18 and a small U-Net on a GPU: forward and training steps. `python -m benchmarks.gpu pictures`

Both libraries run the same nets from the same code; votive's ResNet-18 is the package's own. float32 is multiplied in
TF32 on both sides, or in bfloat16 under autocast. torch has its channels last and lets cuDNN find its fastest
algorithms; votive is also shown with channels in front.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

from . import Case

BATCH, SIDE, CLASSES = 32, 224, 1000
U_BATCH, U_SIDE, U_WIDTH, U_CLASSES = 8, 128, 32, 4


def resnet18(lib: Any) -> Any:
    """ResNet-18 of He et al. 2015 in the words of either library."""
    nn = lib.nn

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, inputs: int, outputs: int, stride: int) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(outputs)
            self.relu = nn.ReLU(inplace=True)
            self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
            self.bn2 = nn.BatchNorm2d(outputs)
            self.downsample = None
            if stride != 1:
                self.downsample = nn.Sequential(
                    nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
                )

        def forward(self, x: Any) -> Any:
            short = x if self.downsample is None else self.downsample(x)
            y = self.relu(self.bn1(self.conv1(x)))
            y = self.bn2(self.conv2(y))
            y += short
            return self.relu(y)

    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    for inputs, outputs, stride in ((64, 64, 1), (64, 128, 2), (128, 256, 2), (256, 512, 2)):
        layers += [Block(inputs, outputs, stride), Block(outputs, outputs, 1)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, CLASSES))


def u_net(lib: Any, width: int = U_WIDTH, classes: int = U_CLASSES) -> Any:
    """A U-Net of three levels, after Ronneberger et al. 2015."""
    nn = lib.nn

    def double(inputs: int, outputs: int) -> Any:
        layers = []
        for n in (inputs, outputs):
            layers += [nn.Conv2d(n, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)]
        return nn.Sequential(*layers)

    class Net(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            widths = [width << k for k in range(4)]
            self.first, self.pool = double(3, width), nn.MaxPool2d(2)
            self.down = nn.ModuleList([double(a, b) for a, b in pairwise(widths)])
            up = list(reversed(list(pairwise(widths))))
            self.grow = nn.ModuleList([nn.ConvTranspose2d(b, a, 2, 2) for a, b in up])
            self.up = nn.ModuleList([double(b, a) for a, b in up])
            self.last = nn.Conv2d(width, classes, 1)

        def forward(self, x: Any) -> Any:
            kept = [self.first(x)]
            for block in self.down:
                kept.append(block(self.pool(kept[-1])))
            y = kept.pop()
            for grow, block in zip(self.grow, self.up, strict=True):
                y = block(lib.cat([kept.pop(), grow(y)], 1))
            return self.last(y)

    return Net()


def _forward(lib: Any, net: Any, x: Any, amp: bool) -> Callable[[], Any]:
    def run() -> Any:
        with lib.no_grad(), lib.autocast("cuda", dtype=lib.bfloat16, enabled=amp):
            return net(x)

    return run


def _step(lib: Any, net: Any, x: Any, labels: Any, amp: bool) -> Callable[[], Any]:
    optimizer = lib.optim.SGD(net.parameters(), lr=1e-3, momentum=0.9)

    def run() -> Any:
        with lib.autocast("cuda", dtype=lib.bfloat16, enabled=amp):
            loss = lib.nn.functional.cross_entropy(net(x), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    return run


def _sides(lib: Any, make: Callable[[], Any], amp: bool, last: bool, shape: tuple[int, ...], labels: Any) -> Any:
    """(forward, training step) of one library."""
    import numpy as np

    lib.backends.cuda.matmul.allow_tf32 = True
    if lib.__name__ == "torch":
        lib.backends.cudnn.benchmark = True
    lib.manual_seed(0)
    order = lib.channels_last if last else lib.contiguous_format
    x = lib.tensor(np.random.default_rng(0).standard_normal(shape).astype(np.float32))
    x = x.to("cuda").to(memory_format=order)
    nets = [make().to("cuda").to(memory_format=order) for _ in range(2)]
    aim = lib.tensor(labels).to("cuda")
    return _forward(lib, nets[0].eval(), x, amp), _step(lib, nets[1].train(), x, aim, amp)


def pictures() -> Iterator[Case]:
    """Forward and training step of both nets, by precision and order of memory."""
    import numpy as np
    import torch

    import votive
    from votive.vision import models

    numbers = np.random.default_rng(1)
    nets = {
        "ResNet-18": (
            models.resnet18,
            lambda: resnet18(torch),
            (BATCH, 3, SIDE, SIDE),
            numbers.integers(0, CLASSES, BATCH),
        ),
        "U-Net": (
            lambda: u_net(votive),
            lambda: u_net(torch),
            (U_BATCH, 3, U_SIDE, U_SIDE),
            numbers.integers(0, U_CLASSES, (U_BATCH, U_SIDE, U_SIDE)),
        ),
    }
    for name, (ours, theirs, shape, labels) in nets.items():
        for amp in (False, True):
            other = _sides(torch, theirs, amp, True, shape, labels)
            for last in (True, False):
                kind = "bfloat16 autocast" if amp else "TF32"
                title = f"{name} {shape[0]}x{shape[2]} {kind}{'' if last else ', channels in front'}"
                mine = _sides(votive, ours, amp, last, shape, labels)
                for what, a, b in zip(("forward", "training step"), mine, other, strict=True):
                    yield Case(f"{title}, {what}", a, b, target="1.0")
