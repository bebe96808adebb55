"""torchvision as a reference, where it is installed, and values to compare with it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import votive


def torchvision() -> Any:
    """The package, or a skipped test."""
    pytest.importorskip("torch")
    from tests.vision import torchvision_models

    return torchvision_models.torchvision()


def to_torch(x: Any) -> Any:
    """The same values as a torch tensor."""
    import torch

    return torch.from_numpy(np.ascontiguousarray(x.detach().numpy()).copy())


def to_votive(x: Any) -> Any:
    """The same values as a votive tensor."""
    return votive.from_numpy(np.ascontiguousarray(x.detach().numpy()).copy())
