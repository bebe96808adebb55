"""Regions without a kernel of their own: each result by the device's elementwise kernels, one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .base import Bound, Request, Row


@dataclass(frozen=True, kw_only=True)
class SeparateRow(Row):
    """Computes the results of a region one by one."""

    def bind(self, request: Request) -> Bound:
        return separate(request)


def separate(request: Request) -> Bound:
    """A kernel that calls one for each result."""
    region, specs = request.args[1], request.specs
    backend = request.backend
    kernels: list[Any] = []
    for i, out in enumerate(region.outs):
        formula, order = region.formula(i)
        names = list(formula.params)
        roles, inputs = [region.roles[k] for k in order], [specs[k] for k in order]
        compute, _ = backend.pointwise(formula, names, roles, inputs, out, backend.empty)
        kernels.append((compute, order, out))

    def run(values: list[Any]) -> tuple[Any, ...]:
        return tuple([(*compute(*[values[k] for k in order]), out) for compute, order, out in kernels])

    return Bound(run)
