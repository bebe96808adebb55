"""Losses of one value against another: squares, distances, likelihoods. Knows formulas and
torch's arguments; how a loss is reduced stands here for all of them.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ..core import dtype as dt
from ..core.errors import DtypeError, fail, received
from ..core.layout import Spec
from ..formula import Expr, apply, where
from .autocast_policy import FLOAT32
from .registry import F, composite, pointwise
from .schema import is_tensor
from .untracked import unobserved
from .warning import warn

if TYPE_CHECKING:
    from .types import Number, Operand, Tensor

NN = ("nn.functional",)


def reduction_of(op: str, reduction: str, size_average: bool | None = None, reduce: bool | None = None) -> str:
    """none, mean or sum; torch's old pair of switches overrides it, with a warning."""
    if size_average is not None or reduce is not None:
        kind = "none" if reduce is False else "sum" if size_average is False else "mean"
        warn(f"{op}: size_average and reduce are deprecated; use reduction={kind!r}.")
        return kind
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{op}: reduction must be 'none', 'mean' or 'sum', got {reduction!r}.")
    return str(reduction)


def reduced(loss: Tensor, kind: str) -> Tensor:
    """The losses themselves, their mean or their sum."""
    return loss if kind == "none" else F.mean(loss) if kind == "mean" else F.sum(loss)


def warn_broadcast(op: str, input: Tensor, target: Tensor) -> None:
    if input._spec.shape != target._spec.shape:
        warn(
            f"{op}: a target of shape {tuple(target.shape)} is stretched against an input of "
            f"shape {tuple(input.shape)}, which is likely a mistake; make the shapes equal."
        )


def _weighted(op: str, loss: Tensor, weight: Tensor, input: Tensor) -> Tensor:
    if weight._spec.shape != input._spec.shape:
        raise ValueError(
            f"{op}: weight and input must have the same shape, got {tuple(weight.shape)} and {tuple(input.shape)}."
        )
    return loss * weight


# --- distances ------------------------------------------------------------------------------------

pointwise(
    "_squared_error(Tensor input, Tensor target)",
    lambda x, t: apply("square", x - t),
    allow="f",
    doc="The square of a difference.",
)


def _smooth_l1(x: Expr, t: Expr, beta: float) -> Expr:
    u = x - t
    # NaN belongs to the parabola, whose slope it is; that of a line would hide it.
    return where(abs(u) >= beta, abs(u) - 0.5 * beta, u * u * (0.5 / beta))


pointwise(
    "_smooth_l1(Tensor input, Tensor target, float beta)",
    _smooth_l1,
    allow="f",
    doc="A parabola within `beta`, lines outside.",
    typical=((1.0,),),
)


def _huber_types(promoted: dt.dtype, x: Spec, *rest: Spec | Number) -> tuple[dt.dtype, dt.dtype]:
    if x.dtype.category != dt.FLOAT:
        fail(DtypeError, "huber_loss", f"the result does not fit into the input's {x.dtype}.")
    return promoted, x.dtype


def _huber(x: Expr, t: Expr, delta: float) -> Expr:
    u = x - t
    return where(abs(u) > delta, delta * (abs(u) - 0.5 * delta), 0.5 * (u * u))


pointwise(
    "_huber(Tensor input, Tensor target, float delta)",
    _huber,
    dtypes=_huber_types,
    allow="f",
    doc="A parabola within `delta`, lines of slope `delta` outside.",
    typical=((1.0,),),
)


@composite(namespaces=NN, method=False, autocast=FLOAT32)
def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """The mean of `(input - target)^2`; with weights, divided by their sum.

    >>> votive.nn.functional.mse_loss(votive.tensor([1.0, 2.0]), votive.tensor([1.0, 4.0]))
    tensor(2.)
    """
    op = "mse_loss"
    warn_broadcast(op, input, target)
    kind = reduction_of(op, reduction, size_average, reduce)
    loss = F._squared_error(input, target)
    if weight is None:
        return reduced(loss, kind)
    loss = _weighted(op, loss, weight, input)
    return F.sum(loss) / F.sum(weight) if kind == "mean" else reduced(loss, kind)


@composite(namespaces=NN, method=False, autocast=FLOAT32)
def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """The mean of `|input - target|`; with weights, divided by their sum.

    >>> votive.nn.functional.l1_loss(votive.tensor([1.0, 2.0]), votive.tensor([1.0, 4.0]))
    tensor(1.)
    """
    op = "l1_loss"
    warn_broadcast(op, input, target)
    kind = reduction_of(op, reduction, size_average, reduce)
    loss = F.abs(input - target)
    if weight is None:
        return reduced(loss, kind)
    loss = _weighted(op, loss, weight, input)
    return F.sum(loss) / F.sum(weight) if kind == "mean" else reduced(loss, kind)


@composite(namespaces=NN, method=False, autocast=FLOAT32)
def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """The mean of `u^2 / (2 beta)` where `|u| < beta`, else of `|u| - beta / 2`; u is the error.

    >>> votive.nn.functional.smooth_l1_loss(votive.tensor([0.5, 2.0]), votive.tensor([0.0, 0.0]))
    tensor(0.8125)
    """
    op = "smooth_l1_loss"
    warn_broadcast(op, input, target)
    kind = reduction_of(op, reduction, size_average, reduce)
    if beta < 0:
        fail(RuntimeError, op, f"beta must not be negative, got {beta}.")
    loss = F.abs(input - target) if beta == 0 else F._smooth_l1(input, target, beta)
    return reduced(loss, kind)


