"""Reductions of nested tensors: over everything, over inner dimensions, and over the ragged one."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NoReturn

from ..core.layout import wrap_dims
from ..ops.operator import Op
from ..ops.registry import OPS, F
from ..tensor import Tensor
from .convert import packed, spread
from .rules import rule
from .tensor import NestedTensor, nested_like, values_of

if TYPE_CHECKING:
    from ..core.dtype import dtype as Dtype


def _filled(name: str, x: NestedTensor, fill: float) -> Tensor:
    """(count, longest, *rest) of values, with what does not change the reduction behind short components."""
    if not x.dtype.is_floating_point and math.isinf(fill):
        raise NotImplementedError(f"{name}: over the ragged dimension takes floating-point values, got {x.dtype}.")
    return spread(x, fill, x._rows.longest)


def reduced(name: str, x: NestedTensor, dim: Any, keepdim: bool, fill: float, rest: tuple[Any, ...] = ()) -> Any:
    """A reduction whose result does not change by values of `fill`; `rest` are further arguments of the operator."""
    op = OPS[name]
    assert isinstance(op, Op)
    x = packed(x)
    if dim is None or dim == ():
        return op.apply((values_of(x), dim, False, *rest))
    dims = wrap_dims(name, dim, x.ndim)
    if 0 in dims and x._ragged not in dims:
        raise RuntimeError(
            f"{name}(): reducing along the batch dimension but not the ragged dimension is not supported for nested "
            "tensors"
        )
    if x._ragged in dims and 0 not in dims and len(dims) > 1:
        raise RuntimeError(
            f"{name}(): reducing along a ragged and non-batch dimension is not supported for nested tensors"
        )

    def shaped(inner: tuple[int, ...]) -> Any:
        return inner[0] if op.schema.args[1].type == "int" and not op.schema.args[1].is_list else inner

    if 0 in dims:
        out = op.apply((values_of(x), shaped(tuple(d - 1 for d in dims if d)), keepdim, *rest))
        return out.unsqueeze(0) if keepdim else out
    if x._ragged in dims:
        out = op.apply((_filled(name, x, fill), shaped((1,)), False, *rest))
        return out.unsqueeze(x._ragged) if keepdim else out
    inner = tuple(d - 1 for d in dims)
    before = sum(1 for d in dims if d < x._ragged)
    out = op.apply((values_of(x), shaped(inner), keepdim, *rest))
    return nested_like(x, out, ragged=x._ragged if keepdim else x._ragged - before)


@rule("sum")
def _sum(input: NestedTensor, dim: Any = None, keepdim: bool = False, dtype: Dtype | None = None) -> Any:
    return reduced("sum", input, dim, keepdim, 0, (dtype,))


@rule("mean")
def _mean(input: NestedTensor, dim: Any = None, keepdim: bool = False, dtype: Dtype | None = None) -> Any:
    x = packed(input)
    if dim is None or wrap_dims("mean", dim, x.ndim) != (x._ragged,):
        return reduced("mean", x, dim, keepdim, 0, (dtype,))
    total = reduced("sum", x, dim, keepdim, 0, (dtype,))
    lengths = (x._rows.offsets[1:] - x._rows.offsets[:-1]).to(total.dtype)
    return total / lengths.reshape(-1, *([1] * (total.ndim - 1)))


@rule("amax")
def _amax(input: NestedTensor, dim: Any = (), keepdim: bool = False) -> Any:
    return reduced("amax", input, dim, keepdim, -math.inf)


@rule("amin")
def _amin(input: NestedTensor, dim: Any = (), keepdim: bool = False) -> Any:
    return reduced("amin", input, dim, keepdim, math.inf)


@rule("argmax")
def _argmax(input: NestedTensor, dim: Any = None, keepdim: bool = False) -> Any:
    return reduced("argmax", input, dim, keepdim, -math.inf)


@rule("argmin")
def _argmin(input: NestedTensor, dim: Any = None, keepdim: bool = False) -> Any:
    return reduced("argmin", input, dim, keepdim, math.inf)


@rule("prod")
def _prod(input: NestedTensor, dim: Any = None, keepdim: bool = False, dtype: Dtype | None = None) -> Any:
    return reduced("prod", input, dim, keepdim, 1, (dtype,))


@rule("any")
def _any(input: NestedTensor, dim: Any = None, keepdim: bool = False) -> Any:
    return reduced("any", input, dim, keepdim, 0)


@rule("all")
def _all(input: NestedTensor, dim: Any = None, keepdim: bool = False) -> Any:
    return reduced("all", input, dim, keepdim, 1)


def _refuse_dims() -> NoReturn:
    raise NotImplementedError("max, min: not implemented for nested tensors; use amax, amin or values().max().")


@rule("max")
def _max(input: NestedTensor, *args: Any, **kwargs: Any) -> Any:
    if args or kwargs:
        _refuse_dims()
    return F.max(values_of(packed(input)))


@rule("min")
def _min(input: NestedTensor, *args: Any, **kwargs: Any) -> Any:
    if args or kwargs:
        _refuse_dims()
    return F.min(values_of(packed(input)))
