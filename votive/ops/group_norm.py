"""Norms over groups of channels. Knows shapes and gradients, not how they run."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..core import dtype as dt
from ..core.errors import DimError, ShapeError, fail
from ..core.layout import Spec
from ..core.mode import mode
from .registry import F, composite, structured
from .standardise import (
    NN,
    affine,
    affine_gradients,
    check_parameters,
    check_shapes,
    per_channel,
    standardise,
    standardise_gradient,
    widened,
)

if TYPE_CHECKING:
    from .types import Context, Tensor


def _infer_group(x: Spec, weight: Spec | None, bias: Spec | None, groups: int, eps: float) -> tuple[Spec, ...]:
    check_parameters("group_norm", x, weight=weight, bias=bias)
    one = x.like((x.shape[0], groups), dtype=dt.compute_type(x.dtype))
    return x.like(x.shape), one, one


def _grad_group(c: Context, g: Tensor, *_: Any) -> tuple[Any, ...]:
    if mode.grad:
        return F._group_norm_backward_composite(g, c.input, c.weight, c.groups, c.eps)
    wants = c.needs("weight") or c.needs("bias")
    return F._group_norm_backward(g, c.input, c.out1, c.out2, c.weight, c.groups, c.needs("input"), wants)


structured(
    "_group_norm(Tensor input, Tensor? weight, Tensor? bias, int groups, float eps)",
    placement="samples",
    infer=_infer_group,
    grad=_grad_group,
    n_out=3,
    doc="layer_norm over each group of channels, weight and bias per channel; mean and rstd too.",
)

structured(
    "_group_norm_backward(Tensor grad, Tensor input, Tensor mean, Tensor rstd, Tensor? weight, "
    "int groups, bool by_input, bool by_affine)",
    infer=lambda g, x, mean, rstd, w, groups, by_input, by_affine: (
        x.like(x.shape if by_input else (0,)),
        *affine_gradients(x, x.shape[1:2], by_affine),
    ),
    differentiable=False,  # with a graph being made, the composite runs instead
    n_out=3,
    doc="The gradients of group_norm by input, weight and bias.",
)


def _grouped(x: Tensor, groups: int) -> Tensor:
    """(N, groups, everything else)."""
    n, *rest = x.shape
    return x.reshape(n, groups, math.prod(rest) // groups)


@composite(name="_group_norm_composite")
def group_norm_composite(input: Tensor, weight: Tensor, bias: Tensor | None, groups: int, eps: float) -> Tensor:
    """group_norm from single operators: what the fused kernel must agree with."""
    x, _ = standardise(_grouped(widened(input), groups), (2,), eps)
    weight, bias = (per_channel(p, input.ndim) for p in (weight, bias))
    return F._to_dtype(affine(x.reshape(input.shape), weight, bias), input.dtype)


@composite(name="_group_norm_backward_composite")
def group_norm_backward_composite(
    grad: Tensor, input: Tensor, weight: Tensor, groups: int, eps: float
) -> tuple[Any, Any, Any]:
    """The gradients of group_norm from single operators, so that they have gradients too."""
    x, rstd = standardise(_grouped(widened(input), groups), (2,), eps)
    g = widened(grad)
    h = affine(g, per_channel(weight, input.ndim), None)
    by_input = standardise_gradient(_grouped(h, groups), x, rstd, (2,)).reshape(input.shape)
    rest = tuple(d for d in range(input.ndim) if d != 1)
    return by_input, (g * x.reshape(input.shape)).sum(rest), g.sum(rest)


def _group_norm(input: Tensor, num_groups: int, weight: Tensor | None, bias: Tensor | None, eps: float) -> Tensor:
    op, shape = "group_norm", tuple(input.shape)
    if num_groups < 1:
        fail(RuntimeError, op, f"num_groups must be positive, got {num_groups}.")
    if shape[1] % num_groups:
        fail(ShapeError, op, f"num_groups must divide the channels, {shape[1]} % {num_groups} != 0.")
    check_shapes(op, shape[1:2], weight=weight, bias=bias)
    return F._group_norm(input, weight, bias, num_groups, eps)[0]


def _check_rank(input: Tensor, kind: type[Exception]) -> None:
    if input.ndim < 2:
        fail(kind, "group_norm", f"takes (N, C, ...), got shape {tuple(input.shape)}.")


@composite(namespaces=NN, method=False, autocast={"cuda": "float32"})
def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Each sample's channels (dimension 1) normalised in `num_groups` groups.

    >>> x = votive.tensor([[1.0, 3.0, 10.0, 30.0]])
    >>> votive.nn.functional.group_norm(x, 2)
    tensor([[-1.0000,  1.0000, -1.0000,  1.0000]])
    """
    _check_rank(input, ShapeError)
    if num_groups == 0:
        fail(ZeroDivisionError, "group_norm", "num_groups must be positive, got 0.")
    n, channels, *rest = input.shape
    if n * (channels // num_groups) * math.prod(rest) == 1:
        fail(
            ValueError, "group_norm", f"more than 1 value per group is needed, got input of shape {tuple(input.shape)}."
        )
    return _group_norm(input, num_groups, weight, bias, eps)


@composite(name="group_norm", method=False, autocast={"cuda": "float32"})
def torch_group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    cudnn_enabled: bool = True,
) -> Tensor:
    """Each sample's channels (dimension 1) normalised in `num_groups` groups.

    >>> votive.group_norm(votive.tensor([[1.0, 3.0, 10.0, 30.0]]), 2)
    tensor([[-1.0000,  1.0000, -1.0000,  1.0000]])
    """
    _check_rank(input, DimError)
    return _group_norm(input, num_groups, weight, bias, eps)
