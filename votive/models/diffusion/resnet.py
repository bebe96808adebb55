"""The residual block of convolutions that all of these networks are made of, and changes of resolution."""

from __future__ import annotations

import votive
from votive import nn
from votive.nn import functional as F

from ...tensor import Tensor
from .embeddings import activation


class Downsample2D(nn.Module):
    """Half the resolution, by a convolution or by means of four pixels.

    With `padding=0` a row and a column of zeros are put below and to the right.
    """

    def __init__(self, channels: int, use_conv: bool = True, padding: int = 1) -> None:
        super().__init__()
        self.padding, self.use_conv = padding, use_conv
        self.conv: nn.Module = (
            nn.Conv2d(channels, channels, 3, stride=2, padding=padding) if use_conv else nn.AvgPool2d(2, stride=2)
        )

    def forward(self, x: Tensor) -> Tensor:
        if self.use_conv and self.padding == 0:
            x = F.pad(x, (0, 1, 0, 1))
        return self.conv(x)


class Upsample2D(nn.Module):
    """Twice the resolution, or `size`, by repeating pixels; then a convolution, if there is one."""

    def __init__(self, channels: int, use_conv: bool = True) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1) if use_conv else None

    def forward(self, x: Tensor, size: tuple[int, int] | None = None) -> Tensor:
        if size is None or size == (2 * x.shape[2], 2 * x.shape[3]):
            x = F.interpolate(x, scale_factor=2.0, mode="nearest")
        else:
            x = F.interpolate(x, size=size, mode="nearest")
        return x if self.conv is None else self.conv(x)


class ResnetBlock2D(nn.Module):
    """`x + conv(act(norm(conv(act(norm(x))) + time)))`, in another resolution where `up` or `down` says so.

    `time_norm` says how the timestep comes in: "default" adds its vector before the second norm, "scale_shift" scales
    and shifts after it; without `temb_channels` it does not.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        temb_channels: int | None,
        *,
        groups: int,
        groups_out: int | None = None,
        eps: float = 1e-6,
        act_fn: str = "silu",
        dropout: float = 0.0,
        time_norm: str = "default",
        skip_time_act: bool = False,
        output_scale_factor: float = 1.0,
        up: bool = False,
        down: bool = False,
    ) -> None:
        super().__init__()
        self.time_norm, self.skip_time_act, self.output_scale_factor = time_norm, skip_time_act, output_scale_factor
        self.norm1 = nn.GroupNorm(groups, in_channels, eps=eps)
        self.conv1 = nn.Conv2d(in_channels, out_channels, 3, padding=1)
        self.time_emb_proj = None
        if temb_channels is not None:
            width = 2 * out_channels if time_norm == "scale_shift" else out_channels
            self.time_emb_proj = nn.Linear(temb_channels, width)
        self.norm2 = nn.GroupNorm(groups if groups_out is None else groups_out, out_channels, eps=eps)
        self.dropout = nn.Dropout(dropout)
        self.conv2 = nn.Conv2d(out_channels, out_channels, 3, padding=1)
        self.nonlinearity = activation(act_fn)
        self.upsample = Upsample2D(in_channels, use_conv=False) if up else None
        self.downsample = Downsample2D(in_channels, use_conv=False) if down else None
        self.conv_shortcut = nn.Conv2d(in_channels, out_channels, 1) if in_channels != out_channels else None

    def forward(self, x: Tensor, temb: Tensor | None = None) -> Tensor:
        h = self.nonlinearity(self.norm1(x))
        resample = self.upsample or self.downsample
        if resample is not None:
            x, h = resample(x), resample(h)
        h = self.conv1(h)
        time = None
        if self.time_emb_proj is not None:
            if temb is None:
                raise ValueError("ResnetBlock2D: this block wants the timestep's vector, and none came.")
            time = self.time_emb_proj(temb if self.skip_time_act else self.nonlinearity(temb))[:, :, None, None]
        if time is None:
            h = self.norm2(h)
        elif self.time_norm == "scale_shift":
            scale, shift = time.chunk(2, dim=1)
            h = self.norm2(h) * (1 + scale) + shift
        else:
            h = self.norm2(h + time)
        h = self.conv2(self.dropout(self.nonlinearity(h)))
        if self.conv_shortcut is not None:
            x = self.conv_shortcut(x)
        h = x + h
        return h if self.output_scale_factor == 1.0 else h / self.output_scale_factor


def joined(x: Tensor, skip: Tensor) -> Tensor:
    """What comes up and what was kept on the way down, side by side.

    >>> from votive.models.diffusion.resnet import joined
    >>> joined(votive.ones(1, 2, 4, 4), votive.ones(1, 3, 4, 4)).shape
    votive.Size([1, 5, 4, 4])
    """
    return votive.cat([x, skip], 1)
