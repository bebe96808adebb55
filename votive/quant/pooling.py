"""torch's `quantized_*` functions: pools and batch norm on quantized tensors. Knows no modules."""

from __future__ import annotations

from collections.abc import Sequence

from ..nn import functional as NF
from ..surface.quantized_functions import quantize_per_tensor, quantized
from ..tensor import Tensor

Sizes = int | Sequence[int]


def _pool(n: int, x: Tensor, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, ceil: bool) -> Tensor:
    given = stride if isinstance(stride, int) or len(stride) else None
    codes = quantized(f"quantized_max_pool{n}d", x)
    out: Tensor = getattr(NF, f"max_pool{n}d")(codes, kernel, given, padding, dilation, ceil)
    return out


def quantized_max_pool1d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes = (),
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
) -> Tensor:
    """The greatest codes of windows along one dimension.

    >>> x = votive.quantize_per_tensor(votive.tensor([[[1.0, 3.0, 2.0, 0.0]]]), 0.5, 0, votive.quint8)
    >>> votive.quantized_max_pool1d(x, 2).int_repr()
    tensor([[[6, 4]]], dtype=votive.uint8)
    """
    return _pool(1, input, kernel_size, stride, padding, dilation, ceil_mode)


def quantized_max_pool2d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes = (),
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
) -> Tensor:
    """The greatest codes of windows along two dimensions.

    >>> x = votive.quantize_per_tensor(votive.arange(4.0).reshape(1, 1, 2, 2), 1.0, 0, votive.quint8)
    >>> votive.quantized_max_pool2d(x, 2).int_repr()
    tensor([[[[3]]]], dtype=votive.uint8)
    """
    return _pool(2, input, kernel_size, stride, padding, dilation, ceil_mode)


def quantized_max_pool3d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes = (),
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
) -> Tensor:
    """The greatest codes of windows along three dimensions.

    >>> x = votive.quantize_per_tensor(votive.arange(8.0).reshape(1, 1, 2, 2, 2), 1.0, 0, votive.quint8)
    >>> votive.quantized_max_pool3d(x, 2).int_repr()
    tensor([[[[[7]]]]], dtype=votive.uint8)
    """
    return _pool(3, input, kernel_size, stride, padding, dilation, ceil_mode)


def quantized_batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    mean: Tensor,
    var: Tensor,
    eps: float,
    output_scale: float,
    output_zero_point: int,
) -> Tensor:
    """Batch norm of codes with given statistics, rounded to a given scale.

    >>> x = votive.quantize_per_tensor(votive.arange(4.0).reshape(1, 1, 2, 2), 1.0, 0, votive.quint8)
    >>> mean, var = votive.tensor([1.0]), votive.tensor([1.0])
    >>> votive.quantized_batch_norm(x, None, None, mean, var, 0.0, 0.5, 2).int_repr()
    tensor([[[[0, 2],
              [4, 6]]]], dtype=votive.uint8)
    """
    codes = quantized("quantized_batch_norm", input)
    y = NF.batch_norm(codes.dequantize(), mean, var, weight, bias, False, 0.0, eps)
    out: Tensor = quantize_per_tensor(y.detach(), output_scale, output_zero_point, codes._kind_of)
    return out
