"""Rows of a table whose gradient is sparse: only the rows that were used are in it."""

from __future__ import annotations

from typing import Any

from ..autograd.function import Function
from ..core import dtype as dt
from ..ops.embedding_bag import rows_of
from ..ops.registry import F
from ..tensor import Tensor
from .tensor import coo


def _gradient(rows: Tensor, indices: Tensor, padding: int, shape: Any) -> Any:
    """What the used rows receive, as a hybrid COO tensor; the padding row receives nothing."""
    at = indices.reshape(-1).to(dt.int64)
    rows = rows.reshape(at.shape[0], shape[1])
    if padding >= 0:
        kept = F.nonzero(at != padding).reshape(-1)
        at, rows = at[kept], F.index_select(rows, 0, kept)
    return coo(at.unsqueeze(0), rows, shape, False)


class _Rows(Function):
    @staticmethod
    def forward(ctx: Any, weight: Tensor, indices: Tensor, padding: int) -> Tensor:
        ctx.indices, ctx.padding, ctx.shape = indices, padding, tuple(weight.shape)
        return F._embedding(weight, indices, padding, False)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return _gradient(g, ctx.indices, ctx.padding, ctx.shape), None, None


class _Bags(Function):
    @staticmethod
    def forward(ctx: Any, weight: Tensor, factors: Any, indices: Tensor, offsets: Tensor, *how: Any) -> Tensor:
        mean, padding, ends = how
        ctx.given, ctx.how = (weight, factors, indices, offsets), (mean, padding)
        return F._bag(weight, indices, offsets, factors, mean, padding, False, ends)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        (weight, factors, indices, offsets), (mean, padding) = ctx.given, ctx.how
        rows = rows_of(g, indices, offsets, mean, padding)
        by_factors = None
        if factors is not None and ctx.needs_input_grad[1]:
            by_factors = (rows * F.index_select(weight, 0, indices)).sum(-1)
        if factors is not None:
            rows = rows * factors.unsqueeze(-1)
        by_weight = None
        if ctx.needs_input_grad[0]:
            by_weight = _gradient(rows.to(weight.dtype), indices, padding, tuple(weight.shape))
        return by_weight, by_factors, None, None, None, None, None


def rows(weight: Tensor, indices: Tensor, padding: int) -> Tensor:
    """`weight[indices]`."""
    made: Tensor = _Rows.apply(weight, indices, padding)
    return made


def bags(
    weight: Tensor, factors: Any, indices: Tensor, offsets: Tensor, mean: bool, padding: int, ends: bool
) -> Tensor:
    """Sums or means of rows, bag by bag."""
    made: Tensor = _Bags.apply(weight, factors, indices, offsets, mean, padding, ends)
    return made
