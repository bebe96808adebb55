"""Runs jobs in forked processes: a crash or hang costs one job. Knows not what jobs do."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

_FORK = multiprocessing.get_context("fork")


@dataclass
class _Worker:
    process: Any
    results: Connection
    jobs: list[str]
    since: float

    @classmethod
    def start(cls, jobs: list[str], work: Callable[[str], Any]) -> _Worker:
        receive, send = _FORK.Pipe(duplex=False)
        process = _FORK.Process(target=_serve, args=(send, jobs, work), daemon=True)
        process.start()
        send.close()
        return cls(process, receive, jobs, time.monotonic())

    def stop(self) -> None:
        self.process.kill()
        self.process.join()


def _serve(results: Connection, jobs: Sequence[str], work: Callable[[str], Any]) -> None:
    for job in jobs:
        try:
            results.send(work(job))
        except Exception as error:
            results.send(RuntimeError(f"{type(error).__name__}: {error}"))


def forked(
    jobs: Sequence[str], work: Callable[[str], Any], processes: int, seconds: float
) -> Iterator[tuple[str, Any]]:
    """(job, result) as they finish; an exception for one that raised, died or fell silent."""
    workers = [_Worker.start(list(jobs[i::processes]), work) for i in range(min(processes, len(jobs)))]
    try:
        while workers:
            wait([worker.results for worker in workers], timeout=1.0)
            for worker in list(workers):
                outcome = _next(worker, seconds)
                if outcome is None:
                    continue
                yield worker.jobs.pop(0), outcome
                if isinstance(outcome, (ChildProcessError, TimeoutError)) or not worker.jobs:
                    worker.stop()
                    workers.remove(worker)
                    if worker.jobs:
                        workers.append(_Worker.start(worker.jobs, work))
    finally:
        for worker in workers:
            worker.stop()


def _next(worker: _Worker, seconds: float) -> Any:
    """The worker's next result, an exception in its place, or None while there is nothing yet."""
    if worker.results.poll():
        worker.since = time.monotonic()
        try:
            return worker.results.recv()
        except EOFError:
            worker.process.join()
            return ChildProcessError(f"the process died with status {worker.process.exitcode}")
    if time.monotonic() - worker.since > seconds:
        return TimeoutError(f"no answer within {seconds:g} s")
    return None
