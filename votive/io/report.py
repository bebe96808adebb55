"""What a load found and did not find, as a page one can read. Knows names and shapes only."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

Shape = tuple[int, ...]
_MOST = 12


@dataclass(frozen=True)
class LoadReport:
    """What `load_into` did: names loaded, missing in the file, unused in it, and wrong in shape.

    >>> report = votive.io.LoadReport(["w"], missing=["layers.0.b", "layers.1.b"])
    >>> print(report)
    1 tensor loaded, 2 missing
    missing (wanted by the module, not in the file):
      layers.*.b (2)
    """

    loaded: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)
    mismatched: list[tuple[str, Shape, Shape]] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether everything that was wanted was there, and nothing else."""
        return not (self.missing or self.unused or self.mismatched)

    def __str__(self) -> str:
        n = len(self.loaded)
        counts = [f"{n} tensor{'' if n == 1 else 's'} loaded"]
        for kind in ("missing", "unused", "mismatched"):
            if getattr(self, kind):
                counts.append(f"{len(getattr(self, kind))} {kind}")
        lines = [", ".join(counts)]
        if self.missing:
            lines.append("missing (wanted by the module, not in the file):")
            lines += _grouped(self.missing)
        if self.unused:
            lines.append("unused (in the file, unknown to the module):")
            lines += _grouped(self.unused)
        if self.mismatched:
            lines.append("mismatched (shape in the file, shape wanted):")
            lines += _grouped(f"{n}: {list(a)}, {list(b)}" for n, a, b in self.mismatched)
        return "\n".join(lines)


class LoadError(RuntimeError):
    """The weights do not fit the module; `report` says where."""

    def __init__(self, module: str, report: LoadReport) -> None:
        super().__init__(
            f"load_into: the weights do not fit {module}; nothing was changed.\n{report}\n"
            "Use renamed() or prefixed() where names differ, or strict=False to load what fits."
        )
        self.report = report


def _grouped(names: Iterable[str]) -> list[str]:
    """Names that differ only in numbers between dots, as one line each."""
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(re.sub(r"(?<=\.)\d+(?=\.)|^\d+(?=\.)", "*", name), []).append(name)
    lines = [
        f"  {members[0]}" if len(members) == 1 else f"  {pattern} ({len(members)})"
        for pattern, members in groups.items()
    ]
    if len(lines) > _MOST:
        rest = sum(len(m) for m in list(groups.values())[_MOST:])
        lines[_MOST:] = [f"  … and {rest} more"]
    return lines
