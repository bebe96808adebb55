"""GGUF: files of tensors, many of them quantized in blocks, with typed metadata.

`open` and `GGUFFile` read, `write` writes, `quantize` and `dequantize` turn numbers into blocks and
back.
"""

from __future__ import annotations

from .file import GGUFFile
from .quants import QUANTIZABLE, dequantize, quantize
from .split import GGUFParts, open
from .types import READABLE, TYPES, TensorType, tensor_type
from .values import Value
from .writer import write

__all__ = [
    "open",
    "GGUFFile",
    "GGUFParts",
    "Value",
    "write",
    "quantize",
    "dequantize",
    "QUANTIZABLE",
    "READABLE",
    "TYPES",
    "TensorType",
    "tensor_type",
]
