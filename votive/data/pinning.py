"""A thread that puts batches of workers into page-locked memory while the caller computes.

Stands between a pool of workers and an iteration, and answers as the pool does. Knows messages, not
what they are for.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from typing import Any

from .collate import pinned
from .pool import _PINS, Pool
from .worker import Failure


class PinningPool:
    """The answers of a pool, pinned ahead; one epoch long."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self._shared = _Shared(pool)
        # The thread holds what it shares, never this object: an iteration that is dropped ends it.
        self._thread = threading.Thread(target=_work, args=(self._shared,), daemon=True, name=f"{_PINS}-{pool.epoch}")
        pool.pinner = self
        self._thread.start()

    @property
    def epoch(self) -> int:
        return self.pool.epoch

    def send(self, i: int, request: tuple[Any, ...]) -> None:
        self.pool.send(i, request)

    def receive(self, candidates: list[int]) -> tuple[int, tuple[Any, ...]]:
        """The next answer of one of these workers, and who gave it."""
        shared, timeout = self._shared, self.pool.timeout
        deadline = time.monotonic() + timeout if timeout > 0 else None
        with shared.changed:
            while True:
                for i in candidates:
                    if shared.answers[i]:
                        return i, shared.answers[i].popleft()
                if shared.error is not None:
                    raise shared.error
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    raise self.pool.timed_out(candidates)
                shared.changed.wait(left)

    def close(self) -> None:
        """End the thread; the pool is nobody's then."""
        self._shared.stop()
        if self.pool.pinner is self:
            self.pool.pinner = None
        if self._thread is not threading.current_thread():
            self._thread.join()


class _Shared:
    """What the thread and its iteration both see."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.answers: list[deque[tuple[Any, ...]]] = [deque() for _ in range(len(pool))]
        self.changed = threading.Condition()
        self.error: BaseException | None = None
        self.stopped = False
        self.wake_read, self.wake_write = os.pipe()

    def stop(self) -> None:
        with self.changed:
            if not self.stopped:
                self.stopped = True
                os.write(self.wake_write, b"x")


def _work(shared: _Shared) -> None:
    try:
        everyone = list(range(len(shared.answers)))
        while not shared.stopped:
            i, answer = shared.pool.receive(everyone, wake=shared.wake_read)
            if i < 0:
                return
            kind, epoch, *rest = answer
            if kind == "batch":
                try:
                    rest[0] = pinned(rest[0])
                except Exception:
                    kind, rest = "error", [Failure.current("in pin memory thread")]
            with shared.changed:
                shared.answers[i].append((kind, epoch, *rest))
                shared.changed.notify()
            del answer, rest  # a batch must not live until the next one comes
    except BaseException as e:
        with shared.changed:
            shared.error = e
            shared.changed.notify()
    finally:
        with shared.changed:
            shared.stopped = True
            os.close(shared.wake_read)
            os.close(shared.wake_write)
