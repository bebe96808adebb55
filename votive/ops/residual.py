"""A sum and the norm behind it as one operator: what a residual stream does between two layers.

Knows shapes and gradients. Apart, the two read and write the stream several times more; the type
of the normed result is asked for, since what comes next often wants fewer digits than the stream.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core import dtype as dt
from ..core.errors import ShapeError, fail
from ..core.layout import Spec
from ..core.mode import mode
from ..core.promotion import promote_types
from .normalization import layer_norm_backward_composite, rms_norm_backward_composite
from .registry import F, structured
from .standardise import affine_gradients, check_parameters

if TYPE_CHECKING:
    from .types import Context


def _infer(
    x: Spec, delta: Spec, weight: Any, bias: Any, dims: int, eps: float, centre: bool, dtype: Any
) -> tuple[Spec, ...]:
    op = "add_norm"
    if x.shape != delta.shape:
        fail(ShapeError, op, f"what is added must have shape {x.shape}, got {delta.shape}.")
    total = x.like(x.shape, dtype=promote_types(x.dtype, delta.dtype))
    check_parameters(op, total, weight=weight, bias=bias)
    for name, p in (("weight", weight), ("bias", bias)):
        if p is not None and p.shape != x.shape[x.ndim - dims :]:
            fail(ShapeError, op, f"{name} of {p.shape} does not fit into {x.shape}.")
    kind = dt.compute_type(total.dtype)
    rows = x.like((*x.shape[: x.ndim - dims], *[1] * dims), dtype=kind)
    mean = rows if centre else x.like((0,), dtype=kind)
    return total.like(x.shape, dtype=dtype or total.dtype), total, mean, rows


def _grad(c: Context, by_normed: Any, by_sum: Any, *_: Any) -> tuple[Any, ...]:
    kinds = c.spec("input").dtype, c.spec("delta").dtype
    if by_normed is None:
        return *[F._to_dtype(by_sum, kind) for kind in kinds], None, None
    if mode.grad:
        if c.centre:
            g, *rest = layer_norm_backward_composite(by_normed, c.out1, c.weight, c.dims, c.eps)
        else:
            g, *rest = rms_norm_backward_composite(by_normed, c.out1, c.weight, c.dims, c.eps)
        g = g if by_sum is None else g + by_sum
        return *[F._to_dtype(g, kind) for kind in kinds], *(*rest, None)[:2]
    g, narrow, by_weight, by_bias = F._add_norm_backward(
        by_normed,
        by_sum,
        c.out1,
        c.out2 if c.centre else None,
        c.out3,
        c.weight,
        c.dims,
        kinds[1],
        c.needs("weight") or c.needs("bias"),
    )
    return F._to_dtype(g, kinds[0]), g if g.dtype is kinds[1] else narrow, by_weight, by_bias


structured(
    "_add_norm(Tensor input, Tensor delta, Tensor? weight, Tensor? bias, int dims, float eps, "
    "bool centre, dtype? dtype)",
    placement="rows",
    infer=_infer,
    grad=_grad,
    n_out=4,
    partial=True,
    doc="The norm of `input + delta` in a type of its own, the sum, and the sum's mean and rstd. "
    "`centre`: layer_norm; else rms_norm.",
)


def _infer_backward(
    g: Spec, by_sum: Any, total: Spec, mean: Any, rstd: Spec, weight: Any, dims: int, delta: Any, by_affine: bool
) -> tuple[Spec, ...]:
    narrow = total.like((0,) if delta is total.dtype else total.shape, dtype=delta)
    shape = total.shape[total.ndim - dims :]
    by_weight, _ = affine_gradients(total, shape, by_affine)
    by_bias, _ = affine_gradients(total, shape, by_affine and mean is not None)
    return total.like(total.shape), narrow, by_weight, by_bias


structured(
    "_add_norm_backward(Tensor grad, Tensor? by_sum, Tensor total, Tensor? mean, Tensor rstd, "
    "Tensor? weight, int dims, dtype delta, bool by_affine)",
    infer=_infer_backward,
    differentiable=False,  # with a graph being made, composites run instead
    n_out=4,
    doc="The gradients of `_add_norm` by the sum, by the sum in the type of `delta` where that is "
    "another, by weight and by bias.",
)
