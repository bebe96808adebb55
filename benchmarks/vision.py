"""ResNet-18 next to torchvision's on torch: forward of 1 and 8 pictures, and a training step of 8.

    python -m benchmarks.vision                   # resnet18, 224 x 224
    python -m benchmarks.vision --net mobilenet_v2 --seconds 20 --json out.json

Both have the same weights; that their scores agree is checked before anything is measured. Blocks
of the two alternate, as everywhere here. `--cpu-time` counts the time of one thread, for a machine
that others use. Both lay pictures out as they come, channels first;
`--channels-last` converts nets and pictures of both. `--sampling` measures grid_sample instead, at
positions of slightly rotated pictures.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import votive
from votive.vision import models

from .pairing import Row, mean_ratio, pair, report


def reference(name: str) -> Any:
    """A net of torchvision, also where its compiled operators are missing."""
    import contextlib

    import torch

    try:
        import torchvision
    except RuntimeError:
        declared = torch.library.Library("torchvision", "FRAGMENT")
        for schema in ("nms(Tensor a, Tensor b, float c) -> Tensor", "qnms(Tensor a, Tensor b, float c) -> Tensor"):
            with contextlib.suppress(RuntimeError):
                declared.define(schema)
        import torchvision

        torchvision.__dict__["_declared"] = declared  # lives as long as the package
    torch.manual_seed(0)
    return getattr(torchvision.models, name)()


def nets(name: str, channels_last: bool) -> tuple[Any, Any]:
    """The same net twice."""
    import torch

    theirs = reference(name)
    state = {k: votive.tensor(v.numpy()) for k, v in theirs.state_dict().items()}
    ours = models.get_model(name, weights=state)
    if channels_last:
        ours = ours.to(memory_format=votive.channels_last)
        theirs = theirs.to(memory_format=torch.channels_last)
    return ours, theirs


def pictures(batch: int, size: int, channels_last: bool) -> tuple[Any, Any]:
    import torch

    x = np.random.default_rng(0).standard_normal((batch, 3, size, size)).astype(np.float32)
    v, t = votive.tensor(x), torch.tensor(x)
    if channels_last:
        return (v.contiguous(memory_format=votive.channels_last), t.contiguous(memory_format=torch.channels_last))
    return v, t


def forward(library: Any, net: Any, x: Any) -> Callable[[], Any]:
    def run() -> Any:
        with library.no_grad():
            return net(x)

    return run


def training(library: Any, net: Any, x: Any) -> Callable[[], Any]:
    """One step: forward, cross entropy, backward, SGD with momentum."""
    optimizer = library.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    goal = library.arange(x.shape[0])

    def step() -> Any:
        optimizer.zero_grad()
        loss = library.nn.functional.cross_entropy(net(x), goal)
        loss.backward()
        optimizer.step()
        return loss

    return step


def measured(name: str, size: int, seconds: float, channels_last: bool, cpu_time: bool) -> list[Row]:
    import torch

    given: dict[str, Any] = {"seconds": seconds}
    if cpu_time:
        votive.set_num_threads(1)
        given["clock"] = time.process_time
    torch.set_num_threads(votive.get_num_threads())
    ours, theirs = nets(name, channels_last)
    ours.eval(), theirs.eval()
    rows = []
    for batch in (1, 8):
        v, t = pictures(batch, size, channels_last)
        a, b = forward(votive, ours, v), forward(torch, theirs, t)
        worst = np.abs(a().numpy() - b().numpy()).max() / np.abs(b().numpy()).max()
        assert worst < 1e-3, f"the nets differ by {worst:.1e}"
        rows.append(pair(f"{name} forward, batch {batch}", a, b, **given))
    ours.train(), theirs.train()
    v, t = pictures(8, size, channels_last)
    rows.append(pair(f"{name} training step, batch 8", training(votive, ours, v), training(torch, theirs, t), **given))
    return rows


# Input, mode and padding: a large picture, a batch, features, and volumes.
SAMPLED = [
    ((1, 3, 512, 512), "bilinear", "zeros"),
    ((8, 3, 224, 224), "bilinear", "zeros"),
    ((4, 64, 56, 56), "bilinear", "border"),
    ((4, 3, 224, 224), "nearest", "zeros"),
    ((4, 3, 224, 224), "bicubic", "reflection"),
    ((1, 2, 48, 64, 64), "bilinear", "zeros"),
]


def sampling(library: Any, x: Any, grid: Any, how: tuple[Any, ...], train: bool) -> Any:
    sample = library.nn.functional.grid_sample
    if not train:
        return lambda: sample(x, grid, *how)
    x, grid = x.detach().requires_grad_(), grid.detach().requires_grad_()
    back = library.ones_like(sample(x, grid, *how)).detach()

    def step() -> Any:
        x.grad = grid.grad = None
        y = sample(x, grid, *how)
        y.backward(back)
        return y

    return step


def sampled(seconds: float, cpu_time: bool) -> list[Row]:
    import torch

    given: dict[str, Any] = {"seconds": seconds}
    if cpu_time:
        votive.set_num_threads(1)
        given["clock"] = time.process_time
    torch.set_num_threads(votive.get_num_threads())
    rng, rows = np.random.default_rng(0), []
    for shape, mode, padding in SAMPLED:
        n = len(shape) - 2
        rotated = np.eye(n, n + 1) + 0.12 * rng.standard_normal((n, n + 1))
        theta = torch.tensor(np.stack([rotated] * shape[0]), dtype=torch.float32)
        grid = torch.nn.functional.affine_grid(theta, shape, align_corners=False)
        x, how = torch.randn(shape), (mode, padding, False)
        mine = votive.tensor(x.numpy()), votive.tensor(grid.numpy())
        for train in (False, True):
            a, b = sampling(votive, *mine, how, train), sampling(torch, x, grid, how, train)
            worst = np.abs(a().detach().numpy() - b().detach().numpy()).max()
            assert worst < 1e-3, f"the samples differ by {worst:.1e}"
            name = f"grid_sample {mode} {padding} {'x'.join(map(str, shape))}"
            rows.append(pair(name + (" and gradients" if train else ""), a, b, **given))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--net", default="resnet18")
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--seconds", type=float, default=15.0, help="for each row")
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--cpu-time", action="store_true", help="of one thread")
    parser.add_argument("--sampling", action="store_true", help="measure grid_sample, not a net")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    print(f"{votive.get_num_threads()} threads, load {os.getloadavg()[0]:.1f}")
    if args.sampling:
        rows = sampled(args.seconds, args.cpu_time)
    else:
        rows = measured(args.net, args.size, args.seconds, args.channels_last, args.cpu_time)
    report(rows, args.json)
    print(f"mean ratio {mean_ratio(rows):.2f}")


if __name__ == "__main__":
    main()
