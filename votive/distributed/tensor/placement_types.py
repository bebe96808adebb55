"""How a tensor lies on one dimension of a mesh: in shards, whole on each rank, or as parts of a sum; no tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeGuard

__all__ = ["Partial", "Placement", "Replicate", "Shard"]

REDUCTIONS = ("sum", "avg", "product", "max", "min")


@dataclass(frozen=True)
class Placement:
    """The base of `Shard`, `Replicate` and `Partial`.

    >>> votive.distributed.tensor.Shard(0).is_shard(), votive.distributed.tensor.Replicate().is_shard()
    (True, False)
    """

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether it is in shards, along this dimension if one is given."""
        return isinstance(self, Shard) and (dim is None or self.dim == dim)

    def is_replicate(self) -> bool:
        """Whether each rank has the whole."""
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Whether ranks hold what is still to be reduced, by this operation if one is given."""
        return isinstance(self, Partial) and (reduce_op is None or self.reduce_op == reduce_op)


@dataclass(frozen=True)
class Shard(Placement):
    """Cut along a dimension, as `chunk` does: equal parts for the first ranks, what is left for the others.

    >>> votive.distributed.tensor.Shard(1)
    Shard(dim=1)
    """

    dim: int

    def __post_init__(self) -> None:
        if not isinstance(self.dim, int) or isinstance(self.dim, bool):
            raise TypeError(f"Shard: dim must be an int, got {type(self.dim).__name__}.")

    def __str__(self) -> str:
        return f"S({self.dim})"


@dataclass(frozen=True)
class Replicate(Placement):
    """The whole on each rank.

    >>> votive.distributed.tensor.Replicate()
    Replicate()
    """

    def __str__(self) -> str:
        return "R"


@dataclass(frozen=True)
class Partial(Placement):
    """Parts of the whole's shape on each rank, which are still to be added up, or reduced in another way.

    >>> votive.distributed.tensor.Partial(), votive.distributed.tensor.Partial("max")
    (Partial(sum), Partial(max))
    """

    reduce_op: str = "sum"

    def __post_init__(self) -> None:
        if self.reduce_op not in REDUCTIONS:
            raise ValueError(f"Partial: reduce_op must be one of {', '.join(REDUCTIONS)}; got {self.reduce_op!r}.")

    def __repr__(self) -> str:
        return f"Partial({self.reduce_op})"

    def __str__(self) -> str:
        return f"P({self.reduce_op})"


Placements = tuple[Placement, ...]


def is_shard(p: Placement) -> TypeGuard[Shard]:
    """Whether a placement is a `Shard`; tells type checkers, too."""
    return isinstance(p, Shard)


def checked(placements: Sequence[Placement] | None, mesh_ndim: int, ndim: int, of: str) -> Placements:
    """Placements with dimensions counted from the front: one for each dimension of a mesh, all valid."""
    if placements is None:
        return (Replicate(),) * mesh_ndim
    found: list[Placement] = []
    if isinstance(placements, Placement) or len(placements) != mesh_ndim:
        given = "1" if isinstance(placements, Placement) else str(len(placements))
        raise ValueError(
            f"{of}: `placements` must have the same length as the mesh has dimensions; got {given} for {mesh_ndim}."
        )
    for p in placements:
        if isinstance(p, Shard):
            if not -ndim <= p.dim < ndim:
                raise IndexError(f"{of}: {p!r} is out of range for a tensor of {ndim} dimensions.")
            found.append(Shard(p.dim % ndim))
        elif isinstance(p, (Replicate, Partial)):
            found.append(p)
        else:
            raise TypeError(f"{of}: placements must be Shard, Replicate or Partial; got {type(p).__name__}.")
    kinds = {p.reduce_op for p in found if isinstance(p, Partial)}
    if len(kinds) > 1:
        raise ValueError(f"{of}: all Partial placements must have the same reduce_op; got {', '.join(sorted(kinds))}.")
    return tuple(found)
