"""Ranks that are threads of one process: one function, run once for each. For tests and for teaching."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar

from ..core.rng import own_generators
from .group import ProcessGroup
from .rendezvous import Place
from .store import HashStore
from .transports.threads import Board, ThreadTransport
from .world import World, playing

T = TypeVar("T")


def simulate(fn: Callable[..., T], world_size: int, *args: Any, timeout: timedelta = timedelta(seconds=60)) -> list[T]:
    """Run a function once for each of `world_size` ranks, which are threads of this process; gives their results.

    Each has default generators of its own, which begin where those of the process are; other things that a process
    has once are shared.

    >>> def total():
    ...     x = votive.tensor([votive.distributed.get_rank() + 1.0])
    ...     votive.distributed.all_reduce(x)
    ...     return x.item()
    >>> votive.distributed.simulate(total, 4)
    [10.0, 10.0, 10.0, 10.0]
    """
    if world_size < 1:
        raise ValueError(f"simulate: world_size must be 1 or more, got {world_size}.")
    board, store = Board(world_size), HashStore()
    results: list[Any] = [None] * world_size
    errors: list[tuple[int, BaseException]] = []

    def play(rank: int) -> None:
        transport = ThreadTransport(board, rank)
        made = ProcessGroup(transport, range(world_size), "default_pg", "threads", timeout, store)
        with playing(World(made, store, "threads", Place(rank, world_size, store, "127.0.0.1"))), own_generators():
            try:
                results[rank] = fn(*args)
            except BaseException as e:
                errors.append((rank, e))
                board.broken = board.broken or f"rank {rank} has ended with {type(e).__name__}: {e}"

    threads = [threading.Thread(target=play, args=(r,), name=f"rank {r}", daemon=True) for r in range(world_size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        # The first to fail is the cause; the others heard of it.
        raise errors[0][1]
    return results
