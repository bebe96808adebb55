"""Blocks of every quantized type to float32, one short function each.

Each takes an array of records and returns (records, elements); the arithmetic is float32 in ggml's
order, so results are equal bit for bit. Knows records, not files.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....core import blocks
from .bits import Array, unpack, unpack_k_scales, unpack_q3_scales
from .decode_iq import DECODE_IQ

# The values that four bits stand for: ggml's non-linear table (kvalues_iq4nl), and the numbers of
# FP4 E2M1 (OCP Microscaling Formats 1.0, table 5), doubled to be integers.
IQ4_VALUES = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], np.float32)
FP4_VALUES = np.array([0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12], np.float32)


def _wide(half: Array) -> Array:
    """Half numbers as a float32 column."""
    return half.astype(np.float32)[:, None]


def _fives(b: Array) -> Array:
    """The five-bit codes of Q5_0 and Q5_1: the top bits lie in order, not in planes."""
    top = np.unpackbits(b["qh"], axis=1, bitorder="little")
    return unpack(b["qs"], 4, 16) | (top << 4)


def q4_0(b: Array) -> Array:
    """x = d (q - 8)."""
    q = unpack(b["qs"], 4, 16).view(np.int8) - np.int8(8)
    return _wide(b["d"]) * q.astype(np.float32)


def q4_1(b: Array) -> Array:
    """x = d q + m."""
    return _wide(b["d"]) * unpack(b["qs"], 4, 16).astype(np.float32) + _wide(b["m"])


def q5_0(b: Array) -> Array:
    """x = d (q - 16)."""
    q = _fives(b).view(np.int8) - np.int8(16)
    return _wide(b["d"]) * q.astype(np.float32)


def q5_1(b: Array) -> Array:
    """x = d q + m."""
    return _wide(b["d"]) * _fives(b).astype(np.float32) + _wide(b["m"])


def q8_0(b: Array) -> Array:
    """x = d q."""
    return _wide(b["d"]) * b["qs"].astype(np.float32)


def _scaled(q: Array, scale: Array, minimum: Array | None = None) -> Array:
    """scale·q - minimum for groups of neighbours: one scale for each column of `scale`."""
    x = q.reshape(*scale.shape, -1).astype(np.float32)
    x *= scale[:, :, None]
    if minimum is not None:
        x -= minimum[:, :, None]
    return x.reshape(len(q), -1)


def q2_k(b: Array) -> Array:
    """x = d s q - dmin m, s and m of four bits for each 16."""
    s, m = b["scales"] & 15, b["scales"] >> 4
    return _scaled(unpack(b["qs"], 2, 32), _wide(b["d"]) * s, _wide(b["dmin"]) * m)


def q3_k(b: Array) -> Array:
    """x = d s (q - 4), s of six bits for each 16."""
    q = unpack(b["qs"], 2, 32) | (unpack(b["qh"], 1, 32) << 2)
    scale = _wide(b["d"]) * unpack_q3_scales(b["scales"])
    return _scaled(q.view(np.int8) - np.int8(4), scale)


def q4_k(b: Array) -> Array:
    """x = d s q - dmin m, s and m of six bits for each 32."""
    s, m = unpack_k_scales(b["scales"])
    return _scaled(unpack(b["qs"], 4, 32), _wide(b["d"]) * s, _wide(b["dmin"]) * m)


def q5_k(b: Array) -> Array:
    """As Q4_K, with a fifth bit."""
    s, m = unpack_k_scales(b["scales"])
    q = unpack(b["qs"], 4, 32) | (unpack(b["qh"], 1, 32) << 4)
    return _scaled(q, _wide(b["d"]) * s, _wide(b["dmin"]) * m)


def q6_k(b: Array) -> Array:
    """x = d s (q - 32), s of eight bits for each 16."""
    q = unpack(b["qs"], 4, 64) | (unpack(b["qh"], 2, 32) << 4)
    return _scaled(q.view(np.int8) - np.int8(32), _wide(b["d"]) * b["scales"])


def iq4_nl(b: Array) -> Array:
    """x = d values[q]."""
    return _wide(b["d"]) * IQ4_VALUES[unpack(b["qs"], 4, 16)]


def iq4_xs(b: Array) -> Array:
    """x = d (s - 32) values[q], s of six bits for each 32."""
    low = np.stack([b["low"] & 15, b["low"] >> 4], axis=2).reshape(len(b), 8)
    high = (b["high"][:, None] >> np.arange(0, 16, 2, dtype=np.uint16)) & 3
    s = (low | (high << 4).astype(np.uint8)).astype(np.int8) - np.int8(32)
    return _scaled(IQ4_VALUES[unpack(b["qs"], 4, 16)], _wide(b["d"]) * s)


def mxfp4(b: Array) -> Array:
    """x = 2^(e-128) values[q], e a biased exponent."""
    e = b["e"].astype(np.uint32)[:, None]
    # Halved, because the table is doubled; the two smallest exponents give subnormal numbers.
    scale = np.where(e < 2, np.uint32(0x00200000) << e, (e - 1) << 23).astype(np.uint32)
    return scale.view(np.float32) * FP4_VALUES[unpack(b["qs"], 4, 16)]


def _trits(packed: Array, run: int, count: int) -> Array:
    """Digits of base 3, the first ones first: a byte is a fraction of 256, and 3 times it gives
    the next digit above and the rest below."""
    rows = packed.reshape(len(packed), -1, 1, run)
    powers = (3 ** np.arange(count)).astype(np.uint8).reshape(count, 1)
    digits = ((rows * powers).astype(np.uint16) * 3) >> 8
    return digits.reshape(len(packed), -1)


def tq1_0(b: Array) -> Array:
    """x = d (q - 1), q of base 3."""
    parts = [_trits(b["qs"][:, :32], 32, 5), _trits(b["qs"][:, 32:], 16, 5), _trits(b["qh"], 4, 4)]
    q = np.concatenate(parts, axis=1).astype(np.int8) - np.int8(1)
    return _wide(b["d"]) * q.astype(np.float32)


def tq2_0(b: Array) -> Array:
    """x = d (q - 1), q of two bits."""
    q = unpack(b["qs"], 2, 32).view(np.int8) - np.int8(1)
    return _wide(b["d"]) * q.astype(np.float32)


def q8_k(b: Array) -> Array:
    """x = d q, d of single precision."""
    return _wide(b["d"]) * b["qs"].astype(np.float32)


def fp8_scales(codes: Array) -> Array:
    """What the bytes of NVFP4's scales stand for (E4M3 without a sign), halved because the FP4 table is doubled."""
    exponent = ((codes >> 3) & 15).astype(np.int32)
    fraction = (codes & 7).astype(np.float32)
    small = fraction * np.float32(2.0**-10)
    normal = np.ldexp(1 + fraction / np.float32(8), exponent - 8)
    scale = np.where(exponent == 0, small, normal).astype(np.float32)
    return np.where(codes == 127, np.float32(0), scale)


