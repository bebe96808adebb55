"""Folding a batch norm in evaluation into the layer before it. Knows layers by their attributes."""

from __future__ import annotations

import copy
from typing import TypeVar

from ...ops.registry import F
from ...tensor import Tensor
from ..module import Module
from ..parameter import Parameter

M = TypeVar("M", bound=Module)


def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """Weight and bias of a convolution that does what convolution and batch norm did together.

    w' = w·γ/√(σ²+ε) and b' = (b − μ)·γ/√(σ²+ε) + β.

    >>> one = votive.ones(1)
    >>> w, b = votive.nn.utils.fuse_conv_bn_weights(
    ...     votive.ones(1, 1, 2), None, one, one, 0.0, 3 * one, None)
    >>> w.data, b.data
    (tensor([[[3., 3.]]]), tensor([-3.]))
    """
    dtype = conv_w.dtype if conv_b is None else conv_b.dtype
    conv_b = F.zeros_like(bn_rm) if conv_b is None else conv_b
    scale = F.rsqrt(bn_rv + bn_eps)
    if bn_w is not None:
        scale = scale * bn_w
    shift = (conv_b - bn_rm) * scale
    if bn_b is not None:
        shift = shift + bn_b
    channel = (1, -1) if transpose else (-1, 1)
    fused_w = conv_w * scale.reshape((*channel, *(1,) * (conv_w.ndim - 2)))
    return (Parameter(fused_w.to(conv_w.dtype), conv_w.requires_grad), Parameter(shift.to(dtype), conv_b.requires_grad))


def fuse_conv_bn_eval(conv: M, bn: Module, transpose: bool = False) -> M:
    """A copy of a convolution that does the work of the batch norm after it, in evaluation.

    >>> conv, bn = votive.nn.Conv1d(1, 2, 3).eval(), votive.nn.BatchNorm1d(2).eval()
    >>> fused, x = votive.nn.utils.fuse_conv_bn_eval(conv, bn), votive.randn(1, 1, 5)
    >>> votive.allclose(fused(x), bn(conv(x)), atol=1e-6)
    True
    """
    _check_eval(conv, bn)
    fused = copy.deepcopy(conv)
    fused.weight, fused.bias = fuse_conv_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, transpose
    )
    return fused


def fuse_linear_bn_weights(
    linear_w: Tensor,
    linear_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
) -> tuple[Parameter, Parameter]:
    """Weight and bias of a linear layer that does what it and batch norm did together.

    >>> one = votive.ones(1)
    >>> w, b = votive.nn.utils.fuse_linear_bn_weights(
    ...     votive.ones(1, 2), None, one, one, 0.0, 3 * one, one)
    >>> w.data, b.data
    (tensor([[3., 3.]]), tensor([-2.]))
    """
    dtype = linear_w.dtype if linear_b is None else linear_b.dtype
    linear_b = F.zeros_like(bn_rm) if linear_b is None else linear_b
    scale = bn_w * F.rsqrt(bn_rv + bn_eps)
    shift = (linear_b - bn_rm) * scale + bn_b
    return (
        Parameter(linear_w * scale.unsqueeze(-1).to(linear_w.dtype), linear_w.requires_grad),
        Parameter(shift.to(dtype), linear_b.requires_grad),
    )


def fuse_linear_bn_eval(linear: M, bn: Module) -> M:
    """A copy of a linear layer that does the work of the batch norm after it, in evaluation.

    >>> linear, bn = votive.nn.Linear(3, 2).eval(), votive.nn.BatchNorm1d(2).eval()
    >>> fused, x = votive.nn.utils.fuse_linear_bn_eval(linear, bn), votive.randn(4, 3)
    >>> votive.allclose(fused(x), bn(linear(x)), atol=1e-6)
    True
    """
    _check_eval(linear, bn)
    if bn.num_features not in (1, linear.out_features):
        raise AssertionError(
            "To fuse, linear.out_features == bn.num_features or bn.num_features == 1, got "
            f"linear.out_features={linear.out_features} and bn.num_features={bn.num_features}"
        )
    fused = copy.deepcopy(linear)
    fused.weight, fused.bias = fuse_linear_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    )
    return fused


def _check_eval(layer: Module, bn: Module) -> None:
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("bn.running_mean and bn.running_var must not be None")
