"""What a run found, as text and as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from .measure import Result

LIMITS = (1.2, 1.5, 2.0)


def mean(results: Iterable[Result]) -> float:
    """The geometric mean of the ratios."""
    logs = [math.log(r.ratio) for r in results]
    return math.exp(sum(logs) / len(logs)) if logs else math.nan


def total(results: list[Result]) -> float:
    """votive's time of all cases over torch's."""
    theirs = sum(r.torch for r in results)
    return sum(r.votive for r in results) / theirs if theirs else math.nan


def row(result: Result) -> str:
    """One case."""
    if not result.ran:
        return f"{'failed' if result.failed else 'skipped':>7}  {result.spec}: {result.failed or result.skipped}"
    text = f"{result.ratio:7.2f}  {result.votive:9.4f} ms {result.torch:9.4f} ms  {result.spec}"
    return text + (f"  DIFFERS: {result.differs}" if result.differs else "")


def _line(name: str, mine: list[Result]) -> str:
    above = "".join(f"{sum(r.ratio > limit for r in mine):7}" for limit in LIMITS)
    worst = max((r.ratio for r in mine), default=math.nan)
    return f"{name:12}{len(mine):6}{mean(mine):8.2f}{total(mine):8.2f}{worst:8.2f}{above}"


def by_kind(results: list[Result]) -> str:
    """A line per kind: cases, geometric mean, ratio of total times, the worst, how many are above the limits."""
    ran = [r for r in results if r.ran]
    lines = [f"{'kind':12}{'cases':>6}{'mean':>8}{'total':>8}{'worst':>8}" + "".join(f"{f'>{x}':>7}" for x in LIMITS)]
    kinds = sorted({r.spec.kind for r in ran})
    lines += [_line(kind, [r for r in ran if r.spec.kind == kind]) for kind in kinds]
    return "\n".join([*lines, _line("all", ran)])


def summary(results: list[Result], worst: int) -> str:
    """Worst rows, what differs or failed, the table by kind, and one sentence."""
    ran = sorted((r for r in results if r.ran), key=lambda r: -r.ratio)
    parts = []
    slow = [r for r in ran[:worst] if r.ratio > 1.0]
    if slow:
        parts.append("worst (ratio, votive, torch):\n" + "\n".join(map(row, slow)))
    for title, chosen in (("DIFFERS", [r for r in ran if r.differs]), ("failed", [r for r in results if r.failed])):
        if chosen:
            parts.append(f"{title} ({len(chosen)}):\n" + "\n".join(map(row, chosen)))
    parts.append(by_kind(results))
    shares = ", ".join(f"{100 * sum(r.ratio > x for r in ran) / max(1, len(ran)):.1f} % above {x}" for x in LIMITS)
    parts.append(
        f"{len(ran)} cases: geometric mean {mean(ran):.3f}, total time {total(ran):.2f} of torch's, {shares}; "
        f"{sum(bool(r.differs) for r in ran)} differ, {sum(bool(r.failed) for r in results)} failed"
    )
    return "\n\n".join(parts)


def record(result: Result) -> dict[str, Any]:
    """A case for JSON."""
    figures = {"votive_ms": result.votive, "torch_ms": result.torch, "ratio": result.ratio, "ratios": result.ratios}
    notes = {"differs": result.differs, "failed": result.failed, "skipped": result.skipped}
    said = {key: value for key, value in notes.items() if value}
    return {"case": str(result.spec), "kind": result.spec.kind, **figures, **said}
