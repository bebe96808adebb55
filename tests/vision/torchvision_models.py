"""torchvision, also where its compiled operators are missing, which none of its models need."""

from __future__ import annotations

import contextlib
import importlib
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="compares with torch")

# What its Python registers kernels for at import.
_SCHEMAS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
)
_LIBRARY: list[Any] = []  # the declarations live as long as it does


def torchvision() -> Any:
    """torchvision; a test that asks for it is skipped where it is not installed."""
    if importlib.util.find_spec("torchvision") is None:
        pytest.skip("torchvision is not installed")
    try:
        return importlib.import_module("torchvision")
    except RuntimeError:
        fragment = torch.library.Library("torchvision", "FRAGMENT")
        _LIBRARY.append(fragment)
        for schema in _SCHEMAS:
            with contextlib.suppress(RuntimeError):  # another test module has declared it
                fragment.define(schema)
        return importlib.import_module("torchvision")
