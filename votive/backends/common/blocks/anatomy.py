"""What a block is made of: scales, sub-scales, codes and which bits hold them. NumPy records only; decodes nothing new.

`x = scale * level(code) + offset` for the formats whose codes are single numbers; formats of codebooks have points
instead, so that only their scales and numbers are told.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ....core.blocks import block_dtype
from ....core.group_formats import KINDS, SIZES
from . import groups
from .bits import Array, unpack, unpack_k_scales, unpack_q3_scales
from .decode import DECODE, FP4_VALUES, IQ4_VALUES, _fives, _trits, fp8_scales

# How many blocks of random bits show which bits of a block make which of its numbers.
_PROBES = 4


@dataclass(frozen=True)
class Anatomy:
    """The parts of one block: numbers that hold for all of it, small integers by group of neighbours, and codes."""

    whole: dict[str, float]
    groups: dict[str, Array] = field(default_factory=dict)
    scale: Array | None = None  # one for each group
    offset: Array | None = None
    codes: Array | None = None
    levels: Array | None = None  # what codes stand for where they are no whole numbers themselves
    zero: float = 0.0  # what is subtracted from a code that is a whole number


def _half(b: Array, name: str) -> np.float32:
    return np.float32(b[name][0])


def _plain(codes: Callable[[Array], Array], zero: float = 0, levels: Array | None = None) -> Callable[[Array], Anatomy]:
    def parts(b: Array) -> Anatomy:
        d = _half(b, "d")
        whole = {"d": float(d)}
        offset = None
        if "m" in (b.dtype.names or ()):
            whole["m"] = float(_half(b, "m"))
            offset = np.array([_half(b, "m")])
        return Anatomy(whole, {}, np.array([d]), offset, codes(b)[0], levels, zero)

    return parts


def _super(
    codes: Callable[[Array], Array],
    small: Callable[[Array], tuple[Array, Array | None]],
    zero: float = 0,
    levels: Array | None = None,
) -> Callable[[Array], Anatomy]:
    """Blocks with a small whole scale, and perhaps a minimum, for each group."""

    def parts(b: Array) -> Anatomy:
        s, m = small(b)
        d = _half(b, "d")
        whole, found = {"d": float(d)}, {"scales": s[0].astype(np.int64)}
        offset = None
        if m is not None:
            dmin = _half(b, "dmin")
            whole["dmin"] = float(dmin)
            found["minima"] = m[0].astype(np.int64)
            offset = -(dmin * m[0].astype(np.float32))
        return Anatomy(whole, found, d * s[0].astype(np.float32), offset, codes(b)[0], levels, zero)

    return parts


def _k_scales(b: Array) -> tuple[Array, Array | None]:
    return unpack_k_scales(b["scales"])


def _xs_scales(b: Array) -> tuple[Array, Array | None]:
    low = np.stack([b["low"] & 15, b["low"] >> 4], axis=2).reshape(len(b), 8)
    high = (b["high"][:, None] >> np.arange(0, 16, 2, dtype=np.uint16)) & 3
    return (low | (high << 4).astype(np.uint8)).astype(np.int8) - np.int8(32), None


def _tq1_codes(b: Array) -> Array:
    parts = [_trits(b["qs"][:, :32], 32, 5), _trits(b["qs"][:, 32:], 16, 5), _trits(b["qh"], 4, 4)]
    return np.concatenate(parts, axis=1)


def _mxfp4(b: Array) -> Anatomy:
    scale = float(np.ldexp(1.0, int(b["e"][0]) - 128))
    codes = unpack(b["qs"], 4, 16)[0]
    return Anatomy({"e": float(b["e"][0])}, {}, np.array([scale], np.float32), None, codes, FP4_VALUES)


def _nvfp4(b: Array) -> Anatomy:
    return Anatomy({}, {"d": b["d"][0]}, fp8_scales(b["d"])[0], None, unpack(b["qs"], 4, 8)[0], FP4_VALUES)


def _group(kind: str, size: int) -> Callable[[Array], Anatomy]:
    bits, zero = KINDS[kind]
    tables = {"nf4": groups.NF4_VALUES, "fp4": groups.FP4_VALUES, "fp8": groups.FP8_VALUES}

    def parts(b: Array) -> Anatomy:
        codes = b["qs"][0] if bits == 8 else unpack(b["qs"], bits, size * bits // 8)[0]
        d = np.float32(b["d"][0])
        whole = {"d": float(d)} | ({"z": float(b["z"][0])} if zero else {})
        if kind == "absmax8":
            return Anatomy(whole, {}, np.array([d / np.float32(127)]), None, codes.view(np.int8))
        return Anatomy(whole, {}, np.array([d]), None, codes, tables.get(kind), whole.get("z", 0.0))

    return parts


_QUARTERS: Callable[[Array], Array] = lambda b: unpack(b["qs"], 2, 32)
_NIBBLES: Callable[[Array], Array] = lambda b: unpack(b["qs"], 4, 16)
_NIBBLES32: Callable[[Array], Array] = lambda b: unpack(b["qs"], 4, 32)
_BYTES: Callable[[Array], Array] = lambda b: b["qs"]

_PARTS: dict[str, Callable[[Any], Anatomy]] = {
    "q4_0": _plain(_NIBBLES, 8),
    "q4_1": _plain(_NIBBLES),
    "q5_0": _plain(_fives, 16),
    "q5_1": _plain(_fives),
    "q8_0": _plain(_BYTES),
    "q8_1": _plain(_BYTES),
    "q8_k": _plain(_BYTES),
    "iq4_nl": _plain(_NIBBLES, levels=IQ4_VALUES),
    "tq1_0": _plain(_tq1_codes, 1),
    "tq2_0": _plain(_QUARTERS, 1),
    "q1_0": _plain(
        lambda b: np.unpackbits(b["qs"], axis=1, bitorder="little"), levels=np.array([-1.0, 1.0], np.float32)
    ),
    "q2_0": _plain(lambda b: unpack(b["qs"], 2, 1), 1),
    "q2_k": _super(_QUARTERS, lambda b: (b["scales"] & 15, b["scales"] >> 4)),
    "q3_k": _super(
        lambda b: _QUARTERS(b) | (unpack(b["qh"], 1, 32) << 2), lambda b: (unpack_q3_scales(b["scales"]), None), 4
    ),
    "q4_k": _super(_NIBBLES32, _k_scales),
    "q5_k": _super(lambda b: _NIBBLES32(b) | (unpack(b["qh"], 1, 32) << 4), _k_scales),
    "q6_k": _super(lambda b: unpack(b["qs"], 4, 64) | (unpack(b["qh"], 2, 32) << 4), lambda b: (b["scales"], None), 32),
    "iq4_xs": _super(_NIBBLES, _xs_scales, levels=IQ4_VALUES),
    "mxfp4": _mxfp4,
    "nvfp4": _nvfp4,
    **{f"{kind}_g{size}": _group(kind, size) for kind in KINDS for size in SIZES},
}


def anatomy(record: Array, format: block_dtype) -> Anatomy:
    """The parts of a block, an array of one record.

    >>> from votive.backends.common.blocks.anatomy import anatomy
    >>> block = np.zeros(1, votive.q4_0.np)
    >>> block["d"], block["qs"][0, 0] = 0.5, 0x9F
    >>> found = anatomy(block, votive.q4_0)
    >>> found.codes[0], found.codes[16], found.scale, found.zero
    (np.uint8(15), np.uint8(9), array([0.5], dtype=float32), 8)
    """
    parts = _PARTS.get(format.name)
    # Damaged scales may be infinite or no number, and may be looked at like others.
    with np.errstate(over="ignore", invalid="ignore"):
        return Anatomy({"d": float(record["d"][0])} if _single(record) else {}) if parts is None else parts(record)


def _single(record: Array) -> bool:
    return "d" in (record.dtype.names or ()) and record["d"].ndim == 1


def holders(format: block_dtype) -> Array:
    """Which bits of a block take part in which numbers: (bits, elements) of truth, bit 0 the lowest of byte 0.

    Found by changing each bit of blocks of random bits and decoding them, so that it holds for any format.

    >>> from votive.backends.common.blocks.anatomy import holders
    >>> found = holders(votive.q4_0)
    >>> found[:16].all(), found[16:20, 0].all(), found[20:24, 16].all(), found[20:24, 0].any()
    (np.True_, np.True_, np.True_, np.False_)
    """
    source = np.random.default_rng(0)
    bits = 8 * format.block_bytes
    seen = np.zeros((bits, format.block_size), bool)
    flips = np.packbits(np.eye(bits, dtype=np.uint8), axis=1, bitorder="little")
    for _ in range(_PROBES):
        base = source.integers(0, 256, format.block_bytes, dtype=np.uint8)
        with np.errstate(all="ignore"):
            before = DECODE[format.name](base[None].copy().view(format.np).reshape(-1))
            after = DECODE[format.name]((base ^ flips).view(format.np).reshape(-1))
        seen |= before.view(np.uint32) != np.ascontiguousarray(after, np.float32).view(np.uint32)
    return seen
