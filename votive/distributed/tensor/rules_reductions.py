"""Reductions: along a dimension that is cut, what each rank has is a part of the result."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...ops.registry import F
from ...tensor import Tensor
from ..device_mesh import DeviceMesh
from .placement_types import Partial, Placement
from .rules import listed
from .ways import Call, P, Way, rule


def _reduced(c: Call) -> tuple[tuple[int, ...], bool]:
    return listed(c.dim, len(c.shapes()[0])), bool(getattr(c, "keepdim", False))


def kept(c: Call) -> list[Way]:
    """A way for each dimension that is left."""
    dims, keepdim = _reduced(c)
    found, at = [], 0
    for d in range(len(c.shapes()[0])):
        if d in dims:
            at += keepdim
            continue
        found.append(c.way({0: d}, [at] * len(c.outs)))
        at += 1
    return found


def _with(c: Call, part: Placement) -> list[Way]:
    dims, _ = _reduced(c)
    return [*kept(c), *(c.way({0: d}, [part]) for d in dims)]


@rule("reduces")
def reduces(c: Call) -> list[Way]:
    return kept(c)


@rule("reduces by sum")
def reduces_by_sum(c: Call) -> list[Way]:
    return [*_with(c, P), Way((P,), (P,))] if c.op.name == "sum" else _with(c, P)


def _mean(c: Call, local: Sequence[Any], ways: Sequence[Way], mesh: DeviceMesh) -> Tensor:
    """This rank's share of a mean."""
    x, dim, keepdim, dtype = local
    dims, _ = _reduced(c)
    whole = math.prod(c.shapes()[0][d] for d in dims)
    mine = math.prod(x._spec.shape[d] for d in dims)
    if mine == 0:
        return F.sum(x, dim, keepdim, dtype=dtype)
    made: Tensor = F.mean(x, dim, keepdim, dtype=dtype)
    return made if mine == whole else made * (mine / whole)


@rule("reduces by mean", _mean)
def reduces_by_mean(c: Call) -> list[Way]:
    return [*_with(c, P), Way((P,), (P,))]


def _extreme(name: str) -> Any:
    def ways(c: Call) -> list[Way]:
        dims, _ = _reduced(c)
        # A rank without any number has no largest one, and of several that are equal each has a share of the gradient.
        if c.tracked:
            return kept(c)
        return [*kept(c), *(_full(c.way({0: d}, [Partial(name)]), d, c) for d in dims)]

    return ways


def _full(way: Way, d: int, c: Call) -> Way:
    return Way(way.ins, way.outs, ((0, d, c.shapes()[0][d]),))


rule("reduces by max")(_extreme("max"))
rule("reduces by min")(_extreme("min"))


@rule("reduces by product")
def reduces_by_product(c: Call) -> list[Way]:
    return kept(c) if c.tracked else _with(c, Partial("product"))
