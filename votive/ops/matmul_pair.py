"""Two linear layers with an activation between them, recorded as one: the feed-forward part of a
transformer. Knows shapes, dtypes and gradients only.

Joined, the activation and its gradient run inside the products before and after them, and sums over
rows inside the products that read those rows anyway.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core.errors import ShapeError, fail
from ..core.layout import Spec
from ..core.mode import mode
from .matmul import _fold, _infer_linear, _linear_weight_gradient
from .matmul_activation import _before, _check, activate
from .matmul_gradient import by_columns
from .registry import F, composite, structured

if TYPE_CHECKING:
    from .types import Context, Tensor


def _infer(x: Spec, w1: Spec, b1: Spec | None, w2: Spec, b2: Spec | None, activation: str) -> tuple[Spec, Spec, Spec]:
    _check("feed_forward", x, activation)
    for weight, bias in ((w1, b1), (w2, b2)):
        if weight.ndim != 2 or (bias is not None and bias.shape != weight.shape[:1]):
            fail(
                ShapeError,
                "feed_forward",
                "a weight must be a matrix and a bias have one number for each of its rows, got "
                f"shapes {weight.shape} and {None if bias is None else bias.shape}.",
            )
    hidden = _infer_linear(x, w1, b1)
    out = _infer_linear(hidden, w2, b2)
    # The sign of what a relu got is that of what it gave.
    return out, x.like((0,)) if activation == "relu" else hidden, hidden


def _gradients(c: Context, g: Tensor, *_: Any) -> tuple[Any, ...]:
    x, w1, w2, b1, b2 = c.input, c.weight1, c.weight2, c.bias1, c.bias2
    if mode.grad:
        return _gradients_apart(g, x, w1, b1, w2, b2, c.activation)
    before, after, rows = c.out1, _fold(c.out2), _fold(g)
    by_w2, by_b2 = F._linear_gradients(rows, after, by_columns(w2._spec))
    kept = after if c.activation == "relu" else _fold(before)
    gz, by_b1 = F._linear_slope(rows, w2, kept, c.activation)
    by_w1 = _linear_weight_gradient(gz, _fold(x), w1._spec)
    by_x = F.reshape(F.matmul(gz, w1), x._spec.shape) if c.needs("input") else None
    return by_x, by_w1, None if b1 is None else by_b1, by_w2, None if b2 is None else by_b2


def _gradients_apart(
    g: Tensor, x: Tensor, w1: Tensor, b1: Tensor | None, w2: Tensor, b2: Tensor | None, activation: str
) -> tuple[Any, ...]:
    """The gradients from single operators, so that they have gradients too."""
    z = F.linear(x, w1, b1)
    gz = _before(activation, F.matmul(g, w2), z)
    by_w1 = _linear_weight_gradient(gz, x, w1._spec)
    by_w2 = _linear_weight_gradient(g, activate(activation, z), w2._spec)
    by_b1, by_b2 = None if b1 is None else gz, None if b2 is None else g
    return F.matmul(gz, w1), by_w1, by_b1, by_w2, by_b2


structured(
    "_feed_forward(Tensor input, Tensor weight1, Tensor? bias1, Tensor weight2, Tensor? bias2, str activation)",
    infer=_infer,
    grad=_gradients,
    n_out=3,
    autocast={"cpu": "lower", "cuda": "lower"},
    doc="`linear(activation(linear(input, weight1, bias1)), weight2, bias2)`; what the activation "
    "got and what it gave, too.",
)


@composite(name="_feed_forward_composite")
def feed_forward_composite(
    input: Tensor, weight1: Tensor, bias1: Tensor | None, weight2: Tensor, bias2: Tensor | None, activation: str
) -> Tensor:
    """The same from single operators: what the fused kernels must agree with."""
    return F.linear(activate(activation, F.linear(input, weight1, bias1)), weight2, bias2)
