"""The functionals under torchvision's newer path, and their forms for plain tensors: `resize_image` and so on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import functional as _functional
from ..functional import *  # noqa: F403
from ..functional.kernels import TENSOR as _TENSOR


def __getattr__(name: str) -> Callable[..., Any]:
    stem, _, kind = name.rpartition("_")
    # Videos are images with one more dimension in front.
    if kind in ("image", "video"):
        kernels = getattr(getattr(_functional, stem, None), "kernels", None)
        if kernels is not None:
            made: Callable[..., Any] = kernels[_TENSOR]
            return made
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
