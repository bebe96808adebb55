"""Ranks in a grid, with a group along each of its dimensions. Knows groups, not tensors that are spread over them."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from types import TracebackType
from typing import Any

import numpy as np

from ..tensor import Tensor
from .buffers import from_array
from .group import ProcessGroup
from .groups import get_backend, get_process_group_ranks, get_rank, get_world_size, new_subgroups_by_enumeration
from .world import group, init_process_group, is_initialized

__all__ = ["DeviceMesh", "current_mesh", "init_device_mesh"]


class _Entered(threading.local):
    def __init__(self) -> None:
        self.meshes: list[DeviceMesh] = []


_entered = _Entered()


class DeviceMesh:
    """A grid of ranks: `mesh[i, j]` is the rank at that place, and each dimension may have a name.

    >>> def where():
    ...     mesh = votive.distributed.DeviceMesh("cpu", [[0, 1], [2, 3]], mesh_dim_names=("dp", "tp"))
    ...     return mesh.get_coordinate(), mesh["tp"].get_group().ranks
    >>> votive.distributed.simulate(where, 4)[2]
    ([1, 0], [2, 3])
    """

    def __init__(
        self,
        device_type: str,
        mesh: Tensor | np.ndarray[Any, Any] | Sequence[Any] | None = None,
        *,
        mesh_dim_names: Sequence[str] | None = None,
        _groups: Sequence[ProcessGroup] | None = None,
        _root: DeviceMesh | None = None,
    ) -> None:
        self.device_type = str(device_type)
        if not is_initialized():
            init_process_group()
        self._ranks = np.arange(get_world_size()) if mesh is None else np.asarray(mesh, np.int64)
        if self._ranks.ndim == 0 or self._ranks.size == 0:
            raise ValueError("DeviceMesh: the mesh needs at least one dimension and one rank.")
        if len(set(self._ranks.ravel().tolist())) != self._ranks.size:
            raise ValueError("DeviceMesh: a rank stands in the mesh twice.")
        self.mesh_dim_names = None if mesh_dim_names is None else tuple(mesh_dim_names)
        _check_names(self.mesh_dim_names, self._ranks.ndim)
        self._root, self._flattened = _root, dict[str, DeviceMesh]()
        place = np.argwhere(self._ranks == get_rank())
        self._place = [int(i) for i in place[0]] if len(place) else None
        self._groups = list(_groups) if _groups is not None else self._made()

    def _made(self) -> list[Any]:
        """A group along each dimension through each place; every rank takes part in making all of them."""
        found = []
        for dim in range(self._ranks.ndim):
            rows = np.moveaxis(self._ranks, dim, -1).reshape(-1, self._ranks.shape[dim]).tolist()
            # Groups sort their ranks, and so a row must be sorted for places and ranks to agree.
            if any(row != sorted(row) for row in rows):
                raise ValueError("DeviceMesh: ranks must grow along each dimension of the mesh.")
            if rows == [list(range(get_world_size()))]:
                found.append(group.WORLD)
            else:
                found.append(new_subgroups_by_enumeration(rows)[0])
        return found

    @property
    def mesh(self) -> Tensor:
        """The grid as a tensor of ranks."""
        return from_array(self._ranks.copy())

    @property
    def ndim(self) -> int:
        """How many dimensions the grid has."""
        return self._ranks.ndim

    @property
    def shape(self) -> tuple[int, ...]:
        """Its sizes."""
        return tuple(self._ranks.shape)

    def size(self, mesh_dim: int | None = None) -> int:
        """How many ranks there are, in all or along a dimension."""
        return int(self._ranks.size if mesh_dim is None else self._ranks.shape[mesh_dim])

    def _dim(self, mesh_dim: int | str | None) -> int:
        if mesh_dim is None:
            if self.ndim > 1:
                raise RuntimeError(
                    f"Found the DeviceMesh have {self.ndim} dimensions. Optional kwarg "
                    "`mesh_dim` needs to be specified."
                )
            return 0
        if isinstance(mesh_dim, str):
            if mesh_dim not in (self.mesh_dim_names or ()):
                raise KeyError(f"Invalid mesh_dim_name {mesh_dim!r} specified. The mesh has {self.mesh_dim_names}.")
            return (self.mesh_dim_names or ()).index(mesh_dim)
        if not -self.ndim <= mesh_dim < self.ndim:
            raise IndexError(f"DeviceMesh: mesh_dim={mesh_dim} is out of range for the shape {self.shape}.")
        return mesh_dim % self.ndim

    def get_group(self, mesh_dim: int | str | None = None) -> Any:
        """The group of this rank along a dimension."""
        if self._place is None:
            raise RuntimeError(f"rank {get_rank()} is not in {self}.")
        return self._groups[self._dim(mesh_dim)]

    def get_all_groups(self) -> list[Any]:
        """The groups of this rank along all dimensions."""
        return [self.get_group(i) for i in range(self.ndim)]

    def get_rank(self) -> int:
        """The number of this rank among all."""
        return get_rank()

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """The place of this rank along a dimension."""
        return get_rank(self.get_group(mesh_dim))

    def get_coordinate(self) -> list[int] | None:
        """The place of this rank in the grid, None outside of it."""
        return None if self._place is None else list(self._place)

    def __getitem__(self, mesh_dim_names: str | tuple[str, ...]) -> DeviceMesh:
        """The part of the grid through this rank along the named dimensions, in their order."""
        names = (mesh_dim_names,) if isinstance(mesh_dim_names, str) else tuple(mesh_dim_names)
        root = self._root or self
        if self.mesh_dim_names is None:
            raise RuntimeError("Cannot slice a DeviceMesh without mesh_dim_names!")
        if len(names) == 1 and names[0] in root._flattened:
            return root._flattened[names[0]]
        dims = [self._dim(name) for name in names]
        if dims != sorted(set(dims)):
            raise KeyError(f"Invalid mesh_dim_names {names}: they must be in the order of {self.mesh_dim_names}.")
        if names == self.mesh_dim_names:
            return self
        place = self._place or [0] * self.ndim
        at = tuple(slice(None) if d in dims else place[d] for d in range(self.ndim))
        groups = [self._groups[d] for d in dims]
        return DeviceMesh(self.device_type, self._ranks[at], mesh_dim_names=names, _groups=groups, _root=root)

    def _flatten(self, mesh_dim_name: str | None = None) -> DeviceMesh:
        """This part of the grid as one dimension. All ranks call it."""
        name = mesh_dim_name or "_".join(self.mesh_dim_names or ("flat",))
        root = self._root or self
        if name in root._flattened:
            return root._flattened[name]
        if self.ndim == 1:
            groups = self._groups
        else:
            dims = [(root.mesh_dim_names or ()).index(n) for n in self.mesh_dim_names or ()]
            rest = [d for d in range(root.ndim) if d not in dims]
            rows = root._ranks.transpose(*rest, *dims).reshape(-1, math.prod(self.shape)).tolist()
            groups = [new_subgroups_by_enumeration([sorted(row) for row in rows])[0]]
        made = DeviceMesh(self.device_type, self._ranks.ravel(), mesh_dim_names=(name,), _groups=groups, _root=root)
        root._flattened[name] = made
        return made

    @staticmethod
    def from_group(
        group: ProcessGroup | list[ProcessGroup],
        device_type: str,
        mesh: Any = None,
        *,
        mesh_dim_names: tuple[str, ...] | None = None,
    ) -> DeviceMesh:
        """A mesh over groups that are there already: one, or one for each dimension of `mesh`."""
        if isinstance(group, ProcessGroup):
            ranks = get_process_group_ranks(group)
            if mesh is not None and np.asarray(mesh).tolist() != ranks:
                raise ValueError(f"Invalid mesh {mesh} for ProcessGroup with ranks {ranks}")
            return DeviceMesh(device_type, ranks, mesh_dim_names=mesh_dim_names, _groups=[group])
        if mesh is None or np.asarray(mesh).ndim != len(group):
            raise ValueError("Must pass mesh, with a dimension for each group, when group is a list.")
        return DeviceMesh(device_type, mesh, mesh_dim_names=mesh_dim_names, _groups=group)

    def __enter__(self) -> DeviceMesh:
        _entered.meshes.append(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _entered.meshes.pop()

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, DeviceMesh)
            and (self.device_type, self.mesh_dim_names) == (other.device_type, other.mesh_dim_names)
            and np.array_equal(self._ranks, other._ranks)
        )

    def __hash__(self) -> int:
        return hash((self.device_type, self.mesh_dim_names, self.shape, self._ranks.tobytes()))

    def __repr__(self) -> str:
        names = "" if self.mesh_dim_names is None else f", mesh_dim_names={self.mesh_dim_names}"
        return f"DeviceMesh({self.device_type!r}, {self._ranks.tolist()}{names})"


def _check_names(names: tuple[str, ...] | None, ndim: int) -> None:
    if names is None:
        return
    if len(set(names)) != len(names):
        raise RuntimeError(f"Each mesh_dim_name must be unique. Found repeated mesh_dim_name in {names}.")
    if len(names) != ndim:
        raise RuntimeError(f"mesh_shape and mesh_dim_names should have same length, got {ndim} and {len(names)}.")


def current_mesh() -> DeviceMesh:
    """The mesh of the innermost `with mesh:`.

    >>> def inside():
    ...     with votive.distributed.init_device_mesh("cpu", (2,)) as mesh:
    ...         return votive.distributed.device_mesh.current_mesh() is mesh
    >>> votive.distributed.simulate(inside, 2)
    [True, True]
    """
    if not _entered.meshes:
        raise RuntimeError("No device mesh is currently active!")
    return _entered.meshes[-1]


def init_device_mesh(
    device_type: str, mesh_shape: Sequence[int], *, mesh_dim_names: Sequence[str] | None = None
) -> DeviceMesh:
    """All ranks in a grid of a shape, rank after rank, the last dimension fastest.

    >>> def shape():
    ...     return votive.distributed.init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp")).mesh.tolist()
    >>> votive.distributed.simulate(shape, 4)[0]
    [[0, 1], [2, 3]]
    """
    shape = tuple(int(n) for n in mesh_shape)
    _check_names(None if mesh_dim_names is None else tuple(mesh_dim_names), len(shape))
    if not is_initialized():
        init_process_group()
    if math.prod(shape) != get_world_size():
        raise RuntimeError(
            f"init_device_mesh: the shape {shape} has {math.prod(shape)} places for {get_world_size()} ranks."
        )
    if device_type == "cuda" and get_backend() == "threads":
        raise RuntimeError('init_device_mesh: ranks that are threads compute on the CPU; use device_type="cpu".')
    return DeviceMesh(device_type, np.arange(math.prod(shape)).reshape(shape), mesh_dim_names=mesh_dim_names)
