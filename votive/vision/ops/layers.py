"""Blocks that vision models are built of. Knows `nn`, no image and no box."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from ... import nn
from ...ops.registry import F
from ...tensor import Tensor
from ..types import Layer, Size


class FrozenBatchNorm2d(nn.Module):
    """Batch normalisation whose statistics and scale never change; all four are buffers.

    >>> layer = votive.vision.ops.FrozenBatchNorm2d(3, eps=0.0)
    >>> layer(votive.ones(1, 3, 1, 1)).flatten()
    tensor([1., 1., 1.])
    """

    def __init__(self, num_features: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.register_buffer("weight", F.ones((num_features,)))
        self.register_buffer("bias", F.zeros((num_features,)))
        self.register_buffer("running_mean", F.zeros((num_features,)))
        self.register_buffer("running_var", F.ones((num_features,)))

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        # Ordinary batch norm counts its batches; here there is nothing to count.
        state_dict.pop(f"{prefix}num_batches_tracked", None)
        super()._load_from_state_dict(state_dict, prefix, *args)

    def forward(self, x: Tensor) -> Tensor:
        scale = self.weight * F.rsqrt(self.running_var + self.eps)
        shift = self.bias - self.running_mean * scale
        return x * scale.reshape(1, -1, 1, 1) + shift.reshape(1, -1, 1, 1)

    def extra_repr(self) -> str:
        return f"{self.weight.shape[0]}, eps={self.eps}"


def _same_padding(kernel_size: Size, dilation: Size) -> Size:
    """The padding that keeps the size at stride 1, for kernels of odd size."""
    if isinstance(kernel_size, int) and isinstance(dilation, int):
        return (kernel_size - 1) // 2 * dilation
    n = max(len(s) for s in (kernel_size, dilation) if not isinstance(s, int))
    kernel, spread = ((s,) * n if isinstance(s, int) else s for s in (kernel_size, dilation))
    return tuple((k - 1) // 2 * d for k, d in zip(kernel, spread, strict=True))


class _ConvNormActivation(nn.Sequential):
    """A convolution, a normalisation and an activation, the last two optional."""

    _conv: Layer

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Size,
        stride: Size,
        padding: Size | str | None,
        groups: int,
        norm_layer: Layer | None,
        activation_layer: Layer | None,
        dilation: Size,
        inplace: bool | None,
        bias: bool | None,
    ) -> None:
        layers = [
            self._conv(
                in_channels,
                out_channels,
                kernel_size,
                stride,
                _same_padding(kernel_size, dilation) if padding is None else padding,
                dilation=dilation,
                groups=groups,
                bias=norm_layer is None if bias is None else bias,
            )
        ]
        if norm_layer is not None:
            layers.append(norm_layer(out_channels))
        if activation_layer is not None:
            layers.append(activation_layer(**({} if inplace is None else {"inplace": inplace})))
        super().__init__(*layers)
        self.out_channels = out_channels


class Conv2dNormActivation(_ConvNormActivation):
    """Convolution, normalisation and activation of images, one after the other.

    >>> block = votive.vision.ops.Conv2dNormActivation(3, 8, kernel_size=3, stride=2)
    >>> block(votive.zeros(1, 3, 8, 8)).shape, [type(m).__name__ for m in block]
    (votive.Size([1, 8, 4, 4]), ['Conv2d', 'BatchNorm2d', 'ReLU'])
    """

    _conv = nn.Conv2d

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, int] = 3,
        stride: int | tuple[int, int] = 1,
        padding: int | tuple[int, int] | str | None = None,
        groups: int = 1,
        norm_layer: Layer | None = nn.BatchNorm2d,
        activation_layer: Layer | None = nn.ReLU,
        dilation: int | tuple[int, int] = 1,
        inplace: bool | None = True,
        bias: bool | None = None,
    ) -> None:
        how = (groups, norm_layer, activation_layer, dilation, inplace, bias)
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, *how)


class Conv3dNormActivation(_ConvNormActivation):
    """Convolution, normalisation and activation of videos, one after the other.

    >>> block = votive.vision.ops.Conv3dNormActivation(3, 8, kernel_size=(1, 3, 3))
    >>> block(votive.zeros(1, 3, 2, 8, 8)).shape
    votive.Size([1, 8, 2, 8, 8])
    """

    _conv = nn.Conv3d

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, int, int] = 3,
        stride: int | tuple[int, int, int] = 1,
        padding: int | tuple[int, int, int] | str | None = None,
        groups: int = 1,
        norm_layer: Layer | None = nn.BatchNorm3d,
        activation_layer: Layer | None = nn.ReLU,
        dilation: int | tuple[int, int, int] = 1,
        inplace: bool | None = True,
        bias: bool | None = None,
    ) -> None:
        how = (groups, norm_layer, activation_layer, dilation, inplace, bias)
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, *how)


class SqueezeExcitation(nn.Module):
    """Channels weighted by what the whole image says about them (Hu et al. 2018, equation 3).

    >>> votive.vision.ops.SqueezeExcitation(8, 2)(votive.zeros(1, 8, 4, 4)).shape
    votive.Size([1, 8, 4, 4])
    """

    def __init__(
        self,
        input_channels: int,
        squeeze_channels: int,
        activation: Layer = nn.ReLU,
        scale_activation: Layer = nn.Sigmoid,
    ) -> None:
        super().__init__()
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc1 = nn.Conv2d(input_channels, squeeze_channels, 1)
        self.fc2 = nn.Conv2d(squeeze_channels, input_channels, 1)
        self.activation = activation()
        self.scale_activation = scale_activation()

    def forward(self, input: Tensor) -> Tensor:
        squeezed = self.activation(self.fc1(self.avgpool(input)))
        return self.scale_activation(self.fc2(squeezed)) * input


class MLP(nn.Sequential):
    """Linear layers with normalisation, activation and dropout between them.

    >>> votive.vision.ops.MLP(4, [8, 2])(votive.zeros(3, 4)).shape
    votive.Size([3, 2])
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: Sequence[int],
        norm_layer: Layer | None = None,
        activation_layer: Layer = nn.ReLU,
        inplace: bool | None = None,
        bias: bool = True,
        dropout: float = 0.0,
    ) -> None:
        if not hidden_channels:
            raise ValueError("MLP: hidden_channels is empty; it needs at least the output size.")
        options: dict[str, Any] = {} if inplace is None else {"inplace": inplace}
        layers: list[nn.Module] = []
        for k, (before, after) in enumerate(pairwise([in_channels, *hidden_channels])):
            layers.append(nn.Linear(before, after, bias=bias))
            if k < len(hidden_channels) - 1:
                layers += [] if norm_layer is None else [norm_layer(after)]
                layers.append(activation_layer(**options))
            layers.append(nn.Dropout(dropout, **options))
        super().__init__(*layers)


class Permute(nn.Module):
    """Dimensions in another order, as a module.

    >>> votive.vision.ops.Permute([1, 2, 0])(votive.zeros(2, 3, 4)).shape
    votive.Size([3, 4, 2])
    """

    def __init__(self, dims: Sequence[int]) -> None:
        super().__init__()
        self.dims = dims

    def forward(self, x: Tensor) -> Tensor:
        return F.permute(x, self.dims)
