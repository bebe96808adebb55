"""Large pictures in overlapping tiles, and tiles put together again. Knows no model."""

from __future__ import annotations

from collections.abc import Callable

import votive

from ...tensor import Tensor

Tiles = list[list[Tensor]]


def tiles_of(x: Tensor, size: int, step: int, compute: Callable[[Tensor], Tensor]) -> Tiles:
    """What `compute` makes of each tile of (batch, channels, height, width), row by row.

    >>> from votive.models.diffusion.tiles import tiles_of
    >>> found = tiles_of(votive.ones(1, 1, 6, 6), 4, 3, lambda tile: tile)
    >>> [[tuple(tile.shape[2:]) for tile in row] for row in found]
    [[(4, 4), (4, 3)], [(3, 4), (3, 3)]]
    """
    height, width = x.shape[2:]
    return [
        [compute(x[:, :, i : i + size, j : j + size]) for j in range(0, width, step)] for i in range(0, height, step)
    ]


def _faded(a: Tensor, b: Tensor, dim: int, extent: int) -> Tensor:
    """`b`, whose first rows (dim 2) or columns (dim 3) come out of the last ones of `a`."""
    extent = min(a.shape[dim], b.shape[dim], extent)
    if extent == 0:
        return b
    weight = votive.arange(extent, dtype=b.dtype, device=b.device) / extent
    weight = weight.view(-1, 1) if dim == 2 else weight
    start = b.narrow(dim, 0, extent)
    mixed = a.narrow(dim, a.shape[dim] - extent, extent) * (1 - weight) + start * weight
    return votive.cat([mixed, b.narrow(dim, extent, b.shape[dim] - extent)], dim)


def blended(rows: Tiles, size: int, extent: int) -> Tensor:
    """One picture of overlapping tiles: over `extent` pixels one fades into the next.

    >>> from votive.models.diffusion.tiles import blended, tiles_of
    >>> x = votive.arange(36.0).view(1, 1, 6, 6)
    >>> votive.equal(blended(tiles_of(x, 4, 3, lambda tile: tile), 4, 1), x)
    True
    """
    limit = size - extent
    out = []
    for i, row in enumerate(rows):
        made = []
        for j, tile in enumerate(row):
            if i > 0:
                tile = _faded(rows[i - 1][j], tile, 2, extent)
            if j > 0:
                tile = _faded(row[j - 1], tile, 3, extent)
            # What comes after fades out of the faded one.
            row[j] = tile
            made.append(tile[:, :, :limit, :limit])
        out.append(votive.cat(made, 3))
    return votive.cat(out, 2)
