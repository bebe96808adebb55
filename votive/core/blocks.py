"""Block formats: dtypes whose numbers are stored together, some bits each, with a scale that they share.

A format has a number of elements per block, the bytes of a block and the fields they hold. What the fields mean is said
where blocks are decoded (`backends/common/blocks`). Knows no tensors.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import dtype as dt

# Neither numbers that kernels compute with nor integers: no promotion leads to or from here.
BLOCK = -1

_HALF = "<f2"
_BYTES = "u1"


class block_dtype(dt.dtype):
    """A dtype whose elements lie in blocks along the last dimension.

    >>> votive.q4_k, votive.q4_k.block_size, votive.q4_k.block_bytes, votive.q4_k.itemsize
    (votive.q4_k, 256, 144, 0.5625)
    """

    __slots__ = ("block_bytes", "block_size")

    def __init__(self, name: str, size: int, record: Any) -> None:
        super().__init__(name, record, BLOCK)
        self.block_size = size
        self.block_bytes = self.np.itemsize
        # Bytes per element; whole blocks make whole numbers.
        self.itemsize = self.block_bytes / size  # type: ignore[assignment]

    def row_bytes(self, elements: int) -> int:
        """The bytes of a row of so many elements, which must fill whole blocks."""
        if elements % self.block_size:
            raise ValueError(
                f"{self.name}: rows must be a multiple of {self.block_size} elements long, got {elements}."
            )
        return elements // self.block_size * self.block_bytes

    def row_elements(self, nbytes: int) -> int:
        """How many elements a row of bytes holds."""
        if nbytes % self.block_bytes:
            raise ValueError(
                f"{self.name}: rows of {nbytes} bytes are not a whole number of blocks of {self.block_bytes}."
            )
        return nbytes // self.block_bytes * self.block_size


FORMATS: dict[str, block_dtype] = {}


def declare(name: str, size: int, **fields: str | tuple[str, int]) -> block_dtype:
    """A format whose fields follow one another without padding; the same name gives the same format."""
    found = FORMATS.get(name)
    if found is None:
        spec = [(k, *v) if isinstance(v, tuple) else (k, v) for k, v in fields.items()]
        found = FORMATS[name] = dt.register(block_dtype(name, size, np.dtype(spec)))
    return found


def by_name(name: str) -> block_dtype:
    """The format of a name, in either case."""
    found = FORMATS.get(name.lower()) if isinstance(name, str) else None
    if found is None:
        raise ValueError(f"{name!r} is not a block format; there are {', '.join(FORMATS)}.")
    return found


# Layouts are those of ggml's block structures (ggml-common.h).
# x = d (q - 8), and with a minimum x = d q + m; the fifth bits of q5 lie in qh.
q4_0 = declare("q4_0", 32, d=_HALF, qs=(_BYTES, 16))
q4_1 = declare("q4_1", 32, d=_HALF, m=_HALF, qs=(_BYTES, 16))
q5_0 = declare("q5_0", 32, d=_HALF, qh=(_BYTES, 4), qs=(_BYTES, 16))
q5_1 = declare("q5_1", 32, d=_HALF, m=_HALF, qh=(_BYTES, 4), qs=(_BYTES, 16))
q8_0 = declare("q8_0", 32, d=_HALF, qs=("i1", 32))
# Super-blocks: x = d s q - dmin m with a small integer s (and m) for each 16 or 32 elements.
q2_k = declare("q2_k", 256, scales=(_BYTES, 16), qs=(_BYTES, 64), d=_HALF, dmin=_HALF)
q3_k = declare("q3_k", 256, qh=(_BYTES, 32), qs=(_BYTES, 64), scales=(_BYTES, 12), d=_HALF)
q4_k = declare("q4_k", 256, d=_HALF, dmin=_HALF, scales=(_BYTES, 12), qs=(_BYTES, 128))
q5_k = declare("q5_k", 256, d=_HALF, dmin=_HALF, scales=(_BYTES, 12), qh=(_BYTES, 32), qs=(_BYTES, 128))
q6_k = declare("q6_k", 256, qs=(_BYTES, 128), qh=(_BYTES, 64), scales=("i1", 16), d=_HALF)
# Four bits that index a table of values.
IQ4_VALUES = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)
iq4_nl = declare("iq4_nl", 32, d=_HALF, qs=(_BYTES, 16))
iq4_xs = declare("iq4_xs", 256, d=_HALF, high="<u2", low=(_BYTES, 4), qs=(_BYTES, 128))
mxfp4 = declare("mxfp4", 32, e=_BYTES, qs=(_BYTES, 16))
# Ternary numbers: five to a byte, and two bits each.
tq1_0 = declare("tq1_0", 256, qs=(_BYTES, 48), qh=(_BYTES, 4), d=_HALF)
tq2_0 = declare("tq2_0", 256, qs=(_BYTES, 64), d=_HALF)
# What activations are rounded to before they meet weights in blocks: s = d·Σq, and sums of 16 codes each.
q8_1 = declare("q8_1", 32, d=_HALF, s=_HALF, qs=("i1", 32))
q8_k = declare("q8_k", 256, d="<f4", qs=("i1", 256), sums=("<i2", 16))
# Vectors of 8 (4 in iq3) magnitudes that are points of a codebook, with signs and small scales beside them.
iq2_xxs = declare("iq2_xxs", 256, d=_HALF, qs=("<u2", 32))
iq2_xs = declare("iq2_xs", 256, d=_HALF, qs=("<u2", 32), scales=(_BYTES, 8))
iq2_s = declare("iq2_s", 256, d=_HALF, qs=(_BYTES, 32), signs=(_BYTES, 32), qh=(_BYTES, 8), scales=(_BYTES, 8))
iq3_xxs = declare("iq3_xxs", 256, d=_HALF, qs=(_BYTES, 64), signs=("<u4", 8))
iq3_s = declare("iq3_s", 256, d=_HALF, qs=(_BYTES, 64), qh=(_BYTES, 8), signs=(_BYTES, 32), scales=(_BYTES, 4))
# Vectors of 8 from a codebook of ternary points, all moved by an eighth up or down.
iq1_s = declare("iq1_s", 256, d=_HALF, qs=(_BYTES, 32), qh=("<u2", 8))
iq1_m = declare("iq1_m", 256, qs=(_BYTES, 32), qh=(_BYTES, 16), scales=("<u2", 4))
# FP4 numbers with a scale of FP8 (E4M3 without a sign) for each 16; signs alone; two bits, x = d (q - 1).
nvfp4 = declare("nvfp4", 64, d=(_BYTES, 4), qs=(_BYTES, 32))
q1_0 = declare("q1_0", 128, d=_HALF, qs=(_BYTES, 16))
q2_0 = declare("q2_0", 64, d=_HALF, qs=(_BYTES, 16))
