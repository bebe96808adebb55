"""Convolutions and transposed convolutions in one, two and three dimensions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import votive

from ...core import dtype as dt
from ...core.device import DeviceLike
from ...tensor import Tensor
from .. import functional as F
from .. import init
from ..factory import FactoryKwargs
from ..lazy import LazyModuleMixin
from ..module import Module
from ..parameter import Parameter, UninitializedParameter

T = TypeVar("T", int, float)


def repeated(value: T | Sequence[T], n: int) -> tuple[T, ...]:
    """A number for every dimension, or the numbers given."""
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * n  # type: ignore[return-value]


class _ConvNd(Module):
    """What all convolutions share: checks, weights, and how they are shown."""

    n: int  # spatial dimensions
    transposed = False
    weight: Parameter
    bias: Parameter | None
    padding: str | tuple[int, ...]

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int],
        padding: str | int | Sequence[int],
        dilation: int | Sequence[int],
        output_padding: int | Sequence[int],
        groups: int,
        bias: bool,
        padding_mode: str,
        device: DeviceLike = None,
        dtype: dt.dtype | None = None,
    ) -> None:
        super().__init__()
        n, made = self.n, FactoryKwargs(device=device, dtype=dtype)
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups != 0:
            raise ValueError("out_channels must be divisible by groups")
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ValueError(f"Invalid padding string {padding!r}, should be one of ('same', 'valid')")
            if padding == "same" and any(s != 1 for s in repeated(stride, n)):
                raise ValueError("padding='same' is not supported for strided convolutions")
        modes = ("zeros", "reflect", "replicate", "circular")
        if padding_mode not in modes:
            raise ValueError(f"padding_mode must be one of {modes}, but got padding_mode={padding_mode!r}")
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = repeated(kernel_size, n)
        self.stride = repeated(stride, n)
        self.padding = padding if isinstance(padding, str) else repeated(padding, n)
        self.dilation = repeated(dilation, n)
        self.output_padding = repeated(output_padding, n)
        self.groups = groups
        self.padding_mode = padding_mode
        self._reversed_padding_repeated_twice = self._pad_amounts(n)
        self.weight = Parameter(votive.empty(self._weight_shape(), **made))
        self.register_parameter("bias", Parameter(votive.empty(out_channels, **made)) if bias else None)
        self.reset_parameters()

    def _weight_shape(self) -> tuple[int, ...]:
        channels = (self.out_channels, self.in_channels)
        first, second = reversed(channels) if self.transposed else channels
        return (first, second // self.groups, *self.kernel_size)

    def _pad_amounts(self, n: int) -> list[int]:
        """Padding in the order of `F.pad`: last dimension first, before and after."""
        amounts: list[int] = []
        for i in range(n - 1, -1, -1):
            if self.padding == "same":
                total = self.dilation[i] * (self.kernel_size[i] - 1)
                amounts += [total // 2, total - total // 2]
            elif self.padding == "valid":
                amounts += [0, 0]
            else:
                amounts += [int(self.padding[i])] * 2
        return amounts

    def reset_parameters(self) -> None:
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            if fan_in != 0:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        if self.padding != (0,) * len(self.padding):
            text += f", padding={self.padding}"
        if self.dilation != (1,) * len(self.dilation):
            text += f", dilation={self.dilation}"
        if self.output_padding != (0,) * len(self.output_padding):
            text += f", output_padding={self.output_padding}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        if self.padding_mode != "zeros":
            text += f", padding_mode={self.padding_mode}"
        return text

    def _convolve(self, conv: Callable[..., Tensor], input: Tensor) -> Tensor:
        padding = self.padding
        if self.padding_mode != "zeros":
            input = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
            padding = (0,) * self.n
        return conv(input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)


class _Conv(_ConvNd):
    """Base of plain convolutions."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: str | int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: DeviceLike = None,
        dtype: dt.dtype | None = None,
    ) -> None:
        how = (dilation, 0, groups, bias, padding_mode, device, dtype)
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, *how)


class Conv1d(_Conv):
    """Convolution over (N, C, L).

    >>> votive.nn.Conv1d(16, 33, 3, stride=2)(votive.ones(20, 16, 50)).shape
    votive.Size([20, 33, 24])
    """

    n = 1

    def forward(self, input: Tensor) -> Tensor:
        return self._convolve(F.conv1d, input)


class Conv2d(_Conv):
    """Convolution over (N, C, H, W).

    >>> votive.nn.Conv2d(3, 8, 3, padding=1)(votive.ones(2, 3, 5, 5)).shape
    votive.Size([2, 8, 5, 5])
    """

    n = 2

    def forward(self, input: Tensor) -> Tensor:
        return self._convolve(F.conv2d, input)


class Conv3d(_Conv):
    """Convolution over (N, C, D, H, W).

    >>> votive.nn.Conv3d(1, 2, 2)(votive.ones(1, 1, 3, 3, 3)).shape
    votive.Size([1, 2, 2, 2, 2])
    """

    n = 3

    def forward(self, input: Tensor) -> Tensor:
        return self._convolve(F.conv3d, input)


