"""Running products, recurrences and running log-sums of complex numbers: every element joins the
one 1, 2, 4 ... places before it, as many passes as the length has binary digits.
"""

from __future__ import annotations

from typing import Any

from .....core import dtype as dt
from .....core.layout import Spec
from .....formula import var
from .....formula.expr import Expr, apply
from ....common.slot import Slot
from ...programs.copy import copy_view
from ...programs.index_space import window
from ...programs.types import Run
from ...rows import cuda
from ...runtime.views import View, empty
from .products import elementwise

_A, _B, _G = (var(n) for n in "abg")  # an element, the one before it, its gain


class _Passes:
    """The passes over one layout along a dimension; `reverse`: from the end."""

    def __init__(self, spec: Spec, dim: int, reverse: bool = False) -> None:
        self.spec, self.dim, self.reverse = spec.like(spec.shape), dim, reverse
        self.size = spec.shape[dim] if spec.ndim else 1
        self.steps = [1 << k for k in range((self.size - 1).bit_length())]

    def part(self, step: int) -> Spec:
        """All but `step` elements along the dimension."""
        s = self.spec
        shape = (*s.shape[: self.dim], self.size - step, *s.shape[self.dim + 1 :])
        return s.like(shape, strides=s.strides)

    def planned(self, body: Expr, names: str) -> list[Any]:
        """A formula on such a part of as many operands, for each step."""
        out = []
        for step in self.steps:
            part = self.part(step)
            out.append(elementwise(body, names, [part] * len(names), part))
        return out

    def pair(self, v: View, step: int) -> tuple[View, View]:
        """(elements, those `step` places before them)."""
        part = self.part(step)
        far = step * self.spec.strides[self.dim]
        late = window(v, part.shape, part.strides, far)
        early = window(v, part.shape, part.strides, 0)
        return (early, late) if self.reverse else (late, early)


def _running(x: Slot, dim: int, dtype: dt.dtype, body: Expr) -> Any:
    if not x.numel or not dtype.is_complex:
        return None
    p = _Passes(x.spec.like(dtype=dtype), dim)
    combined = p.planned(body, "ab")

    def run(outs: list[View], x: View) -> None:
        now = empty(p.spec)
        copy_view(now, x)
        for step, join in zip(p.steps, combined, strict=True):
            following = empty(p.spec)
            copy_view(following, now)
            join(list(p.pair(now, step)), p.pair(following, step)[0])
            now = following
        copy_view(outs[0], now)

    return run


def _complex(x: Spec, *rest: Spec) -> bool:
    return x.dtype.is_complex


@cuda("cumprod", accepts=_complex, priority=20)
def cumprod(x: Slot, dim: int, dtype: dt.dtype) -> Run:
    return _running(x, dim, dtype, _A * _B)


@cuda("logcumsumexp", accepts=_complex, priority=20)
def logcumsumexp(x: Slot, dim: int) -> Run:
    return _running(x, dim, x.dtype, apply("logaddexp", _B, _A))


@cuda("_recurrence", accepts=_complex, priority=20)
def recurrence(gain: Slot, x: Slot, dim: int, reverse: bool) -> Run:
    if not x.numel or gain.shape != x.shape or gain.dtype is not x.dtype:
        return None
    p = _Passes(x.spec, dim, reverse)
    gains, values = p.planned(_A * _B, "ab"), p.planned(_A + _G * _B, "abg")

    def run(outs: list[View], gain: View, x: View) -> None:
        g, y = empty(p.spec), empty(p.spec)
        copy_view(g, gain)
        copy_view(y, x)
        for step, times, add in zip(p.steps, gains, values, strict=True):
            g2, y2 = empty(p.spec), empty(p.spec)
            copy_view(g2, g)
            copy_view(y2, y)
            factor, before = p.pair(g, step)
            add([*p.pair(y, step), factor], p.pair(y2, step)[0])
            times([factor, before], p.pair(g2, step)[0])
            g, y = g2, y2
        copy_view(outs[0], y)

    return run
