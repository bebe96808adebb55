"""The tiles of attention kernels by head width: (queries, keys, warps, stages), and if need be a
dict of compiler options. Those for half types without dropout are measured on an H200
(`benchmarks.gpu.tuning`), the others chosen to fit into registers. Numbers only.
"""

from __future__ import annotations

from typing import Any

from .....core import dtype as dt

Tiles = dict[int, tuple[Any, ...]]
FORWARD, QUERIES, KEYS = "forward", "queries", "keys"
TILES: dict[str, Tiles] = {
    FORWARD: {64: (64, 64, 4, 3), 128: (64, 64, 4, 3), 256: (128, 64, 8, 2)},
    QUERIES: {64: (64, 64, 4, 3), 128: (128, 64, 8, 3), 256: (64, 32, 8, 2)},
    KEYS: {64: (32, 64, 4, 3), 128: (64, 128, 8, 2), 256: (16, 64, 8, 2)},
}
# A mask is read into registers.
MASKED: dict[str, Tiles] = {**TILES, FORWARD: {64: (64, 64, 4, 3), 128: (128, 64, 8, 3), 256: (64, 64, 8, 2)}}
# Dropout's words take registers, as many as there are weights.
NOISY: dict[str, Tiles] = {
    FORWARD: {64: (64, 64, 4, 3), 128: (64, 64, 8, 2), 256: (128, 32, 8, 2)},
    QUERIES: {64: (64, 64, 4, 3), 128: (64, 64, 8, 2), 256: (128, 32, 8, 2)},
    KEYS: {64: (32, 64, 4, 3), 128: (32, 64, 8, 2), 256: (16, 64, 8, 2)},
}
SINGLE: dict[str, Tiles] = {
    FORWARD: {64: (128, 32, 8, 2), 128: (16, 32, 4, 2), 256: (16, 16, 8, 2)},
    QUERIES: {64: (64, 32, 4, 2), 128: (16, 32, 4, 2), 256: (16, 16, 8, 1)},
    KEYS: {64: (16, 64, 4, 2), 128: (16, 16, 4, 1), 256: (16, 16, 8, 1)},
}
# Gradients: the product with values before or after the weights are made from scores.
AHEAD = {QUERIES: False, KEYS: True}


def tile(kind: str, dtype: dt.dtype, width: int, mask: int, noise: int) -> tuple[Any, ...]:
    """(queries, keys, warps, stages, compiler options)."""
    table = SINGLE if dtype is dt.float32 else NOISY if noise else MASKED if mask else TILES
    found = table[kind][max(64, width)]
    return (*found[:4], found[4] if len(found) > 4 else {})
