"""Moving what ranks hold from one set of placements to another. Knows plain tensors, no history."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.mode import mode
from ...ops.registry import F
from ...tensor import Tensor
from ..collectives import all_gather_into_tensor, all_to_all_single
from ..device_mesh import DeviceMesh
from ..reduce_op import ReduceOp
from ..reductions import all_reduce, reduce_scatter_tensor
from .placement_types import Partial, Placement, Placements, Replicate, Shard
from .shards import box_at, chunk, place_of

_OPS = {
    "sum": ReduceOp.SUM, "avg": ReduceOp.AVG, "product": ReduceOp.PRODUCT, "max": ReduceOp.MAX, "min": ReduceOp.MIN,
}  # fmt: skip


def moved(local: Tensor, shape: Sequence[int], mesh: DeviceMesh, current: Placements, target: Placements) -> Tensor:
    """What this rank holds of a tensor of `shape` under other placements; all ranks of the mesh call it."""
    if current == target:
        return local
    before, mode.grad = mode.grad, False
    try:
        return _moved(local.detach(), tuple(shape), mesh, list(current), target)
    finally:
        mode.grad = before


def _moved(x: Tensor, shape: tuple[int, ...], mesh: DeviceMesh, now: list[Placement], target: Placements) -> Tensor:
    changing = _changing(now, target)
    at, sizes = place_of(mesh), mesh.shape
    # Gather from the innermost cut outwards, then cut from the outermost inwards.
    for i in reversed(changing):
        p, t = now[i], target[i]
        if isinstance(p, Shard):
            n = box_at(shape, sizes, at, now, i)[0]
            if isinstance(t, Shard) and _alone(i, p.dim, t.dim, now, target):
                x = _exchanged(x, n, p.dim, t.dim, mesh, i)
                now[i] = t
            else:
                x = _gathered(x, n[p.dim], p.dim, mesh, i)
                now[i] = Replicate()
    for i in changing:
        p, t = now[i], target[i]
        if p == t:
            continue
        if isinstance(p, Partial):
            if isinstance(t, Shard):
                x = _scattered(x, t.dim, p.reduce_op, mesh, i)
                now[i] = t
                continue
            x = _reduced(x, p.reduce_op, mesh, i)
        if isinstance(t, Shard):
            begin, length = chunk(x.shape[t.dim], sizes[i], at[i])
            x = F.clone(F.narrow(x, t.dim, begin, length), memory_format=_contiguous())
        elif isinstance(t, Partial):
            x = _parted(x, t.reduce_op, at[i])
        now[i] = t
    return x


def _contiguous() -> object:
    from ...core.memory_format import contiguous_format

    return contiguous_format


def _changing(now: list[Placement], target: Placements) -> list[int]:
    """Dimensions of the mesh that change, and those whose cuts lie inside of a cut that does."""
    found = {i for i in range(len(now)) if now[i] != target[i]}
    while True:
        cut = {(i, p.dim) for i in found for p in (now[i], target[i]) if isinstance(p, Shard)}
        inner = {
            j
            for j, p in enumerate(now)
            if isinstance(p, Shard) and j not in found and any(i < j and d == p.dim for i, d in cut)
        }
        if not inner:
            return sorted(found)
        found |= inner


def _alone(i: int, a: int, b: int, now: Sequence[Placement], target: Sequence[Placement]) -> bool:
    """Whether no other dimension of the mesh cuts one of two dimensions of the tensor, before or behind."""
    return not any(
        isinstance(p, Shard) and p.dim in (a, b) for side in (now, target) for j, p in enumerate(side) if j != i
    )


def _padded(x: Tensor, dim: int, size: int) -> Tensor:
    missing = size - x.shape[dim]
    if not missing:
        return x
    shape = list(x.shape)
    shape[dim] = missing
    return F.cat([x, F.zeros(tuple(shape), dtype=x.dtype, device=x.device)], dim)


def _gathered(x: Tensor, n: int, dim: int, mesh: DeviceMesh, i: int) -> Tensor:
    """The whole of `n` along a dimension, of the parts along dimension `i` of the mesh."""
    ranks = mesh.size(i)
    each = -(-n // ranks)
    if each == 0:
        return x
    front = F.movedim(_padded(x, dim, each), dim, 0).contiguous()
    every = front.new_empty((ranks * each, *front.shape[1:]))
    all_gather_into_tensor(every, front, mesh.get_group(i))
    return F.movedim(every[:n], 0, dim).contiguous()


def _exchanged(x: Tensor, shape: tuple[int, ...], a: int, b: int, mesh: DeviceMesh, i: int) -> Tensor:
    """From parts along `a` to parts along `b`; `shape` is that of all parts together."""
    ranks, me = mesh.size(i), place_of(mesh)[i]
    rows, columns = -(-shape[a] // ranks), -(-shape[b] // ranks)
    if 0 in (rows, columns):
        sizes = list(shape)
        sizes[b] = chunk(shape[b], ranks, me)[1]
        return x.new_empty(tuple(sizes))
    full = _padded(_padded(x, a, rows), b, ranks * columns)
    out = F.movedim(full, b, 0).contiguous()  # (ranks * columns, ...)
    found = F.empty_like(out)
    all_to_all_single(found, out, group=mesh.get_group(i))
    parts = [F.movedim(part, 0, b) for part in found.chunk(ranks, 0)]
    whole = F.narrow(F.cat(parts, a), a, 0, shape[a])
    return F.narrow(whole, b, 0, chunk(shape[b], ranks, me)[1]).contiguous()


def _reduced(x: Tensor, op: str, mesh: DeviceMesh, i: int) -> Tensor:
    x = F.clone(x)
    all_reduce(x, _OPS[op], mesh.get_group(i))
    return x


def _scattered(x: Tensor, dim: int, op: str, mesh: DeviceMesh, i: int) -> Tensor:
    """This rank's part along a dimension of what all together hold."""
    n, ranks = x.shape[dim], mesh.size(i)
    each = -(-n // ranks)
    if each == 0:
        return x
    front = F.movedim(_padded(x, dim, ranks * each), dim, 0).contiguous()
    mine = front.new_empty((each, *front.shape[1:]))
    reduce_scatter_tensor(mine, front, _OPS[op], mesh.get_group(i))
    return F.movedim(mine[: chunk(n, ranks, place_of(mesh)[i])[1]], 0, dim).contiguous()


def _parted(x: Tensor, op: str, index: int) -> Tensor:
    """A whole as something that is still to be reduced: the first rank has it, the others what changes nothing."""
    if index == 0 or op in ("avg", "max", "min"):
        return x
    return F.ones_like(x) if op == "product" else F.zeros_like(x)
