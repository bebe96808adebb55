"""Files with weights: open any of them, look, read a part, load a module, write. Knows no model.

`open_weights` gives a `WeightSource` for a file or folder of any known format, and `load_into`
puts one into a module. Each format has a module with its own functions: `safetensors`, `npy`,
`torch_file`, `gguf`, `ctranslate2`, `llama2c`.
"""

from __future__ import annotations

from importlib import import_module

from ..serialization.container import FileFormatError
from .formats import open_weights
from .loading import load_into
from .report import LoadError, LoadReport
from .source import MemorySource, TensorInfo, WeightSource

__all__ = [
    "open_weights",
    "load_into",
    "WeightSource",
    "MemorySource",
    "TensorInfo",
    "LoadReport",
    "FileFormatError",
    "LoadError",
]

_FORMATS = ("ctranslate2", "gguf", "llama2c", "npy", "safetensors", "torch_file")


def __getattr__(name: str) -> object:
    if name in _FORMATS:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_FORMATS})
