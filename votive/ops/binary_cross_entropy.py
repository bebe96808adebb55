"""Losses of yes-or-no targets: binary cross entropy of probabilities and of logits, and margins
in its manner. Knows formulas and torch's arguments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..backends.base import has_own
from ..core import dtype as dt
from ..core.errors import DtypeError, ShapeError, UnsupportedError, fail
from ..core.layout import Spec
from ..formula import Expr, apply
from .autocast_policy import FLOAT32
from .loss import NN, reduced, reduction_of
from .registry import F, composite, pointwise, structured

if TYPE_CHECKING:
    from .types import Tensor

# torch's bounds: logarithms of 0 count as -100, and the divisor of the gradient as 1e-12 or more,
# which it keeps as a float32.
_LOG_FLOOR = -100.0
_DIVISOR_FLOOR = 9.999999960041972e-13


def _log_sigmoid(x: Expr) -> Expr:
    return apply("minimum", x, 0) - apply("log1p", apply("exp", -abs(x)))


def _floored(x: Expr) -> Expr:
    return apply("maximum", x, _LOG_FLOOR)


def _by_input(g: Expr, x: Expr, t: Expr) -> Expr:
    return g * (x - t) / apply("maximum", (1 - x) * x, _DIVISOR_FLOOR)


def _by_target(g: Expr, x: Expr) -> Expr:
    return g * (apply("log1p", -x) - apply("log", x))


pointwise(
    "_bce(Tensor input, Tensor target)",
    lambda x, t: (t - 1) * _floored(apply("log1p", -x)) - t * _floored(apply("log", x)),
    allow="f",
    grad={"input": lambda g, x, t, y: _by_input(g, x, t), "target": lambda g, x, t, y: _by_target(g, x)},
    doc="`-t log(x) - (1 - t) log(1 - x)` with bounded logarithms.",
)

pointwise("_bce_by_input(Tensor grad, Tensor input, Tensor target)", _by_input, allow="f", doc="A gradient of `_bce`.")
pointwise("_bce_by_target(Tensor grad, Tensor input)", _by_target, allow="f", doc="A gradient of `_bce`.")

structured(
    "_checked_bce(Tensor input, Tensor target)",
    placement="elementwise",
    infer=lambda x, t: x.dense_like(),
    grad={
        "input": lambda c, g: F._bce_by_input(g, c.input, c.target),
        "target": lambda c, g: F._bce_by_target(g, c.input),
    },
    doc="`_bce` of what must lie between 0 and 1, looked at in the same pass.",
)


def _logit_types(promoted: dt.dtype, x: Spec, t: Spec, *rest: Spec) -> tuple[dt.dtype, dt.dtype]:
    if x.dtype.category != dt.FLOAT:
        fail(
            UnsupportedError,
            "binary_cross_entropy_with_logits",
            f"not implemented for an input of {x.dtype}; it takes floating-point.",
        )
    if t.dtype.category != dt.FLOAT:
        fail(
            DtypeError,
            "binary_cross_entropy_with_logits",
            f"target must be floating-point, got {t.dtype}; cast it with .to(input.dtype).",
        )
    return promoted, t.dtype


# The gradients by x are given: those of minimum and abs have a kink at 0 that the loss has not.
pointwise(
    "_bce_logits(Tensor input, Tensor target)",
    lambda x, t: (1 - t) * x - _log_sigmoid(x),
    dtypes=_logit_types,
    allow="f",
    grad={"input": lambda g, x, t, y: g * (apply("sigmoid", x) - t)},
    doc="Binary cross entropy of logits.",
)

pointwise(
    "_bce_logits_weighted(Tensor input, Tensor target, Tensor pos_weight)",
    lambda x, t, w: (1 - t) * x - (1 + (w - 1) * t) * _log_sigmoid(x),
    dtypes=_logit_types,
    allow="f",
    grad={"input": lambda g, x, t, w, y: g * ((1 - t) - (1 + (w - 1) * t) * apply("sigmoid", -x))},
    doc="Binary cross entropy of logits with a weight on positive targets.",
)

pointwise(
    "_softplus_margin(Tensor input, Tensor target)",
    lambda x, t: -_log_sigmoid(t * x),
    dtypes=lambda promoted, x, t: (promoted, x.dtype),
    allow="f",
    grad={
        "input": lambda g, x, t, y: -g * t * apply("sigmoid", -(t * x)),
        "target": lambda g, x, t, y: -g * x * apply("sigmoid", -(t * x)),
    },
    doc="`log(1 + e^(-t x))` without overflow.",
)


def _weighted(op: str, loss: Tensor, weight: Tensor | None, like: Tensor) -> Tensor:
    """The loss times its weight, neither of which may stretch it beyond the input's shape."""
    if weight is not None:
        loss = loss * weight
    if loss._spec.shape != like._spec.shape:
        fail(
            ShapeError,
            op,
            f"weights and targets must broadcast to the input's shape {tuple(like.shape)}, they "
            f"make it {tuple(loss.shape)}.",
        )
    return loss


