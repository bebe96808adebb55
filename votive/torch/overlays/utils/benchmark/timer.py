"""`Timer`: runs a statement often enough to say how long it takes."""

from __future__ import annotations

import enum
import time
import timeit
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import votive

from .measurement import Measurement, TaskSpec


class Language(enum.Enum):
    """What statements are written in."""

    PYTHON = 0
    CPP = 1


def timer() -> float:
    """The time, after a GPU has done what it was given."""
    if votive.cuda.is_available():
        votive.cuda.synchronize()
    return time.perf_counter()


@contextmanager
def set_torch_threads(n: int) -> Iterator[None]:
    """Compute with `n` threads for a while."""
    before = votive.get_num_threads()
    votive.set_num_threads(n)
    try:
        yield
    finally:
        votive.set_num_threads(before)


class Timer:
    """Measures a statement with a warm-up, a number of threads, and waiting for the GPU."""

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        global_setup: str = "",
        timer: Callable[[], float] = timer,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: Language | str = Language.PYTHON,
    ) -> None:
        if not isinstance(stmt, str):
            raise ValueError("Currently only a `str` stmt is supported.")
        if language not in (Language.PYTHON, "py", "python"):
            raise NotImplementedError("Timer: statements in C++ are not compiled here; write them in Python.")
        if global_setup:
            raise ValueError("global_setup is C++ only, used for the definition of symbols; leave it out.")
        # Programs leave the import to the timer, as torch does.
        names = {**(globals or {})}
        names.setdefault("torch", __import__("torch"))
        self._timer = timeit.Timer(_plain(stmt), _plain(setup), timer, names)
        self._task_spec = TaskSpec(_plain(stmt), _plain(setup), "", label, sub_label, description, env, num_threads)

    def _measure(self, number: int) -> float:
        with set_torch_threads(self._task_spec.num_threads):
            return max(self._timer.timeit(number), 1e-9)

    def timeit(self, number: int = 1_000_000) -> Measurement:
        """One measurement of `number` runs."""
        self._measure(max(number // 100, 2))
        return Measurement(number, [self._measure(number)], self._task_spec)

    def repeat(self, repeat: int = -1, number: int = -1) -> None:
        """Of Python's timer; not here in torch either."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def autorange(self, callback: Callable[[int, float], None] | None = None) -> None:
        """Of Python's timer; not here in torch either."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def _block_size(self, min_run_time: float) -> int:
        number = 1
        self._measure(2)  # what only the first run does is not meant
        while True:
            taken = self._measure(number)
            if taken >= min_run_time / 1000 and taken > 1e-4:
                return number
            number *= 10

    def blocked_autorange(
        self, callback: Callable[[int, float], None] | None = None, min_run_time: float = 0.2
    ) -> Measurement:
        """Blocks of runs until `min_run_time` seconds have passed."""
        number = self._block_size(min_run_time)
        times: list[float] = []
        while sum(times) < min_run_time:
            times.append(self._measure(number))
            if callback is not None:
                callback(number, times[-1])
        return Measurement(number, times, self._task_spec)

    def adaptive_autorange(
        self,
        threshold: float = 0.1,
        *,
        min_run_time: float = 0.01,
        max_run_time: float = 10.0,
        callback: Callable[[int, float], None] | None = None,
    ) -> Measurement:
        """Blocks of runs until their times lie close together."""
        number = self._block_size(min_run_time)
        times: list[float] = []
        while sum(times) < max_run_time:
            times.append(self._measure(number))
            if callback is not None:
                callback(number, times[-1])
            found = Measurement(number, times, self._task_spec)
            if sum(times) > min_run_time and len(times) > 3 and found.meets_confidence(threshold):
                break
        return Measurement(number, times, self._task_spec)

    def collect_callgrind(self, *args: object, **options: object) -> None:
        """Counting instructions needs Valgrind."""
        raise NotImplementedError("collect_callgrind: instructions are not counted; use blocked_autorange.")


def _plain(text: str) -> str:
    """A statement without the indentation that it has in a program."""
    import textwrap

    return textwrap.dedent(text.lstrip("\n")).strip() or "pass"
