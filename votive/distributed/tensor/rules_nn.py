"""Norms, embeddings, indexing and losses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.mode import mode
from ...ops.registry import F
from ...tensor import Tensor
from ..device_mesh import DeviceMesh
from ..reductions import all_reduce
from .placement_types import Placement
from .shards import local_box
from .ways import Call, P, Way, rule


@rule("rows")
def rows(c: Call) -> list[Way]:
    """Computes over the last `dims` dimensions, which stay whole."""
    ndim = len(c.shapes()[0])
    first = c.shapes()[0]
    ways = []
    for d in range(ndim - c.dims):
        ins: dict[int, int | Placement] = {
            i: d for i, s in enumerate(c.shapes()) if len(s) == ndim and s[d] == first[d]
        }
        ways.append(c.way(ins, [d] * len(c.outs)))
    return ways


def cut_of(ways: Sequence[Way], leaf: int, dim: int) -> tuple[int, ...]:
    """The dimensions of the mesh that cut a dimension of an argument."""
    return tuple(i for i, w in enumerate(ways) if w.ins[leaf].is_shard(dim))


def _own(index: Tensor, begin: int, length: int) -> tuple[Tensor, Tensor]:
    """Which positions this rank has, and where they are in its part."""
    mine = (index >= begin) & (index < begin + length)
    return mine, F.where(mine, index - begin, 0)


def _checked_index(op: str, index: Tensor, n: int) -> None:
    if index._spec.numel and bool(((index < 0) | (index >= n)).any()):
        raise IndexError(f"{op}: index out of range: positions must lie in 0 .. {n - 1}.")


def _part(c: Call, ways: Sequence[Way], mesh: DeviceMesh, leaf: int, dim: int) -> tuple[int, int]:
    sizes, begins = local_box(c.shapes()[leaf], mesh, tuple(w.ins[leaf] for w in ways))
    return begins[dim], sizes[dim]


def _embed(c: Call, local: Sequence[Any], ways: Sequence[Way], mesh: DeviceMesh) -> Tensor:
    weight, index, padding, by_frequency = local
    if not cut_of(ways, 0, 0):
        made: Tensor = F._embedding(weight, index, padding, by_frequency)
        return made
    _checked_index("embedding", index, c.shapes()[0][0])
    begin, length = _part(c, ways, mesh, 0, 0)
    mine, at = _own(index, begin, length)
    here = padding - begin if begin <= padding < begin + length else -1
    if length == 0:
        return (
            F.zeros((*index._spec.shape, weight._spec.shape[1]), dtype=weight.dtype, device=weight.device)
            + weight.sum()
        )
    # What others have reads row 0, which must not be taken for the padding row's or get a gradient.
    rows = F._embedding(weight, at, here, by_frequency)
    return F.where(mine.unsqueeze(-1), rows, 0.0)


@rule("embedding", _embed)
def embedding(c: Call) -> list[Way]:
    n = len(c.shapes()[1])
    found = [c.way({0: 1}, [n])]
    if not c.scale_grad_by_freq:
        found += [c.way({1: d}, [d]) for d in range(n)]
        found.append(c.way({0: 0}, [P]))
    return found


def _gather(c: Call, local: Sequence[Any], ways: Sequence[Way], mesh: DeviceMesh) -> Tensor:
    x, dim, index, sparse = local
    if not cut_of(ways, 0, c.dim):
        made: Tensor = F.gather(x, dim, index, sparse_grad=sparse)
        return made
    _checked_index("gather", index, c.shapes()[0][c.dim])
    begin, length = _part(c, ways, mesh, 0, c.dim)
    if length == 0:
        return F.zeros(index._spec.shape, dtype=x.dtype, device=x.device) + x.sum()
    mine, at = _own(index, begin, length)
    return F.where(mine, F.gather(x, dim, at), 0.0)


@rule("gather", _gather)
def gather(c: Call) -> list[Way]:
    x, index = c.shapes()
    found = [c.way({0: d, 1: d}, [d]) for d in range(len(x)) if d != c.dim and x[d] == index[d]]
    found.append(c.way({1: c.dim}, [c.dim]))
    if c.leaves[0].dtype.is_inexact and not c.sparse_grad:
        found.append(c.way({0: c.dim}, [P]))
    return found


@rule("index select")
def index_select(c: Call) -> list[Way]:
    ndim = len(c.shapes()[0])
    found = [c.way({0: d}, [d]) for d in range(ndim) if d != c.dim]
    if ndim and len(c.shapes()[1]) == 1:
        found.append(c.way({1: 0}, [c.dim]))
    return found


@rule("indexed")
def indexed(c: Call) -> list[Way]:
    """Dimensions that are not indexed, and those of the indices."""
    x, dims = c.shapes()[0], sorted(c.dims)
    wide = max(len(s) for s in c.shapes()[1:])
    together = dims == list(range(dims[0], dims[0] + len(dims)))
    first = dims[0] if together else 0
    found = []
    rest = [d for d in range(len(x)) if d not in dims]
    for at, d in enumerate(rest):
        found.append(c.way({0: d}, [at if at < first else at + wide]))
    shape = c.outs[0].shape[first : first + wide]
    for e in range(wide):
        ins: dict[int, int | Placement] = {}
        for i, s in enumerate(c.shapes()[1:], 1):
            at = e - (wide - len(s))
            if at >= 0 and s[at] == shape[e]:
                ins[i] = at
        found.append(c.way(ins, [first + e]))
    return found


# --- losses ---------------------------------------------------------------------------------------


def _classes(c: Call) -> int:
    return 1 if len(c.shapes()[0]) > 1 else 0


def _targets(c: Call) -> list[tuple[int, int]]:
    """Dimensions of the input that are not the classes, and where they are in the target."""
    dim = _classes(c)
    return [(d, d - (d > dim)) for d in range(len(c.shapes()[0])) if d != dim]


@rule("by class")
def by_class(c: Call) -> list[Way]:
    """A loss of each target: every dimension but that of the classes."""
    return [c.way({0: d, 1: t}, [t]) for d, t in _targets(c)]


def _reduced(c: Call, local: Sequence[Any], ways: Sequence[Way], mesh: DeviceMesh) -> Any:
    """This rank's share of a loss: the weight of all targets that count is that of all ranks."""
    *rest, mean = local
    out = c.op.apply((*rest, False))
    if not mean:
        return out
    before, mode.grad = mode.grad, False
    try:
        total = out[1].detach().clone()
        for i, w in enumerate(ways):
            if w.outs[0] == P:
                all_reduce(total, group=mesh.get_group(i))
    finally:
        mode.grad = before
    return (out[0] / total.to(out[0].dtype), *out[1:])


@rule("reduced by class", _reduced)
def reduced_by_class(c: Call) -> list[Way]:
    found = []
    for d, t in _targets(c):
        outs: list[int | Placement] = [P, P, t + 1]
        found.append(c.way({0: d, 1: t}, outs[: len(c.outs)]))
    return found
