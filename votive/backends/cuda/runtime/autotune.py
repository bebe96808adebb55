"""Autotuning: of several functions that compute the same, the fastest is found by running them. Knows time, not
matrices.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....core.errors import CudaError
from .. import runtime as rt

# Products below this many operations take the first choice; larger ones are timed.
WORTH_TIMING = 1 << 31
ROUNDS, TIMES = 2, 3


def times(candidates: list[Callable[[], Any]]) -> list[float]:
    """Milliseconds that each candidate takes on the current stream; infinite when it raises a
    CudaError.
    """
    driver, stream = rt.runtime.driver, rt.here.stream
    begin, end = driver.new_event(True), driver.new_event(True)
    took = [float("inf")] * len(candidates)
    refused: CudaError | None = None
    out: set[int] = set()
    for _ in range(ROUNDS):
        for k, candidate in enumerate(candidates):
            if k in out:
                continue
            try:
                candidate()
            except CudaError as e:
                refused = e
                out.add(k)
                continue
            driver.record(begin, stream)
            for _ in range(TIMES):
                candidate()
            driver.record(end, stream)
            driver.wait_event(end)
            took[k] = min(took[k], driver.elapsed(begin, end))
    driver.end_event(begin)
    driver.end_event(end)
    if refused is not None and len(out) == len(candidates):
        raise refused
    return [t / TIMES for t in took]


def fastest(candidates: list[Callable[[], Any]]) -> int:
    """Which candidate takes the least time; the first, while a graph is recorded and nothing runs."""
    if rt.here.capturing:
        return 0
    took = times(candidates)
    return took.index(min(took))


class Autotuned:
    """Functions of the same arguments that write the same results over; the first call chooses.

    A candidate that the library refuses when it is called is left out for good.
    """

    def __init__(self, candidates: list[Callable[..., None]], work: int, worth: int = WORTH_TIMING) -> None:
        assert candidates
        self.candidates, self.work, self.worth = candidates, work, worth
        self.times: list[float] = []
        self.best: Callable[..., None] | None = candidates[0] if len(candidates) == 1 else None

    def __call__(self, *args: Any, **how: Any) -> None:
        if self.best is None:
            self._choose(args, how)
        else:
            self.best(*args, **how)

    def _choose(self, args: Any, how: Any) -> None:
        if self.work >= self.worth and not rt.here.capturing and not rt.runtime.driver.emulated:
            self.times = times([lambda w=w: w(*args, **how) for w in self.candidates])  # type: ignore[misc]
            self.best = self.candidates[self.times.index(min(self.times))]
            self.best(*args, **how)
            return
        for k, candidate in enumerate(self.candidates):
            try:
                candidate(*args, **how)
            except CudaError:
                if k == len(self.candidates) - 1:
                    raise
                continue
            if not rt.here.capturing:
                self.best = candidate
            return
