"""What exporting and loading raise."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class OnnxExporterError(RuntimeError):
    """A program that cannot be written as ONNX, and why."""


class OnnxLoadError(RuntimeError):
    """A file that cannot be turned into a module, and why."""


def package(name: str = "onnx") -> Any:
    """The onnx package, or an error that says how to get it."""
    try:
        return import_module(name)
    except ImportError as e:
        raise ImportError(f"votive.onnx needs the package {name}: pip install 'votive[onnx]'.") from e
