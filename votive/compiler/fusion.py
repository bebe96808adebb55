"""Elementwise calls that follow each other, or read the same operands, become regions: one pass over memory for all."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..backends.base import BACKENDS
from ..core import dtype as dt
from ..dispatch import PointwisePlan
from ..formula import Expr, const, substitute, var
from ..ops.region import Region
from ..ops.registry import OPS
from . import rows
from .graph import Graph, Node, Value, addresses_of
from .symbols import is_symbolic

_MOST = 48  # calls in one region: longer ones need more registers than there are
_FLOATS = (dt.float32, dt.bfloat16, dt.float16)


@dataclass(eq=False)
class _Open:
    """A region that may still grow."""

    shape: tuple[int, ...]
    compute: dt.dtype
    device: Any
    backward: bool
    nodes: list[Node] = field(default_factory=list)
    made: set[Value] = field(default_factory=set)
    read: set[Value] = field(default_factory=set)
    reduced: bool = False  # whether rows are reduced in it

    @property
    def kind(self) -> tuple[Any, ...]:
        return self.shape, self.compute, self.device, self.backward

    def take(self, other: _Open) -> None:
        """Become one with another that is open, too: neither is used outside yet."""
        self.nodes += other.nodes
        self.made |= other.made
        self.read |= other.read
        self.reduced |= other.reduced


def _is_cast(node: Node) -> bool:
    """A copy in another dtype, or a plain one, that keeps the order of dimensions in memory."""
    if node.op.name != "_copy_as":
        return False
    x, out = node.args[0].spec, node.outs[0].spec
    kinds = (*_FLOATS, dt.float64)
    return x.dtype in kinds and out.dtype in kinds and x.strides == out.strides and x.numel > 0


def _narrows(node: Node | None) -> bool:
    return node is not None and _is_cast(node) and node.args[0].spec.dtype.itemsize > node.outs[0].spec.dtype.itemsize


def _rounds(node: Node) -> bool:
    """A call with more digits than what it reads was cast to just before: a program that rounds on purpose."""
    return any(
        _narrows(v.node) and v.spec.dtype.itemsize < o.spec.dtype.itemsize for v in node.reads() for o in node.outs
    )


def _compute(node: Node) -> dt.dtype | None:
    """The type that a call computes in, where it can be part of a region."""
    if node.form != "call" or len(node.outs) != 1 or node.draw is not None or is_symbolic(node.args):
        return None
    out = node.outs[0].spec
    if _is_cast(node):
        wide = dt.float64 in (node.args[0].spec.dtype, out.dtype)
        return dt.float64 if wide else dt.float32
    plan = node.plan
    if not isinstance(plan, PointwisePlan) or plan.is_complex or out.numel == 0 or out.layout.overlaps:
        return None
    kinds = {compute for have, compute, _ in plan.roles if compute is not dt.bool_ or have is not dt.bool_}
    masks = any(a.type == "Mask" for a in node.op.schema.args if a.is_runtime)
    if len(kinds) != 1 and not (masks and len(kinds) == 1):
        return None
    compute = kinds.pop()
    allowed = {dt.float32: (*_FLOATS, dt.bool_), dt.float64: (dt.float64, dt.bool_)}.get(compute)
    if allowed is None or out.dtype not in allowed:
        return None
    for have, _, _ in plan.roles:
        if have is not None and have not in allowed:
            return None
    return compute


def fuse(graph: Graph, wanted: set[Value], report: list[str]) -> int:
    """Put regions in place of the calls they cover; says how many these are."""
    written = graph.written()
    regions = _group(graph, written)
    users: dict[Value, list[Node]] = graph.users()
    wanted = wanted | set(graph.outputs)
    place: dict[Node, Node | None] = {}
    order = {n: i for i, n in enumerate(graph.nodes)}
    for region in regions:
        if len(region.nodes) < 2:
            continue
        k, graph.regions = graph.regions, graph.regions + 1
        region.nodes.sort(key=order.__getitem__)
        members = set(region.nodes)
        seen = [
            n.outs[0]
            for n in region.nodes
            if n.outs[0] in wanted
            or any(u not in members for u in users.get(n.outs[0], ()))
            or any(v.base is n.outs[0] for v in wanted)
        ]
        made = _build(f"region{k}", region, seen)
        for n in region.nodes:
            place[n] = None
        place[region.nodes[-1]] = made
        report.append(f"{made.args[-1]!r}: {len(region.nodes)} calls, {len(seen)} results")
    graph.nodes = [m for n in graph.nodes if (m := place.get(n, n)) is not None]
    _prepare([m.args[-1] for m in place.values() if m is not None])
    return len(place)


def _prepare(regions: list[Any]) -> None:
    """Let each device make kernels for its regions together, which is faster than one by one."""
    by_device: dict[str, list[Any]] = {}
    for region in regions:
        by_device.setdefault(region.outs[0].device.type, []).append(region)
    for device, found in by_device.items():
        prepare = getattr(BACKENDS[device], "prepare_regions", None)
        if prepare is not None:
            prepare(found)


def _group(graph: Graph, written: set[Value]) -> list[_Open]:
    """Calls in groups. A group ends when somebody outside uses what it makes, so its place is that of its last call."""
    open_: list[_Open] = []
    found: list[_Open] = []
    for node in graph.nodes:
        reads = set(node.reads())
        compute = _compute(node)
        touched = not any(v.root in written for v in (*reads, *node.outs)) and not _rounds(node)
        if not touched:
            compute = None
        home = None
        if compute is not None:
            home = _home_of_row(node, compute, reads, open_)
            spec = node.outs[0].spec
            kind = spec.shape, compute, spec.device, node.backward
            near = [r for r in open_ if r.kind == kind and (r.made & reads or r.read & reads)] if home is None else []
            for r in reversed(near):
                if home is None and len(r.nodes) < _MOST:
                    home = r
                elif home is not None and len(home.nodes) + len(r.nodes) < _MOST and r.made & reads:
                    home.take(r)
                    open_.remove(r)
                    found.remove(r)
            if home is None:
                home = _Open(spec.shape, compute, spec.device, node.backward)
                open_.append(home)
                found.append(home)
        elif touched and (compute := rows.reduces(node)) is not None:
            home = _home_of_reduction(node, compute, open_, found)
        for r in [r for r in open_ if r is not home and r.made & reads]:
            open_.remove(r)
        if home is not None:
            home.nodes.append(node)
            home.made.update(node.outs)
            home.read.update(v for v in reads if v.spec.shape == home.shape)
    return found


def _home_of_row(node: Node, compute: dt.dtype, reads: set[Value], open_: list[_Open]) -> _Open | None:
    """The region whose rows were reduced to what a call goes on with, one number for each row."""
    spec = node.outs[0].spec
    for r in reversed(open_):
        kind = rows.row_shape(r.shape), r.compute, r.device, r.backward
        if r.reduced and kind == (spec.shape, compute, spec.device, node.backward) and r.made & reads:
            return r if len(r.nodes) < _MOST else None
    return None


def _home_of_reduction(node: Node, compute: dt.dtype, open_: list[_Open], found: list[_Open]) -> _Open | None:
    """The region that a reduction of rows is part of, or begins."""
    x = node.args[0]
    kind = x.spec.shape, compute, x.spec.device, node.backward
    near = [r for r in open_ if r.kind == kind and len(r.nodes) < _MOST and (x in r.made or x in r.read)]
    home = near[-1] if near else _Open(*kind)
    if not rows.has_like(x, home.read, home.made, home.shape):
        return None
    if not near:
        open_.append(home)
        found.append(home)
    home.reduced = True
    return home


def _build(name: str, region: _Open, seen: list[Value]) -> Node:
    """The call of a region."""
    inside: dict[Value, Expr] = {}
    operands: dict[Value, str] = {}
    roles: list[Any] = []
    reduced = rows.Rows(region.shape)
    for node in region.nodes:
        if rows.reduces(node) is not None:
            x = node.args[0]
            body = _operand(x, (x.spec.dtype, region.compute, None), inside, operands, roles)
            inside[node.outs[0]] = reduced.reduce(node, body)
            continue
        if _is_cast(node):
            x = node.args[0]
            inside[node.outs[0]] = _operand(x, (x.spec.dtype, region.compute, None), inside, operands, roles)
            continue
        values = node.op.values(node.args)
        table: dict[Expr, Expr] = {}
        for param, v, role in zip(node.plan.formula.params, values, node.plan.roles, strict=True):
            if v.__class__ is Value:
                # Rounding between calls is left out, as it would be in one formula.
                table[var(param)] = _operand(v, (role[0], region.compute, None), inside, operands, roles)
            else:
                table[var(param)] = const(v)
        inside[node.outs[0]] = substitute(node.plan.formula.body, table)
    if reduced.reductions:
        return reduced.node(name, region.nodes, operands, roles, inside, seen)
    bodies = tuple(inside[v] for v in seen)
    covers = tuple(n.op.name for n in region.nodes)
    made = Region(name, tuple(operands.values()), tuple(roles), bodies, tuple(v.spec for v in seen), covers)
    last = region.nodes[-1]
    node = Node(OPS["_region"], (tuple(operands), made), tuple(seen), single=False, path=last.path, line=last.line)
    node.backward, node.paths = last.backward, addresses_of(region.nodes)
    for i, v in enumerate(seen):
        v.node, v.index = node, i
    return node


def _operand(v: Value, role: Any, inside: dict[Value, Expr], operands: dict[Value, str], roles: list[Any]) -> Expr:
    known = inside.get(v)
    if known is not None:
        return known
    if v not in operands:
        operands[v] = f"x{len(operands)}"
        roles.append(role)
    return var(operands[v])
