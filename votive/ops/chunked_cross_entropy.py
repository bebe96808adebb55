"""Cross entropy with the product that makes its logits, some rows at a time: all of the logits are never in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core import dtype as dt
from ..core.errors import ShapeError, fail
from ..core.layout import Spec
from ..core.mode import mode
from .cross_entropy import _per_target
from .registry import Context, F, structured

if TYPE_CHECKING:
    from ..tensor import Tensor


def _infer(x: Spec, weight: Spec, bias: Spec | None, target: Spec, *rest: Any) -> tuple[Spec, ...]:
    if x.ndim != 2 or weight.ndim != 2 or target.shape != x.shape[:1]:
        fail(ShapeError, "linear_cross_entropy", f"got {x.shape}, {weight.shape} and targets {target.shape}.")
    scalar, none, graded = x.like((), dtype=dt.compute_type(x.dtype)), x.like((0,)), rest[-1]
    by_bias = weight.like(weight.shape[:1]) if graded and bias is not None else none
    return scalar, scalar, *((x.dense_like(), weight.dense_like()) if graded else (none, none)), by_bias


def _grad(c: Context, g: Tensor, *_: Tensor | None) -> tuple[Tensor | None, ...]:
    if mode.grad or not c.graded:  # as if it were two calls
        logits = F.linear(c.input, c.linear_weight, c.bias)
        by = F._cross_entropy_backward(_per_target(c, g), logits, c.target, None, c.ignore_index, c.smoothing)
        by_x, by_weight = F.matmul(by, c.linear_weight), F.matmul(by.transpose(0, 1), c.input)
        return by_x, by_weight, None if c.bias is None else by.sum(0), None
    scale = g / c.out1 if c.mean else g
    return c.out2 * scale, c.out3 * scale, None if c.bias is None else c.out4 * scale, None


structured(
    "_linear_cross_entropy(Tensor input, Tensor linear_weight, Tensor? bias, Tensor target, int ignore_index, "
    "float smoothing, bool mean, bool graded)",
    infer=_infer,
    grad=_grad,
    n_out=5,
    doc="The sum or mean of the cross entropy of `input @ linear_weight.T + bias`, and the weight of the targets that "
    "count. Logits are computed in chunks; if `graded`, so are the gradients of the sum, at once.",
)
