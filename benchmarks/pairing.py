"""Measures two callables against each other so that both see the same state of the machine."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass
class Row:
    """One comparison: best times in microseconds, and the ratios of all rounds."""

    name: str
    votive_us: float
    torch_us: float
    ratio: float
    low: float
    high: float


def _block(fn: Callable[[], object], loops: int) -> float:
    start = time.perf_counter()
    for _ in range(loops):
        fn()
    return (time.perf_counter() - start) / loops * 1e6


def pair(
    name: str, votive: Callable[[], object], torch: Callable[[], object], rounds: int = 25
) -> Row:
    """Alternate short blocks of both; the ratio of a round compares neighbours in time."""
    loops = max(1, int(5_000 / max(_block(votive, 20), _block(torch, 20))))
    for fn in (votive, torch):
        _block(fn, loops)
    ours, theirs = [], []
    for i in range(rounds):
        order = ((votive, ours), (torch, theirs))
        for fn, times in order if i % 2 else order[::-1]:
            times.append(_block(fn, loops))
    ratios = sorted(a / b for a, b in zip(ours, theirs, strict=True))
    n = len(ratios)
    return Row(
        name, min(ours), min(theirs), statistics.median(ratios), ratios[n // 10], ratios[-n // 10]
    )


def report(rows: list[Row], path: Path | None = None) -> None:
    """Print a table; ratio below 1 means votive is faster. Optionally write JSON."""
    width = max(len(r.name) for r in rows)
    print(f"{'':{width}}  votive us   torch us   ratio  (10%..90% of rounds)")
    for r in rows:
        print(
            f"{r.name:{width}}  {r.votive_us:9.2f}  {r.torch_us:9.2f}  {r.ratio:6.2f}  "
            f"({r.low:.2f}..{r.high:.2f})"
        )
    if path is not None:
        path.write_text(json.dumps([asdict(r) for r in rows], indent=2))
