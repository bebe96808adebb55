"""Several ways to the same product: which one is fastest is found by running them. Knows time, not
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


def times(ways: list[Callable[[], Any]]) -> list[float]:
    """Milliseconds that each way takes on the current stream; infinite when it raises a
    CudaError.
    """
    driver, stream = rt.runtime.driver, rt.here.stream
    begin, end = driver.new_event(True), driver.new_event(True)
    took = [float("inf")] * len(ways)
    refused: CudaError | None = None
    out: set[int] = set()
    for _ in range(ROUNDS):
        for k, way in enumerate(ways):
            if k in out:
                continue
            try:
                way()
            except CudaError as e:
                refused = e
                out.add(k)
                continue
            driver.record(begin, stream)
            for _ in range(TIMES):
                way()
            driver.record(end, stream)
            driver.wait_event(end)
            took[k] = min(took[k], driver.elapsed(begin, end))
    driver.end_event(begin)
    driver.end_event(end)
    if refused is not None and len(out) == len(ways):
        raise refused
    return [t / TIMES for t in took]


def fastest(ways: list[Callable[[], Any]]) -> int:
    """Which way takes the least time; the first, while a graph is recorded and nothing runs."""
    if rt.here.capturing:
        return 0
    took = times(ways)
    return took.index(min(took))


class Ways:
    """Functions of the same arguments that write the same results over; the first call chooses.

    A way that the library refuses when it is called is left out for good.
    """

    def __init__(self, ways: list[Callable[..., None]], work: int) -> None:
        assert ways
        self.ways, self.work = ways, work
        self.times: list[float] = []
        self.best: Callable[..., None] | None = ways[0] if len(ways) == 1 else None

    def __call__(self, *args: Any, **how: Any) -> None:
        if self.best is None:
            self._choose(args, how)
        else:
            self.best(*args, **how)

    def _choose(self, args: Any, how: Any) -> None:
        if self.work >= WORTH_TIMING and not rt.here.capturing and not rt.runtime.driver.emulated:
            self.times = times([lambda w=w: w(*args, **how) for w in self.ways])  # type: ignore[misc]
            self.best = self.ways[self.times.index(min(self.times))]
            self.best(*args, **how)
            return
        for k, way in enumerate(self.ways):
            try:
                way(*args, **how)
            except CudaError:
                if k == len(self.ways) - 1:
                    raise
                continue
            if not rt.here.capturing:
                self.best = way
            return
