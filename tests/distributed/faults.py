"""Programs in which rank 1 dies: `python -m tests.distributed.faults NAME`, or the name of an action of a transport."""

from __future__ import annotations

import os
import signal
import sys
from datetime import timedelta
from typing import Any

import votive
import votive.distributed as dist
from votive.distributed.transports.mpi import MPITransport


def die(*_: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def everything() -> None:
    """Calls of all kinds; rank 1 dies in the first that needs a certain action."""
    x, other = votive.ones(50_000), 1 - dist.get_rank()
    dist.all_reduce(x)
    found: list[Any] = [None, None]
    dist.all_gather_object(found, "x")
    dist.new_group([0, 1])
    dist.batch_isend_irecv([dist.P2POp(dist.isend, x, other), dist.P2POp(dist.irecv, x.clone(), other)])[1].wait()
    dist.all_reduce(x, async_op=True).wait()  # type: ignore[union-attr]


def by_leaving() -> None:
    """Rank 1 ends as if all were done."""
    if dist.get_rank() == 1:
        sys.exit(3)
    dist.all_reduce(votive.ones(3))


def with_an_error() -> None:
    """Rank 1 raises."""
    if dist.get_rank() == 1:
        raise KeyError("of rank 1")
    dist.all_reduce(votive.ones(3))


if __name__ == "__main__":
    name = sys.argv[1]
    if name == "never_there" and os.environ["RANK"] == "1":
        sys.exit()
    dist.init_process_group("mpi", timeout=timedelta(seconds=2 if name == "never_there" else 1200))
    dist.barrier()
    if hasattr(MPITransport, name):
        if dist.get_rank() == 1:
            setattr(MPITransport, name, die)
        everything()
    else:
        globals()[name]()
