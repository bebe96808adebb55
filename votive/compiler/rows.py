"""Reductions of rows inside of regions: which calls they are, and the region that they become a part of."""

from __future__ import annotations

from typing import Any

from ..backends.base import BACKENDS
from ..core import dtype as dt
from ..formula import Expr, var
from ..ops.region import RowRegion
from ..ops.registry import OPS
from .graph import Node, Value, addresses_of

_REDUCTIONS = ("sum", "mean", "amax", "amin")
_SHORTEST = 16  # elements of a row that are worth a loop of their own
_COMPUTE = {dt.float32: dt.float32, dt.bfloat16: dt.float32, dt.float16: dt.float32, dt.float64: dt.float64}


def reduces(node: Node) -> dt.dtype | None:
    """The type that a reduction of rows computes in, where it can be part of a region."""
    if node.op.name not in _REDUCTIONS or node.form != "call" or len(node.outs) != 1:
        return None
    x, out = node.args[0].spec, node.outs[0].spec
    dims = (node.args[1],) if node.args[1].__class__ is int else node.args[1]
    if not dims or x.ndim < 2 or tuple(d % x.ndim for d in dims) != (x.ndim - 1,) or x.dtype is not out.dtype:
        return None
    n = x.shape[-1]
    if n.__class__ is not int:  # loops are made for the length of rows: not for one that may change
        return None
    if n < _SHORTEST or x.numel < 2 * n or x.device.type not in ("cpu",) or not _compiles(x.device.type):
        return None
    return _COMPUTE.get(x.dtype)


def _compiles(device: str) -> bool:
    offers = getattr(BACKENDS[device], "compiles_rows", None)
    return offers is not None and bool(offers())


def row_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of what rows are reduced to and can be spread over them again."""
    return (*shape[:-1], 1)


def has_like(x: Value, read: set[Value], made: set[Value], shape: tuple[int, ...]) -> bool:
    """Whether an operand lies in memory as a kernel goes through it."""
    return any(v not in made and v.spec.shape == shape and v.spec.contiguous for v in (x, *read))


class Rows:
    """Collects reductions and results while a region is built."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.reductions: list[tuple[str, str, Expr]] = []

    def reduce(self, node: Node, body: Expr) -> Expr:
        """What a reduction of an expression is called."""
        name = f"r{len(self.reductions)}"
        self.reductions.append((name, node.op.name, body))
        return var(name)

    def node(
        self,
        name: str,
        nodes: list[Node],
        operands: dict[Value, str],
        roles: list[Any],
        inside: dict[Value, Expr],
        seen: list[Value],
    ) -> Node:
        """The call of the region."""
        bodies = tuple([inside[v] for v in seen])
        rows = tuple([v.spec.shape != self.shape for v in seen])
        covers = tuple([n.op.name for n in nodes])
        specs = tuple([v.spec for v in seen])
        like = next(v for v in operands if v.spec.shape == self.shape and v.spec.contiguous)
        made = RowRegion(
            name,
            tuple(operands.values()),
            tuple(roles),
            tuple(self.reductions),
            bodies,
            rows,
            specs,
            self.shape,
            covers,
        )
        last = nodes[-1]
        node = Node(OPS["_row_region"], (like, tuple(operands), made), tuple(seen), single=False, line=last.line)
        node.path, node.backward, node.paths = last.path, last.backward, addresses_of(nodes)
        for i, v in enumerate(seen):
            v.node, v.index = node, i
        return node
