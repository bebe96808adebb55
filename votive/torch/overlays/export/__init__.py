"""`torch.export`."""

from __future__ import annotations

from typing import Any

from ...export import (
    AdditionalInputs,
    Dim,
    ExportBackwardSignature,
    ExportedProgram,
    ExportGraphSignature,
    ModuleCallEntry,
    ModuleCallSignature,
    ShapesCollection,
    dims,
    export,
    load,
    save,
)
from ..utils import _pytree
from ..utils._pytree_spec import SUPPORTED_SERIALIZED_TYPES


def register_dataclass(cls: type[Any], *, serialized_type_name: str | None = None) -> None:
    """Let objects of a dataclass be inputs and results of exported programs."""
    _pytree.register_dataclass(cls)
    if serialized_type_name is not None:
        SUPPORTED_SERIALIZED_TYPES[cls] = serialized_type_name


def default_decompositions() -> dict[Any, Any]:
    """Rules that make operators of simpler ones: none, since graphs are made of votive's own."""
    return {}


__all__ = [
    "AdditionalInputs",
    "Dim",
    "ExportBackwardSignature",
    "ExportGraphSignature",
    "ExportedProgram",
    "ModuleCallEntry",
    "ModuleCallSignature",
    "ShapesCollection",
    "default_decompositions",
    "dims",
    "export",
    "load",
    "register_dataclass",
    "save",
]
