"""The numbers that a block can hold once its scales are fixed, and how codes are put into it. Arrays only.

Every element x of a block is scale * level[code] + offset. Methods that choose codes other than by rounding (GPTQ,
HQQ) work on this description, which is the same for all formats.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..backends.common.blocks.bits import pack
from ..backends.common.blocks.decode import DECODE, FP4_VALUES, IQ4_VALUES
from ..core.blocks import block_dtype

Array = np.ndarray[Any, Any]
Put = Callable[[Array, Array], None]  # records, codes (records, elements)


def _qs(bits: int, run: int) -> Put:
    def put(b: Array, q: Array) -> None:
        b["qs"] = pack(q, bits, run)

    return put


def _with_high(bits: int, run: int, high: int) -> Put:
    """Low bits in planes of `qs`, the others in planes of `qh`."""

    def put(b: Array, q: Array) -> None:
        b["qs"], b["qh"] = pack(q, bits, run), pack(q >> bits, high, 32)

    return put


def _fives(b: Array, q: Array) -> None:
    b["qs"], b["qh"] = pack(q, 4, 16), np.packbits((q >> 4).astype(np.uint8), axis=1, bitorder="little")


def _bytes(b: Array, q: Array) -> None:
    b["qs"] = q - 127


def _trits(b: Array, q: Array) -> None:
    """Digits of base 3 as the fraction of 256 that decoding takes apart, rounded up."""

    def digits(part: Array, run: int, count: int) -> Array:
        powers = (3 ** np.arange(4, 4 - count, -1)).astype(np.uint32).reshape(count, 1)
        number = (part.reshape(len(part), -1, count, run) * powers).sum(axis=2, dtype=np.uint32)
        return ((number * 256 + 242) // 243).astype(np.uint8).reshape(len(part), -1)

    b["qs"] = np.concatenate([digits(q[:, :160], 32, 5), digits(q[:, 160:240], 16, 5)], axis=1)
    b["qh"] = digits(q[:, 240:], 4, 4)


def _whole(low: int, high: int) -> Array:
    return np.arange(low, high + 1, dtype=np.float32)


# What codes 0, 1, … stand for before scale and offset, and how they are stored.
_CODES: dict[str, tuple[Array, Put]] = {
    "q4_0": (_whole(-8, 7), _qs(4, 16)),
    "q4_1": (_whole(0, 15), _qs(4, 16)),
    "q5_0": (_whole(-16, 15), _fives),
    "q5_1": (_whole(0, 31), _fives),
    "q8_0": (_whole(-127, 127), _bytes),
    "q2_k": (_whole(0, 3), _qs(2, 32)),
    "q3_k": (_whole(-4, 3), _with_high(2, 32, 1)),
    "q4_k": (_whole(0, 15), _qs(4, 32)),
    "q5_k": (_whole(0, 31), _with_high(4, 32, 1)),
    "q6_k": (_whole(-32, 31), _with_high(4, 64, 2)),
    "iq4_nl": (IQ4_VALUES, _qs(4, 16)),
    "iq4_xs": (IQ4_VALUES, _qs(4, 16)),
    "mxfp4": (FP4_VALUES, _qs(4, 16)),
    "tq1_0": (_whole(-1, 1), _trits),
    "tq2_0": (_whole(-1, 1), _qs(2, 32)),
}
FORMATS = tuple(_CODES)
# Formats with a minimum of their own for each group of neighbours, and the size of a group.
ASYMMETRIC = {"q4_1": 32, "q5_1": 32, "q2_k": 16, "q4_k": 32, "q5_k": 32}


@dataclass(frozen=True)
class Grid:
    """The numbers that blocks can hold: `scale` and `offset` are (records, elements)."""

    format: block_dtype
    scale: Array
    offset: Array

    def codes(self, x: Array, at: slice = slice(None)) -> Array:
        """The codes nearest to the numbers of some columns of the blocks."""
        order, middles = _nearest(self.format.name)
        scale, offset = self.scale[:, at], self.offset[:, at]
        with np.errstate(divide="ignore", invalid="ignore"):
            position = (x - offset) / scale
        position = np.where(scale == 0, np.float32(0), position)
        found: Array = order[np.searchsorted(middles, position)]
        return found

    def values(self, codes: Array, at: slice = slice(None)) -> Array:
        """The numbers that codes stand for."""
        out: Array = self.scale[:, at] * _CODES[self.format.name][0][codes] + self.offset[:, at]
        return out


def _nearest(name: str) -> tuple[Array, Array]:
    """Codes in the order of their levels, and the borders between neighbours."""
    levels = _CODES[name][0]
    order = np.argsort(levels, kind="stable")
    ranked = levels[order]
    return order, (ranked[1:] + ranked[:-1]) / 2


def records_of(raw: Array, format: block_dtype) -> Array:
    """Bytes of blocks as one flat array of records, which may be written to."""
    return np.ascontiguousarray(raw).reshape(-1).view(format.np)


def put_codes(records: Array, codes: Array, format: block_dtype) -> None:
    """Store other codes beside the scales that the blocks have."""
    _CODES[format.name][1](records, codes)


def grid_of(records: Array, format: block_dtype) -> Grid:
    """What the scales of the blocks let them hold.

    Read off by decoding the blocks with all codes the same, twice: two points give a line.
    """
    levels = _CODES[format.name][0]
    probe = records.copy()
    points = []
    for code in (0, len(levels) - 1):
        put_codes(probe, np.full((len(probe), format.block_size), code, np.int64), format)
        points.append(DECODE[format.name](probe).astype(np.float64))
    scale = (points[1] - points[0]) / (float(levels[-1]) - float(levels[0]))
    offset = points[0] - scale * float(levels[0])
    return Grid(format, scale.astype(np.float32), offset.astype(np.float32))


def decoded(records: Array, format: block_dtype) -> Array:
    """(records, elements) of float32."""
    with np.errstate(over="ignore", invalid="ignore"):
        return DECODE[format.name](records)
