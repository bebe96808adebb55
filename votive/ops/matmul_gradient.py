"""Products of the backward pass that make a second result on their way: sums of columns, and the
slope of the activation before them. Knows shapes and dtypes only.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..backends.base import has_own
from ..core.errors import ShapeError, fail
from ..core.layout import Spec
from .registry import F, structured

if TYPE_CHECKING:
    from .types import Tensor


def _infer_gradients(grad: Spec, x: Spec, transposed: bool) -> tuple[Spec, Spec]:
    if grad.ndim != 2 or x.ndim != 2 or grad.shape[0] != x.shape[0]:
        fail(
            ShapeError,
            "linear",
            f"the gradient and the input must be rows of the same number, got {grad.shape} and {x.shape}.",
        )
    rows, cols = grad.shape[1], x.shape[1]
    by_weight = x.like((rows, cols), strides=(1, rows) if transposed else None)
    return by_weight, grad.like((rows,))


structured(
    "_linear_gradients(Tensor grad, Tensor input, bool transposed)",
    infer=_infer_gradients,
    doc="`grad.T @ input` and the sums of grad's columns: what a linear layer's weight and bias "
    "get. `transposed`: the first lies in memory by columns.",
    differentiable=False,
    n_out=2,
)


def _infer_slope(grad: Spec, weight: Spec, kept: Spec, activation: str) -> tuple[Spec, Spec]:
    shape = (grad.shape[0], weight.shape[1])
    if grad.shape[1] != weight.shape[0] or kept.shape != shape:
        fail(ShapeError, "linear", f"a product of {grad.shape} and {weight.shape} does not fit {kept.shape}.")
    return grad.like(shape), grad.like((shape[1],))


structured(
    "_linear_slope(Tensor grad, Tensor weight, Tensor kept, str activation)",
    infer=_infer_slope,
    doc="`grad @ weight` times the slope of the activation, and the sums of its columns. `kept` is "
    "what the activation got, or what a relu gave.",
    differentiable=False,
    n_out=2,
)


def by_columns(weight: Spec) -> bool:
    """Whether a matrix lies in memory column by column, as one that was transposed does."""
    return weight.ndim == 2 and weight.strides == (1, weight.shape[0]) and not weight.contiguous


def joins_sums(grad: Spec, weight: Spec, bias: Spec) -> bool:
    """Whether a device makes the gradient of a bias on the way to that of the weight."""
    return (
        has_own("_linear_gradients", grad.device.type)
        and grad.ndim > 1
        and weight.ndim == 2
        and bias.shape == weight.shape[:1]
        and grad.dtype.is_floating_point
    )


def weight_and_bias(g: Tensor, x: Any, weight: Spec) -> Any:
    """Both gradients of a linear layer by one product."""
    shape = g._spec.shape
    if len(shape) > 2:
        rows = math.prod(shape[:-1])
        g, x = (F.reshape(t, (rows, t._spec.shape[-1])) for t in (g, x))
    return F._linear_gradients(g, x, by_columns(weight))
