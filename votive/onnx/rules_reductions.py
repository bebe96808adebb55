"""How reductions, scans, sorts and softmax are written as ONNX."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..compiler.graph import Value
from ..core import dtype as dt
from .sizes import product
from .translate import Call, translates


def axes_of(c: Call, x: Value, dim: Any) -> list[int]:
    """The dimensions that are reduced, all of them where none are named."""
    n = len(c.shape(x))
    if dim is None or dim == ():
        return list(range(n))
    return [int(d) % max(n, 1) for d in (dim if isinstance(dim, (tuple, list)) else (dim,))][: max(n, 0) or None]


def reduced(c: Call, kind: str, x: str, axes: Sequence[int], keepdim: bool) -> str:
    """A reduction by ONNX; of no dimensions, the values themselves."""
    if not axes:
        return c.op("Identity", x)
    return c.op(kind, x, c.b.constant(list(axes)), keepdims=int(keepdim))


def _widened(c: Call, x: Value, dtype: dt.dtype | None) -> tuple[str, dt.dtype]:
    want = dtype or c.node.plan.outs[0].dtype
    return (c.name(x) if c.dtype(x) is want else c.b.cast(c.name(x), want)), want


def _dims(c: Call, x: Value, dim: Any) -> list[int]:
    return axes_of(c, x, dim) if c.shape(x) else []


@translates("sum")
def sum_(c: Call, x: Value, dim: Any, keepdim: bool, dtype: Any) -> str:
    return reduced(c, "ReduceSum", _widened(c, x, dtype)[0], _dims(c, x, dim), keepdim)


@translates("mean")
def mean(c: Call, x: Value, dim: Any, keepdim: bool, dtype: Any) -> str:
    return reduced(c, "ReduceMean", _widened(c, x, dtype)[0], _dims(c, x, dim), keepdim)


@translates("prod")
def prod(c: Call, x: Value, dim: Any, keepdim: bool, dtype: Any) -> str:
    return reduced(c, "ReduceProd", _widened(c, x, dtype)[0], _dims(c, x, dim), keepdim)


@translates("amax")
def amax(c: Call, x: Value, dim: Any, keepdim: bool) -> str:
    return reduced(c, "ReduceMax", c.name(x), _dims(c, x, dim), keepdim)


@translates("amin")
def amin(c: Call, x: Value, dim: Any, keepdim: bool) -> str:
    return reduced(c, "ReduceMin", c.name(x), _dims(c, x, dim), keepdim)


@translates("_max_dim", "_min_dim")
def extremum(c: Call, x: Value, dim: int, keepdim: bool) -> list[str]:
    big = c.node.op.name == "_max_dim"
    values = reduced(c, "ReduceMax" if big else "ReduceMin", c.name(x), _dims(c, x, dim), keepdim)
    if not c.shape(x):
        return [values, c.b.constant(0)]
    return [values, c.op("ArgMax" if big else "ArgMin", c.name(x), axis=dim % len(c.shape(x)), keepdims=int(keepdim))]


@translates("argmax", "argmin")
def argument(c: Call, x: Value, dim: int | None, keepdim: bool) -> str:
    kind = "ArgMax" if c.node.op.name == "argmax" else "ArgMin"
    name = c.b.cast(c.name(x), dt.uint8) if c.dtype(x) is dt.bool_ else c.name(x)
    if not c.shape(x):
        return c.b.constant(0)
    if dim is None:
        found = c.op(kind, c.b.reshape(name, [-1]), axis=0, keepdims=0)
        return c.b.reshape(found, c.out_shape) if keepdim else found
    return c.op(kind, name, axis=dim % len(c.shape(x)), keepdims=int(keepdim))


@translates("logsumexp")
def logsumexp(c: Call, x: Value, dim: Any, keepdim: bool) -> str:
    return reduced(c, "ReduceLogSumExp", c.name(x), _dims(c, x, dim), keepdim)


@translates("all", "any")
def truth(c: Call, x: Value, dim: Any, keepdim: bool) -> str:
    kind = "ReduceMin" if c.node.op.name == "all" else "ReduceMax"
    name = c.name(x)
    if c.dtype(x) is not dt.bool_:
        name = c.b.cast(name, dt.bool_)
    found = reduced(c, kind, c.b.cast(name, dt.int32), _dims(c, x, dim), keepdim)
    return c.b.cast(found, c.node.plan.outs[0].dtype)


@translates("count_nonzero")
def count_nonzero(c: Call, x: Value, dim: Any) -> str:
    return reduced(c, "ReduceSum", c.b.cast(c.b.cast(c.name(x), dt.bool_), dt.int64), _dims(c, x, dim), False)


def variance(
    c: Call, x: str, axes: Sequence[int], count: Any, correction: float, keepdim: bool, dtype: dt.dtype
) -> str:
    """The mean square distance from the mean, over `count - correction`."""
    centred = c.op("Sub", x, reduced(c, "ReduceMean", x, axes, True))
    squares = reduced(c, "ReduceSum", c.op("Mul", centred, centred), axes, keepdim)
    whole = int(correction) if float(correction).is_integer() else correction
    return c.op("Div", squares, c.b.number(count - whole, dtype))


@translates("_var", "_std")
def spread(c: Call, x: Value, dim: Any, correction: float, keepdim: bool) -> str:
    axes = axes_of(c, x, dim)
    found = variance(c, c.name(x), axes, product([c.shape(x)[a] for a in axes]), correction, keepdim, c.dtype(x))
    return c.op("Sqrt", found) if c.node.op.name == "_std" else found


@translates("_vector_norm")
def vector_norm(c: Call, x: Value, ord: Any, dim: Any, keepdim: bool) -> str:
    axes = _dims(c, x, dim)
    name = c.op("Abs", c.name(x))
    if ord == 2:
        return reduced(c, "ReduceL2", c.name(x), axes, keepdim)
    if ord == 1:
        return reduced(c, "ReduceL1", c.name(x), axes, keepdim)
    if ord in (float("inf"), float("-inf")):
        return reduced(c, "ReduceMax" if ord > 0 else "ReduceMin", name, axes, keepdim)
    if ord == 0:
        nonzero = c.b.cast(c.b.cast(name, dt.bool_), c.dtype(x))
        return reduced(c, "ReduceSum", nonzero, axes, keepdim)
    powers = reduced(c, "ReduceSum", c.op("Pow", name, c.b.number(ord, c.dtype(x))), axes, keepdim)
    return c.op("Pow", powers, c.b.number(1 / ord, c.dtype(x)))


@translates("cumsum")
def cumsum(c: Call, x: Value, dim: int, dtype: Any) -> str:
    name, _ = _widened(c, x, dtype)
    return c.op("CumSum", name, c.b.constant(dim)) if c.shape(x) else c.op("Identity", name)


@translates("_softmax", "_log_softmax")
def softmax(c: Call, x: Value, dim: int) -> str:
    kind = "Softmax" if c.node.op.name == "_softmax" else "LogSoftmax"
    if not c.shape(x):
        return c.b.reshape(c.op(kind, c.b.reshape(c.name(x), [1]), axis=0), [])
    return c.op(kind, c.name(x), axis=dim)


@translates("_topk")
def topk(c: Call, x: Value, k: Any, dim: int, largest: bool, sorted: bool) -> list[str]:
    return c.b.ops("TopK", [c.name(x), c.b.sizes([k])], 2, axis=dim, largest=int(largest), sorted=int(sorted))


@translates("_sort")
def sort(c: Call, x: Value, dim: int, descending: bool) -> list[str]:
    if not c.shape(x):
        return [c.op("Identity", c.name(x)), c.b.constant(0)]
    size = c.b.sizes([c.shape(x)[dim]])
    return c.b.ops("TopK", [c.name(x), size], 2, axis=dim, largest=int(descending), sorted=1)
