"""Norms per channel over a batch, with running statistics: batch_norm, instance_norm.

Knows shapes and gradients, not how they run.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..core import dtype as dt
from ..core.errors import DimError, ShapeError, fail
from ..core.layout import Spec, channels_last_strides, is_channels_last
from ..core.mode import mode
from ..formula import apply
from .registry import F, composite, pointwise, structured
from .standardise import (
    NN,
    affine,
    affine_gradients,
    check_parameters,
    per_channel,
    standardise,
    standardise_gradient,
    widened,
)
from .untracked import untracked

if TYPE_CHECKING:
    from .types import Context, Number, Tensor

# --- batch_norm -----------------------------------------------------------------------------------


def _others(x: Tensor) -> tuple[int, ...]:
    """Every dimension but that of the channels."""
    return (0, *range(2, x.ndim))


def _dense(x: Spec) -> Spec:
    """The input without gaps: channels last if they are so there, else row-major."""
    last = not x.contiguous and is_channels_last(x.shape, x.strides)
    return x.like(x.shape, strides=channels_last_strides(x.shape) if last else None)


def _infer_batch(x: Spec, weight: Spec | None, bias: Spec | None, eps: float) -> tuple[Spec, ...]:
    check_parameters("batch_norm", x, weight=weight, bias=bias)
    one = x.like(x.shape[1:2], dtype=dt.compute_type(x.dtype))
    return _dense(x), one, one


def _grad_batch(c: Context, g: Tensor, *_: Any) -> tuple[Any, ...]:
    if mode.grad:
        return F._batch_norm_backward_composite(g, c.input, c.weight, c.eps)
    wants = c.needs("weight") or c.needs("bias")
    return F._batch_norm_backward(g, c.input, c.out1, c.out2, c.weight, c.eps, c.needs("input"), wants)


structured(
    "_batch_norm(Tensor input, Tensor? weight, Tensor? bias, float eps)",
    infer=_infer_batch,
    grad=_grad_batch,
    n_out=3,
    doc="Each channel normalised over all samples; also its mean and its (biased) variance.",
)

structured(
    "_batch_norm_backward(Tensor grad, Tensor input, Tensor mean, Tensor var, Tensor? weight, "
    "float eps, bool by_input, bool by_affine)",
    infer=lambda g, x, mean, var, w, eps, by_input, by_affine: (
        _dense(x) if by_input else x.like((0,)),
        *affine_gradients(x, x.shape[1:2], by_affine),
    ),
    differentiable=False,  # with a graph being made, the composite runs instead
    n_out=3,
    doc="The gradients of batch_norm by input, weight and bias, in training.",
)


@composite(name="_batch_norm_composite")
def batch_norm_composite(input: Tensor, weight: Tensor, bias: Tensor | None, eps: float) -> Tensor:
    """batch_norm in training from single operators: what the fused kernel must agree with."""
    x, _ = standardise(widened(input), _others(input), eps)
    weight, bias = (per_channel(p, input.ndim) for p in (weight, bias))
    return F._to_dtype(affine(x, weight, bias), input.dtype)


@composite(name="_batch_norm_backward_composite")
def batch_norm_backward_composite(grad: Tensor, input: Tensor, weight: Tensor, eps: float) -> tuple[Any, Any, Any]:
    """The gradients of batch_norm from single operators, so that they have gradients too."""
    over = _others(input)
    x, rstd = standardise(widened(input), over, eps)
    g = widened(grad)
    h = affine(g, per_channel(weight, input.ndim), None)
    return standardise_gradient(h, x, rstd, over), (g * x).sum(over), g.sum(over)


pointwise(
    "_normalise_by(Tensor input, Tensor mean, Tensor var, Operand weight, Operand bias, float eps)",
    lambda x, mean, var, weight, bias, eps: (x - mean) * (apply("rsqrt", var + eps) * weight) + bias,
    dtypes=lambda promoted, x, *rest: (promoted, x.dtype),
    allow="f",
    doc="`(x - mean) * rsqrt(var + eps) * weight + bias` with given statistics.",
)


def _infer_by(x: Spec, *rest: Spec | Number | None) -> Spec:
    return x.dense_like()


def _grad_by(c: Context, g: Tensor) -> tuple[Any, ...]:
    if mode.grad:
        return F._batch_norm_by_backward_composite(g, c.input, c.mean, c.var, c.weight, c.eps)
    wants = any(c.needs(name) for name in ("mean", "var", "weight", "bias"))
    by_input, along, across = F._batch_norm_by_backward(
        g, c.input, c.mean, c.var, c.weight, c.eps, c.needs("input"), wants
    )
    by_mean = by_var = None
    if c.needs("mean") or c.needs("var"):
        # Both enter by `(x - mean) * rstd`, whose products with g are summed up in `along`.
        rstd = F.rsqrt(widened(c.var) + c.eps)
        scale = rstd if c.weight is None else rstd * c.weight
        by_mean, by_var = -across * scale, -0.5 * along * scale * rstd
    return by_input, by_mean, by_var, along, across


structured(
    "_batch_norm_by(Tensor input, Tensor mean, Tensor var, Tensor? weight, Tensor? bias, float eps)",
    placement="samples",
    infer=_infer_by,
    grad=_grad_by,
    doc="Each channel normalised by given statistics.",
)

structured(
    "_batch_norm_by_backward(Tensor grad, Tensor input, Tensor mean, Tensor var, Tensor? weight, "
    "float eps, bool by_input, bool by_affine)",
    infer=lambda g, x, mean, var, w, eps, by_input, by_affine: (
        x.dense_like() if by_input else x.like((0,)),
        *affine_gradients(x, x.shape[1:2], by_affine),
    ),
    differentiable=False,  # with a graph being made, the composite runs instead
    n_out=3,
    doc="The gradients of `_batch_norm_by` by input, weight and bias.",
)


@composite(name="_batch_norm_by_composite")
def batch_norm_by_composite(
    input: Tensor, mean: Tensor, var: Tensor, weight: Tensor, bias: Tensor | None, eps: float
) -> Tensor:
    """batch_norm by given statistics as one formula: what the fused kernel must agree with."""
    mean, var, weight, bias = (per_channel(p, input.ndim) for p in (mean, var, weight, bias))
    return F._normalise_by(input, mean, var, 1.0 if weight is None else weight, 0.0 if bias is None else bias, eps)


@composite(name="_batch_norm_by_backward_composite")
def batch_norm_by_backward_composite(
    grad: Tensor, input: Tensor, mean: Tensor, var: Tensor, weight: Tensor, eps: float
) -> tuple[Any, ...]:
    """The gradients of `_batch_norm_by` from single operators, so that they have gradients too."""
    over = _others(input)
    g, x = widened(grad), widened(input)
    mean, var, weight = (per_channel(p, input.ndim) for p in (mean, var, weight))
    rstd = F.rsqrt(widened(var) + eps)
    scale = rstd if weight is None else rstd * weight
    y = (x - mean) * rstd
    along, across = (g * y).sum(over), g.sum(over)
    by_mean = -across * scale.reshape(-1)
    by_var = -0.5 * along * (scale * rstd).reshape(-1)
    return g * scale, by_mean, by_var, along, across


def _checked(op: str, input: Tensor, channels: int, running: dict[str, Any], parameters: dict[str, Any]) -> None:
    one = (channels,)
    for name, value in (*running.items(), *parameters.items()):
        if value is not None and value._spec.shape != one:
            fail(
                ShapeError,
                op,
                f"{name} must have one value for each of {channels} channels, got shape {tuple(value.shape)}.",
            )
    for name, value in running.items():
        if value is not None and value.requires_grad and mode.grad:
            fail(RuntimeError, op, f"{name} is written, not differentiated: it must not require grad.")


structured(
    "_move_statistics(Tensor running_mean, Tensor running_var, Tensor mean, Tensor var, int count, Scalar momentum)",
    infer=lambda *args: (),
    differentiable=False,
    n_out=0,
    mutates=("running_mean", "running_var"),
    doc="Move running statistics toward means and biased variances of `count` values.",
)


def _update(running: tuple[Any, Any], new: tuple[Any, Any], count: int, momentum: float) -> None:
    """Move running statistics toward what this batch says, outside of any graph.

    `new` has a row for each sample that counts as a batch; each moves the statistic for itself, and
    the mean of that is kept. All of it happens in the type of the statistic, as in torch: in half
    types the rounding shows.
    """
    with untracked():
        F._move_statistics(*running, *new, count, momentum)


def _number(op: str, name: str, value: float | None) -> float:
    if value is None or isinstance(value, str):
        raise TypeError(f"{op}: {name} must be a number, got {type(value).__name__}.")
    return float(value)


def _by_running(
    op: str,
    input: Tensor,
    mean: Tensor | None,
    var: Tensor | None,
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
) -> Tensor:
    for name, value in (("running_mean", mean), ("running_var", var)):
        if value is None:
            fail(RuntimeError, op, f"{name} is needed when the input's statistics are not used.")
    check_parameters(op, input._spec, running_mean=mean, running_var=var, weight=weight, bias=bias)
    return F._batch_norm_by(input, mean, var, weight, bias, eps)


def _of_nothing(input: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    """An empty result that still hangs in the graph of all that it was made from."""
    first = (None if p is None or p.numel() == 0 else p[0] for p in (weight, bias))
    return affine(input.clone(), *first)


def _batch_norm(
    input: Tensor,
    running: tuple[Any, Any],
    weight: Tensor | None,
    bias: Tensor | None,
    training: bool,
    momentum: float | None,
    eps: float,
) -> Tensor:
    op, (mean, var) = "batch_norm", running
    momentum = _number(op, "momentum", momentum)
    if input.numel() == 0:
        return _of_nothing(input, weight, bias)
    if input.ndim < 2:
        kind = IndexError if training and mean is None else ShapeError
        fail(kind, op, f"takes (N, C, ...), got shape {tuple(input.shape)}.")
    named = {"running_mean": mean, "running_var": var}
    _checked(op, input, input.shape[1], named, {"weight": weight, "bias": bias})
    if not training:
        return _by_running(op, input, mean, var, weight, bias, eps)
    if (mean is None) != (var is None):
        raise ValueError(f"{op}: give both running_mean and running_var, or neither.")
    check_parameters(op, input._spec, **named, weight=weight, bias=bias)
    out, batch_mean, batch_var = F._batch_norm(input, weight, bias, eps)
    if mean is not None:
        count = input.numel() // input.shape[1]
        _update(running, (batch_mean, batch_var), count, momentum)
    return out


@composite(namespaces=NN, method=False)
def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """`(x - mean) / sqrt(var + eps) * weight + bias` per channel (dimension 1).

    In training the statistics are the batch's and move the running ones by `momentum`; otherwise
    they are the running ones.

    >>> x = votive.tensor([[1.0], [3.0]])
    >>> votive.nn.functional.batch_norm(x, None, None, training=True)
    tensor([[-1.0000],
            [ 1.0000]])
    """
    if training and input.ndim > 1 and input.numel() == input.shape[1] != 0:
        raise ValueError(f"batch_norm: training needs more than 1 value per channel, got {tuple(input.shape)}.")
    running = (running_mean, running_var)
    return _batch_norm(input, running, weight, bias, training, momentum, eps)


@composite(name="batch_norm", method=False)
def torch_batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Tensor:
    """`(x - mean) / sqrt(var + eps) * weight + bias` per channel (dimension 1).

    >>> x = votive.tensor([[1.0], [3.0]])
    >>> votive.batch_norm(x, None, None, None, None, True, 0.1, 1e-5, False)
    tensor([[-1.0000],
            [ 1.0000]])
    """
    running = (running_mean, running_var)
    return _batch_norm(input, running, weight, bias, training, momentum, eps)


# --- instance_norm --------------------------------------------------------------------------------


def _instance_norm(
    input: Tensor,
    running: tuple[Any, Any],
    weight: Tensor | None,
    bias: Tensor | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
) -> Tensor:
    op, (mean, var) = "instance_norm", running
    momentum = _number(op, "momentum", momentum)
    if input.ndim < 2:
        fail(DimError, op, f"takes (N, C, ...), got shape {tuple(input.shape)}.")
    n, channels, *rest = input.shape
    named = {"running_mean": mean, "running_var": var}
    _checked(op, input, channels, named, {"weight": weight, "bias": bias})
    if not use_input_stats:
        kind = input.dtype if weight is None else weight.dtype
        mean, var = (None if p is None else p.to(kind) for p in (mean, var))
        return _by_running(op, input, mean, var, weight, bias, eps)
    if (mean is None) != (var is None):
        raise ValueError(f"{op}: give both running_mean and running_var, or neither.")
    if mean is None and input.numel():
        return F._group_norm(input, weight, bias, channels, eps)[0]
    # A sample's channels are channels of their own in one big sample.
    flat = input.reshape(1, n * channels, *rest)
    weight, bias = (None if p is None else p.repeat(n) for p in (weight, bias))
    out, means, variances = F._batch_norm(flat, weight, bias, eps)
    if mean is not None and input.numel():
        _update(running, (means, variances), math.prod(rest), momentum)
    return out.reshape(input.shape)


@composite(namespaces=NN, method=False)
def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """`(x - mean) / sqrt(var + eps) * weight + bias` per channel of each sample.

    >>> votive.nn.functional.instance_norm(votive.tensor([[[1.0, 3.0], [10.0, 30.0]]]))
    tensor([[[-1.0000,  1.0000],
             [-1.0000,  1.0000]]])
    """
    if use_input_stats and math.prod(input.shape[2:]) == 1:
        raise ValueError(
            f"instance_norm: more than 1 value per channel of a sample is needed, got {tuple(input.shape)}."
        )
    running = (running_mean, running_var)
    return _instance_norm(input, running, weight, bias, use_input_stats, momentum, eps)


@composite(name="instance_norm", method=False)
def torch_instance_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Any:
    """`(x - mean) / sqrt(var + eps) * weight + bias` per channel of each sample.

    >>> x = votive.tensor([[[1.0, 3.0]]])
    >>> votive.instance_norm(x, None, None, None, None, True, 0.1, 1e-5, False)
    tensor([[[-1.0000,  1.0000]]])
    """
    running = (running_mean, running_var)
    return _instance_norm(input, running, weight, bias, use_input_stats, momentum, eps)
