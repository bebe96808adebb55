"""Gradients of convolutions as functions of their own. The names are torch's."""

from __future__ import annotations

from typing import Any

from ..ops.registry import F
from ..tensor import Tensor
from .modules.utils import _ntuple


def _options(n: int, stride: Any, padding: Any, dilation: Any, groups: int) -> tuple[Any, ...]:
    many = _ntuple(n)
    return many(stride), many(padding), many(dilation), groups


def _input(
    n: int, input_size: Any, weight: Tensor, grad: Tensor, stride: Any, padding: Any, dilation: Any, groups: int
) -> Tensor:
    if input_size is None:
        raise ValueError("grad.conv_input requires specifying an input_size")
    options = _options(n, stride, padding, dilation, groups)
    unbatched = grad.ndim == n + 1
    size = tuple(input_size)
    made = F._convolution_transpose(grad.unsqueeze(0) if unbatched else grad, weight, None, size[-n:], *options)
    return made.squeeze(0) if unbatched else made


def _weight(
    n: int, input: Tensor, weight_size: Any, grad: Tensor, stride: Any, padding: Any, dilation: Any, groups: int
) -> Tensor:
    options = _options(n, stride, padding, dilation, groups)
    if input.ndim == n + 1:
        input, grad = input.unsqueeze(0), grad.unsqueeze(0)
    made: Tensor = F._convolution_weight(input, grad, tuple(weight_size)[2:], *options)
    return made


def conv1d_input(
    input_size: Any,
    weight: Tensor,
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of `conv1d` by its input.

    >>> votive.nn.grad.conv1d_input((1, 1, 3), votive.ones(1, 1, 2), votive.ones(1, 1, 2))
    tensor([[[1., 2., 1.]]])
    """
    return _input(1, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv1d_weight(
    input: Tensor,
    weight_size: Any,
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of `conv1d` by its weight.

    >>> votive.nn.grad.conv1d_weight(votive.tensor([[[1.0, 2.0, 3.0]]]), (1, 1, 2), votive.ones(1, 1, 2))
    tensor([[[3., 5.]]])
    """
    return _weight(1, input, weight_size, grad_output, stride, padding, dilation, groups)


def conv2d_input(
    input_size: Any,
    weight: Tensor,
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of `conv2d` by its input.

    >>> votive.nn.grad.conv2d_input((1, 1, 2, 2), votive.ones(1, 1, 2, 2), votive.ones(1, 1, 1, 1)).sum()
    tensor(4.)
    """
    return _input(2, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv2d_weight(
    input: Tensor,
    weight_size: Any,
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of `conv2d` by its weight.

    >>> votive.nn.grad.conv2d_weight(votive.ones(1, 1, 3, 3), (1, 1, 2, 2), votive.ones(1, 1, 2, 2)).sum()
    tensor(16.)
    """
    return _weight(2, input, weight_size, grad_output, stride, padding, dilation, groups)


def conv3d_input(
    input_size: Any,
    weight: Tensor,
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of `conv3d` by its input.

    >>> votive.nn.grad.conv3d_input((1, 1, 2, 2, 2), votive.ones(1, 1, 2, 2, 2), votive.ones(1, 1, 1, 1, 1)).sum()
    tensor(8.)
    """
    return _input(3, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv3d_weight(
    input: Tensor,
    weight_size: Any,
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of `conv3d` by its weight.

    >>> votive.nn.grad.conv3d_weight(votive.ones(1, 1, 2, 2, 2), (1, 1, 1, 1, 1), votive.ones(1, 1, 2, 2, 2)).sum()
    tensor(8.)
    """
    return _weight(3, input, weight_size, grad_output, stride, padding, dilation, groups)
