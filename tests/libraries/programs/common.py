"""What the programs share: weights and inputs that do not depend on a generator, and answers as arrays.

These files run twice, unchanged: with torch, and with votive as torch. They import nothing of votive.
"""

from __future__ import annotations

import json
import sys
import time
import traceback
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

try:
    import torchvision  # noqa: F401
except ModuleNotFoundError:
    pass
except RuntimeError:
    # torchvision whose compiled part does not load still has the transforms that libraries import.
    _library = torch.library.Library("torchvision", "DEF")
    for _name in ("nms", "roi_align", "roi_pool", "ps_roi_align", "ps_roi_pool", "deform_conv2d", "qnms"):
        _library.define(f"{_name}(Tensor x) -> Tensor")


def numbers(name: str, *shape: int, scale: float = 1.0) -> np.ndarray:
    """Normal numbers that depend on the name alone."""
    made = np.random.default_rng(zlib.crc32(name.encode())).standard_normal(shape) * scale
    return made.astype(np.float32)


def integers(name: str, high: int, *shape: int, low: int = 0) -> np.ndarray:
    """Integers that depend on the name alone."""
    return np.random.default_rng(zlib.crc32(name.encode())).integers(low, high, shape)


def fill(model: Any, scale: float = 0.2) -> Any:
    """Give every parameter numbers that depend on its name: norms near one, all others around zero."""
    with torch.no_grad():
        for name, p in model.named_parameters():
            if not p.dtype.is_floating_point:
                continue
            made = numbers(name, *p.shape)
            if p.ndim >= 2:
                made = made * np.float32(min(scale, 1.0 / np.sqrt(max(p[0].numel(), 1))))
            elif name.endswith(("weight", "gamma")):
                made = 1 + made * np.float32(0.1)
            else:
                made = made * np.float32(0.1)
            p.copy_(torch.from_numpy(np.ascontiguousarray(made)).reshape(p.shape))
    return model


def array(value: Any) -> np.ndarray:
    """A tensor as an array."""
    value = value.detach()
    if value.dtype in (torch.bfloat16, torch.float16):
        value = value.float()
    return np.asarray(value.cpu().numpy())


def gradients(model: Any) -> dict[str, np.ndarray]:
    """The gradient of each parameter that has one; of a large one every so many numbers, and its norm."""
    found = {}
    for name, p in model.named_parameters():
        if p.grad is None:
            continue
        g = array(p.grad)
        if g.size > 10_000:
            found[f"norm.{name}"] = np.array(np.linalg.norm(g.astype(np.float64)))
            g = g.reshape(-1)[:: g.size // 5000]
        found[f"grad.{name}"] = g
    return found


def quiet(config: Any) -> Any:
    """Switch everything random off: dropout of all names, also in configurations inside."""
    for key, value in list(vars(config).items()):
        if ("drop" in key or key.startswith("mask_time_prob")) and isinstance(value, float):
            setattr(config, key, 0.0)
        elif hasattr(value, "to_dict"):
            quiet(value)
    return config


def main(cases: dict[str, Callable[[], dict[str, Any]]]) -> None:
    """`program.py out.npz case…`: run cases, write their arrays as `case/name`, and errors as `case/error`."""
    out, *chosen = sys.argv[1:]
    answers: dict[str, Any] = {}
    for name in chosen or cases:
        began = time.perf_counter()
        try:
            found = cases[name]()
        except Exception as error:
            text = "".join(traceback.format_exception(error))
            found = {"error": np.array(json.dumps([f"{type(error).__name__}: {error}"[:600], text[-6000:]]))}
        found["seconds"] = np.array(time.perf_counter() - began)
        answers.update({f"{name}/{key}": value for key, value in found.items()})
    np.savez(out, **answers)
