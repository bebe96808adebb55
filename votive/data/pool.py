"""The worker processes of a loader, seen from outside: start, ask, hear, notice deaths, end.

Knows processes and messages; what the messages ask for is the iteration's business.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
import warnings
import weakref
from typing import TYPE_CHECKING, Any, NoReturn

from . import transport, worker

if TYPE_CHECKING:
    from multiprocessing.context import BaseContext

# How long a worker may take to finish what it is doing once it is no longer needed.
GRACE_S = 5.0


class Pool:
    """`job.num_workers` processes, each with a connection of its own.

    One connection per worker, and no lock shared among them: a worker that is killed at any
    instruction takes nothing down with it.
    """

    def __init__(self, job: worker.Job, context: BaseContext | None, timeout: float) -> None:
        import multiprocessing

        self.context: Any = context or multiprocessing.get_context(_default_method())
        self.timeout = timeout
        self.connections: list[Any] = []
        self.processes: list[Any] = []
        self.epoch = -1
        self.broken: str | None = None
        self.pinner: Any = None  # who reads the answers instead of the iteration
        self._owner = os.getpid()
        _POOLS.add(self)
        try:
            for i in range(job.num_workers):
                self._start(i, job)
        except BaseException:
            self.shutdown()
            raise

    def _start(self, i: int, job: worker.Job) -> None:
        ours, theirs = self.context.Pipe(duplex=True)
        self.connections.append(ours)
        forks = self.context.get_start_method() == "fork"
        # A forked worker gets a copy of every connection there is, also of other loaders' pools.
        inherited = [c for pool in _POOLS for c in pool.connections] if forks else []
        process = self.context.Process(
            target=worker.main, args=(theirs, inherited, i, job), daemon=True, name=f"votive-worker-{i}"
        )
        with warnings.catch_warnings():
            pinning = sum(t.name.startswith(_PINS) for t in threading.enumerate())
            if forks and threading.active_count() - pinning == 1:
                # Python warns of any second thread; with one Python thread the others belong to
                # BLAS, which stops them around a fork by itself, or copy and hold no lock for long.
                warnings.filterwarnings("ignore", "This process .* is multi-threaded")
            process.start()
        # Ours must be the only copy left here, or the worker's death would not close it.
        theirs.close()
        self.processes.append(process)

    def __len__(self) -> int:
        return len(self.processes)

    def send(self, i: int, request: tuple[Any, ...]) -> None:
        """Send a request to worker `i`; a dead one is found out when its answer is awaited."""
        with contextlib.suppress(transport.Dropped):
            transport.send(self.connections[i], request)

    def begin(self) -> int:
        """The number of an epoch that begins now; whoever read the last one's answers stops."""
        if self.pinner is not None:
            self.pinner.close()
        self.epoch += 1
        return self.epoch

    def timed_out(self, candidates: list[int]) -> RuntimeError:
        """What to raise when these workers took too long."""
        return RuntimeError(
            f"DataLoader timed out after {self.timeout} seconds waiting for worker {', '.join(map(str, candidates))}."
        )

    def receive(self, candidates: list[int], wake: int | None = None) -> tuple[int, tuple[Any, ...]]:
        """The next answer of one of these workers in this epoch, and who gave it.

        With `wake`, a descriptor, it waits without limit until that can be read: nobody (-1) gave
        an answer then.
        """
        from multiprocessing.connection import wait

        if self.broken is not None:
            raise RuntimeError(self.broken)
        limited = self.timeout > 0 and wake is None
        deadline = time.monotonic() + self.timeout if limited else None
        while True:
            ready = [i for i in candidates if self._poll(i)]
            if not ready:
                left = None if deadline is None else max(0.0, deadline - time.monotonic())
                events = [self.connections[i] for i in candidates]
                events += [self.processes[i].sentinel for i in candidates]
                events += [] if wake is None else [wake]
                happened = wait(events, left)
                if not happened:
                    raise self.timed_out(candidates)
                if wake in happened:
                    return -1, ()
                ready = [i for i in candidates if self._poll(i)]
                if not ready:
                    self._fail(candidates)
                    continue
            try:
                answer = transport.receive(self.connections[ready[0]])
            except transport.Dropped:
                self._die(ready[0])
            except BaseException:
                # Left in the middle of a message, the connection is of no more use.
                self.broken = "DataLoader: the connection to a worker was interrupted."
                self.shutdown()
                raise
            if answer[1] == self.epoch:
                return ready[0], answer

    def _poll(self, i: int) -> bool:
        try:
            return bool(self.connections[i].poll(0))
        except OSError:
            return True  # reset by the worker's death; reading says so

    def _fail(self, candidates: list[int]) -> None:
        for i in candidates:
            if not self.processes[i].is_alive() and not self._poll(i):
                self._die(i)

    def _die(self, i: int) -> NoReturn:
        """Raise what a dead worker's user must know."""
        process = self.processes[i]
        process.join(GRACE_S)
        code, pid = process.exitcode, process.pid
        if code is not None and code < 0:
            with contextlib.suppress(ValueError):
                code = f"{signal.Signals(-code).name} ({-code})"
            how = f"was killed by signal {code}"
            if "SIGKILL" in how:
                how += "; the system does that when memory runs out"
            elif "SIGBUS" in how or "SIGSEGV" in how:
                how += "; some native code it called is at fault"
        else:
            how = f"exited unexpectedly with code {code}"
        self.broken = f"DataLoader worker {i} (pid {pid}) {how}."
        self.shutdown()
        raise RuntimeError(self.broken)

    def shutdown(self) -> None:
        """End all workers and wait until they are gone. Safe to call again, and after a fork."""
        if os.getpid() != self._owner:
            return
        if self.pinner is not None:
            self.pinner.close()
        for connection in self.connections:
            # Closing says it too, unless another process happens to hold a copy.
            with contextlib.suppress(OSError):
                transport.send(connection, ("stop", self.epoch))
            connection.close()
        deadline = time.monotonic() + GRACE_S
        for process in self.processes:
            process.join(max(0.0, deadline - time.monotonic()))
            for stop in (process.terminate, process.kill):
                if process.is_alive():
                    stop()
                    process.join(1.0)
            process.close()
        self.processes.clear()
        self.connections.clear()
        if self.broken is None:
            self.broken = "DataLoader: the workers of this iteration have ended."


_PINS = "votive-pin"
_POOLS: weakref.WeakSet[Pool] = weakref.WeakSet()


def _default_method() -> str:
    """How workers start when nobody says: forked where that is the system's custom."""
    import multiprocessing
    import sys

    chosen = multiprocessing.get_start_method(allow_none=True)
    if chosen is not None:
        return chosen
    return "fork" if sys.platform.startswith("linux") else multiprocessing.get_start_method()
