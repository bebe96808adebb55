"""Regions: several elementwise calls as one, with as many results as anybody looks at. The compiler makes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..core.dtype import dtype
from ..core.layout import Spec
from ..formula import Expr, Formula
from .registry import structured


@dataclass(frozen=True, eq=False)
class Region:
    """Expressions over the same elements. Every operand is read once, every result written once.

    `roles` are those of a plan of one formula: per operand its dtype, the type it is computed in, and what it is
    rounded to before, or None.
    """

    name: str
    params: tuple[str, ...]
    roles: tuple[tuple[dtype, dtype, dtype | None], ...]
    bodies: tuple[Expr, ...]
    outs: tuple[Spec, ...]
    covers: tuple[str, ...] = ()  # the calls it stands for, for readers

    @property
    def shape(self) -> tuple[int, ...]:
        return self.outs[0].shape

    def formula(self, i: int) -> tuple[Formula, list[int]]:
        """Result `i` alone: its formula, and which operands it reads."""
        from ..formula.expr import variables

        used = variables(self.bodies[i])
        order = [k for k, p in enumerate(self.params) if p in used]
        return Formula(f"{self.name}_{i}", tuple(self.params[k] for k in order), self.bodies[i]), order

    def __repr__(self) -> str:
        return f"<region {self.name}: {', '.join(self.covers)}>"


@dataclass(frozen=True, eq=False)
class RowRegion:
    """A region whose rows are reduced on the way: sums, means and extremes along the last dimension.

    Reductions are (name, kind, expression) in an order in which each reads only those before it, by name. Results are
    expressions of operands and reductions; `rows` says which are one number for each row.
    """

    name: str
    params: tuple[str, ...]
    roles: tuple[tuple[dtype, dtype, dtype | None], ...]
    reductions: tuple[tuple[str, str, Expr], ...]
    bodies: tuple[Expr, ...]
    rows: tuple[bool, ...]
    outs: tuple[Spec, ...]  # of rows with or without a last dimension of one
    shape: tuple[int, ...]
    covers: tuple[str, ...] = ()

    @property
    def compute(self) -> dtype:
        """The type that is computed in."""
        return self.roles[0][1]

    def __repr__(self) -> str:
        return f"<rows {self.name}: {', '.join(self.covers)}>"


def _infer(inputs: Any, region: Region) -> tuple[Spec, ...]:
    return region.outs


structured(
    "_region(Tensor[] inputs, object region)",
    own_process=True,
    infer=_infer,
    differentiable=False,
    n_out=2,
    doc="Several elementwise calls as one kernel, see `ops.region.Region`.",
)

structured(
    "_row_region(Tensor like, Tensor[] inputs, object region)",
    own_process=True,
    infer=lambda like, inputs, region: region.outs,
    differentiable=False,
    n_out=2,
    doc="Elementwise calls and reductions of rows as one kernel, see `ops.region.RowRegion`; `like` has its shape.",
)
