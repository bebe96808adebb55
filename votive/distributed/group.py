"""A group of ranks: its calls in their order, at once or beside the program. Knows arrays and calls, not tensors."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

from .check import Call, Checker, checking
from .errors import DistBackendError
from .store import Store
from .transports.base import Transport
from .work import Work


class Ran(NamedTuple):
    """A call that has run: from `start`, when this rank came, over `met`, when all were there, to `end`."""

    group: ProcessGroup
    call: Call
    nbytes: int
    start: float
    met: float
    end: float
    row: str = ""  # where it is shown, if it is not a part of what its thread did


# Who wants to know of each call that has run.
OBSERVERS: list[Callable[[Ran], None]] = []


class ProcessGroup:
    """Ranks that do things together. `ranks` are their numbers among all.

    >>> votive.distributed.simulate(lambda: votive.distributed.group.WORLD.size(), 2)
    [2, 2]
    """

    def __init__(
        self, transport: Transport, ranks: Sequence[int], name: str, backend: str, timeout: timedelta, store: Store
    ) -> None:
        self.transport, self.ranks = transport, list(ranks)
        self.group_name, self.backend, self.timeout, self.store = name, backend, timeout, store
        self.group_desc = name
        # Which backends serve GPU tensors: "nccl" alone, or as one of two.
        self.uses_nccl = "nccl" in backend
        self.checker = Checker(transport, ranks, timeout.total_seconds())
        self._order = threading.Lock()
        self._queue: queue.SimpleQueue[tuple[Call, int, Callable[[], object], Work, float | None] | None] = (
            queue.SimpleQueue()
        )
        self._worker: threading.Thread | None = None
        self._pending, self._counted = 0, threading.Lock()
        self._broken: str | None = None
        self._closed = False
        self.patience = 5.0  # how long `close` waits for what runs beside the program

    def rank(self) -> int:
        """The number of this rank in the group."""
        return self.transport.rank

    def size(self) -> int:
        """How many ranks there are."""
        return self.transport.size

    def name(self) -> str:
        """What moves its bytes."""
        return self.backend

    def __repr__(self) -> str:
        return f"ProcessGroup({self.group_name!r}, ranks={self.ranks}, backend={self.backend!r})"

    def set_timeout(self, timeout: timedelta) -> None:
        """How long ranks wait for one another."""
        self.timeout, self.checker.timeout = timeout, timeout.total_seconds()

    def run(
        self, call: Call, nbytes: int, what: Callable[[], object], async_op: bool, limit: float | None = None
    ) -> Work | None:
        """Do something that all ranks do, in the order of calls; beside the program if it is to be asynchronous."""
        if self._broken:
            raise DistBackendError(f"{call}: the group is of no use since an earlier error: {self._broken}")
        if not async_op and self._pending == 0:
            with self._order:
                self._do(call, nbytes, what, False, limit)
            return None
        work = Work(self.timeout.total_seconds())
        with self._counted:
            self._pending += 1
        if self._worker is None:
            self._worker = threading.Thread(target=self._work, name=f"group {self.group_name}", daemon=True)
            self._worker.start()
        self._queue.put((call, nbytes, what, work, limit))
        if async_op:
            return work
        work.wait()
        return None

    def _do(self, call: Call, nbytes: int, what: Callable[[], object], beside: bool, limit: float | None) -> object:
        start = met = time.perf_counter()
        try:
            if checking():
                self.checker.meet(call, limit)
                met = time.perf_counter()
            result = self._watched(call, what)
        except BaseException as e:
            self._broken = str(e)
            raise
        row = f"group {self.group_name}" if beside else ""
        for observe in tuple(OBSERVERS):
            observe(Ran(self, call, nbytes, start, met, time.perf_counter(), row))
        return result

    def _watched(self, call: Call, what: Callable[[], object]) -> object:
        watch = self.transport.watch
        if watch is None:
            return what()
        watch.enter(call, self.timeout.total_seconds())
        try:
            return what()
        except Exception as e:
            wrong = watch.failure(0.0)
            if wrong is None:
                raise
            raise DistBackendError(f"{call}: {wrong} ({e}).") from None
        finally:
            watch.leave()

    def _work(self) -> None:
        while (item := self._queue.get()) is not None:
            call, nbytes, what, work, limit = item
            try:
                with self._order:
                    result = self._do(call, nbytes, what, True, limit)
            except BaseException as e:
                self._done()
                work.finish(None, e)
            else:
                self._done()
                work.finish(result)

    def _done(self) -> None:
        with self._counted:
            self._pending -= 1

    def close(self) -> None:
        """End its thread and give back what it holds."""
        if self._closed:
            return
        self._closed = True
        on_device = self.__dict__.pop("_on_device", None)
        if self._worker is not None:
            self._queue.put(None)
            self._worker.join(self.patience)
            self._worker = None
        if on_device is not None:
            on_device.close()
        self._broken = self._broken or "it was destroyed"
        self.checker.leave()
        self.transport.close()

    def part(self, call: Call, members: Sequence[int] | None, name: str, alone: bool) -> Transport | None:
        """The transport of some of its ranks, None for others; all its ranks call this, or its members `alone`."""
        made: list[Transport] = []

        def split() -> None:
            if members is not None:
                made.append(self.transport.split(members, name))

        if alone:
            self._watched(call, split)
        else:
            self.run(call, 0, split, False)
        return made[0] if made else None

    def global_rank(self, rank: int) -> int:
        """The number among all of a rank of this group."""
        return self.ranks[rank]

    def group_rank(self, rank: int, what: str = "rank") -> int:
        """The number in this group of a rank among all."""
        try:
            return self.ranks.index(rank)
        except ValueError:
            raise ValueError(f"{what}={rank} is not one of the group's ranks {self.ranks}.") from None

    def __reduce__(self) -> Any:
        raise TypeError("a process group belongs to its process; send its ranks instead.")
