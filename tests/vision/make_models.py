"""Writes data/models.npz: what torchvision's nets, or those of networks.py, give for test_models.

Run it as `python -m tests.vision.make_models` when a row is added.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from . import networks
from .test_models import GOLDEN, STORED, numbers, picture
from .torchvision_models import torchvision


def reference(name: str) -> tuple[Any, dict[str, str]]:
    """A net of torch, and the name in a votive net of each of its tensors."""
    if name == "efficientnet_lite0":
        net: Any = networks.Lite0(GOLDEN[name]["num_classes"])
    elif name == "unet":
        net = networks.UNet(3, 2, GOLDEN[name]["width"], bilinear=False)
    else:
        net = getattr(torchvision().models, name)(**GOLDEN[name])
        return net, {k: k for k in net.state_dict()}
    return net, dict(zip(net.state_dict(), net.weights(), strict=True))


def main() -> None:
    found = {}
    for name in GOLDEN:
        net, names = reference(name)
        for key, value in net.state_dict().items():
            if not key.endswith("num_batches_tracked"):
                value.copy_(torch.tensor(numbers(names[key], tuple(value.shape))))
        with torch.no_grad():
            found[name] = net.eval()(torch.tensor(picture())).numpy()
    np.savez_compressed(STORED, **found)
    print(f"{STORED}: {len(found)} nets, {STORED.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
