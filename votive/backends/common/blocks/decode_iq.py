"""Blocks whose numbers come from a codebook (IQ1, IQ2, IQ3) to float32, one short function each.

As in `decode`: arrays of records to (records, elements), in the order of float32 operations that ggml has. Knows
records, not files.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .bits import Array
from .codebooks import codebook, even_signs

DELTA = np.float32(0.125)


def _wide(half: Array) -> Array:
    return half.astype(np.float32)[:, None]


def _nibbles(packed: Array) -> Array:
    """Two numbers of each byte, the low one first."""
    return np.stack([packed & 15, packed >> 4], axis=2).reshape(len(packed), -1)


def _signed(scale: Array, magnitudes: Array, signs: Array) -> Array:
    """scale·magnitude with the signs that bytes of bits give; one scale per column of `scale`."""
    x = scale[:, :, None] * magnitudes.reshape(*scale.shape, -1)
    flip = np.unpackbits(signs.reshape(len(signs), -1), axis=1, bitorder="little").astype(bool)
    x = x.reshape(len(x), -1)
    return np.where(flip, -x, x)


def _quarters(d: Array, s: Array, factor: float) -> Array:
    """d (s + 1/2) times a power of two."""
    return _wide(d) * (np.float32(0.5) + s.astype(np.float32)) * np.float32(factor)


def _seven(packed: Array) -> Array:
    """The four fields of seven bits of 32-bit words, as bytes of signs."""
    index = (packed[:, :, None] >> np.arange(0, 28, 7, dtype=np.uint32)) & 127
    return even_signs()[index]


def iq2_xxs(b: Array) -> Array:
    """x = d (s + 1/2)/4 · point, s of four bits for each 32; four points of 8 and their signs in 64 bits."""
    words = b["qs"].reshape(len(b), 8, 4).astype(np.uint32)
    index = np.stack([words[..., 0] & 255, words[..., 0] >> 8, words[..., 1] & 255, words[..., 1] >> 8], axis=2)
    packed = words[..., 2] | (words[..., 3] << 16)
    return _signed(_quarters(b["d"], packed >> 28, 0.25), codebook("iq2_xxs").points[index], _seven(packed))


def iq2_xs(b: Array) -> Array:
    """As IQ2_XXS with nine bits for a point, and s for each 16."""
    q = b["qs"]
    scale = _quarters(b["d"], _nibbles(b["scales"]), 0.25)
    return _signed(scale, codebook("iq2_xs").points[q & 511], even_signs()[q >> 9])


def iq2_s(b: Array) -> Array:
    """As IQ2_XS with ten bits for a point, and all signs."""
    high = (b["qh"][:, :, None] >> np.arange(0, 8, 2, dtype=np.uint8)) & 3
    index = b["qs"] | (high.reshape(len(b), -1).astype(np.uint16) << 8)
    scale = _quarters(b["d"], _nibbles(b["scales"]), 0.25)
    return _signed(scale, codebook("iq2_s").points[index], b["signs"])


def iq3_xxs(b: Array) -> Array:
    """x = d (s + 1/2)/2 · point, s of four bits for each 32; points of 4."""
    packed = b["signs"].astype(np.uint32)
    return _signed(_quarters(b["d"], packed >> 28, 0.5), codebook("iq3_xxs").points[b["qs"]], _seven(packed))


def iq3_s(b: Array) -> Array:
    """x = d (2s + 1) · point, s of four bits for each 32; points of 4 in nine bits, and all signs."""
    high = np.unpackbits(b["qh"], axis=1, bitorder="little")
    scale = _wide(b["d"]) * (1 + 2 * _nibbles(b["scales"]).astype(np.float32))
    return _signed(scale, codebook("iq3_s").points[b["qs"] | (high.astype(np.uint16) << 8)], b["signs"])


def _moved(scale: Array, index: Array, down: Array) -> Array:
    """scale (point ± 1/8), the last axis of `scale` and `down` running with the points."""
    points = codebook("iq1").points[index]
    moved = points + np.where(down, -DELTA, DELTA)[..., None]
    return (scale[..., None] * moved).reshape(len(index), -1)


def iq1_s(b: Array) -> Array:
    """x = d (2s + 1) (point ± 1/8), s of three bits and one direction for each 32."""
    qh = b["qh"].astype(np.uint16)
    high = (qh[:, :, None] >> np.arange(0, 12, 3, dtype=np.uint16)) & 7
    index = b["qs"] | (high.reshape(len(b), -1) << 8)
    scale = _wide(b["d"]) * (2 * ((qh >> 12) & 7) + 1).astype(np.float32)
    return _moved(np.repeat(scale, 4, axis=1), index, np.repeat(qh >> 15, 4, axis=1) != 0)


def split_scale(scales: Array) -> Array:
    """The half number whose four nibbles are the top nibbles of four 16-bit words, as float32."""
    top = (scales.astype(np.uint16) >> 12) << np.arange(0, 16, 4, dtype=np.uint16)
    return np.bitwise_or.reduce(top, axis=1).astype(np.uint16).view(np.float16).astype(np.float32)


def iq1_m(b: Array) -> Array:
    """As IQ1_S with s for each 16 and a direction for each 8; d is spread over the words of the scales."""
    s = (b["scales"].astype(np.uint16)[:, :, None] >> np.arange(0, 12, 3, dtype=np.uint16)) & 7
    scale = split_scale(b["scales"])[:, None] * (2 * s.reshape(len(b), -1) + 1).astype(np.float32)
    high = _nibbles(b["qh"])
    index = b["qs"] | ((high & 7).astype(np.uint16) << 8)
    return _moved(np.repeat(scale, 2, axis=1), index, (high & 8) != 0)


DECODE_IQ: dict[str, Callable[[Any], Array]] = {
    "iq2_xxs": iq2_xxs,
    "iq2_xs": iq2_xs,
    "iq2_s": iq2_s,
    "iq3_xxs": iq3_xxs,
    "iq3_s": iq3_s,
    "iq1_s": iq1_s,
    "iq1_m": iq1_m,
}
