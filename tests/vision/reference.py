"""torchvision as a reference, where it is installed, also without its compiled operators.

Its Python code asks for operators of its C++ library while it is imported. Where the library cannot
be loaded, their names are declared here, so that all but those operators can be compared with.
"""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest

import votive

_NAMES = [
    "nms", "qnms", "roi_align", "_roi_align_backward", "roi_pool", "_roi_pool_backward",
    "ps_roi_align", "_ps_roi_align_backward", "ps_roi_pool", "_ps_roi_pool_backward",
    "deform_conv2d", "_deform_conv2d_backward",
]  # fmt: skip
_LIBRARIES: list[Any] = []  # an operator lives as long as the library that declares it


def torchvision() -> Any:
    """The package, or a skipped test."""
    torch = pytest.importorskip("torch")
    try:
        import torchvision
    except ImportError:
        pytest.skip("torchvision is not installed")
    except RuntimeError:
        if not _LIBRARIES:
            _LIBRARIES.append(torch.library.Library("torchvision", "DEF"))
        for name in _NAMES:
            with contextlib.suppress(RuntimeError):
                _LIBRARIES[0].define(f"{name}(Tensor a) -> Tensor")
        import torchvision
    return torchvision


def to_torch(x: Any) -> Any:
    """The same values as a torch tensor."""
    import torch

    return torch.from_numpy(np.ascontiguousarray(x.detach().numpy()).copy())


def to_votive(x: Any) -> Any:
    """The same values as a votive tensor."""
    return votive.from_numpy(np.ascontiguousarray(x.detach().numpy()).copy())
