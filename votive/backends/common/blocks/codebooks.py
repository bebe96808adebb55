"""The codebooks of the IQ types: points of 8 or 4 small numbers, read when the first of them is used. Arrays only.

`codebooks.bin` holds all points one after the other, each coordinate as the index of its value in 2 or 3 bits, the
lowest bit first.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache

import numpy as np

from .bits import Array


@dataclass(frozen=True)
class Codebook:
    """Points (count, width) of a grid whose coordinates take the given values."""

    values: Array
    points: Array

    @property
    def width(self) -> int:
        return int(self.points.shape[1])


_TWO = (8, 25, 43)
# Name, number of points, coordinates of a point, their values; in the order of the file.
_BOOKS: tuple[tuple[str, int, int, tuple[int, ...]], ...] = (
    ("iq2_xxs", 256, 8, _TWO),
    ("iq2_xs", 512, 8, _TWO),
    ("iq2_s", 1024, 8, _TWO),
    ("iq3_xxs", 256, 4, (4, 12, 20, 28, 36, 44, 52, 62)),
    ("iq3_s", 512, 4, (1, 3, 5, 7, 9, 11, 13, 15)),
    ("iq1", 2048, 8, (-1, 0, 1)),
)


@cache
def codebook(name: str) -> Codebook:
    """The points of a name, as float32.

    >>> from votive.backends.common.blocks.codebooks import codebook
    >>> codebook("iq3_s").points[1]
    array([3., 1., 1., 1.], dtype=float32)
    """
    data = np.fromfile(os.path.join(os.path.dirname(__file__), "codebooks.bin"), np.uint8)
    start = 0
    for book, count, width, values in _BOOKS:
        bits = 2 if len(values) == 3 else 3
        size = count * width * bits // 8
        if book == name:
            each = np.unpackbits(data[start : start + size], bitorder="little").reshape(-1, bits)
            index = each @ (1 << np.arange(bits))
            table = np.array(values, np.float32)
            return Codebook(table, table[index].reshape(count, width))
        start += size
    raise KeyError(name)


@cache
def even_signs() -> Array:
    """Seven bits of signs as eight: the last one makes their number even; (128,) bytes."""
    seven = np.arange(128, dtype=np.uint8)
    parity = np.unpackbits(seven[:, None], axis=1).sum(axis=1, dtype=np.uint8) & 1
    return seven | (parity << 7).astype(np.uint8)