def nvfp4(b: Array) -> Array:
    """x = s values[q], s of eight bits for each 16."""
    return _scaled(FP4_VALUES[unpack(b["qs"], 4, 8)], fp8_scales(b["d"]))


def q1_0(b: Array) -> Array:
    """x = d or -d."""
    d = _wide(b["d"])
    return np.where(np.unpackbits(b["qs"], axis=1, bitorder="little") != 0, d, -d)


def q2_0(b: Array) -> Array:
    """x = d (q - 1), q of two bits, four neighbours to a byte."""
    q = unpack(b["qs"], 2, 1).view(np.int8) - np.int8(1)
    return _wide(b["d"]) * q.astype(np.float32)


DECODE: dict[str, Callable[[Any], Array]] = {
    "q4_0": q4_0,
    "q4_1": q4_1,
    "q5_0": q5_0,
    "q5_1": q5_1,
    "q8_0": q8_0,
    "q2_k": q2_k,
    "q3_k": q3_k,
    "q4_k": q4_k,
    "q5_k": q5_k,
    "q6_k": q6_k,
    "iq4_nl": iq4_nl,
    "iq4_xs": iq4_xs,
    "mxfp4": mxfp4,
    "tq1_0": tq1_0,
    "tq2_0": tq2_0,
    "q8_1": q8_0,
    "q8_k": q8_k,
    "nvfp4": nvfp4,
    "q1_0": q1_0,
    "q2_0": q2_0,
    **DECODE_IQ,
}

# Elements at a time: decoding wants its few temporaries in the cache.
_PIECE = 1 << 18


def decode_into(out: Array, raw: Array, format: blocks.block_dtype, *, big: bool = False) -> None:
    """Decode flat bytes into a flat array of any float type; `big` for big-endian blocks."""
    records = raw.view(format.np.newbyteorder(">") if big else format.np)
    decode = DECODE[format.name]
    step = max(1, _PIECE // format.block_size)
    # Damaged scales may be infinite or no number; so are the results then, as in ggml.
    with np.errstate(over="ignore", invalid="ignore"):
        for i in range(0, len(records), step):
            part = decode(records[i : i + step]).reshape(-1)
            out[i * format.block_size : i * format.block_size + len(part)] = part
