"""Masked reductions of sparse tensors: results keep the layout. Without a mask, elements that are not specified do not
count; with one, it alone decides, and those that are not specified are 0.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from ..core import dtype as dt
from ..core.layout import wrap_dims
from ..ops.registry import F


def also_sparse(needs_mask: bool, layouts: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Let a masked reduction take sparse tensors of these layouts."""

    def around(reduce: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(reduce)
        def run(input: Any, dim: Any = None, *, keepdim: Any = False, dtype: Any = None, mask: Any = None) -> Any:
            if not input.layout.name.startswith("sparse"):
                return reduce(input, dim, keepdim=keepdim, dtype=dtype, mask=mask)
            if input.layout.name not in layouts.split():
                raise ValueError(f"masked {reduce.__name__} expects strided tensors or {layouts} (got {input.layout}).")
            if needs_mask and mask is None:
                raise ValueError(f"masked {reduce.__name__} expects explicit mask for {input.layout.name} tensor input")
            return _reduced(reduce, input, dim, bool(keepdim), dtype, mask)

        return run

    return around


def _reduced(reduce: Callable[..., Any], x: Any, dim: Any, keepdim: bool, dtype: Any, mask: Any) -> Any:
    from ..sparse.convert import coalesce, convert
    from ..sparse.tensor import CooTensor, coo

    x = coalesce(x) if isinstance(x, CooTensor) else x
    if mask is None:
        counts = x._with(F.ones_like(x._held, dtype=dt.bool_)).to_dense()
    else:
        mask = mask.to_dense() if mask.layout.name != "strided" else mask
        counts = F.expand(mask.to(dt.bool_), tuple(x.shape))
    made = reduce(x.to_dense(), dim, keepdim=keepdim, dtype=dtype, mask=counts)
    left = counts
    for d in reversed(wrap_dims("masked", () if dim is None else dim, x.ndim)):
        left = F.any(left, d, keepdim)
    if made.ndim:
        found = coo(F.nonzero(left).t().contiguous(), made[left], tuple(made.shape), True)
    else:  # what everything was reduced to is there, also where nothing counts
        found = coo(F.zeros((0, 1), dtype=dt.int64, device=x.device), made.reshape(1), (), True)
    if isinstance(x, CooTensor):
        return found
    if not keepdim:
        raise ValueError(f"masked {reduce.__name__}: reductions of {x.layout.name} tensors take keepdim=True only.")
    return convert(found, x._layout)
