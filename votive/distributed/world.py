"""All processes: how they are set up and torn down, and the groups among them. Knows no collectives."""

from __future__ import annotations

import atexit
import contextlib
import itertools
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from types import TracebackType
from typing import Any

from .backends import backend_of
from .errors import DistBackendError
from .group import ProcessGroup
from .pmi import Manager, announce, introduce, launched_size, managed
from .rendezvous import Place, find_place
from .store import DEFAULT_TIMEOUT, Store
from .transports.base import Transport
from .transports.threads import Board, ThreadTransport


class World:
    """What a process, or a thread that plays one, knows of all ranks."""

    def __init__(self, group: ProcessGroup, store: Store, backend: str, place: Place | None = None) -> None:
        self.group, self.store, self.backend, self.place = group, store, backend, place
        self.groups: dict[str, ProcessGroup] = {group.group_name: group}
        self.count = itertools.count(1)


class _Here(threading.local):
    world: World | None = None  # that of a thread that plays a rank


_here = _Here()
_process: list[World] = []  # none, or that of the process
_managers: list[Manager] = []


def world() -> World | None:
    """That of this thread or process, None before `init_process_group`."""
    if _here.world is not None:
        return _here.world
    return _process[0] if _process else None


@contextlib.contextmanager
def playing(found: World) -> Iterator[None]:
    """Let this thread be a rank of a world, whose groups are closed behind it."""
    _here.world = found
    try:
        yield
    finally:
        if _here.world is not None:
            for one in list(_here.world.groups.values()):
                one.close()
        _here.world = None


def needed() -> World:
    """The world, which must have been set up."""
    found = world()
    if found is None:
        raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")
    return found


class GroupMember:
    """What `new_group` gives to ranks that are not in the group.

    >>> votive.distributed.GroupMember.NON_GROUP_MEMBER
    -100
    """

    NON_GROUP_MEMBER = -100


class _GroupMeta(type):
    @property
    def WORLD(cls) -> ProcessGroup | None:
        """The group of all ranks."""
        found = world()
        return None if found is None else found.group


class group(metaclass=_GroupMeta):
    """Holds `WORLD`, the group of all ranks.

    >>> votive.distributed.group.WORLD is None
    True
    """


def is_initialized() -> bool:
    """Whether `init_process_group` was called.

    >>> votive.distributed.is_initialized()
    False
    """
    return world() is not None


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Store | None = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
) -> None:
    """Set up the group of all processes: started by `votive launch`, torchrun, mpiexec or Slurm, or told who they are.

    >>> votive.distributed.init_process_group("mpi", store=votive.distributed.HashStore(), rank=0, world_size=1)
    >>> votive.distributed.get_world_size()
    1
    >>> votive.distributed.destroy_process_group()
    """
    if world() is not None:
        raise ValueError("trying to initialize the default process group twice!")
    if pg_options is not None:
        raise ValueError("init_process_group: pg_options are of one backend of torch's; leave them out.")
    if store is not None and init_method is not None:
        raise ValueError("Cannot specify both init_method and store.")
    timeout = DEFAULT_TIMEOUT if timeout is None else timeout
    if not isinstance(timeout, timedelta):
        raise TypeError(f"Expected timeout argument to be of type datetime.timedelta, got {timeout!r}.")
    if timeout <= timedelta(0):
        raise ValueError(f"init_process_group: timeout must be above 0, got {timeout}.")
    shown, kind = backend_of(backend)
    if kind == "threads":
        raise ValueError(
            "init_process_group: ranks that are threads are started by "
            "votive.distributed.simulate(function, world_size)."
        )
    if "nccl" in shown:
        from .transports.nccl import library

        if not library.load():
            raise DistBackendError(
                f'init_process_group: {library.reason}. backend="mpi" takes GPU tensors too, by way of the host.'
            )
    place = find_place(init_method, rank, world_size, store, timeout, uses_mpi=True)
    transport, place = _connected(place, kind, timeout)
    if transport.watch is not None and sys.excepthook is not _failed:
        _hooks.append(sys.excepthook)
        sys.excepthook = _failed
    made = ProcessGroup(transport, range(transport.size), group_name or "default_pg", shown, timeout, place.store)
    _process.append(World(made, place.store, shown, place))


