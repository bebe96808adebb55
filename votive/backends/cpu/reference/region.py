"""Regions on the CPU: result by result, and reductions of rows one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ....core.layout import Spec
from ....formula import Expr, Formula
from ....formula.expr import variables
from ...base import Bound, Request, Row, add_row
from ...region import SeparateRow, separate

add_row(SeparateRow(op="_region", device="cpu", fn=separate))

_REDUCE: dict[str, Any] = {"sum": np.sum, "mean": np.mean, "amax": np.max, "amin": np.min}


@dataclass(frozen=True, kw_only=True)
class SeparateRows(Row):
    """Computes what is reduced, the reductions and the results one by one."""

    def bind(self, request: Request) -> Bound:
        return rows_apart(request)


def rows_apart(request: Request) -> Bound:
    """A kernel that calls one for each expression."""
    region, (like, *specs) = request.args[2], request.specs
    backend = request.backend
    given = dict(zip(region.params, zip(region.roles, specs, strict=True), strict=True))
    full = like.like(region.shape, dtype=region.compute)
    row = like.like((*region.shape[:-1], 1), dtype=region.compute)
    role = (region.compute, region.compute, None)

    def bound(body: Expr, out: Spec) -> tuple[Any, list[str]]:
        used = variables(body)
        names = [n for n in given if n in used]
        formula = Formula(region.name, tuple(names), body)
        roles, inputs = [given[n][0] for n in names], [given[n][1] for n in names]
        return backend.pointwise(formula, names, roles, inputs, out, backend.empty)[0], names

    steps = []
    for name, kind, body in region.reductions:
        steps.append((name, _REDUCE[kind], *bound(body, full)))
        given[name] = role, row
    results = []
    for body, is_row, out in zip(region.bodies, region.rows, region.outs, strict=True):
        shape = (*region.shape[:-1], 1) if is_row else region.shape
        results.append((*bound(body, out if out.shape == shape else out.like(shape)), out))

    def run(like: Any, values: list[Any]) -> tuple[Any, ...]:
        known = dict(zip(region.params, values, strict=True))
        for name, reduce, compute, names in steps:
            data = compute(*[known[n] for n in names])[1]
            known[name] = np.ascontiguousarray(reduce(data, axis=-1, keepdims=True))
        found = []
        for compute, names, out in results:
            storage, data = compute(*[known[n] for n in names])
            found.append((storage, data.reshape(out.shape), out))
        return tuple(found)

    return Bound(run)


add_row(SeparateRows(op="_row_region", device="cpu", fn=rows_apart))
