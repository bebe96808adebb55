"""ONNX both ways: `export` writes a model as a file, `load` makes a module of one. Needs the package onnx."""

from __future__ import annotations

from .errors import OnnxExporterError, OnnxLoadError
from .export import ONNXProgram, export
from .load import load

__all__ = ["ONNXProgram", "OnnxExporterError", "OnnxLoadError", "export", "is_in_onnx_export", "load"]


def is_in_onnx_export() -> bool:
    """Whether a model is being exported right now.

    >>> votive.onnx.is_in_onnx_export()
    False
    """
    from ..compiler.trace import running
    from .capture import Capture

    return isinstance(running.tracer, Capture)
