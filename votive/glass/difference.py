"""How far apart two values are. Knows tensors, not where they come from."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import votive

from ..tensor import Tensor
from . import values
from .display import Displayable

METRICS = ("relative", "max", "cosine")


@dataclass(frozen=True)
class Difference(Displayable):
    """How far apart two values at one address are.

    `relative` is the norm of the difference over the norm of the first value, `max` the largest
    difference of a number, `cosine` one minus the cosine of their angle; `error` is the one that
    was asked for. `within` tells whether it is tolerated, and `note` what else is wrong.

    >>> votive.glass.Difference("0", "0", 0.1, 0.1, 0.5, 0.0, False).within
    False
    """

    address: str
    other: str
    error: float
    relative: float
    max: float
    cosine: float
    within: bool
    note: str = ""


class Comparison:
    """Says how far apart two values are."""

    def __init__(
        self, rtol: float, atol: float, measure: str | Callable[[Tensor, Tensor], float], limit: float | None
    ) -> None:
        self.rtol, self.atol, self.measure, self.limit = rtol, atol, measure, limit

    def __call__(self, address: str, other: str, a: object, b: object) -> Difference:
        pairs = _pairs(a, b)
        if pairs is None:
            nan = math.nan
            return Difference(address, other, math.inf, nan, nan, nan, False, "shapes differ")
        with votive.no_grad():
            found = [self._one(x, y) for x, y in pairs]
        if not found:
            return Difference(address, other, 0.0, 0.0, 0.0, 0.0, True, "no tensors")
        worst = max(found, key=lambda f: f[0])
        return Difference(address, other, *worst[:4], all(f[4] for f in found))

    def _one(self, a: Tensor, b: Tensor) -> tuple[float, float, float, float, bool]:
        numbers = {"relative": _relative(a, b), "max": _largest(a, b), "cosine": _cosine(a, b)}
        error = numbers[self.measure] if isinstance(self.measure, str) else self.measure(a, b)
        if self.limit is not None:
            within = error <= self.limit
        else:
            within = bool(votive.allclose(b, a, rtol=self.rtol, atol=self.atol, equal_nan=True))
        return float(error), numbers["relative"], numbers["max"], numbers["cosine"], within


def _pairs(a: object, b: object) -> list[tuple[Any, Any]] | None:
    """Tensors that belong together, in a type that holds both; None if they do not fit."""
    ours, theirs = dict(values.tensors(a)), dict(values.tensors(b))
    if len(ours) == 1 and len(theirs) == 1:  # a bare tensor and the same inside a record
        theirs = dict(zip(ours, theirs.values(), strict=True))
    if ours.keys() != theirs.keys():
        return None
    out = []
    for path, x in ours.items():
        y = theirs[path]
        if x.shape != y.shape:
            return None
        if not x.is_complex():
            out.append((x.detach().cpu().double(), y.detach().cpu().double()))
    return out


def _difference(a: Tensor, b: Tensor) -> Tensor:
    """a - b, where equal infinities and two NaN are equal."""
    same = (a == b) | (a.isnan() & b.isnan())
    return votive.where(same, votive.zeros_like(a), a - b)


def _bad(x: float) -> float:
    return math.inf if math.isnan(x) else x


def _largest(a: Tensor, b: Tensor) -> float:
    return _bad(float(_difference(a, b).abs().max())) if a.numel() else 0.0


def _relative(a: Tensor, b: Tensor) -> float:
    off, whole = float(_difference(a, b).norm()), float(a.nan_to_num(0.0, 0.0, 0.0).norm())
    if off == 0:
        return 0.0
    return _bad(off / whole if whole else math.inf)


def _cosine(a: Tensor, b: Tensor) -> float:
    product = float((a * b).sum())
    norms = float(a.norm()) * float(b.norm())
    if norms == 0:
        return 0.0 if bool((a == b).all()) else 1.0
    return _bad(max(0.0, 1 - product / norms))
