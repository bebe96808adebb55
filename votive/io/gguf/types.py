"""What a GGUF file can hold: tensor types with their blocks, and types of metadata values.

Numbers and layouts are those of the GGUF specification (ggml, docs/gguf.md) and of ggml's block
structures (ggml-common.h). Tables only; reads no file and computes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core import blocks
from ...core import dtype as dt

MAGIC = b"GGUF"
VERSIONS = (2, 3)
ALIGNMENT = 32
MAX_DIMS = 4
MAX_NAME = 64


@dataclass(frozen=True)
class TensorType:
    """A type of tensor: `block` elements lie in one record of the NumPy type `record`.

    `dtype` is what the tensor loads as, None if votive cannot read its blocks.
    """

    name: str
    code: int
    block: int
    record: Any
    dtype: dt.dtype | None = None
    format: blocks.block_dtype | None = None  # what the tensor is when its blocks are kept

    @property
    def plain(self) -> bool:
        """Whether an element is a number, not a share of a block."""
        return self.block == 1

    def nbytes(self, elements: int) -> int:
        """The bytes of a number of elements that fill whole blocks."""
        return elements // self.block * self.record.itemsize


def _plain(name: str, code: int, dtype: dt.dtype) -> TensorType:
    return TensorType(name, code, 1, np.dtype(dtype.np), dtype)


def _blocks(name: str, code: int) -> TensorType:
    format = blocks.by_name(name)
    return TensorType(name, code, format.block_size, format.np, dt.float32, format)


_ALL = [
    _plain("F32", 0, dt.float32),
    _plain("F16", 1, dt.float16),
    _plain("I8", 24, dt.int8),
    _plain("I16", 25, dt.int16),
    _plain("I32", 26, dt.int32),
    _plain("I64", 27, dt.int64),
    _plain("F64", 28, dt.float64),
    _plain("BF16", 30, dt.bfloat16),
    _blocks("Q4_0", 2),
    _blocks("Q4_1", 3),
    _blocks("Q5_0", 6),
    _blocks("Q5_1", 7),
    _blocks("Q8_0", 8),
    _blocks("Q2_K", 10),
    _blocks("Q3_K", 11),
    _blocks("Q4_K", 12),
    _blocks("Q5_K", 13),
    _blocks("Q6_K", 14),
    _blocks("IQ4_NL", 20),
    _blocks("IQ4_XS", 23),
    _blocks("MXFP4", 39),
    _blocks("TQ1_0", 34),
    _blocks("TQ2_0", 35),
    _blocks("Q8_1", 9),
    _blocks("Q8_K", 15),
    _blocks("IQ2_XXS", 16),
    _blocks("IQ2_XS", 17),
    _blocks("IQ3_XXS", 18),
    _blocks("IQ1_S", 19),
    _blocks("IQ3_S", 21),
    _blocks("IQ2_S", 22),
    _blocks("IQ1_M", 29),
    _blocks("NVFP4", 40),
    _blocks("Q1_0", 41),
    _blocks("Q2_0", 42),
]

TYPES = {t.name: t for t in _ALL}
BY_CODE = {t.code: t for t in _ALL}
BY_DTYPE = {t.dtype: t for t in _ALL if t.plain and t.dtype is not None}
BY_FORMAT = {t.format: t for t in _ALL if t.format is not None}
READABLE = [t.name for t in _ALL if t.dtype is not None]


def tensor_type(name: str | TensorType) -> TensorType:
    """The type of a name, in either case; an unknown one is a ValueError that lists all.

    >>> from votive.io.gguf.types import tensor_type
    >>> tensor_type("q4_k").block
    256
    """
    if isinstance(name, TensorType):
        return name
    found = TYPES.get(name.upper()) if isinstance(name, str) else None
    if found is None:
        raise ValueError(f"gguf: {name!r} is not a type of tensor; there are {', '.join(TYPES)}.")
    return found


# What serves instead where rows do not fill blocks: smaller blocks with no fewer bits.
SMALLER = {
    "Q2_K": "Q4_0",
    "Q3_K": "Q4_0",
    "Q4_K": "Q5_0",
    "Q5_K": "Q5_1",
    "Q6_K": "Q8_0",
    "Q8_K": "Q8_0",
    **dict.fromkeys(("IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S", "IQ4_XS"), "IQ4_NL"),
    "Q1_0": "Q2_0",
    "Q2_0": "Q4_0",
    "NVFP4": "Q4_0",
}

# Names and codes of the types that metadata values have, and the NumPy type of each number.
STRING, ARRAY, BOOL = "string", "array", "bool"
VALUE_CODES = {
    "u8": 0,
    "i8": 1,
    "u16": 2,
    "i16": 3,
    "u32": 4,
    "i32": 5,
    "f32": 6,
    BOOL: 7,
    STRING: 8,
    ARRAY: 9,
    "u64": 10,
    "i64": 11,
    "f64": 12,
}
VALUE_NAMES = {code: name for name, code in VALUE_CODES.items()}
VALUE_DTYPES = {
    name: np.dtype("u1" if name == BOOL else f"{name[0]}{int(name[1:]) // 8}")
    for name in VALUE_CODES
    if name not in (STRING, ARRAY)
}
