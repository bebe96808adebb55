"""votive against torch on one GPU: `python -m benchmarks.compare gpu`.

Kernels are timed with events of the device, a batch of launches at a time, both sides in turns; the
figure is the median. Inputs are larger than the second-level cache or rotate.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass
class Case:
    """One row: the same work for both sides, and what counts as its speed."""

    name: str
    votive: Callable[[], Any]
    torch: Callable[[], Any] | None
    bytes: float = 0.0
    flops: float = 0.0
    target: str = ""
    check: Callable[[], float] | None = None


def _events(side: str) -> Callable[[], Any]:
    if side == "torch":
        import torch

        return lambda: torch.cuda.Event(enable_timing=True)
    import votive

    return lambda: votive.cuda.Event(enable_timing=True)


def batch_time(fn: Callable[[], Any], side: str, loops: int) -> float:
    """Milliseconds of one call, from `loops` of them between two events."""
    event = _events(side)
    begin, end = event(), event()
    begin.record()
    for _ in range(loops):
        fn()
    end.record()
    end.synchronize()
    return float(begin.elapsed_time(end)) / loops


def failure(name: str, error: Exception) -> dict[str, Any]:
    """A row that says why there is no figure."""
    return {"name": name, "failed": f"{type(error).__name__}: {error}"[:400]}


def measure(case: Case, rounds: int = 7, budget_ms: float = 60.0) -> dict[str, Any]:
    """Times of both sides in turns."""
    row: dict[str, Any] = {"name": case.name, "target": case.target}
    try:
        if case.check is not None:
            row["error"] = case.check()
        sides = [("votive", case.votive)] + ([("torch", case.torch)] if case.torch else [])
        loops = {}
        for side, fn in sides:
            for _ in range(3):
                fn()
            one = batch_time(fn, side, 3)
            loops[side] = max(3, min(200, int(budget_ms / rounds / max(one, 1e-3))))
        times: dict[str, list[float]] = {side: [] for side, _ in sides}
        for _ in range(rounds):
            for side, fn in sides:
                times[side].append(batch_time(fn, side, loops[side]))
        for side, found in times.items():
            row[side] = statistics.median(found)
        if case.torch:
            ratios = [a / b for a, b in zip(times["votive"], times["torch"], strict=True)]
            row["ratio"], row["low"], row["high"] = (statistics.median(ratios), min(ratios), max(ratios))
    except Exception as e:  # one row that fails must not hide the others
        row |= failure(case.name, e)
    for side in ("votive", "torch"):
        if side in row and case.bytes:
            row[side + "_rate"] = f"{case.bytes / row[side] / 1e9:.2f} TB/s"
        elif side in row and case.flops:
            row[side + "_rate"] = f"{case.flops / row[side] / 1e9:.0f} TFLOP/s"
    return row


def show(row: dict[str, Any]) -> str:
    """One line of the table."""
    if "failed" in row:
        return f"{row['name']:44} failed: {row['failed']}"
    text = f"{row['name']:44} {row['votive']:9.4f} ms {row.get('votive_rate', ''):>12}"
    if "torch" in row:
        text += f"   torch {row['torch']:9.4f} ms {row.get('torch_rate', ''):>12}"
        text += f"   ratio {row['ratio']:.2f} ({row['low']:.2f}..{row['high']:.2f})"
    if "error" in row:
        text += f"   error {row['error']:.1e}"
    return text + (f"   wanted {row['target']}" if row["target"] else "")
