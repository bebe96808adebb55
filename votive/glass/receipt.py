"""What edits did: how often, how much they changed, and whether it reached the result.

Knows numbers, and neither models nor runs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import votive

from ..tensor import Tensor
from .display import Displayable


@dataclass
class Fired:
    """What happened at one address."""

    times: int = 0
    largest: float = 0.0  # change of a single number
    # Norm of the change over the norm of the value, at its largest; inf where that was 0.
    relative: float = 0.0
    measured: bool = False  # whether the two above are known: a skip or swap has no old value
    # Whether anything of the result is computed from what was changed; None: not known.
    reached: bool | None = None
    why: str = ""  # what is to be said about that

    def add(self, largest: float, relative: float) -> None:
        """One more change of this size."""
        self.measured = True
        # A change to NaN is larger than any, and stays.
        self.largest = max(self.largest, largest, key=_rank)
        self.relative = max(self.relative, relative, key=_rank)

    def __str__(self) -> str:
        size = "change not measured"
        if self.measured:
            size = f"largest change {self.largest:.4g}  relative {self.relative:.4g}"
        verdict = {True: "reaches the result", False: "does not reach the result"}
        if self.why:
            size += f"  {verdict.get(self.reached, 'may not reach the result')}: {self.why}"  # type: ignore[arg-type]
        return f"fired {self.times}  {size}"


def _rank(number: float) -> float:
    return math.inf if math.isnan(number) else number


def size_of_change(old: Tensor, new: Tensor) -> tuple[float, float]:
    """The largest change of a number, and the norm of the change over that of the old value.

    >>> from votive.glass.receipt import size_of_change
    >>> size_of_change(votive.tensor([3.0, 4.0]), votive.tensor([3.0, 9.0]))
    (5.0, 1.0)
    """
    if not old.numel():
        return 0.0, 0.0
    same = (new == old) | ((new != new) & (old != old))
    wide = votive.complex128 if old.is_complex() else votive.float64
    # Where a mask is minus infinity before and after, nothing has changed.
    change = (new.to(wide) - old.to(wide)).masked_fill(same, 0.0)
    norm = float(old.to(wide).masked_fill(~old.isfinite(), 0.0).abs().norm())
    size = float(change.abs().norm())
    if not norm:
        return float(change.abs().max()), math.inf if size else 0.0
    return float(change.abs().max()), size / norm


@dataclass
class Receipt(Displayable):
    """What a patch did: by address, how often it fired, how much it changed, and for whom."""

    sites: dict[str, Fired] = field(default_factory=dict)
    edits: list[dict[str, int]] = field(default_factory=list)  # per edit: address -> times

    @property
    def fired(self) -> int:
        """How often anything was changed."""
        return sum(s.times for s in self.sites.values())

    def __str__(self) -> str:
        return "\n".join(f"{a or '(model)'}  {s}" for a, s in self.sites.items()) or ("nothing was changed")
