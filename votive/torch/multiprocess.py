"""`torch.multiprocessing`: votive's, with forked processes, so that `import torch` means in them what it means here.

A fresh interpreter would run the program's file again before anyone could install the alias there.
"""

from __future__ import annotations

import multiprocessing as _python
from collections.abc import Callable
from multiprocessing.context import BaseContext
from typing import Any

import votive

from .. import multiprocessing
from ..multiprocessing import ProcessContext

__all__ = ["get_context", "get_start_method", "set_start_method", "spawn", "start_processes"]
_METHODS = ("spawn", "fork", "forkserver")
_asked: str | None = None


def _check(who: str, method: str) -> None:
    if method not in _METHODS:
        raise ValueError(f"{who}: cannot find context for {method!r}; the start methods are {', '.join(_METHODS)}.")
    if method != "fork" and votive.cuda.is_initialized():
        raise NotImplementedError(f"{who}: a process that uses a GPU cannot be forked; start before using it.")


def get_context(method: str | None = None) -> BaseContext:
    """What starts processes: they are forked whatever the method."""
    if method is not None:
        _check("get_context", method)
    return _python.get_context("fork")


def set_start_method(method: str | None, force: bool = False) -> None:
    """Remember the start method that a program wants; processes are forked all the same."""
    global _asked
    if method is not None:
        _check("set_start_method", method)
    if _asked is not None and not force:
        raise RuntimeError("context has already been set")
    _asked = method
    _python.set_start_method(None if method is None else "fork", force=True)


def get_start_method(allow_none: bool = False) -> str | None:
    """The start method that the program set, or that there is without."""
    return _asked or _python.get_start_method(allow_none)


def start_processes(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Run `fn(i, *args)` in `nprocs` processes, forked whatever the start method; with `join`, wait for them."""
    _check("start_processes", start_method)
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
