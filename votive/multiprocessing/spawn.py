"""Several processes that run one function, and how they end. The names are torch's."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from typing import Any


class ProcessException(Exception):
    """A process that `spawn` started did not end well."""

    def __init__(self, msg: str, error_index: int, pid: int) -> None:
        super().__init__(msg)
        self.msg, self.error_index, self.pid = msg, error_index, pid

    def __reduce__(self) -> Any:
        return type(self), (self.msg, self.error_index, self.pid)


class ProcessRaisedException(ProcessException):
    """A process raised an error, which the message shows."""


class ProcessExitedException(ProcessException):
    """A process ended by itself or by a signal."""

    def __init__(
        self, msg: str, error_index: int, error_pid: int, exit_code: int, signal_name: str | None = None
    ) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name

    def __reduce__(self) -> Any:
        return type(self), (self.msg, self.error_index, self.pid, self.exit_code, self.signal_name)


def _work(fn: Callable[..., Any], index: int, args: tuple[Any, ...], report: str) -> None:
    """In the process: run the function, and leave what went wrong in a file."""
    try:
        fn(index, *args)
    except KeyboardInterrupt:
        pass  # who pressed the keys stops the others, too
    except Exception:
        with open(report, "w", encoding="utf-8") as file:
            file.write(traceback.format_exc())
        sys.exit(1)


class ProcessContext:
    """Processes that were started together; `join` waits for them."""

    def __init__(self, processes: list[Any], error_files: list[str]) -> None:
        self.processes, self.error_files = processes, error_files
        self.sentinels = {process.sentinel: i for i, process in enumerate(processes)}

    def pids(self) -> list[int]:
        """The numbers of the processes."""
        return [int(process.pid) for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait for some of the processes; True when all have ended. One that fails ends the others and is raised."""
        if not self.sentinels:
            return True
        ready: Any = multiprocessing.connection.wait(list(self.sentinels), timeout)
        failed = None
        for sentinel in ready:
            index = self.sentinels.pop(sentinel)
            self.processes[index].join()
            if self.processes[index].exitcode != 0:
                failed = index
                break
        if failed is None:
            done = not self.sentinels
            if done:
                self._clean()
            return done
        end = time.monotonic() + (grace_period or 0)
        for process in self.processes:
            if grace_period:
                process.join(max(0.0, end - time.monotonic()))
            if process.is_alive():
                process.terminate()
            process.join()
        self._raise(failed)
        return True

    def _clean(self) -> None:
        for path in self.error_files:
            if os.path.exists(path):
                os.remove(path)

    def _raise(self, index: int) -> None:
        process = self.processes[index]
        found = ""
        if os.path.exists(self.error_files[index]):
            with open(self.error_files[index], encoding="utf-8") as file:
                found = file.read()
        self._clean()
        if found:
            text = f"\n\n-- Process {index} terminated with the following error:\n{found}"
            raise ProcessRaisedException(text, index, process.pid)
        code = process.exitcode
        if code < 0:
            name = signal.Signals(-code).name
            raise ProcessExitedException(
                f"process {index} terminated with signal {name}", index, process.pid, code, name
            )
        raise ProcessExitedException(f"process {index} terminated with exit code {code}", index, process.pid, code)


SpawnContext = ProcessContext


def start_processes(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Run `fn(i, *args)` in `nprocs` processes, i from 0; with `join`, wait for them.

    >>> votive.multiprocessing.start_processes(print, nprocs=0)
    """
    context: Any = multiprocessing.get_context(start_method)
    processes, files = [], []
    for i in range(nprocs):
        handle, path = tempfile.mkstemp(prefix="votive_process_")
        os.close(handle)
        os.remove(path)
        process = context.Process(target=_work, args=(fn, i, args, path), daemon=daemon)
        process.start()
        processes.append(process)
        files.append(path)
    made = ProcessContext(processes, files)
    if not join:
        return made
    while not made.join():
        pass
    return None


def spawn(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Run `fn(i, *args)` in `nprocs` fresh processes; the first error ends them all and is raised here.

    >>> votive.multiprocessing.spawn(print, nprocs=0)
    """
    if start_method != "spawn":
        raise ValueError(
            f"spawn starts processes by 'spawn', got start_method={start_method!r}; use start_processes for others."
        )
    return start_processes(fn, args, nprocs, join, daemon, start_method)
