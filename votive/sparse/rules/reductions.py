"""Sums, norms, and softmax over what is specified."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ...autograd.function import Function
from ...core import dtype as dt
from ...core.layout import wrap_dim, wrap_dims
from ...core.mode import mode
from ...ops.registry import F
from ...tensor import Tensor
from ..convert import as_coo, coalesce, convert
from ..indices import add_at, merge, ravel, unravel
from ..tensor import BLOCKED, CompressedTensor, CooTensor, SparseTensor, coo, like, values_of
from .table import refuse, rule

if TYPE_CHECKING:
    from ...core.dtype import dtype as Dtype


class _Total(Function):
    """The sum of all elements; its gradient is dense, as in torch."""

    @staticmethod
    def forward(ctx: Any, x: SparseTensor, dtype: Any) -> Tensor:
        ctx.shape, ctx.dtype = tuple(x.shape), x.dtype
        return x._held.sum(dtype=dtype)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return g.to(ctx.dtype).expand(ctx.shape), None


def total(x: SparseTensor, dtype: Dtype | None = None) -> Tensor:
    """The sum of all elements, a dense tensor of no dimension."""
    if x._rg and mode.grad:
        return _Total.apply(x, dtype)
    return x._held.sum(dtype=dtype)


def sum_over(x: CooTensor, dims: tuple[int, ...], keepdim: bool, dtype: Dtype | None = None) -> Any:
    """The sum over some dimensions: dense when no sparse one is left, else sparse."""
    sparse = x.sparse_dim()
    gone, inner = [d for d in dims if d < sparse], [d - sparse + 1 for d in dims if d >= sparse]
    values = values_of(x)
    wanted = dtype or (values.dtype if values.dtype.is_inexact else dt.int64)
    values = values.sum(inner, keepdim=keepdim, dtype=wanted) if inner else values.to(wanted)
    left = [d for d in range(sparse) if d not in gone]
    tail = tuple(values.shape[1:])
    if not left:
        out = values.sum(0)
        if not keepdim:
            return out
        return out.reshape(*([1] * sparse), *tail)
    sizes = [x._spec.shape[d] for d in left]
    if gone:
        flat, values = merge(ravel(x._at[left], sizes), values)
        at = unravel(flat, sizes)
        coalesced = True
    else:
        at, coalesced = x._at[left], x._coalesced
    if not keepdim or not gone:
        return coo(at, values, (*sizes, *tail), coalesced)
    zero = F.zeros(at.shape[1], dtype=at.dtype, device=at.device)
    rows = [zero if d in gone else at[left.index(d)] for d in range(sparse)]
    shape = [1 if d in gone else x._spec.shape[d] for d in range(sparse)]
    return coo(F.stack(rows), values, (*shape, *tail), coalesced)


@rule("sum")
def _sum(
    input: SparseTensor,
    dim: Any = None,
    keepdim: bool = False,
    dtype: Dtype | None = None,
    *,
    out: Tensor | None = None,
) -> Any:
    if out is not None:
        refuse("sum with out=", input)
    if dim is None or (not isinstance(dim, int) and len(dim) == 0):
        return total(input, dtype)
    dims = wrap_dims("sum", dim, input.ndim)
    if len(dims) == input.ndim and keepdim and isinstance(input, CompressedTensor):
        return convert(sum_over(as_coo(input), dims, True, dtype).to_sparse(), input._layout)
    if len(dims) == input.ndim:
        return total(input, dtype).reshape([1] * input.ndim if keepdim else ())
    if isinstance(input, CooTensor):
        return sum_over(input, dims, keepdim, dtype)
    assert isinstance(input, CompressedTensor)
    if input._batch or input._layout in BLOCKED:
        refuse("sum over dimensions", input)
    made = sum_over(as_coo(input), dims, keepdim, dtype)
    return convert(made, input._layout) if isinstance(made, CooTensor) and made.sparse_dim() == 2 else made


@rule("mean")
def _mean(
    input: SparseTensor,
    dim: Any = None,
    keepdim: bool = False,
    dtype: Dtype | None = None,
    *,
    out: Tensor | None = None,
) -> Any:
    refuse("mean", input, " (zeros that are not specified would count)")


@rule("norm", "linalg.norm", "linalg.vector_norm")
def _norm(
    input: SparseTensor,
    p: Any = 2,
    dim: Any = None,
    keepdim: bool = False,
    *,
    ord: Any = None,
    dtype: Dtype | None = None,
) -> Any:
    p = ord if ord is not None else p
    if dim is not None or keepdim:
        refuse("norm over dimensions", input)
    x = coalesce(input) if isinstance(input, CooTensor) else input
    p = 2 if p in ("fro", None) else p
    if not isinstance(p, (int, float)):
        refuse(f"norm of order {p!r}", input)
    if (p == -math.inf or p < 0) and x._held.numel() < x.numel():
        refuse(f"norm of order {p}", input)
    return F.norm(values_of(x), p, dtype=dtype)


@rule("any")
def _any(input: SparseTensor, dim: Any = None, keepdim: bool = False, *, out: Tensor | None = None) -> Any:
    if dim is not None:
        refuse("any over a dimension", input)
    x = coalesce(input) if isinstance(input, CooTensor) else input
    return F.any(values_of(x))


def _groups(x: CooTensor, d: int) -> tuple[Tensor, int]:
    """For every element the number of the row, along dimension `d`, that it stands in."""
    others = [k for k in range(x.sparse_dim()) if k != d]
    sizes = [x._spec.shape[k] for k in others]
    flat = ravel(x._at[others], sizes) if others else F.zeros(x._nnz(), dtype=dt.int64, device=x.device)
    places, inverse = F.unique(flat, sorted=True, return_inverse=True)
    return inverse, int(places.shape[0])


def softmax(x: SparseTensor, dim: int, dtype: Any, log: bool) -> Any:
    """Softmax over the elements that are specified; the others count as minus infinity."""
    name = "log_softmax" if log else "softmax"
    if not isinstance(x, CooTensor):
        refuse(f"sparse.{name}", x)
    d = wrap_dim(name, dim, x.ndim)
    x = coalesce(x)
    values = values_of(x)
    if dtype is not None:
        values = values.to(dtype)
    if not values.dtype.is_inexact:
        raise RuntimeError(f"sparse.{name}: expects a floating-point tensor, got {values.dtype}.")
    sparse = x.sparse_dim()
    if d >= sparse:
        inner = d - sparse + 1
        return like(x, values.log_softmax(inner) if log else values.softmax(inner))
    if x._nnz() == 0:
        return like(x, values)
    rows, n = _groups(x, d)
    top = F.full((n, *values.shape[1:]), -math.inf, dtype=values.dtype, device=values.device)
    wide = rows.reshape(rows.shape[0], *([1] * (values.ndim - 1))).expand(values.shape)
    top = F.scatter_reduce(top, 0, wide, values.detach(), "amax", include_self=True)
    top = F.where(F.isinf(top) & (top < 0), F.zeros_like(top), top)
    shifted = values - top[rows]
    sums = add_at(n, rows, shifted.exp())
    if log:
        return like(x, shifted - sums.log()[rows])
    return like(x, shifted.exp() / sums[rows])
