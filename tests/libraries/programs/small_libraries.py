"""einops, safetensors.torch and torchinfo: arrangements, layers, files and summaries."""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Callable
from typing import Any

import einops
import numpy as np
import safetensors.torch
import torch
from common import array, fill, main, numbers


def _einops_functions() -> dict[str, Any]:
    x = torch.from_numpy(numbers("x", 2, 3, 4, 6)).requires_grad_()
    y = einops.rearrange(x, "b c (h1 h2) w -> (b h1) (c h2) w", h2=2)
    z = einops.reduce(x, "b c h w -> b c", "max") + einops.repeat(x[:, :, 0, 0], "b c -> (b k) c", k=2)[::2]
    packed, shapes = einops.pack([x[:, :, 0], x[:, 0]], "b * w")
    e = einops.einsum(x, x, "b c h w, b d h w -> b c d")
    (y.square().mean() + z.sum() + packed.tanh().sum() + e.sum()).backward()
    return {
        "y": array(y),
        "z": array(z),
        "packed": array(packed),
        "e": array(e),
        "grad": array(x.grad),
        "n": np.array(shapes),
    }


def _einops_layers() -> dict[str, Any]:
    from einops.layers.torch import EinMix, Rearrange, Reduce

    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3),
        Reduce("b c (h h2) (w w2) -> b c h w", "max", h2=2, w2=2),
        Rearrange("b c h w -> b (c h w)"),
        torch.nn.Linear(16, 8),
        EinMix("b (g c) -> b (g d)", weight_shape="g c d", bias_shape="g d", g=2, c=4, d=3),
    )
    out = fill(net)(torch.from_numpy(numbers("i", 2, 3, 6, 6)))
    out.sum().backward()
    return {"out": array(out), "grad": array(net[0].weight.grad), "mix": array(net[4].weight.grad)}


def _safetensors() -> dict[str, Any]:
    net = fill(torch.nn.Sequential(torch.nn.Embedding(5, 3), torch.nn.Linear(3, 5)))
    net[1].weight = net[0].weight
    state = {"a": torch.arange(6).view(2, 3), "b": torch.ones(2).bfloat16(), "c": torch.tensor([True, False])}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "x.safetensors")
        safetensors.torch.save_file(state, path, metadata={"format": "pt"})
        again = safetensors.torch.load_file(path)
        with safetensors.safe_open(path, framework="pt") as f:
            part, keys = f.get_slice("a")[:, 1:], sorted(f.keys())
        safetensors.torch.save_model(net, path)
        other = torch.nn.Sequential(torch.nn.Embedding(5, 3), torch.nn.Linear(3, 5))
        other[1].weight = other[0].weight
        missing, unexpected = safetensors.torch.load_model(other, path)
    raw = safetensors.torch.save(state)
    return {
        "a": array(again["a"]),
        "b": array(again["b"]),
        "c": array(again["c"]),
        "part": array(part),
        "keys": np.array(keys),
        "weights": array(other[0].weight),
        "tied": np.array(other[0].weight.data_ptr() == other[1].weight.data_ptr()),
        "counts": np.array([len(missing), len(unexpected), len(raw)]),
        "again": array(safetensors.torch.load(raw)["a"]),
    }


def _torchinfo() -> dict[str, Any]:
    from torchinfo import summary

    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.LazyLinear(4)
    )
    found = summary(net, input_size=(2, 3, 8, 8), verbose=0, col_names=("input_size", "output_size", "num_params"))
    return {"text": np.array(str(found)), "total": np.array([found.total_params, found.total_mult_adds])}


def _checkpoints() -> dict[str, Any]:
    net = fill(torch.nn.LSTM(3, 4, 2))
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
    net(torch.from_numpy(numbers("i", 5, 2, 3)))[0].sum().backward()
    optimizer.step()
    file = io.BytesIO()
    torch.save({"net": net.state_dict(), "opt": optimizer.state_dict(), "rng": 3}, file)
    file.seek(0)
    found = torch.load(file, map_location=lambda storage, location: storage)
    net.load_state_dict(found["net"])
    optimizer.load_state_dict(found["opt"])
    net(torch.from_numpy(numbers("j", 5, 2, 3)))[0].sum().backward()
    optimizer.step()
    return {name: array(p) for name, p in net.named_parameters()}


CASES: dict[str, Callable[[], dict[str, Any]]] = {
    "einops_functions": _einops_functions,
    "einops_layers": _einops_layers,
    "safetensors": _safetensors,
    "torchinfo": _torchinfo,
    "checkpoints": _checkpoints,
}

if __name__ == "__main__":
    main(CASES)
