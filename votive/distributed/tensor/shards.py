"""Where the shards of a tensor begin and how large they are. Pure arithmetic over shapes, meshes and placements."""

from __future__ import annotations

from collections.abc import Sequence

from ..device_mesh import DeviceMesh
from .placement_types import Placement, Shard

Box = tuple[tuple[int, ...], tuple[int, ...]]  # sizes, and where they begin in the whole


def chunk(n: int, parts: int, index: int) -> tuple[int, int]:
    """(begin, length) of one of the parts that `chunk` makes; the last ones may be short or empty.

    >>> from votive.distributed.tensor.shards import chunk
    >>> [chunk(5, 4, i) for i in range(4)]
    [(0, 2), (2, 2), (4, 1), (5, 0)]
    """
    each = -(-n // parts)
    begin = min(each * index, n)
    return begin, min(begin + each, n) - begin


def box_at(
    shape: Sequence[int],
    sizes: Sequence[int],
    at: Sequence[int],
    placements: Sequence[Placement],
    count: int | None = None,
) -> Box:
    """What the rank at a place of a mesh holds, by the first `count` dimensions of the mesh."""
    local, begin = list(shape), [0] * len(shape)
    for i, p in enumerate(placements[:count]):
        if isinstance(p, Shard):
            offset, length = chunk(local[p.dim], sizes[i], at[i])
            begin[p.dim] += offset
            local[p.dim] = length
    return tuple(local), tuple(begin)


def place_of(mesh: DeviceMesh) -> list[int]:
    """Where this rank is in a mesh."""
    at = mesh.get_coordinate()
    if at is None:
        raise RuntimeError(f"rank {mesh.get_rank()} is not in {mesh}; only its ranks compute with tensors on it.")
    return at


def local_box(shape: Sequence[int], mesh: DeviceMesh, placements: Sequence[Placement]) -> Box:
    """What this rank holds of a tensor of this shape."""
    return box_at(shape, mesh.shape, place_of(mesh), placements)


def whole_shape(local: Sequence[int], mesh: DeviceMesh, placements: Sequence[Placement]) -> tuple[int, ...]:
    """The shape of which every rank holds an equal part like this."""
    shape = list(local)
    for i, p in enumerate(placements):
        if isinstance(p, Shard):
            shape[p.dim] *= mesh.size(i)
    return tuple(shape)
