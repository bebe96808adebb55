"""Pooling layers: max, average, p-norm, adaptive, fractional, and unpooling."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...tensor import Tensor
from .. import functional as F
from ..module import Module
from .convolution import repeated
from .option_repr import OptionRepr


class _MaxPoolNd(OptionRepr):
    """Arguments of max pooling."""

    _options = ("kernel_size", "stride", "padding", "dilation", "ceil_mode")

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def _pool(self, pool: Callable[..., Tensor], input: Tensor) -> Tensor:
        return pool(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            ceil_mode=self.ceil_mode,
            return_indices=self.return_indices,
        )


class MaxPool1d(_MaxPoolNd):
    """Largest value of each window of (N, C, L).

    >>> votive.nn.MaxPool1d(2)(votive.tensor([[1.0, 3.0, 2.0, 0.0]]))
    tensor([[3., 2.]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return self._pool(F.max_pool1d, input)


class MaxPool2d(_MaxPoolNd):
    """Largest value of each window of (N, C, H, W).

    >>> votive.nn.MaxPool2d(2)(votive.ones(1, 1, 4, 4)).shape
    votive.Size([1, 1, 2, 2])
    """

    def forward(self, input: Tensor) -> Tensor:
        return self._pool(F.max_pool2d, input)


class MaxPool3d(_MaxPoolNd):
    """Largest value of each window of (N, C, D, H, W).

    >>> votive.nn.MaxPool3d(2)(votive.ones(1, 1, 4, 4, 4)).shape
    votive.Size([1, 1, 2, 2, 2])
    """

    def forward(self, input: Tensor) -> Tensor:
        return self._pool(F.max_pool3d, input)


class _MaxUnpoolNd(OptionRepr):
    """Arguments of unpooling."""

    _options = ("kernel_size", "stride", "padding")

    n = 1

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
    ) -> None:
        super().__init__()
        self.kernel_size = repeated(kernel_size, self.n)
        self.stride = repeated(stride if stride is not None else kernel_size, self.n)
        self.padding = repeated(padding, self.n)


class MaxUnpool1d(_MaxUnpoolNd):
    """Put pooled values back where they came from.

    >>> y, i = votive.nn.MaxPool1d(2, return_indices=True)(votive.tensor([[[1.0, 3.0]]]))
    >>> votive.nn.MaxUnpool1d(2)(y, i)
    tensor([[[0., 3.]]])
    """

    n = 1

    def forward(self, input: Tensor, indices: Tensor, output_size: int | Sequence[int] | None = None) -> Tensor:
        return F.max_unpool1d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool2d(_MaxUnpoolNd):
    """Put pooled values of images back where they came from.

    >>> y, i = votive.nn.MaxPool2d(2, return_indices=True)(votive.ones(1, 1, 2, 2))
    >>> votive.nn.MaxUnpool2d(2)(y, i).sum()
    tensor(1.)
    """

    n = 2

    def forward(self, input: Tensor, indices: Tensor, output_size: int | Sequence[int] | None = None) -> Tensor:
        return F.max_unpool2d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool3d(_MaxUnpoolNd):
    """Put pooled values of volumes back where they came from.

    >>> y, i = votive.nn.MaxPool3d(2, return_indices=True)(votive.ones(1, 1, 2, 2, 2))
    >>> votive.nn.MaxUnpool3d(2)(y, i).sum()
    tensor(1.)
    """

    n = 3

    def forward(self, input: Tensor, indices: Tensor, output_size: int | Sequence[int] | None = None) -> Tensor:
        return F.max_unpool3d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class AvgPool1d(OptionRepr):
    """Mean of each window of (N, C, L).

    >>> votive.nn.AvgPool1d(2)(votive.tensor([[1.0, 3.0, 2.0, 0.0]]))
    tensor([[2., 1.]])
    """

    _options = ("kernel_size", "stride", "padding")

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size = repeated(kernel_size, 1)
        self.stride = repeated(stride if stride is not None else kernel_size, 1)
        self.padding = repeated(padding, 1)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)


class _AvgPoolNd(OptionRepr):
    """Arguments of average pooling over images and volumes."""

    _options = ("kernel_size", "stride", "padding")

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def _pool(self, pool: Callable[..., Tensor], input: Tensor) -> Tensor:
        return pool(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )


class AvgPool2d(_AvgPoolNd):
    """Mean of each window of (N, C, H, W).

    >>> votive.nn.AvgPool2d(2)(votive.ones(1, 1, 4, 4)).shape
    votive.Size([1, 1, 2, 2])
    """

    def forward(self, input: Tensor) -> Tensor:
        return self._pool(F.avg_pool2d, input)


class AvgPool3d(_AvgPoolNd):
    """Mean of each window of (N, C, D, H, W).

    >>> votive.nn.AvgPool3d(2)(votive.ones(1, 1, 4, 4, 4)).shape
    votive.Size([1, 1, 2, 2, 2])
    """

    def forward(self, input: Tensor) -> Tensor:
        return self._pool(F.avg_pool3d, input)


