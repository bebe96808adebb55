"""Weights in blocks on native kernels."""

from __future__ import annotations

from ....core import blocks
from ....core import dtype as dt
from ....core.blocks import block_dtype
from ....core.layout import Spec
from ...common.slot import Slot
from ..arrays import Args
from .rows import OUT, native

# In the order of `for_format` in src/kernels/quantized.h.
FORMATS: tuple[block_dtype, ...] = (
    blocks.q4_0,
    blocks.q4_1,
    blocks.q5_0,
    blocks.q5_1,
    blocks.q8_0,
    blocks.q2_k,
    blocks.q3_k,
    blocks.q4_k,
    blocks.q5_k,
    blocks.q6_k,
    blocks.iq4_nl,
    blocks.iq4_xs,
    blocks.mxfp4,
    blocks.tq1_0,
    blocks.tq2_0,
)
_CODES = {format: i for i, format in enumerate(FORMATS)}
_NUMBERS = (dt.float32, *dt.HALF)


def _dense_rows(data: Spec) -> bool:
    """Whether the bytes of each row follow one another."""
    return data.ndim == 2 and (data.strides[1] == 1 or data.shape[1] == 1)


def numbers(*specs: Spec) -> bool:
    """Products of double precision are left to the reference."""
    return specs[0].dtype in _NUMBERS and _dense_rows(specs[1])


@native("_block_decode", "block_decode")
def block_decode(data: Slot, format: block_dtype, dtype: dt.dtype) -> Args | None:
    return None if format not in _CODES else (data, OUT, _CODES[format])


@native("_block_linear", "block_linear", accepts=numbers)
def block_linear(x: Slot, data: Slot, bias: Slot | None, format: block_dtype, exact: bool) -> Args | None:
    return None if format not in _CODES else (x, data, bias, OUT, _CODES[format], int(exact))


@native("_block_matmul", "block_matmul", accepts=numbers)
def block_matmul(x: Slot, data: Slot, format: block_dtype) -> Args | None:
    return None if format not in _CODES else (x, data, OUT, _CODES[format])


@native("_block_embedding", "block_embedding", accepts=lambda indices, data: _dense_rows(data))
def block_embedding(indices: Slot, data: Slot, format: block_dtype, dtype: dt.dtype) -> Args | None:
    return None if format not in _CODES else (indices, data, OUT, _CODES[format])