def _connected(place: Place, kind: str, timeout: timedelta) -> tuple[Transport, Place]:
    """What moves bytes between the processes, connected."""
    if place.size == 1:
        return ThreadTransport(Board(1), 0), place
    from .transports import mpi

    MPI = mpi.load()
    if not managed() and not MPI.Is_initialized():
        if MPI.get_vendor()[0] == "Open MPI":
            raise DistBackendError(
                "Open MPI connects only processes that its mpirun or Slurm's srun --mpi=pmix has started. Use one of "
                "them or `votive launch`, or put mpi4py on MPICH: pip install mpich."
            )
        _introduced(place, timeout)
    mpi.start(timeout.total_seconds())
    comm = MPI.COMM_WORLD
    if not place.by_mpi and (comm.Get_size(), comm.Get_rank()) != (place.size, place.rank):
        raise DistBackendError(
            f"MPI connects {comm.Get_size()} processes, of which this is {comm.Get_rank()}, and the program was told "
            f"rank={place.rank}, world_size={place.size}. A process can join only one world in its life."
        )
    said = launched_size()
    if place.by_mpi and said is not None and said != comm.Get_size():
        raise DistBackendError(
            f"the launcher has started {said} processes, and MPI sees {comm.Get_size()}: the launcher is of another "
            f"MPI than mpi4py's, {MPI.Get_library_version().splitlines()[0]}. `votive launch` finds the right one."
        )
    transport = mpi.connected(timeout.total_seconds())
    return transport, place._replace(rank=transport.rank, size=transport.size)


def _introduced(place: Place, timeout: timedelta) -> None:
    """Let MPI know of the others, whom no process manager has started: rank 0 starts what answers in its place."""
    limit = timeout.total_seconds()
    if place.rank == 0:
        _managers.append(Manager(place.size))
        address = f"{place.host}:{_managers[-1].port}"
        place.store.set("votive/pmi", address)
        if not _managers[-1].wait_for_all(limit):
            missing = [r for r in range(1, place.size) if place.store.find(f"votive/here/{r}") is None]
            raise DistBackendError(
                f"init_process_group: Timed out after {limit:.1f} seconds; of {place.size} ranks these are not there: "
                f"{', '.join(map(str, missing))}."
            )
    else:
        place.store.set(f"votive/here/{place.rank}", "")
        place.store.wait(["votive/pmi"], timeout)
        address = place.store.get("votive/pmi").decode()
        announce(address, limit)
    introduce(place.rank, place.size, address)


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Give back a group, or all of them.

    >>> def alone():
    ...     group = votive.distributed.new_group([votive.distributed.get_rank()], use_local_synchronization=True)
    ...     votive.distributed.destroy_process_group(group)
    ...     votive.distributed.destroy_process_group()
    ...     return votive.distributed.is_initialized()
    >>> votive.distributed.simulate(alone, 2)
    [False, False]
    """
    found = needed()
    if group is not None and group is not found.group:
        if group.group_name not in found.groups:
            raise ValueError("Invalid process group specified")
        found.groups.pop(group.group_name).close()
        return
    for one in found.groups.values():
        one.close()
    if _here.world is found:
        _here.world = None
    else:
        _process.clear()


_hooks: list[Callable[[type[BaseException], BaseException, TracebackType | None], object]] = []


def _failed(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """End all processes when this one ends with an error: the others would wait for it."""
    _hooks[-1](kind, error, trace)
    fail(kind, error)


def fail(kind: type[BaseException], error: BaseException) -> None:
    """Tell the other ranks that this one has failed, and end."""
    if not _process or _process[0].group.transport.watch is None:
        return
    said = str(error).partition("\n")[0]
    for one in list(_process[0].groups.values()):
        one.checker.leave(f"has failed with {kind.__name__}{said and ': '}{said}")
    for one in list(_process[0].groups.values()):
        one.transport.close()
    sys.modules["votive.distributed.transports.mpi"].abort(130 if issubclass(kind, KeyboardInterrupt) else 1)


@atexit.register
def _leave() -> None:
    for one in _process:
        for made in one.groups.values():
            made.close()
    if "votive.distributed.transports.mpi" in sys.modules:
        sys.modules["votive.distributed.transports.mpi"].end()


def group_of(group: ProcessGroup | None) -> ProcessGroup:
    """The group that an argument means: that of all ranks if None."""
    return needed().group if group is None else group


def is_member(group: Any) -> bool:
    """Whether this rank is in a group."""
    return group != GroupMember.NON_GROUP_MEMBER
