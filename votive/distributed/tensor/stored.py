"""Distributed tensors as rows: how checkpoints hold them, and `fully_shard` cuts what is cut already."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...autograd.modes import no_grad
from ...ops.registry import F
from ...tensor import Tensor
from ..device_mesh import DeviceMesh
from ..fsdp.sharding import Sharding, marked, sharding_of
from .dtensor import DTensor, left, wrap
from .placement_types import Partial, Placements, Replicate, Shard
from .redistribution import moved
from .shards import local_box


@dataclass(frozen=True, eq=False)
class Whole:
    """Of which tensor on another mesh the tensor that `fully_shard` spreads is this rank's part."""

    mesh: DeviceMesh
    placements: Placements
    shape: tuple[int, ...]

    @staticmethod
    def of(p: Tensor) -> tuple[Tensor, Whole | None]:
        """A parameter's part on this rank, and of which whole; an ordinary one is no part."""
        if not isinstance(p, DTensor):
            return p, None
        if any(isinstance(lies, Partial) for lies in p.placements):
            raise ValueError(f"fully_shard: a parameter that lies as {p.placements} has no rows; redistribute it.")
        return p._held, Whole(p.device_mesh, p.placements, tuple(p.shape))

    def placed(self, part: Tensor) -> Any:
        """The distributed tensor of a part with its history."""
        return left(part, self.mesh, self.placements, self.shape, self.placements)

    def full(self, part: Tensor) -> Tensor:
        """The whole; all ranks of the mesh call it."""
        made: DTensor = wrap(part, self.mesh, self.placements, self.shape)
        return made.full_tensor()

    def part(self, full: Tensor) -> Tensor:
        """This rank's part of a whole."""
        return moved(full, self.shape, self.mesh, (Replicate(),) * self.mesh.ndim, self.placements)

    @property
    def groups(self) -> list[Any]:
        """Those among whose ranks it is cut."""
        return [self.mesh.get_group(i) for i, p in enumerate(self.placements) if isinstance(p, Shard)]


def is_spread(t: Any) -> bool:
    """Whether rows of a tensor have to be put together before they are stored."""
    if isinstance(t, DTensor):
        return True
    spread = sharding_of(t) if isinstance(t, Tensor) else None
    return spread is not None and spread.beside is not None


def spread_groups(t: Any) -> list[Any]:
    """The groups among whose ranks such a tensor lies."""
    if isinstance(t, DTensor):
        return t.device_mesh.get_all_groups()
    spread = sharding_of(t)
    return [] if spread is None else list(spread.groups)


def _dtensor(t: Any) -> DTensor:
    """A tensor as a distributed one, of what `fully_shard` has spread gathered."""
    if isinstance(t, DTensor):
        return t
    spread = sharding_of(t)
    assert spread is not None, "asked before"
    whole: Whole = spread.beside
    made: DTensor = wrap(spread.gather_part(t.detach()), whole.mesh, whole.placements, whole.shape)
    return made


def _rows(ndim: int, mesh: DeviceMesh) -> Placements:
    """In rows over the first dimension of a mesh, the same over the others."""
    first: Any = Shard(0) if ndim else Replicate()
    return (first, *[Replicate()] * (mesh.ndim - 1))


@no_grad()
def as_rows(t: Any) -> Any:
    """A tensor in rows, as checkpoints know them; all ranks of its mesh call it."""
    if not is_spread(t):
        return t
    x = _dtensor(t).detach()
    mesh, shape = x.device_mesh, tuple(x.shape)
    local = moved(x._held, shape, mesh, x.placements, _rows(x.ndim, mesh)).detach()
    return local if not shape else marked(local, Sharding(mesh.get_group(0), shape))


@no_grad()
def filled(t: Any, fill: Callable[[Tensor], None]) -> None:
    """Let `fill` write the rows of a tensor, and bring them to where they belong; all ranks of its mesh call it."""
    if not is_spread(t):
        fill(t)
        return
    spread = None if isinstance(t, DTensor) else sharding_of(t)
    mesh, lies, shape = (
        (t.device_mesh, t.placements, tuple(t.shape))
        if spread is None
        else (spread.beside.mesh, spread.beside.placements, spread.beside.shape)
    )
    rows = _rows(len(shape), mesh)
    held = t._held if spread is None else t
    buffer = F.empty(local_box(shape, mesh, rows)[0], dtype=held.dtype, device=held.device)
    fill(buffer if not shape else marked(buffer, Sharding(mesh.get_group(0), shape)))
    part = moved(buffer, shape, mesh, rows, lies)
    held.copy_(part if spread is None else part[spread.place()])


def whole_shape(t: Any) -> tuple[int, ...]:
    """The shape of the whole tensor."""
    spread = sharding_of(t)
    return tuple(t.shape) if spread is None else spread.whole_shape
