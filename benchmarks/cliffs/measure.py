"""Runs a case in both libraries: agreement once, then times in turns. Suspects are measured again, later."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from ..pairing import PAUSES, pair
from .check import disagreement
from .family import Family, families
from .side import Side, work_of
from .spec import Spec

SUSPECT = 1.2
SLOW = 0.25  # seconds of one call from which on it is timed once


@dataclass
class Result:
    """Times of one case in milliseconds, and what was wrong with it."""

    spec: Spec
    votive: float = 0.0
    torch: float = 0.0
    ratio: float = 0.0
    differs: str = ""
    failed: str = ""
    skipped: str = ""  # torch has no such kernel
    ratios: list[float] = field(default_factory=list)  # of every measurement, the first one first

    @property
    def ran(self) -> bool:
        """Whether there is a figure."""
        return not self.failed and not self.skipped


def _error(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0][:160]


class TorchLacks(Exception):
    """torch cannot run a case, so there is nothing to compare with."""


class Pair:
    """Both sides of a case, ready to be timed."""

    def __init__(self, spec: Spec, device: str):
        self.family: Family = families()[spec.kind]
        self.spec, self.device = spec, device
        self.work: dict[str, Callable[[], Any]] = {}
        try:
            self.work["torch"] = self._build("torch")
            self.work["torch"]()
        except (RuntimeError, NotImplementedError) as e:
            raise TorchLacks(_error(e)) from e
        self.work["votive"] = self._build("votive")

    def side(self, name: str, exact: bool = False) -> Side:
        """One framework's part."""
        return Side(import_module(name), self.device, self.spec, exact)

    def _build(self, name: str) -> Callable[[], Any]:
        side = self.side(name)
        return work_of(side, self.family.build(side))

    def disagreement(self) -> str:
        """Empty where both compute the same."""
        ours, theirs = self.work["votive"](), self.work["torch"]()
        return disagreement(self.spec, self.family, ours, theirs, lambda: self.side("torch", exact=True))

    def times(self, rounds: int, seconds: float) -> tuple[float, float]:
        """Milliseconds of votive and of torch."""
        if self.device == "cpu":
            # One thread's own time does not see who else is on the machine.
            clock = time.process_time if import_module("votive").get_num_threads() == 1 else time.perf_counter
            row = pair("", self.work["votive"], self.work["torch"], rounds, seconds, 2, clock)
            return row.votive_us / 1e3, row.torch_us / 1e3
        return _device_times(self.work["votive"], self.work["torch"], rounds, seconds)

    def once(self) -> float:
        """Seconds of the slower side's second call."""
        worst = 0.0
        for name, fn in self.work.items():
            wait = _waiting(name) if self.device != "cpu" else (lambda: None)
            wait()
            began = time.perf_counter()
            fn()
            wait()
            worst = max(worst, time.perf_counter() - began)
        return worst


def _waiting(name: str) -> Callable[[], Any]:
    wait: Callable[[], Any] = import_module(name).cuda.synchronize
    return wait


def _device_times(
    votive: Callable[[], Any], torch: Callable[[], Any], rounds: int, seconds: float
) -> tuple[float, float]:
    """Wall time of several calls and the wait for the device: a user waits for launches, too. Medians of rounds."""
    sides = ((votive, _waiting("votive")), (torch, _waiting("torch")))

    def block(fn: Callable[[], Any], wait: Callable[[], Any], loops: int) -> float:
        wait()
        began = time.perf_counter()
        for _ in range(loops):
            fn()
        wait()
        return (time.perf_counter() - began) / loops * 1e3

    began = time.perf_counter()
    loops = []
    for fn, wait in sides:
        block(fn, wait, 3)
        loops.append(max(3, min(200, int(3.0 / max(block(fn, wait, 5), 1e-3)))))
    found: tuple[list[float], list[float]] = [], []
    for i in range(rounds):
        if i >= 3 and time.perf_counter() - began > seconds:
            break
        for k in (0, 1) if i % 2 else (1, 0):
            found[k].append(block(*sides[k], loops[k]))
    return statistics.median(found[0]), statistics.median(found[1])


def first_look(spec: Spec, device: str) -> Result:
    """Agreement and a quick measurement; what fails becomes a result that says so."""
    result = Result(spec)
    try:
        both = Pair(spec, device)
        result.differs = both.disagreement()
        if both.once() > SLOW:
            once = [_single(both, name) for name in ("votive", "torch")]
            result.votive, result.torch = once[0] * 1e3, once[1] * 1e3
        else:
            result.votive, result.torch = both.times(6, 0.1)
        result.ratio = result.votive / result.torch
        result.ratios.append(result.ratio)
    except TorchLacks as e:
        result.skipped = str(e)
    except Exception as e:  # one case that fails must not hide the others
        result.failed = _error(e)
    return result


def _single(both: Pair, name: str) -> float:
    wait = _waiting(name) if both.device != "cpu" else (lambda: time.sleep(PAUSES[1]))
    wait()
    began = time.perf_counter()
    both.work[name]()
    if both.device != "cpu":
        wait()
    return time.perf_counter() - began


def look_again(result: Result, device: str, seconds: float = 0.35) -> None:
    """Measure a suspect once more with more rounds; its figure is then the median of the measurements after the first.

    The first was what made it suspect, so it would bias the figure.
    """
    try:
        ours, theirs = Pair(result.spec, device).times(20, seconds)
    except Exception as e:
        result.failed = _error(e)
        return
    result.ratios.append(ours / theirs)
    again = result.ratios[1:]
    middle = statistics.median_low(again)
    if len(again) == 1 or ours / theirs == middle:
        result.votive, result.torch = ours, theirs
    result.ratio = middle
