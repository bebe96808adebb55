"""Native attention to keys and values in rows of blocks, and the writing of such rows."""

from __future__ import annotations

from ....core import dtype as dt
from ....core.blocks import block_dtype
from ....core.layout import Spec
from ...common.slot import Slot
from ..arrays import Args
from .dtypes import first_float
from .rows import OUT, OUT1, native

# The numbers of the formats in src/kernels/row_blocks.cpp.
_ORDER = (
    "q4_0",
    "q4_1",
    "q5_0",
    "q5_1",
    "q8_0",
    "iq4_nl",
    "absmax8_g32",
    "absmax8_g64",
    "absmax8_g128",
    "fp8_g32",
    "fp8_g64",
    "fp8_g128",
)
CODES = {name: code for code, name in enumerate(_ORDER)}


def _single(x: Spec, *others: Spec) -> bool:
    """Numbers in double precision are rounded to single first, which is left to the reference."""
    return x.dtype in (dt.float32, *dt.HALF)


@native("_block_encode", "block_encode", accepts=_single, optional=True)
def block_encode(x: Slot, format: block_dtype) -> Args | None:
    return (x, OUT, CODES[format.name]) if format.name in CODES else None


@native("_block_attention", "block_attention", accepts=first_float, optional=True)
def block_attention(
    q: Slot,
    k: Slot,
    v: Slot,
    mask: Slot | None,
    key_format: block_dtype | None,
    value_format: block_dtype | None,
    is_causal: bool,
    scale: float,
) -> Args | None:
    codes = [-1 if f is None else CODES.get(f.name) for f in (key_format, value_format)]
    if None in codes:
        return None
    return q, k, v, mask, OUT, OUT1, int(is_causal), 0, float(scale), *codes
