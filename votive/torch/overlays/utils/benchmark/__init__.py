"""`torch.utils.benchmark`: measuring statements, and tables of measurements side by side."""

from __future__ import annotations

import enum
from collections.abc import Iterable

from .fuzzer import FuzzedParameter, FuzzedTensor, Fuzzer, ParameterAlias
from .measurement import Measurement, TaskSpec, ordered_unique, select_unit, trim_sigfig, unit_to_english
from .timer import Language, Timer, set_torch_threads, timer

__all__ = [
    "Colorize",
    "Compare",
    "FuzzedParameter",
    "FuzzedTensor",
    "Fuzzer",
    "Language",
    "Measurement",
    "ParameterAlias",
    "TaskSpec",
    "Timer",
    "ordered_unique",
    "select_unit",
    "set_torch_threads",
    "timer",
    "trim_sigfig",
    "unit_to_english",
]


class Colorize(enum.Enum):
    """How tables are coloured; here they are not."""

    NONE = "none"
    COLUMNWISE = "columnwise"
    ROWWISE = "rowwise"


class Compare:
    """A table per label: what was measured in rows, descriptions in columns, sorted by threads."""

    def __init__(self, results: Iterable[Measurement]) -> None:
        self._results = list(results)
        self._trim = False

    def extend_results(self, results: Iterable[Measurement]) -> None:
        """Add measurements."""
        for result in results:
            if not isinstance(result, Measurement):
                raise ValueError(f"Expected an instance of `Measurement`, got {type(result)} instead.")
        self._results.extend(results)

    def trim_significant_figures(self) -> None:
        """Show only digits that mean something."""
        self._trim = True

    def colorize(self, rowwise: bool = False) -> None:
        """Ask for colours, which tables do not have here."""
        raise NotImplementedError("colorize: tables have no colours here; leave it out.")

    def highlight_warnings(self) -> None:
        """Mark wide spreads, which the measurements themselves say."""
        raise NotImplementedError("highlight_warnings: print the measurements, which say how wide they spread.")

    def _table(self, results: list[Measurement]) -> str:
        unit, scale = select_unit(min(m.median for m in results))
        columns = ordered_unique(m.task_spec.description or "" for m in results)
        rows = ordered_unique((m.task_spec.num_threads, m.env, m.as_row_name) for m in results)
        cells: dict[tuple[object, str], str] = {}
        for m in results:
            value = m.median / scale
            if self._trim:
                value = trim_sigfig(value, m.significant_figures)
            key = (m.task_spec.num_threads, m.env, m.as_row_name)
            cells[key, m.task_spec.description or ""] = f"{value:.1f}"
        left = max(len(name) for *_, name in rows) + 6
        widths = [max(len(c), *(len(cells.get((row, c), "")) for row in rows)) for c in columns]
        head = " " * left + "  |" + "|".join(f"  {c:^{w}}  " for c, w in zip(columns, widths, strict=True))
        title = results[0].task_spec.label or results[0].task_spec.stmt
        lines = [f"[{f' {title} ':-^{len(head) - 2}}]", head]
        threads = None
        for row in rows:
            if row[0] != threads:
                threads = row[0]
                lines.append(f"{threads} threads: ".ljust(len(head), "-"))
            body = "|".join(f"  {cells.get((row, c), ''):>{w}}  " for c, w in zip(columns, widths, strict=True))
            lines.append(f"{row[2]:>{left}}  |{body}".rstrip())
        return "\n".join([*lines, "", f"Times are in {unit_to_english(unit)}s ({unit}).", ""])

    def __str__(self) -> str:
        merged = Measurement.merge(self._results)
        labels = ordered_unique(m.task_spec.label for m in merged)
        return "\n".join(self._table([m for m in merged if m.task_spec.label == label]) for label in labels)

    def print(self) -> None:
        """Print the tables."""
        print(str(self))