class _ConvTransposeNd(_ConvNd):
    """Base of transposed convolutions."""

    transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: str | int | Sequence[int] = 0,
        output_padding: int | Sequence[int] = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: int | Sequence[int] = 1,
        padding_mode: str = "zeros",
        device: DeviceLike = None,
        dtype: dt.dtype | None = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        how = (dilation, output_padding, groups, bias, padding_mode, device, dtype)
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, *how)

    def _extra(self, input: Tensor, output_size: Sequence[int] | None) -> tuple[int, ...]:
        """The output padding that leads to an asked-for size."""
        if output_size is None:
            return self.output_padding
        n = len(self.kernel_size)
        want = tuple(output_size)[-n:]
        if len(output_size) not in (n, input.dim()):
            raise ValueError(
                f"ConvTranspose{n}d: output_size must have {n} or {input.dim()} elements (got {len(output_size)})"
            )
        sizes = input.shape[-n:]
        extra = []
        for i in range(n):
            reach = self.dilation[i] * (self.kernel_size[i] - 1)
            low = (sizes[i] - 1) * self.stride[i] - 2 * int(self.padding[i]) + reach + 1
            high = low + self.stride[i] - 1
            if not low <= want[i] <= high:
                raise ValueError(
                    f"requested an output size of {want}, but valid sizes range from {low} to "
                    f"{high} in dimension {i} (for an input of {tuple(sizes)})"
                )
            extra.append(want[i] - low)
        return tuple(extra)

    def _convolve_back(self, conv: Callable[..., Tensor], input: Tensor, output_size: Sequence[int] | None) -> Tensor:
        extra = self._extra(input, output_size)
        return conv(input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation)


class ConvTranspose1d(_ConvTransposeNd):
    """Transposed convolution over (N, C, L).

    >>> votive.nn.ConvTranspose1d(4, 2, 3, stride=2)(votive.ones(1, 4, 5)).shape
    votive.Size([1, 2, 11])
    """

    n = 1

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        return self._convolve_back(F.conv_transpose1d, input, output_size)


class ConvTranspose2d(_ConvTransposeNd):
    """Transposed convolution over (N, C, H, W).

    >>> votive.nn.ConvTranspose2d(4, 2, 2, stride=2)(votive.ones(1, 4, 3, 3)).shape
    votive.Size([1, 2, 6, 6])
    """

    n = 2

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        return self._convolve_back(F.conv_transpose2d, input, output_size)


class ConvTranspose3d(_ConvTransposeNd):
    """Transposed convolution over (N, C, D, H, W).

    >>> votive.nn.ConvTranspose3d(1, 1, 2)(votive.ones(1, 1, 2, 2, 2)).shape
    votive.Size([1, 1, 3, 3, 3])
    """

    n = 3

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        return self._convolve_back(F.conv_transpose3d, input, output_size)


class _LazyConvNd(LazyModuleMixin, _ConvNd):
    """Learns `in_channels` from the first input."""

    weight: UninitializedParameter
    bias: UninitializedParameter | None

    def reset_parameters(self) -> None:
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor, *args: Any, **kwargs: Any) -> None:
        if not self.has_uninitialized_params():
            return
        n = len(self.kernel_size)
        if input.dim() not in (n + 1, n + 2):
            raise RuntimeError(
                f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to "
                f"{type(self).__name__}, but got input of size: {tuple(input.shape)}"
            )
        self.in_channels = input.shape[0] if input.dim() == n + 1 else input.shape[1]
        if self.in_channels % self.groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        self.weight.materialize(self._weight_shape())
        if self.bias is not None:
            self.bias.materialize((self.out_channels,))
        self.reset_parameters()


def _lazy(base: type[_ConvNd], shape: str, result: str) -> type[_LazyConvNd]:
    """The lazy form of a convolution: the same arguments without `in_channels`."""

    def __init__(
        self: _LazyConvNd,
        out_channels: int,
        kernel_size: int | Sequence[int],
        *args: Any,
        bias: bool = True,
        device: DeviceLike = None,
        dtype: dt.dtype | None = None,
        **kwargs: Any,
    ) -> None:
        made = FactoryKwargs(device=device, dtype=dtype)
        LazyModuleMixin.__init__(self, 0, 0, kernel_size, *args, bias=False, **kwargs)
        self.out_channels = out_channels
        self.weight = UninitializedParameter(**made)
        if bias:
            self.bias = UninitializedParameter(**made)

    name = f"Lazy{base.__name__}"
    doc = f"""A {base.__name__} that learns `in_channels` from its first input.

    >>> votive.nn.{name}(2, 3)(votive.ones({shape})).shape
    votive.Size([{result}])
    """
    space = {"__init__": __init__, "__doc__": doc, "cls_to_become": base, "__module__": __name__}
    return type(name, (_LazyConvNd, base), space)


LazyConv1d = _lazy(Conv1d, "1, 4, 5", "1, 2, 3")
LazyConv2d = _lazy(Conv2d, "1, 4, 5, 5", "1, 2, 3, 3")
LazyConv3d = _lazy(Conv3d, "1, 4, 3, 3, 3", "1, 2, 1, 1, 1")
LazyConvTranspose1d = _lazy(ConvTranspose1d, "1, 4, 5", "1, 2, 7")
LazyConvTranspose2d = _lazy(ConvTranspose2d, "1, 4, 2, 2", "1, 2, 4, 4")
LazyConvTranspose3d = _lazy(ConvTranspose3d, "1, 4, 1, 1, 1", "1, 2, 3, 3, 3")