def _check_probabilities(op: str, name: str, x: Tensor) -> None:
    if x._spec.numel and not x.is_meta:
        low, high = F.aminmax(x.detach())
        if not (float(low) >= 0 and float(high) <= 1):  # NaN neither
            fail(RuntimeError, op, f"all elements of {name} must lie between 0 and 1.")


@composite(namespaces=NN, method=False, autocast={"cpu": "float32", "cuda": "refused"})
def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean of `-target log(input) - (1 - target) log(1 - input)` of probabilities.

    >>> votive.nn.functional.binary_cross_entropy(votive.tensor([0.5]), votive.tensor([1.0]))
    tensor(0.6931)
    """
    op = "binary_cross_entropy"
    kind = reduction_of(op, reduction, size_average, reduce)
    if target._spec.shape != input._spec.shape:
        raise ValueError(
            f"{op}: target and input must have the same shape, got {tuple(target.shape)} and {tuple(input.shape)}."
        )
    if target.dtype is not input.dtype:
        fail(DtypeError, op, f"target must be {input.dtype} as the input, got {target.dtype}.")
    if has_own("_checked_bce", input._spec.device.type):  # to ask what lies where would be to wait for the device
        loss = F._checked_bce(input, target)
    else:
        loss = F._bce(input, target)
        _check_probabilities(op, "input", input)
        _check_probabilities(op, "target", target)
    return reduced(_weighted(op, loss, weight, input), kind)


@composite(namespaces=NN, method=False, autocast=FLOAT32)
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """Binary cross entropy of `sigmoid(input)`, computed from the logits without overflow.

    `pos_weight` multiplies the loss of positive targets.

    >>> f = votive.nn.functional.binary_cross_entropy_with_logits
    >>> f(votive.tensor([0.0, 100.0]), votive.tensor([1.0, 0.0]), reduction="none")
    tensor([  0.6931, 100.0000])
    """
    op = "binary_cross_entropy_with_logits"
    kind = reduction_of(op, reduction, size_average, reduce)
    if target._spec.shape != input._spec.shape:
        raise ValueError(
            f"{op}: target and input must have the same shape, got {tuple(target.shape)} and {tuple(input.shape)}."
        )
    if pos_weight is None:
        loss = F._bce_logits(input, target)
    else:
        loss = F._bce_logits_weighted(input, target, pos_weight)
    return reduced(_weighted(op, loss, weight, input), kind)


@composite(namespaces=NN, method=False)
def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Binary cross entropy of logits, averaged over the classes in the last dimension.

    >>> input, target = votive.tensor([[0.0, 100.0]]), votive.tensor([[1.0, 1.0]])
    >>> votive.nn.functional.multilabel_soft_margin_loss(input, target)
    tensor(0.3466)
    """
    kind = reduction_of("multilabel_soft_margin_loss", reduction, size_average, reduce)
    loss = -(target * F.logsigmoid(input) + (1 - target) * F.logsigmoid(-input))
    if weight is not None:
        loss = loss * weight
    dim = input.ndim - 1
    return reduced(loss.sum(dim) / input.size(dim), kind)


@composite(namespaces=NN, method=False, autocast=FLOAT32)
def soft_margin_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
) -> Tensor:
    """The mean of `log(1 + e^(-target input))` for targets of 1 and -1.

    >>> votive.nn.functional.soft_margin_loss(votive.tensor([0.0]), votive.tensor([1.0]))
    tensor(0.6931)
    """
    op = "soft_margin_loss"
    kind = reduction_of(op, reduction, size_average, reduce)
    if input.dtype.category != dt.FLOAT:
        fail(DtypeError, op, f"takes floating-point inputs, got {input.dtype}.")
    return reduced(_weighted(op, F._softplus_margin(input, target), None, input), kind)
