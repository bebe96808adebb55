"""Programs in which one process dies: `python -m tests.distributed.faults NAME`."""

from __future__ import annotations

import os
import signal
import sys
import time
from datetime import timedelta

import votive
import votive.distributed as dist


def before_a_call() -> None:
    """Rank 1 is gone before the others call."""
    if dist.get_rank() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    dist.all_reduce(votive.ones(3))


def within_a_call() -> None:
    """Rank 1 agrees to a call and is gone before the data."""
    if dist.get_rank() == 1:
        group = dist.group.WORLD
        assert group is not None
        group._watched = lambda call, what: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[method-assign]
    dist.all_reduce(votive.ones(300_000))


def while_a_message_is_awaited() -> None:
    """Rank 1 is gone where others wait for what it would send."""
    if dist.get_rank() == 1:
        time.sleep(0.2)
        os.kill(os.getpid(), signal.SIGKILL)
    dist.recv(votive.ones(3), 1)


def with_an_error() -> None:
    """Rank 1 raises."""
    if dist.get_rank() == 1:
        raise KeyError("of rank 1")
    dist.all_reduce(votive.ones(3))


def by_leaving() -> None:
    """Rank 1 ends as if all were done."""
    if dist.get_rank() == 1:
        sys.exit(3)
    dist.all_reduce(votive.ones(3))


if __name__ == "__main__":
    dist.init_process_group("mpi", timeout=timedelta(minutes=20))
    dist.barrier()
    globals()[sys.argv[1]]()
