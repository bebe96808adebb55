"""What a measurement says: times per run, their median and spread, and how many digits of it mean something."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Iterable, Iterator
from typing import Any

_UNITS = ((1e-9, "ns", "nanosecond"), (1e-6, "us", "microsecond"), (1e-3, "ms", "millisecond"), (1.0, "s", "second"))
_SPREAD_OF_NOTE = 0.1


def select_unit(t: float) -> tuple[str, float]:
    """The unit that a time is best written in, and its seconds.

    >>> select_unit(3e-5)
    ('us', 1e-06)
    """
    power = min(max(math.floor(math.log10(t) / 3), -3), 0) if t > 0 else -3
    scale, short, _ = _UNITS[power + 3]
    return short, scale


def unit_to_english(u: str) -> str:
    """The word for a unit."""
    return {short: word for _, short, word in _UNITS}[u]


def trim_sigfig(x: float, n: int) -> float:
    """A number with its first `n` digits."""
    if n != int(n):
        raise ValueError("Number of significant figures must be an integer")
    magnitude = math.ceil(math.log10(abs(x))) if x else 0
    scale = 10.0 ** (magnitude - n)
    return float(round(x / scale) * scale)


def ordered_unique(elements: Iterable[Any]) -> list[Any]:
    """Each element once, in the order in which they came."""
    return list(dict.fromkeys(elements))


@dataclasses.dataclass(init=True, repr=False, eq=True, frozen=True)
class TaskSpec:
    """What is measured."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        if self.label is not None:
            return self.label + (f": {self.sub_label}" if self.sub_label else "")
        return self.stmt if "\n" not in self.stmt else f"stmt:{self.sub_label or ''}\n{self.stmt}"

    def setup_str(self) -> str:
        """What is done first, unless it is nothing."""
        return "" if self.setup in ("pass", "") else f"setup: {self.setup}"


@dataclasses.dataclass(init=True, repr=False)
class Measurement:
    """Times of one statement; `median`, `mean` and `iqr` are seconds per run."""

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = None

    @property
    def times(self) -> list[float]:
        return [t / self.number_per_run for t in self.raw_times]

    @property
    def median(self) -> float:
        return statistics.median(self.times)

    @property
    def mean(self) -> float:
        return statistics.fmean(self.times)

    def _quarters(self) -> tuple[float, float]:
        ordered = sorted(self.times)

        def at(q: float) -> float:
            place = q * (len(ordered) - 1)
            low = math.floor(place)
            high = min(low + 1, len(ordered) - 1)
            return ordered[low] + (place - low) * (ordered[high] - ordered[low])

        return at(0.25), at(0.75)

    @property
    def iqr(self) -> float:
        """From the first quarter to the last."""
        low, high = self._quarters()
        return high - low

    @property
    def significant_figures(self) -> int:
        """How many digits the spread leaves."""
        if len(self.times) < 2 or not self.iqr:
            return 3 if len(self.times) < 2 else 4
        width = max(self.iqr / math.sqrt(len(self.times)) * 1.57, 1e-12)
        return min(max(math.floor(math.log10(self.median / width)), 1), 4)

    @property
    def has_warnings(self) -> bool:
        """Whether the times spread widely."""
        return len(self.times) > 1 and self.iqr / self.median > _SPREAD_OF_NOTE

    @property
    def title(self) -> str:
        return self.task_spec.title

    @property
    def env(self) -> str:
        return self.task_spec.env or "Unspecified env"

    @property
    def as_row_name(self) -> str:
        return self.task_spec.sub_label or self.task_spec.stmt or "[Unknown]"

    def __getattr__(self, name: str) -> Any:
        if name in ("stmt", "setup", "label", "sub_label", "description", "num_threads"):
            return getattr(self.task_spec, name)
        raise AttributeError(name)

    def meets_confidence(self, threshold: float = _SPREAD_OF_NOTE) -> bool:
        """Whether the times lie close together."""
        return len(self.times) > 1 and self.iqr / self.median < threshold

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """Measurements of the same thing as one."""
        groups: dict[TaskSpec, list[Measurement]] = {}
        for m in measurements:
            groups.setdefault(m.task_spec, []).append(m)
        made = []
        for spec, group in groups.items():
            n = group[0].number_per_run
            made.append(Measurement(n, [t * n for m in group for t in m.times], spec, None))
        return made

    def _lines(self) -> Iterator[str]:
        yield f"<torch.utils.benchmark.utils.common.Measurement object at {hex(id(self))}>"
        yield self.title
        if self.task_spec.description:
            yield self.task_spec.description
        if self.task_spec.setup_str():
            yield self.task_spec.setup_str()
        unit, scale = select_unit(self.median)
        if len(self.times) == 1:
            yield f"  {self.median / scale:.2f} {unit}"
        else:
            low, high = self._quarters()
            yield f"  Median: {self.median / scale:.2f} {unit}"
            yield f"  IQR:    {self.iqr / scale:.2f} {unit} ({low / scale:.2f} to {high / scale:.2f})"
        count, runs = len(self.times), self.number_per_run
        threads = self.task_spec.num_threads
        yield (
            f"  {count} measurement{'s' if count > 1 else ''}, {runs} runs {'per measurement,' if count > 1 else ','} "
            f"{threads} thread{'s' if threads > 1 else ''}"
        )
        if self.has_warnings:
            yield f"  WARNING: Interquartile range is {self.iqr / self.median * 100:.1f}% of the median measurement."

    def __repr__(self) -> str:
        return "\n".join(self._lines())
