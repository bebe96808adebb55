"""torchvision, also where its compiled operators are missing, which none of its models need.

transformers imports it too where it is installed, and would not know how.
"""

from __future__ import annotations

import contextlib
import importlib.util
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="compares with torch")

# What its Python registers kernels for at import.
_SCHEMAS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
)
_LIBRARY: list[Any] = []  # the declarations live as long as it does


def prepare() -> None:
    """Make torchvision importable, if it is installed at all."""
    if importlib.util.find_spec("torchvision") is None:
        return
    try:
        importlib.import_module("torchvision")
    except RuntimeError:
        fragment = torch.library.Library("torchvision", "FRAGMENT")
        _LIBRARY.append(fragment)
        for schema in _SCHEMAS:
            with contextlib.suppress(RuntimeError):  # another test module has declared it
                fragment.define(schema)
        importlib.import_module("torchvision")


def torchvision() -> Any:
    """torchvision; a test that asks for it is skipped where it is not installed."""
    prepare()
    return pytest.importorskip("torchvision", reason="compares with torchvision")
