"""The stages of a U-Net: residual blocks, attention beside each where a stage has it, a change of resolution.

A stage is told by its kind, the name that configurations have for it. Knows no timesteps and no whole net.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from votive import nn

from ...tensor import Tensor
from .attention import Attention, Transformer2DModel
from .resnet import Downsample2D, ResnetBlock2D, Upsample2D, joined

# By kind: what stands beside each residual block, and what changes the resolution.
DOWN = {
    "DownBlock2D": ("", "conv"),
    "CrossAttnDownBlock2D": ("text", "conv"),
    "AttnDownBlock2D": ("picture", "conv"),
    "ResnetDownsampleBlock2D": ("", "resnet"),
    "DownEncoderBlock2D": ("", "conv"),
    "AttnDownEncoderBlock2D": ("picture", "conv"),
}
UP = {
    "UpBlock2D": ("", "conv"),
    "CrossAttnUpBlock2D": ("text", "conv"),
    "AttnUpBlock2D": ("picture", "conv"),
    "ResnetUpsampleBlock2D": ("", "resnet"),
    "UpDecoderBlock2D": ("", "conv"),
    "AttnUpDecoderBlock2D": ("picture", "conv"),
}
Seen = tuple[Tensor | None, Tensor | None, Tensor | None]  # the text, a mask of pixels, a mask of the text


@dataclass(frozen=True)
class Stage:
    """What one stage is made from."""

    kind: str
    layers: int
    temb_channels: int | None
    groups: int
    eps: float = 1e-6
    act_fn: str = "silu"
    dropout: float = 0.0
    time_norm: str = "default"
    skip_time_act: bool = False
    resnet_scale: float = 1.0
    head_dim: int | None = None  # features per head of attention to the picture
    heads: int = 1  # of attention to the text
    cross_attention_dim: int | None = None
    transformer_layers: int | list[int] = 1
    use_linear_projection: bool = False
    only_cross_attention: bool = False
    resample: bool = True
    resample_by: str | None = None  # instead of the kind's own way
    downsample_padding: int = 1

    def resnet(self, in_channels: int, out_channels: int, **more: Any) -> ResnetBlock2D:
        """A residual block of this stage; the timestep comes unactivated where the kind says so."""
        own = "Resnet" in self.kind
        return ResnetBlock2D(
            in_channels,
            out_channels,
            self.temb_channels,
            groups=self.groups,
            eps=self.eps,
            act_fn=self.act_fn,
            dropout=self.dropout,
            time_norm=self.time_norm,
            skip_time_act=self.skip_time_act and own,
            output_scale_factor=self.resnet_scale if own else 1.0,
            **more,
        )

    def attentions(self, beside: str, channels: int) -> list[nn.Module]:
        """What stands beside the residual blocks, one for each."""
        if beside == "text":
            counts = self.transformer_layers
            counts = [counts] * self.layers if isinstance(counts, int) else list(counts)
            if len(counts) < self.layers:
                raise ValueError(
                    f"transformer_layers_per_block: {self.kind} has {self.layers} blocks, got {len(counts)} numbers."
                )
            return [text_attention(self, channels, n) for n in counts[: self.layers]]
        return [picture_attention(self, channels, self.groups) for _ in range(self.layers)] if beside else []


def text_attention(stage: Stage, channels: int, layers: int) -> Transformer2DModel:
    """Transformer blocks that look at the text."""
    if stage.cross_attention_dim is None:
        raise ValueError(f"{stage.kind}: the configuration must say cross_attention_dim.")
    return Transformer2DModel(
        channels,
        stage.heads,
        layers,
        cross_attention_dim=stage.cross_attention_dim,
        groups=stage.groups,
        use_linear_projection=stage.use_linear_projection,
        only_cross_attention=stage.only_cross_attention,
    )


def picture_attention(stage: Stage, channels: int, groups: int | None, scale: float = 1.0) -> Attention:
    """Attention of pixels to each other."""
    size = stage.head_dim or channels
    return Attention(
        channels,
        channels // size,
        size,
        bias=True,
        norm_num_groups=groups,
        eps=stage.eps,
        residual=True,
        rescale_output_factor=scale,
        older=True,
    )


class _Stage(nn.Module):
    """Residual blocks with or without attention beside them."""

    def __init__(self, resnets: list[ResnetBlock2D], attentions: list[nn.Module]) -> None:
        super().__init__()
        if attentions:
            self.attentions = nn.ModuleList(attentions)
        self.resnets = nn.ModuleList(resnets)
        self.looks = bool(attentions)

    def pair(self, i: int, x: Tensor, temb: Tensor | None, seen: Seen) -> Tensor:
        """The i-th residual block, and the attention beside it."""
        x = self.resnets[i](x, temb)
        return attended(self.attentions[i], x, seen) if self.looks else x


def attended(part: nn.Module, x: Tensor, seen: Seen) -> Tensor:
    """Attention of pixels, to the text where the part looks at one."""
    return part(x, *seen) if isinstance(part, Transformer2DModel) else part(x)


class DownStage(_Stage):
    """Residual blocks, then half the resolution; gives the result of each for the way up."""

    def __init__(self, stage: Stage, in_channels: int, out_channels: int) -> None:
        beside, by = _known(DOWN, stage.kind)
        by = stage.resample_by or by
        widths = [in_channels] + [out_channels] * (stage.layers - 1)
        super().__init__([stage.resnet(w, out_channels) for w in widths], stage.attentions(beside, out_channels))
        self.downsamplers = None
        if stage.resample:
            made: nn.Module = (
                stage.resnet(out_channels, out_channels, down=True)
                if by == "resnet"
                else Downsample2D(out_channels, padding=stage.downsample_padding)
            )
            self.downsamplers = nn.ModuleList([made])

    def forward(
        self,
        hidden_states: Tensor,
        temb: Tensor | None = None,
        encoder_hidden_states: Tensor | None = None,
        attention_mask: Tensor | None = None,
        encoder_attention_mask: Tensor | None = None,
        additional_residuals: Tensor | None = None,
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """`additional_residuals` are added behind the last attention, before the resolution changes."""
        x, kept = hidden_states, []
        seen = encoder_hidden_states, attention_mask, encoder_attention_mask
        for i in range(len(self.resnets)):
            x = self.pair(i, x, temb, seen)
            if i == len(self.resnets) - 1 and additional_residuals is not None:
                x = x + additional_residuals
            kept.append(x)
        if self.downsamplers is not None:
            for part in self.downsamplers:
                x = part(x, temb) if isinstance(part, ResnetBlock2D) else part(x)
            kept.append(x)
        return x, tuple(kept)


class UpStage(_Stage):
    """Residual blocks over what comes up beside what was kept on the way down, then twice the resolution."""

    def __init__(self, stage: Stage, in_channels: int, out_channels: int, skips: list[int]) -> None:
        beside, by = _known(UP, stage.kind)
        by = stage.resample_by or by
        widths = [in_channels] + [out_channels] * (stage.layers - 1)
        made = [stage.resnet(w + s, out_channels) for w, s in zip(widths, skips, strict=True)]
        super().__init__(made, stage.attentions(beside, out_channels))
        self.upsamplers = None
        if stage.resample:
            part: nn.Module = (
                stage.resnet(out_channels, out_channels, up=True) if by == "resnet" else Upsample2D(out_channels)
            )
            self.upsamplers = nn.ModuleList([part])

    def forward(
        self,
        hidden_states: Tensor,
        kept: tuple[Tensor, ...] = (),
        temb: Tensor | None = None,
        encoder_hidden_states: Tensor | None = None,
        attention_mask: Tensor | None = None,
        encoder_attention_mask: Tensor | None = None,
        upsample_size: tuple[int, int] | None = None,
    ) -> Tensor:
        """`kept` (none in a decoder) is taken from its end; `upsample_size` is the resolution to come."""
        x, seen = hidden_states, (encoder_hidden_states, attention_mask, encoder_attention_mask)
        for i in range(len(self.resnets)):
            if kept:
                x = joined(x, kept[-1 - i])
            x = self.pair(i, x, temb, seen)
        if self.upsamplers is not None:
            for part in self.upsamplers:
                x = part(x, temb) if isinstance(part, ResnetBlock2D) else part(x, upsample_size)
        return x


class MidStage(_Stage):
    """A residual block, then attention and another, at the lowest resolution."""

    def __init__(self, stage: Stage, channels: int, attentions: list[nn.Module], more: int, scale: float) -> None:
        plain = replace(stage, kind="Resnet", resnet_scale=scale, skip_time_act=False)
        super().__init__([plain.resnet(channels, channels) for _ in range(1 + more)], attentions)

    def forward(
        self,
        hidden_states: Tensor,
        temb: Tensor | None = None,
        encoder_hidden_states: Tensor | None = None,
        attention_mask: Tensor | None = None,
        encoder_attention_mask: Tensor | None = None,
    ) -> Tensor:
        seen = encoder_hidden_states, attention_mask, encoder_attention_mask
        x = self.resnets[0](hidden_states, temb)
        for i in range(1, len(self.resnets)):
            if self.looks:
                x = attended(self.attentions[i - 1], x, seen)
            x = self.resnets[i](x, temb)
        return x


def _known(table: dict[str, tuple[str, str]], kind: str) -> tuple[str, str]:
    """What a kind of stage means; the first files put `UNetRes` before the names."""
    name = kind.removeprefix("UNetRes")
    if name not in table:
        raise ValueError(f"a block of the kind {kind!r} is not known here; known: {', '.join(table)}.")
    return table[name]
