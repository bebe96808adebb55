"""Other shapes of the same numbers: which cuts of the one are cuts of the other, and what a part is asked for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...ops.registry import F
from ...tensor import Tensor
from ..device_mesh import DeviceMesh
from .placement_types import Partial, Placement, Shard
from .rules import part_of
from .ways import Call, P, Way, rule

SUMS = (P,)


def mapped(c: Call, dims: Sequence[int | None]) -> list[Way]:
    """Ways from the result's dimension of each of the argument's; None for those that stay whole."""
    n = len(c.outs)
    return [c.way({0: d}, [to] * n) for d, to in enumerate(dims) if to is not None] + [
        Way((p,), (p,) * n) for p in (P, Partial("avg")) if not (c.tracked and p != P)
    ]


@rule("transposed")
def transposed(c: Call) -> list[Way]:
    ndim = len(c.shapes()[0])
    order: list[int] = list(range(ndim))
    if c.op.name == "_permute":
        return mapped(c, [c.dims.index(d) for d in order])
    if ndim:
        a, b = (c.dim0, c.dim1) if c.op.name == "transpose" else (0, ndim - 1)
        order[a], order[b] = order[b], order[a]
    return mapped(c, order)


@rule("squeezed")
def squeezed(c: Call) -> list[Way]:
    out, at = [], 0
    for d in range(len(c.shapes()[0])):
        out.append(None if d in c.dim else at)
        at += d not in c.dim
    return mapped(c, out)


def _squeeze(c: Call, local: Sequence[Any], ways: Sequence[Way], mesh: DeviceMesh) -> Tensor:
    """Only dimensions of size 1 of the whole go: a part may have others."""
    return F.squeeze(local[0], tuple(c.dim)) if c.dim else F._view(local[0], local[0]._spec.shape)


rule("squeezed", _squeeze)(squeezed)


@rule("unsqueezed")
def unsqueezed(c: Call) -> list[Way]:
    return mapped(c, [d + (d >= c.dim) for d in range(len(c.shapes()[0]))])


@rule("selected")
def selected(c: Call) -> list[Way]:
    return mapped(c, [None if d == c.dim else d - (d > c.dim) for d in range(len(c.shapes()[0]))])


def _windows(c: Call) -> list[int | None]:
    """For each dimension, where it is in the result if it is taken whole."""
    found: list[int | None] = []
    at = 0
    shape = c.shapes()[0]
    for entry in c.index:
        if entry is None:
            at += 1
        elif entry.__class__ is tuple:
            found.append(at if entry == (0, shape[len(found)], 1) else None)
            at += 1
        else:
            found.append(None)
    while len(found) < len(shape):
        found.append(at)
        at += 1
    return found


def _window(c: Call, local: Sequence[Any], ways: Sequence[Way], mesh: DeviceMesh) -> Tensor:
    x = local[0]
    places = iter(zip(_windows(c), x._spec.shape, strict=True))
    index: list[Any] = []
    for entry in c.index:
        if entry is None:
            index.append(None)
            continue
        whole, n = next(places)
        index.append(entry if whole is None else (0, n, 1))
    made: Tensor = F._window(x, tuple(index))
    return made


@rule("window", _window)
def window(c: Call) -> list[Way]:
    return mapped(c, _windows(c))


def _slice(c: Call, local: Sequence[Any], ways: Sequence[Way], mesh: DeviceMesh) -> Tensor:
    x, dim, start, end, step = local
    if any(isinstance(w.ins[0], Shard) and w.ins[0].dim == c.dim for w in ways):
        return F._view(x, x._spec.shape)
    made: Tensor = F._slice(x, dim, start, end, step)
    return made


@rule("sliced", _slice)
def sliced(c: Call) -> list[Way]:
    shape = c.shapes()[0]
    whole = c.outs[0].shape == shape
    return mapped(c, [d if whole or d != c.dim else None for d in range(len(shape))])


@rule("diagonal")
def diagonal(c: Call) -> list[Way]:
    ndim = len(c.shapes()[0])
    a, b = c.dim1 % ndim, c.dim2 % ndim
    rest = [d for d in range(ndim) if d not in (a, b)]
    return mapped(c, [rest.index(d) if d in rest else None for d in range(ndim)])


def _expand(c: Call, local: Sequence[Any], ways: Sequence[Way], mesh: DeviceMesh) -> Tensor:
    made: Tensor = F._expand(local[0], part_of(c, ways, mesh)[0])
    return made


@rule("expanded", _expand)
def expanded(c: Call) -> list[Way]:
    shape, out = c.shapes()[0], c.outs[0].shape
    lead = len(out) - len(shape)
    # What is stretched may be cut behind: each rank stretches its part.
    stretched = [Way((c.way({}, []).ins), (Shard(d),)) for d, n in enumerate(out) if d < lead or shape[d - lead] != n]
    return mapped(c, [d + lead if n == out[d + lead] else None for d, n in enumerate(shape)]) + stretched


def groups(a: Sequence[int], b: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """Which dimensions of one shape are made of which of another with the same numbers."""
    found = []
    i = j = 0
    while i < len(a) or j < len(b):
        left, right = [i] if i < len(a) else [], [j] if j < len(b) else []
        m = a[i] if i < len(a) else 1
        n = b[j] if j < len(b) else 1
        i, j = i + len(left), j + len(right)
        while m != n:
            if m < n:
                left.append(i)
                m, i = m * a[i], i + 1
            else:
                right.append(j)
                n, j = n * b[j], j + 1
        found.append((left, right))
    return found


def _view(c: Call, local: Sequence[Any], ways: Sequence[Way], mesh: DeviceMesh) -> Tensor:
    made: Tensor = F.reshape(local[0], part_of(c, ways, mesh)[0])
    return made


@rule("viewed", _view)
def viewed(c: Call) -> list[Way]:
    """The first dimension of a group leads on both sides, where its cuts are equal; a dimension alone stays itself."""
    shape, out = c.shapes()[0], c.outs[0].shape
    found = [Way((p,), (p,)) for p in (P, Partial("avg")) if not (c.tracked and p != P)]
    if math.prod(shape) == 0:
        same = min(len(shape), len(out))
        found += [c.way({0: d}, [d]) for d in range(same) if shape[: d + 1] == out[: d + 1]]
        return found
    for left, right in groups(shape, out):
        left, right = [d for d in left if shape[d] != 1] or left, [d for d in right if out[d] != 1] or right
        if not left or not right:
            continue
        d, e = left[0], right[0]
        if len(left) == len(right) == 1:
            found.append(c.way({0: d}, [e]))
        else:
            found.append(c.way({0: d}, [e], [(0, d, math.gcd(shape[d], out[e]))]))
    return found


@rule("unfolded")
def unfolded(c: Call) -> list[Way]:
    """Windows along a dimension, which stays whole."""
    ndim = len(c.shapes()[0])
    return mapped(c, [d if d != c.dimension % ndim else None for d in range(ndim)])


@rule("split")
def split(c: Call) -> list[Way]:
    ndim = len(c.shapes()[0])
    dim = c.dim % ndim
    gone = c.op.name == "_unbind"
    return mapped(c, [None if d == dim else d - (gone and d > dim) for d in range(ndim)])


@rule("joined")
def joined(c: Call) -> list[Way]:
    """`cat` and `stack`: other dimensions than the one along which tensors are joined; parts of sums stay so."""
    shapes = c.shapes()
    new = c.op.name == "stack"
    ndim = len(c.outs[0].shape)
    dim = c.dim % ndim if ndim else 0
    count = len(c.leaves)
    found: list[Way] = [Way((P,) * count, (P,))]
    # Tensors without any number may have any shape in `cat`.
    if len({len(s) for s in shapes}) > 1:
        return found
    for d in range(len(shapes[0])):
        to: int | Placement = d + (d >= dim) if new else d
        if new or d != dim:
            found.append(c.way(dict.fromkeys(range(count), d), [to]))
    return found
