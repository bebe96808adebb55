"""`torch.multiprocessing`: votive's, with forked processes, so that `import torch` means in them what it means here.

A fresh interpreter would run the program's file again before anyone could install the alias there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import votive

from .. import multiprocessing
from ..multiprocessing import ProcessContext

__all__ = ["spawn", "start_processes"]


def start_processes(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Run `fn(i, *args)` in `nprocs` processes, forked whatever the start method; with `join`, wait for them."""
    if start_method not in ("spawn", "fork", "forkserver"):
        raise ValueError(f"start_processes: unknown start method {start_method!r}.")
    if start_method != "fork" and votive.cuda.is_initialized():
        raise NotImplementedError("start_processes: a process that uses a GPU cannot be forked; start before using it.")
    return multiprocessing.start_processes(fn, args, nprocs, join, daemon, "fork")


def spawn(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Run `fn(i, *args)` in `nprocs` processes; the first error ends them all and is raised here."""
    return start_processes(fn, args, nprocs, join, daemon, start_method)
