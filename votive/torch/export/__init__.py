"""`torch.export`: a program as a graph of operators with guards on its inputs, that can be saved, loaded and run."""

from __future__ import annotations

from .files import load, save
from .program import ExportedProgram, ModuleCallEntry, ModuleCallSignature
from .shapes import AdditionalInputs, Dim, ShapesCollection, dims
from .signature import ExportBackwardSignature, ExportGraphSignature
from .tracing import export

__all__ = [
    "AdditionalInputs",
    "Dim",
    "ExportBackwardSignature",
    "ExportGraphSignature",
    "ExportedProgram",
    "ModuleCallEntry",
    "ModuleCallSignature",
    "ShapesCollection",
    "dims",
    "export",
    "load",
    "save",
]
