"""Arithmetic of indices: flat positions, compressed and plain indices, sorting. Knows tensors of integers only."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..core import dtype as dt
from ..ops.registry import F

if TYPE_CHECKING:
    from ..core.device import DeviceLike

if TYPE_CHECKING:
    from ..tensor import Tensor


def ravel(indices: Tensor, sizes: Sequence[int]) -> Tensor:
    """The row-major position of each column of `indices`."""
    if len(sizes) == 0:
        return F.zeros(indices.shape[1], dtype=dt.int64, device=indices.device)
    flat = indices[0]
    for row, size in enumerate(sizes[1:], 1):
        flat = flat * size + indices[row]
    return flat


def unravel(flat: Tensor, sizes: Sequence[int]) -> Tensor:
    """The indices, one row per dimension, of row-major positions."""
    rows = []
    for size in reversed(sizes):
        rows.append(flat % max(size, 1))
        flat = flat // max(size, 1)
    if not rows:
        return F.zeros((0, flat.shape[0]), dtype=dt.int64, device=flat.device)
    return F.stack(rows[::-1])


def merge(flat: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """Sorted positions, each once, and the sums of the values that were there."""
    if flat.shape[0] == 0:
        return flat, values
    places, inverse = F.unique(flat, sorted=True, return_inverse=True)
    return places, add_at(places.shape[0], inverse, values)


def add_at(n: int, at: Tensor, values: Tensor) -> Tensor:
    """Rows of zeros to which values are added at positions; truth values are joined by `or`."""
    if values.dtype is dt.bool_:
        return add_at(n, at, values.to(dt.uint8)) != 0
    zeros = F.zeros((n, *values.shape[1:]), dtype=values.dtype, device=values.device)
    return F.index_add(zeros, 0, at, values)


def expanded(compressed: Tensor, nnz: int) -> Tensor:
    """From compressed indices (..., n + 1) the row of each of `nnz` elements (..., nnz)."""
    if compressed.ndim == 1:
        rows = F.arange(compressed.shape[0] - 1, dtype=compressed.dtype, device=compressed.device)
        return F.repeat_interleave(rows, compressed[1:] - compressed[:-1], output_size=nnz)
    places = F.arange(nnz, dtype=compressed.dtype, device=compressed.device)
    ends = compressed[..., 1:].contiguous()
    places = places.expand(*compressed.shape[:-1], nnz).contiguous()
    return F.searchsorted(ends, places, right=True).to(compressed.dtype)


def compressed(rows: Tensor, n: int) -> Tensor:
    """Compressed indices (n + 1) of sorted rows."""
    counts = F.zeros(n, dtype=rows.dtype, device=rows.device)
    counts = F.index_add(counts, 0, rows, F.ones_like(rows))
    start = F.zeros(1, dtype=rows.dtype, device=rows.device)
    return F.cat((start, F.cumsum(counts, 0).to(rows.dtype)))


def lookup(table: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
    """Where sorted, distinct positions `table` hold those wanted: (places, whether they are there)."""
    if table.shape[0] == 0:
        return F.zeros_like(wanted), F.zeros_like(wanted, dtype=dt.bool_)
    places = F.searchsorted(table, wanted).clamp(max=table.shape[0] - 1)
    return places, table[places] == wanted


def blocks_of(dense: Tensor, batch: int, block: tuple[int, int]) -> Tensor:
    """(*batch, R, C, *more) as (B, R / r, C / c, r, c, *more)."""
    r, c = block
    rows, columns = dense.shape[batch : batch + 2]
    more = tuple(dense.shape[batch + 2 :])
    n = math.prod(dense.shape[:batch])
    cut = dense.reshape(n, rows // r, r, columns // c, c, *more)
    return cut.transpose(2, 3)


def from_blocks(blocks: Tensor, shape: Sequence[int]) -> Tensor:
    """The inverse of `blocks_of`."""
    return blocks.transpose(2, 3).reshape(tuple(shape))


def repeat_rows(counts: Tensor, total: int) -> tuple[Tensor, Tensor]:
    """For row i repeated `counts[i]` times: the rows, and the number of each repetition, from 0."""
    ends = F.cumsum(counts, 0)
    places = F.arange(total, dtype=counts.dtype, device=counts.device)
    rows = F.searchsorted(ends, places, right=True)
    return rows, places - (ends - counts)[rows]


def as_index(data: Any, device: DeviceLike) -> Tensor:
    """Indices as users give them, as a tensor of integers."""
    made: Tensor = data if hasattr(data, "_spec") else F.tensor(data)
    if made.numel() == 0 and made.dtype.is_floating_point:
        made = made.to(dt.int64)
    return made if device is None else made.to(device)
