"""Checkpoints written beside the program: what is saved is what tensors held when `async_save` was called.

Who writes what is agreed on, and tensors are copied, before the call returns. The rest runs on a thread, among the
ranks on a group of its own, so that it never gets between the program's own calls.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np

from ..check import Call, line_of_caller
from ..errors import DistError
from ..group import ProcessGroup
from ..groups import new_group
from ..world import needed
from .files import Writing, group_for

_GROUP = "_checkpoint_group"
_SAID = 2048  # bytes in which a rank says what went wrong


class _UnderWay(threading.local):
    """The checkpoint that this rank writes; ranks may be threads."""

    def __init__(self) -> None:
        self.future: Future[None] | None = None


_under_way = _UnderWay()


def async_save(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike[str],
    process_group: ProcessGroup | None = None,
    no_dist: bool = False,
) -> Future[None]:
    """`save` beside the program. Returns when tensors are copied; `result()` when the checkpoint is there.

    What goes wrong is raised by `result()`, on all ranks. One checkpoint is written at a time: a call waits for the one
    before.

    >>> import tempfile
    >>> from votive.distributed import checkpoint
    >>> w, found = votive.zeros(2), {"w": votive.ones(2)}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     saved = checkpoint.async_save({"w": w}, checkpoint_id=f"{folder}/a", no_dist=True)
    ...     w += 5  # too late
    ...     saved.result()
    ...     checkpoint.load(found, checkpoint_id=f"{folder}/a", no_dist=True)
    >>> found["w"]
    tensor([0., 0.])
    """
    before = _under_way.future
    if before is not None:
        before.exception()  # of which its own caller hears
    group = group_for(process_group, no_dist)
    writing = Writing(state_dict, Path(checkpoint_id), group)
    writing.snapshot()
    done: Future[None] = Future()
    _under_way.future = done
    if group is None or group.size() == 1:
        threading.Thread(target=_alone, args=(writing, done), name="checkpoint").start()
    else:
        _among_ranks(_own_group(group), writing, done)
    return done


@atexit.register
def _finish() -> None:
    # A program may end while its last checkpoint is under way.
    if _under_way.future is not None and _under_way.future.exception() is not None:
        sys.stderr.write(f"async_save: the last checkpoint was not written: {_under_way.future.exception()}\n")


def _alone(writing: Writing, done: Future[None]) -> None:
    try:
        for step in writing.steps:
            step()
    except BaseException as e:
        writing.abandon()
        done.set_exception(e)
    else:
        done.set_result(None)


def _own_group(group: ProcessGroup) -> ProcessGroup:
    """A group of the same ranks for checkpoints alone."""
    found: ProcessGroup | None = group.__dict__.get(_GROUP)
    if found is None or found.group_name not in needed().groups:
        found = new_group(group.ranks, group.timeout, use_local_synchronization=True, group_desc="checkpoint")
        assert isinstance(found, ProcessGroup), "this rank is in it"
        found.patience = group.timeout.total_seconds()
        group.__dict__[_GROUP] = found
    return found


def _among_ranks(group: ProcessGroup, writing: Writing, done: Future[None]) -> None:
    def run() -> BaseException | None:
        # What all know of is no reason to give the group up.
        for step in writing.steps:
            wrong = _tried(group, step)
            if wrong is not None:
                writing.abandon()
                return wrong
        return None

    work = group.run(Call("async_save", where=line_of_caller()), 0, run, True)
    assert work is not None, "it was asked to be asynchronous"

    def end() -> None:
        error = work.exception()
        error = work.result() if error is None else error
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)

    work.then(end)


def _tried(group: ProcessGroup, step: Callable[[], None]) -> BaseException | None:
    """Do something on each rank; gives what went wrong, on whichever of them."""
    error: BaseException | None = None
    try:
        step()
    except Exception as e:
        error = e
    said = "" if error is None else f"{type(error).__name__}: {error}"
    mine = np.zeros(_SAID, np.uint8)
    text = np.frombuffer(said.encode()[:_SAID], np.uint8)
    mine[: len(text)] = text
    every = np.empty((group.size(), _SAID), np.uint8)
    group.transport.all_gather(every, mine)
    for r, row in enumerate(every):
        if error is None and row.any():
            text_of = row.tobytes().rstrip(b"\0").decode(errors="replace")
            error = DistError(f"checkpoint: rank {group.global_rank(r)} has failed with {text_of}")
    return error
