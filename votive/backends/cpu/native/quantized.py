"""Native products with weights in blocks, rows of such tables, and blocks as numbers."""

from __future__ import annotations

from ....core import dtype as dt
from ....core.blocks import block_dtype
from ....core.layout import Spec
from ...common.slot import Slot
from ..arrays import Args
from .rows import OUT, native

# The numbers of the formats in src/kernels/quantized_formats.h; the reference serves the others.
_ORDER = (
    "q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q2_k", "q3_k", "q4_k", "q5_k", "q6_k", "iq4_nl", "iq4_xs", "mxfp4",
    "tq1_0", "tq2_0",
)  # fmt: skip
CODES = {name: code for code, name in enumerate(_ORDER)}
OUTPUTS = (dt.float32, *dt.HALF)


def takes(x: Spec, *others: Spec) -> bool:
    """Products in double precision are left to the reference."""
    return x.dtype in OUTPUTS


@native("_block_decode", "block_decode", optional=True)
def block_decode(data: Slot, format: block_dtype, dtype: dt.dtype) -> Args | None:
    return (OUT, data, CODES[format.name]) if format.name in CODES and dtype in OUTPUTS else None


@native("_block_embedding", "block_embedding", optional=True)
def block_embedding(indices: Slot, data: Slot, format: block_dtype, dtype: dt.dtype) -> Args | None:
    return (OUT, data, indices, CODES[format.name]) if format.name in CODES and dtype in OUTPUTS else None


@native("_block_linear", "block_linear", accepts=takes, optional=True)
def block_linear(x: Slot, data: Slot, bias: Slot | None, format: block_dtype, exact: bool) -> Args | None:
    return (x, data, bias, OUT, CODES[format.name], int(exact)) if format.name in CODES else None


@native("_block_matmul", "block_matmul", accepts=takes, optional=True)
def block_matmul(x: Slot, data: Slot, format: block_dtype) -> Args | None:
    return (x, data, OUT, CODES[format.name]) if format.name in CODES else None
