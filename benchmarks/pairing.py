"""Measures two callables against each other so that both see the same state of the machine.

Blocks of the two alternate. Each begins with a call that is not timed, which fills the caches that
the other side used; between them is a pause, since idle threads spin for a while: those of votive
about half a millisecond, those of torch's OpenMP nine, in which they hold a core. The figure is the
best block of each side, its spread the ratios of neighbouring blocks.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

PAUSES = (0.002, 0.012)  # after a block of votive, of torch
BLOCK_US = 4_000.0


@dataclass
class Row:
    """One comparison: best times in microseconds, and how much the ratio varied."""

    name: str
    votive_us: float
    torch_us: float
    ratio: float
    low: float
    high: float
    suite: str = ""
    error: str = ""


def _block(fn: Callable[[], object], loops: int, clock: Callable[[], float] = time.perf_counter) -> float:
    fn()
    start = clock()
    for _ in range(loops):
        fn()
    return (clock() - start) / loops * 1e6


def pair(
    name: str,
    votive: Callable[[], object],
    torch: Callable[[], object],
    rounds: int = 25,
    seconds: float = math.inf,
    least: int = 3,
    clock: Callable[[], float] = time.perf_counter,
) -> Row:
    """Alternate blocks of both: `rounds` of them, or fewer (not below `least`) in `seconds`.

    With `time.process_time` as the clock, and one thread, others on the machine disturb less.
    """
    began = time.perf_counter()
    sides: tuple[tuple[Callable[[], object], list[float]], ...] = ((votive, []), (torch, []))
    counts = []
    for fn, _ in sides:
        fn()
        once = _block(fn, 1, clock)
        # What is quick is slower at first; ask again before deciding how often to call it.
        once = min(once, _block(fn, max(1, int(500 / once)), clock)) if once < 500 else once
        counts.append(max(1, int(BLOCK_US / once)))
    before = 1
    for i in range(rounds):
        if i >= least and time.perf_counter() - began > seconds:
            break
        for k in (0, 1) if i % 2 else (1, 0):
            time.sleep(PAUSES[before])
            before = k
            sides[k][1].append(_block(sides[k][0], counts[k], clock))
    ours, theirs = sides[0][1], sides[1][1]
    ratios = sorted(a / b for a, b in zip(ours, theirs, strict=True))
    tenth = len(ratios) // 10
    best = min(ours), min(theirs)
    return Row(name, *best, best[0] / best[1], ratios[tenth], ratios[-1 - tenth])


def mean_ratio(rows: Iterable[Row]) -> float:
    """The geometric mean of the ratios of rows that ran.

    >>> round(mean_ratio([Row("a", 1, 2, 0.5, 0, 0), Row("b", 2, 1, 2.0, 0, 0)]), 6)
    1.0
    """
    logs = [math.log(r.ratio) for r in rows if not r.error]
    return math.exp(sum(logs) / len(logs)) if logs else math.nan


def table(rows: list[Row]) -> str:
    """Rows as text; a ratio below 1 means that votive is faster."""
    width = max(len(r.name) for r in rows)
    lines = [f"{'':{width}}   votive us    torch us   ratio  (10%..90% of rounds)"]
    for r in rows:
        if r.error:
            lines.append(f"{r.name:{width}}  {r.error}")
            continue
        lines.append(
            f"{r.name:{width}}  {r.votive_us:10.2f}  {r.torch_us:10.2f}  {r.ratio:6.2f}  ({r.low:.2f}..{r.high:.2f})"
        )
    return "\n".join(lines)


def report(rows: list[Row], path: Path | None = None) -> None:
    """Print a table; optionally write JSON."""
    print(table(rows))
    if path is not None:
        path.write_text(json.dumps([asdict(r) for r in rows], indent=2))
