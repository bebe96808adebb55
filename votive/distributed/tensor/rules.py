"""Operators whose arguments and results have the same dimensions: elementwise ones, and those along some dimensions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ...core import dtype as dt
from ...ops.registry import F
from ...tensor import Tensor
from ..device_mesh import DeviceMesh
from .placement_types import Partial, Placement
from .shards import local_box
from .ways import Call, P, R, Way, rule


def aligned(c: Call, but: Iterable[int] = ()) -> list[Way]:
    """Each dimension of the result cuts all arguments that have it, `but` some."""
    shape = c.outs[0].shape
    skipped = set(but)
    found = []
    for d, n in enumerate(shape):
        if d in skipped:
            continue
        ins: dict[int, int | Placement] = {}
        for i, s in enumerate(c.shapes()):
            at = d - (len(shape) - len(s))
            if at >= 0 and s[at] == n:
                ins[i] = at
        if ins:
            found.append(c.way(ins, [d] * len(c.outs)))
    return found


@rule("elementwise")
def elementwise(c: Call) -> list[Way]:
    return aligned(c)


def _kinds(c: Call) -> tuple[Partial, ...]:
    return (P,) if c.tracked else (P, Partial("avg"))


@rule("added")
def added(c: Call) -> list[Way]:
    """Sums of all operands: parts of sums stay so."""
    found = aligned(c)
    if all(hasattr(v, "_spec") for v, a in zip(c.given, c.op.schema.args, strict=True) if a.name != "alpha"):
        found += [Way((p,) * len(c.leaves), (p,)) for p in _kinds(c)]
    return found


@rule("scaled")
def scaled(c: Call) -> list[Way]:
    """Products: parts of a sum times a whole are parts of a sum."""
    found = aligned(c)
    only_first = c.op.name in ("div",)
    if only_first and c.op.schema.names[-1] == "rounding_mode" and c.given[-1] is not None:
        return found
    for i, t in enumerate(c.leaves):
        # The argument that is left whole may not be the only tensor.
        if only_first and (t is not c.given[0]):
            continue
        found += [Way(tuple(p if j == i else R for j in range(len(c.leaves))), (p,)) for p in _kinds(c)]
    return found


@rule("linear map")
def linear_map(c: Call) -> list[Way]:
    """A linear function of one tensor, element by element."""
    return [*aligned(c), *(Way((p,), (p,)) for p in _kinds(c))]


def _cast(c: Call, local: Sequence[Any], ways: Sequence[Way], mesh: DeviceMesh) -> Tensor:
    """A copy in the memory order of the part: strides that were asked for are those of the whole."""
    x, dtype, stride = local
    order = sorted(range(len(stride)), key=lambda d: -stride[d])
    strides, step = [1] * len(stride), 1
    for d in reversed(order):
        strides[d], step = step, step * max(x._spec.shape[d], 1)
    made: Tensor = F._copy_as(x, dtype, tuple(strides))
    return made


@rule("copied", _cast)
def copied(c: Call) -> list[Way]:
    """Copies in another type; parts of a sum may be copied unless they lose digits."""
    have, want = c.leaves[0].dtype, c.dtype
    loses = want.category < have.category or (want.category == have.category and want.itemsize < have.itemsize)
    loses = loses or (want.category == dt.FLOAT and want.itemsize == have.itemsize and want is not have)
    return aligned(c) if loses else [*aligned(c), *(Way((p,), (p,)) for p in _kinds(c))]


@rule("filled")
def filled(c: Call) -> list[Way]:
    """Of the first argument only the shape counts."""
    return aligned(c)


def listed(dims: Any, ndim: int) -> tuple[int, ...]:
    """Dimensions that an argument names, from the front; None and nothing mean all of them."""
    if dims is None or dims == ():
        return tuple(range(ndim))
    if isinstance(dims, int):
        dims = (dims,)
    return tuple(d % ndim if ndim else d for d in dims)


@rule("along dim")
def along_dim(c: Call) -> list[Way]:
    """Computes along `dim`, or `dims`: these stay whole."""
    names = c.op.schema.names
    name = next(n for n in ("dim", "dims", "dimension") if n in names)
    ndim = len(c.shapes()[0])
    value = getattr(c, name)
    if c.op.name == "roll" and value == ():
        return []
    whole = listed(value, ndim)
    found = []
    for d in range(ndim):
        if d not in whole:
            ins: dict[int, int | Placement] = {
                i: d for i, s in enumerate(c.shapes()) if len(s) == ndim and s[d] == c.shapes()[0][d]
            }
            if len(ins) == len(c.leaves) or c.op.name not in ("gather", "_scatter", "scatter_add"):
                found.append(c.way(ins, [d] * len(c.outs)))
    return found


@rule("matrices")
def matrices(c: Call) -> list[Way]:
    """The last two dimensions stay whole."""
    ndim = len(c.shapes()[0])
    return aligned(c, (ndim - 2, ndim - 1))


@rule("padded")
def padded(c: Call) -> list[Way]:
    """Dimensions that nothing is added to; pairs of `pad` count from the last."""
    ndim = len(c.shapes()[0])
    pad = tuple(c.pad)
    touched = {ndim - 1 - i // 2 for i, n in enumerate(pad) if n}
    if c.op.name == "_pad":
        touched |= {ndim - 1 - i for i in range(len(pad) // 2)}
    return [c.way({0: d}, [d]) for d in range(ndim) if d not in touched]


def part_of(c: Call, ways: Sequence[Way], mesh: DeviceMesh, out: int = 0) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The sizes of this rank's part of a result, and where it begins."""
    return local_box(c.outs[out].shape, mesh, tuple(w.outs[out] for w in ways))
