"""Who takes part: rank, size and a store, from what mpiexec, torchrun, Slurm or the program says."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from datetime import timedelta
from typing import NamedTuple
from urllib.parse import parse_qs, urlparse

from .agent_store import AgentStore
from .pmi import managed
from .store import FileStore, HashStore, PrefixStore, Store
from .tcp_store import TCPStore


class Place(NamedTuple):
    """This process among all."""

    rank: int
    size: int
    store: Store
    host: str  # of rank 0
    by_mpi: bool = False  # MPI's own process manager knows rank and size


# Where other launchers say rank and size: Slurm's srun, Open MPI's and MPICH's mpiexec.
_RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID")
_SIZES = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS")


def _said(names: tuple[str, ...]) -> int | None:
    found = next((os.environ[name] for name in names if os.environ.get(name)), None)
    return None if found is None else int(found)


def slurm_address() -> tuple[str | None, str | None]:
    """Where ranks that Slurm's srun has started meet: on the first machine, at a port that the job alone uses.

    >>> votive.distributed.rendezvous.slurm_address()
    (None, None)
    """
    job, step = os.environ.get("SLURM_JOB_ID", ""), os.environ.get("SLURM_STEP_ID", "0")
    nodes = os.environ.get("SLURM_STEP_NODELIST") or os.environ.get("SLURM_JOB_NODELIST")
    if nodes is None or "SLURM_PROCID" not in os.environ or not (job + step).isdecimal():
        return None, None
    # gpu[003-007,9],cpu1 begins with gpu003.
    first = re.sub(r"\[(\w+)[^\]]*\]", r"\1", nodes).partition(",")[0]
    return first, str(12_000 + (16 * int(job) + int(step)) % 20_000)


def find_place(
    init_method: str | None, rank: int, world_size: int, store: Store | None, timeout: timedelta, uses_mpi: bool
) -> Place:
    """The place that a program asks for, or the one that its launcher gave it.

    >>> from datetime import timedelta
    >>> from votive.distributed import HashStore
    >>> from votive.distributed.rendezvous import find_place
    >>> find_place(None, 0, 1, HashStore(), timedelta(seconds=1), True)[:2]
    (0, 1)
    """
    if store is not None:
        if rank < 0 or world_size < 1:
            raise ValueError("init_process_group: a store comes with rank= and world_size=.")
        _check_rank(rank, world_size)
        return Place(rank, world_size, store, getattr(store, "host", "127.0.0.1"))
    if uses_mpi and managed() and init_method in (None, "env://") and rank < 0:
        # mpiexec connects the processes; nobody has to be found.
        return Place(-1, -1, HashStore(), "127.0.0.1", by_mpi=True)
    method = urlparse(init_method or "env://")
    said = parse_qs(method.query)
    rank = int(said["rank"][0]) if rank < 0 and "rank" in said else rank
    world_size = int(said["world_size"][0]) if world_size < 1 and "world_size" in said else world_size
    if method.scheme == "file":
        return _by_file(method.path, rank, world_size)
    if method.scheme == "tcp":
        if rank < 0 or world_size < 1:
            raise ValueError(f"init_process_group: {init_method} comes with rank= and world_size=.")
        _check_rank(rank, world_size)
        host, port = method.hostname or "127.0.0.1", method.port
        if port is None:
            raise ValueError(f"port number missing in {init_method!r}, such as tcp://127.0.0.1:23456")
        return _by_tcp(host, port, rank, world_size, timeout)
    if method.scheme != "env":
        raise RuntimeError(
            f"No rendezvous handler for {method.scheme}://; use env://, tcp://HOST:PORT or file:///PATH."
        )
    return _by_environment(rank, world_size, timeout)


def _check_rank(rank: int, size: int) -> None:
    if not 0 <= rank < size:
        raise ValueError(f"init_process_group: rank={rank} is not among the {size} processes 0..{size - 1}.")


def _by_file(path: str, rank: int, size: int) -> Place:
    if rank < 0 or size < 1:
        raise ValueError("init_process_group: file:// comes with rank= and world_size=.")
    _check_rank(rank, size)
    store = FileStore(path, size)
    # The same file may serve one program after the other: each has keys of its own.
    times = store.add("arrivals", 1)
    return Place(rank, size, PrefixStore(f"run{(times - 1) // size}", store), "127.0.0.1")


def _by_tcp(host: str, port: int, rank: int, size: int, timeout: timedelta) -> Place:
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        return Place(rank, size, _beside_agent(host, port, rank, size, timeout), host)
    store = TCPStore(host, port, size, is_master=rank == 0, timeout=timeout, wait_for_workers=False)
    return Place(rank, size, store, host)


def _beside_agent(host: str, port: int, rank: int, size: int, timeout: timedelta) -> TCPStore:
    """A store of rank 0's; torchrun's agent, which serves one of torch's at this address, tells the others where."""
    key = "votive/{TORCHELASTIC_RUN_ID}/{TORCHELASTIC_RESTART_COUNT}".format_map(defaultdict(str, os.environ))
    with AgentStore(host, port, timeout.total_seconds()) as agent:
        if rank > 0:
            port = int(agent.get(key))
        store = TCPStore(host, port if rank else 0, size, rank == 0, timeout, wait_for_workers=False)
        if rank == 0:
            agent.set(key, str(store.port).encode())
            agent.get(key)  # it has arrived
    return store


def _by_environment(rank: int, size: int, timeout: timedelta) -> Place:
    found_rank = _said(_RANKS) if rank < 0 else rank
    found_size = _said(_SIZES) if size < 1 else size
    for name, value in (("RANK", found_rank), ("WORLD_SIZE", found_size)):
        if value is None:
            raise ValueError(
                f"Error initializing torch.distributed using env:// rendezvous: environment variable {name} expected, "
                "but not set. Start the program by `votive launch -n 4 script.py`, by torchrun or by mpiexec."
            )
    assert found_rank is not None, "checked"
    assert found_size is not None, "checked"
    _check_rank(found_rank, found_size)
    if found_size == 1 and "MASTER_PORT" not in os.environ:
        return Place(0, 1, HashStore(), "127.0.0.1")
    host, port = slurm_address()
    host, port = os.environ.get("MASTER_ADDR") or host, os.environ.get("MASTER_PORT") or port
    for name, text in (("MASTER_ADDR", host), ("MASTER_PORT", port)):
        if text is None:
            raise ValueError(
                f"Error initializing torch.distributed using env:// rendezvous: environment variable {name} expected, "
                "but not set."
            )
    assert host is not None, "checked"
    assert port is not None, "checked"
    return _by_tcp(host, int(port), found_rank, found_size, timeout)
