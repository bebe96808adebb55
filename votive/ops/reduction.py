"""Reductions: many values become one. Knows shapes, dtypes and gradients."""

from __future__ import annotations

from typing import Any

from ..core import dtype as dt
from ..core.layout import Spec, reduced_shape, wrap_dims
from .registry import F, composite, structured


def _canon_sum(x: Spec, dim: Any, keepdim: bool, dtype: Any) -> tuple[Any, ...]:
    if dtype is None:
        dtype = x.dtype if x.dtype.category >= dt.FLOAT else dt.int64
    return x, wrap_dims("sum", dim, x.ndim), keepdim, dtype


def unreduce(g: Any, shape: tuple[int, ...], dims: tuple[int, ...], keepdim: bool) -> Any:
    """Stretch a reduced gradient back over the reduced dimensions."""
    if not keepdim:
        for d in dims:
            g = g.unsqueeze(d)
    return g.expand(shape)


structured(
    "sum(Tensor input, int[]? dim=None, bool keepdim=False, *, dtype? dtype=None)",
    canon=_canon_sum,
    infer=lambda x, dim, keepdim, dtype: x.like(reduced_shape(x.shape, dim, keepdim), dtype=dtype),
    grad={"input": lambda c, g: unreduce(g, c.shape("input"), c.dim, c.keepdim)},
    doc="""Sum over all or some dimensions.

    >>> votive.sum(votive.tensor([[1, 2], [3, 4]]), dim=0)
    tensor([4, 6])
    """,
)


@composite(name="_reduce_to", method=False, namespaces=())
def reduce_to(input: Any, shape: tuple[int, ...]) -> Any:
    """Sum over the dimensions that broadcasting stretched."""
    shape = tuple(shape)
    have = input._spec.shape
    if have == shape:
        return input
    lead = len(have) - len(shape)
    dims = list(range(lead)) + [
        i + lead for i, n in enumerate(shape) if n == 1 and have[i + lead] != 1
    ]
    out = F.sum(input, dims, True) if dims else input
    return F.reshape(out, shape) if lead else out
