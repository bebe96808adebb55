"""Groups of codes with a float32 scale to float32: what the kinds of `core/group_formats.py` mean. Knows records only.

The arithmetic is float32 in the order of the libraries that define each kind. A product of a half-precision scale and
a code is exact there, so that rounding it to the scale's type gives what those libraries compute in that type.
"""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np

from ....core.group_formats import KINDS, SIZES
from .bits import Array, unpack
from .decode import DECODE

# bitsandbytes' tables: quantiles of the normal distribution (QLoRA, appendix E), and its own four-bit floats.
NF4_VALUES = np.array(
    [
        -1.0,
        -0.6961928009986877,
        -0.5250730514526367,
        -0.39491748809814453,
        -0.28444138169288635,
        -0.18477343022823334,
        -0.09105003625154495,
        0.0,
        0.07958029955625534,
        0.16093020141124725,
        0.24611230194568634,
        0.33791524171829224,
        0.44070982933044434,
        0.5626170039176941,
        0.7229568362236023,
        1.0,
    ],
    np.float32,
)
_FP4_LEVELS = [0.0, 0.0625, 8.0, 12.0, 4.0, 6.0, 2.0, 3.0]
FP4_VALUES = np.array(_FP4_LEVELS + [-x for x in _FP4_LEVELS], np.float32) / np.float32(12.0)
FP8_VALUES = np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e4m3fn).astype(np.float32)
# One 127th, as bitsandbytes writes it.
_STEP = np.float32(7.874015718698502e-3)


def values(kind: str, codes: Array, d: Array, z: Array | None) -> Array:
    """The numbers of codes whose scales and zero points have shapes that spread over theirs.

    Whole numbers: x = d (q - z). Tables: x = d values[q]. Rows of LLM.int8: x = (q d) / 127.
    """
    if kind == "nf4":
        return NF4_VALUES[codes] * d
    if kind == "fp4":
        return FP4_VALUES[codes] * d
    if kind == "fp8":
        return FP8_VALUES[codes] * d
    if kind == "absmax8":
        return codes.view(np.int8).astype(np.float32) * d * _STEP
    assert z is not None, "whole numbers have zero points"
    return (codes.astype(np.float32) - z) * d


def _decoder(kind: str, size: int) -> Callable[[Array], Array]:
    bits, zero = KINDS[kind]

    def decode(b: Array) -> Array:
        codes = b["qs"] if bits == 8 else unpack(b["qs"], bits, size * bits // 8)
        z = b["z"].astype(np.float32)[:, None] if zero else None
        return values(kind, np.ascontiguousarray(codes), b["d"].astype(np.float32)[:, None], z)

    return decode


DECODE.update({f"{kind}_g{size}": _decoder(kind, size) for kind in KINDS for size in SIZES})