@composite(namespaces=NN, method=False, autocast=FLOAT32)
def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """The mean of `u^2 / 2` where `|u| <= delta`, else of `delta (|u| - delta / 2)`.

    >>> votive.nn.functional.huber_loss(votive.tensor([0.5, 2.0]), votive.tensor([0.0, 0.0]))
    tensor(0.8125)
    """
    op = "huber_loss"
    warn_broadcast(op, input, target)
    kind = reduction_of(op, reduction)
    if delta <= 0:
        fail(RuntimeError, op, f"delta must be positive, got {delta}.")
    loss = F._huber(input, target, delta)
    return reduced(loss if weight is None else _weighted(op, loss, weight, input), kind)


# --- likelihoods ----------------------------------------------------------------------------------

pointwise(
    "_kl_div(Tensor input, Tensor target, bool log_target)",
    lambda x, t, log_target: apply("exp", t) * (t - x) if log_target else apply("xlogy", t, t) - t * x,
    allow="f",
    doc="`p (log p - input)` for p the target, or e to the target.",
    typical=((False,), (True,)),
)


@composite(method=False, namespaces=NN, autocast=FLOAT32)
def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """The Kullback-Leibler divergence `sum p (log p - input)` of p = target from log-probabilities.

    "batchmean" divides by the first size, which is the divergence proper; "mean" by all sizes.

    >>> input = votive.tensor([[0.5, 0.5]]).log()
    >>> target = votive.tensor([[0.25, 0.75]])
    >>> votive.nn.functional.kl_div(input, target, reduction="batchmean")
    tensor(0.1308)
    """
    op = "kl_div"
    if size_average is not None or reduce is not None:
        kind = reduction_of(op, reduction, size_average, reduce)
    else:
        if reduction == "mean":
            warn("kl_div: reduction='mean' divides by every size; 'batchmean' gives the divergence of its definition.")
        kind = reduction_of(op, "sum" if reduction == "batchmean" else reduction)
    for name, t in (("input", input), ("target", target)):
        if t.dtype.category != dt.FLOAT:
            fail(DtypeError, op, f"{name} must be floating-point, got {t.dtype}.")
    loss = reduced(F._kl_div(input, target, log_target), kind)
    return loss / input.shape[0] if reduction == "batchmean" and input.ndim else loss


def _poisson(x: Expr, t: Expr, log_input: bool, full: bool, eps: float) -> Expr:
    loss = apply("exp", x) - t * x if log_input else x - t * apply("log", x + eps)
    if full:
        # Stirling's approximation of log(t!).
        stirling = t * apply("log", t) - t + 0.5 * apply("log", 2 * math.pi * t)
        loss = loss + where(t <= 1, 0, stirling)
    return loss


pointwise(
    "_poisson_nll(Tensor input, Tensor target, bool log_input, bool full, float eps)",
    _poisson,
    dtypes="float",
    allow="ifc",
    doc="Negative log-likelihood of counts under a Poisson distribution.",
    typical=((True, False, 1e-08), (False, False, 1e-08)),
)


@composite(namespaces=NN, method=False, autocast=FLOAT32)
def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean of `e^input - target input`, or of `input - target log(input + eps)`.

    That is the negative log-likelihood of counts under a Poisson distribution whose log-rate (or
    rate) is given, up to `log(target!)`, which `full` adds by Stirling's approximation.

    >>> votive.nn.functional.poisson_nll_loss(votive.tensor([0.0]), votive.tensor([3.0]))
    tensor(1.)
    """
    kind = reduction_of("poisson_nll_loss", reduction, size_average, reduce)
    return reduced(F._poisson_nll(input, target, log_input, full, eps), kind)


def _variance(op: str, input: Tensor, var: Operand) -> Tensor:
    """The variance as a tensor that broadcasts against the input along one dimension at most."""
    if isinstance(var, float):
        if var < 0:
            raise ValueError(f"{op}: var must not be negative, got {var}.")
        return F.full_like(input, var)
    if not is_tensor(var):
        raise TypeError(f"{op}: var must be a Tensor or a float, got {received(var)}.")
    if not var.is_meta and bool(F.any(var < 0)):
        raise ValueError(f"{op}: var must not be negative.")
    have, want = var._spec.shape, input._spec.shape
    if have == want:
        return var
    if have == want[:-1]:
        return var.unsqueeze(-1)
    if len(have) == len(want) and [h for h, w in zip(have, want, strict=True) if h != w] == [1]:
        return var
    raise ValueError(f"{op}: var of shape {have} does not fit an input of shape {want}.")


@composite(namespaces=NN, method=False)
def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Operand, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Tensor:
    """The mean of `(log v + (input - target)^2 / v) / 2`, v the variance but no less than eps.

    The bound has no gradient: it passes to `var` as if it were not there, as in torch.

    >>> one = votive.ones(2)
    >>> votive.nn.functional.gaussian_nll_loss(one, votive.tensor([1.0, 3.0]), one)
    tensor(1.)
    """
    op = "gaussian_nll_loss"
    v = _variance(op, input, var).clone()
    kind = reduction_of(op, reduction)
    with unobserved():
        v.clamp_(min=eps)
    loss = 0.5 * (F.log(v) + F.square(input - target) / v)
    return reduced(loss + 0.5 * math.log(2 * math.pi) if full else loss, kind)
