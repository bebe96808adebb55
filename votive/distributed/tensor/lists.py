"""Operators over lists of tensors, as optimizers and norms call them: each tensor is handled by where it lies."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ...core.errors import UnsupportedError
from ...core.mode import mode
from ...ops.operator import Op
from ...ops.registry import F
from ...tensor import Tensor
from ..reduce_op import ReduceOp
from ..reductions import all_reduce
from .dtensor import DTensor, wrap
from .placement_types import Partial, Replicate, Shard

LISTS: dict[str, Callable[[Op, tuple[Any, ...]], Any]] = {}


def run_lists(op: Op, args: tuple[Any, ...]) -> Any:
    """Run an operator of `LISTS`; nothing of it has a gradient."""
    before, mode.grad = mode.grad, False
    try:
        return LISTS[op.name](op, args)
    finally:
        mode.grad = before


def _local(v: Any) -> Any:
    """A single number as each rank has it."""
    if isinstance(v, DTensor):
        return v.redistribute(placements=[Replicate()] * v._mesh.ndim)._held
    return v


def step(op: Op, args: tuple[Any, ...]) -> Any:
    """Write into the parts of lists that run in parallel; what is only read is brought to where it is written."""
    names = op.schema.names
    first = args[names.index(op.mutates[0])]
    given: list[Any] = []
    for name, v in zip(names, args, strict=True):
        if not isinstance(v, (tuple, list)):
            given.append(_local(v))
            continue
        parts: list[Any] = []
        for i, t in enumerate(v):
            beside = first[i] if i < len(first) else None
            if not isinstance(t, DTensor):
                if isinstance(t, Tensor) and isinstance(beside, DTensor) and t._spec.numel != 1:
                    raise RuntimeError(
                        f"{op.name.strip('_')}: got mixed votive.Tensor and DTensor: {name}[{i}] is a plain tensor, "
                        f"but {op.mutates[0]}[{i}] is a DTensor."
                    )
                parts.append(t)
                continue
            if not isinstance(beside, DTensor) or t._placements == beside._placements:
                if not isinstance(beside, DTensor) and t._spec.numel != 1:
                    raise RuntimeError(
                        f"{op.name.strip('_')}: got mixed votive.Tensor and DTensor: {name}[{i}] is a DTensor, but "
                        f"{op.mutates[0]}[{i}] is a plain tensor."
                    )
                parts.append(t._held)
            elif name in op.mutates:
                raise UnsupportedError(
                    f"{op.name.strip('_')}: {name}[{i}] lies as {t._placements}, and {op.mutates[0]}[{i}] as "
                    f"{beside._placements}; make optimizer states from the parameters as they lie now."
                )
            else:
                parts.append(t.redistribute(placements=beside._placements)._held)
        given.append(parts)
    return op.apply(tuple(given))


def unscale(op: Op, args: tuple[Any, ...]) -> Any:
    """Divide gradients; what one rank finds in its part, all of the mesh hear of."""
    grads, found = args[0], args[1]
    made = step(op, args)
    plain = _local(found)
    for mesh in {id(g._mesh): g._mesh for g in grads if isinstance(g, DTensor)}.values():
        for group in mesh.get_all_groups():
            all_reduce(plain, ReduceOp.MAX, group)
    return made


def total_norm(op: Op, args: tuple[Any, ...]) -> Any:
    """The norm of all tensors as if they were one vector: parts of one that is cut are added up over the ranks."""
    tensors, order = args
    spread = [t for t in tensors if isinstance(t, DTensor)]
    plain = [t for t in tensors if not isinstance(t, DTensor)]
    norms = [] if not plain else [op.apply((plain, order)).reshape(1)]
    lists: dict[Any, tuple[Any, tuple[int, ...], list[Tensor]]] = {}
    for t in spread:
        if any(isinstance(p, Partial) for p in t._placements):
            t = t.redistribute(placements=[Replicate() if isinstance(p, Partial) else p for p in t._placements])
        cuts = tuple(i for i, p in enumerate(t._placements) if isinstance(p, Shard))
        lists.setdefault((id(t._mesh), cuts), (t._mesh, cuts, []))[2].append(t._held)
    for mesh, cuts, parts in lists.values():
        norms.append(_norm_of(op, mesh, cuts, parts, float(order)).reshape(1))
    total = norms[0].reshape(()) if len(norms) == 1 else _joined(norms, float(order))
    mesh = spread[0]._mesh
    if plain or any(t._mesh != mesh for t in spread):
        return total
    return wrap(total, mesh, (Replicate(),) * mesh.ndim, ())


def _joined(norms: Sequence[Tensor], order: float) -> Tensor:
    kind = max((n.dtype for n in norms), key=lambda k: k.itemsize)
    made: Tensor = F._vector_norm(F.cat([n.to(kind) for n in norms]), order, None, False)
    return made


def _norm_of(op: Op, mesh: Any, cuts: tuple[int, ...], parts: list[Tensor], order: float) -> Tensor:
    if not cuts:
        made: Tensor = op.apply((parts, order))
        return made
    if order == 0:
        raise UnsupportedError("the norm of order 0 of gradients in shards is not supported; use another order.")
    there = [p for p in parts if p._spec.numel]
    if math.isinf(order):
        empty = 0.0 if order > 0 else math.inf
        mine = op.apply((there, order)).clone() if there else F.full((), empty, dtype=parts[0].dtype)
        for i in cuts:
            all_reduce(mine, ReduceOp.MAX if order > 0 else ReduceOp.MIN, mesh.get_group(i))
        return mine
    kind = parts[0].dtype.to_real()
    total = (op.apply((there, order)) if there else F.zeros((), dtype=kind)).double().pow(order)
    for i in cuts:
        all_reduce(total, group=mesh.get_group(i))
    return total.pow(1.0 / order).to(kind)


for _name in (
    "_sgd_step", "_adam_step", "_rmsprop_step", "_adagrad_step", "_adadelta_step", "_adamax_step", "_nadam_step",
    "_radam_step", "_lion_step", "_rprop_step", "_asgd_step", "_average_step", "_scale_", "_amp_update_scale_",
):  # fmt: skip
    LISTS[_name] = step
LISTS["_amp_foreach_non_finite_check_and_unscale_"] = unscale
LISTS["_total_norm"] = total_norm