class _LPPoolNd(OptionRepr):
    """Arguments of p-norm pooling."""

    _options = ("norm_type", "kernel_size", "stride", "ceil_mode")

    def __init__(
        self,
        norm_type: float,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def _pool(self, pool: Callable[..., Tensor], input: Tensor) -> Tensor:
        return pool(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


class LPPool1d(_LPPoolNd):
    """p-norm of each window of (N, C, L).

    >>> votive.nn.LPPool1d(1, 2)(votive.tensor([[[1.0, 3.0]]]))
    tensor([[[4.]]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return self._pool(F.lp_pool1d, input)


class LPPool2d(_LPPoolNd):
    """p-norm of each window of (N, C, H, W).

    >>> votive.nn.LPPool2d(2, 2)(votive.ones(1, 1, 2, 2)).flatten()
    tensor([2.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return self._pool(F.lp_pool2d, input)


class LPPool3d(_LPPoolNd):
    """p-norm of each window of (N, C, D, H, W).

    >>> votive.nn.LPPool3d(1, 2)(votive.ones(1, 1, 2, 2, 2)).flatten()
    tensor([8.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return self._pool(F.lp_pool3d, input)


class _AdaptivePoolNd(OptionRepr):
    """Pooling to a given output size."""

    _options = ("output_size",)

    def __init__(self, output_size: int | Sequence[int]) -> None:
        super().__init__()
        self.output_size = output_size


class AdaptiveAvgPool1d(_AdaptivePoolNd):
    """Mean over as many windows as asked for.

    >>> votive.nn.AdaptiveAvgPool1d(2)(votive.tensor([[[1.0, 3.0, 5.0, 7.0]]]))
    tensor([[[2., 6.]]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool1d(input, self.output_size)


class AdaptiveAvgPool2d(_AdaptivePoolNd):
    """Mean over a grid of windows of images.

    >>> votive.nn.AdaptiveAvgPool2d((1, 1))(votive.ones(1, 3, 5, 7)).shape
    votive.Size([1, 3, 1, 1])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool2d(input, self.output_size)


class AdaptiveAvgPool3d(_AdaptivePoolNd):
    """Mean over a grid of windows of volumes.

    >>> votive.nn.AdaptiveAvgPool3d(1)(votive.ones(1, 3, 5, 7, 2)).shape
    votive.Size([1, 3, 1, 1, 1])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool3d(input, self.output_size)


class _AdaptiveMaxPoolNd(_AdaptivePoolNd):
    """Adaptive max pooling, with indices if asked for."""

    def __init__(self, output_size: int | Sequence[int], return_indices: bool = False) -> None:
        super().__init__(output_size)
        self.return_indices = return_indices


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """Largest value of as many windows as asked for.

    >>> votive.nn.AdaptiveMaxPool1d(2)(votive.tensor([[[1.0, 3.0, 5.0, 7.0]]]))
    tensor([[[3., 7.]]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_max_pool1d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """Largest values over a grid of windows of images.

    >>> votive.nn.AdaptiveMaxPool2d((1, None))(votive.ones(1, 3, 5, 7)).shape
    votive.Size([1, 3, 1, 7])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_max_pool2d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """Largest values over a grid of windows of volumes.

    >>> votive.nn.AdaptiveMaxPool3d(1)(votive.ones(1, 3, 5, 7, 2)).shape
    votive.Size([1, 3, 1, 1, 1])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_max_pool3d(input, self.output_size, self.return_indices)


class _FractionalMaxPoolNd(Module):
    """Arguments of fractional max pooling (Graham 2014)."""

    n = 2

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        output_size: int | Sequence[int] | None = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Any = None,
    ) -> None:
        super().__init__()
        self.kernel_size = repeated(kernel_size, self.n)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else repeated(output_size, self.n)
        self.output_ratio = None if output_ratio is None else repeated(output_ratio, self.n)
        name = type(self).__name__
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output size, or a pooling ratio")
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if self.output_ratio is not None and not all(0 < r < 1 for r in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def _pool(self, pool: Callable[..., Tensor], input: Tensor) -> Tensor:
        return pool(
            input,
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            self.return_indices,
            _random_samples=self._random_samples,
        )


class FractionalMaxPool2d(_FractionalMaxPoolNd):
    """Max pooling over randomly placed windows of images.

    >>> votive.nn.FractionalMaxPool2d(2, output_size=3)(votive.ones(1, 1, 7, 7)).shape
    votive.Size([1, 1, 3, 3])
    """

    n = 2

    def forward(self, input: Tensor) -> Tensor:
        return self._pool(F.fractional_max_pool2d, input)


class FractionalMaxPool3d(_FractionalMaxPoolNd):
    """Max pooling over randomly placed windows of volumes.

    >>> votive.nn.FractionalMaxPool3d(2, output_size=2)(votive.ones(1, 1, 5, 5, 5)).shape
    votive.Size([1, 1, 2, 2, 2])
    """

    n = 3

    def forward(self, input: Tensor) -> Tensor:
        return self._pool(F.fractional_max_pool3d, input)
