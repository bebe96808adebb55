"""What quantizing did to each weight: format, bits and error, and the sums. Numbers only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field

from ..core.errors import size_text


@dataclass(frozen=True)
class Entry:
    """One weight. `mse` is the mean squared error, `relative_error` its root over that of the mean square."""

    name: str
    shape: tuple[int, ...]
    format: str
    bits_per_weight: float
    nbytes: int
    mse: float
    relative_error: float
    method: str

    @property
    def numel(self) -> int:
        rows, columns = self.shape
        return rows * columns


@dataclass
class Report:
    """What `votive.quantize_` did, weight by weight; `kept` are the names of weights that stayed as they were.

    >>> report = votive.quantize_(votive.nn.Linear(32, 4), "q8_0")
    >>> report.entries[0].format, report.bits_per_weight, report.nbytes
    ('q8_0', 8.5, 136)
    """

    entries: list[Entry] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    @property
    def numel(self) -> int:
        """How many numbers are in blocks now."""
        return sum(e.numel for e in self.entries)

    @property
    def nbytes(self) -> int:
        """The bytes of all blocks."""
        return sum(e.nbytes for e in self.entries)

    @property
    def bits_per_weight(self) -> float:
        """The mean over all numbers in blocks."""
        return 8 * self.nbytes / self.numel if self.numel else 0.0

    @property
    def mse(self) -> float:
        """The mean squared error over all numbers in blocks."""
        return sum(e.mse * e.numel for e in self.entries) / self.numel if self.numel else 0.0

    def worst(self, count: int = 5) -> list[Entry]:
        """The weights with the largest relative error, the largest first."""
        return sorted(self.entries, key=lambda e: -e.relative_error)[:count]

    def as_dict(self) -> dict[str, object]:
        """Everything as plain values, for JSON."""
        totals = {"numel": self.numel, "nbytes": self.nbytes, "bits_per_weight": self.bits_per_weight, "mse": self.mse}
        return {**totals, "tensors": [asdict(e) for e in self.entries], "kept": list(self.kept)}

    def __str__(self) -> str:
        wide = max((len(e.name) for e in self.entries), default=4)
        lines = [f"{'name':{wide}}  {'format':7}  {'bits':>6}  {'mse':>9}  {'error':>7}"]
        for e in self.entries:
            bits, error = f"{e.bits_per_weight:.3f}", f"{e.relative_error:.2%}"
            lines.append(f"{e.name:{wide}}  {e.format:7}  {bits:>6}  {e.mse:9.3g}  {error:>7}")
        lines.append(
            f"{self.numel:,} numbers in {size_text(self.nbytes)}: {self.bits_per_weight:.3f} bits each, "
            f"mean squared error {self.mse:.3g}"
        )
        if self.kept:
            lines.append(f"as they were: {', '.join(self.kept)}")
        return "\n".join(lines)
