"""Block formats of groups: codes of 2, 4 or 8 bits that share a float32 scale, as files of Hugging Face store them.

Each kind comes in groups of 32, 64 and 128 elements; larger groups are several blocks with the same scale. What the
fields mean is said where they are decoded (`backends/common/blocks/groups.py`). Knows no tensors.
"""

from __future__ import annotations

from .blocks import block_dtype, declare

SIZES = (128, 64, 32)
# Bits of a code, and whether a block has a zero point.
KINDS: dict[str, tuple[int, bool]] = {
    "int2": (2, True),
    "int4": (4, True),
    "int8": (8, True),
    "absmax8": (8, False),
    "nf4": (4, False),
    "fp4": (4, False),
    "fp8": (8, False),
}


def group_format(kind: str, size: int) -> block_dtype:
    """The format of a kind with blocks of so many elements.

    >>> from votive.core.group_formats import group_format
    >>> group_format("int4", 128).block_bytes
    70
    """
    bits, zero = KINDS[kind]
    fields: dict[str, str | tuple[str, int]] = {"d": "<f4"}
    # Zero points are whole numbers up to 256, which half precision holds exactly.
    if zero:
        fields["z"] = "<f2"
    return declare(f"{kind}_g{size}", size, **fields, qs=("u1", size * bits // 8))


for _kind in KINDS:
    for _size in SIZES:
        group_format(_kind, _size)
