"""GGUF: files of tensors, many of them quantized in blocks, with typed metadata.

`GGUFFile` reads, `write` writes, `quantize` and `dequantize` turn numbers into blocks and back.
"""

from __future__ import annotations

from .file import GGUFFile
from .quants import QUANTIZABLE, dequantize, quantize
from .types import READABLE, TYPES, TensorType, tensor_type
from .values import Value
from .writer import write

__all__ = [
    "GGUFFile", "Value", "write", "quantize", "dequantize",
    "QUANTIZABLE", "READABLE", "TYPES", "TensorType", "tensor_type",
]  # fmt: skip
