"""The autoencoder of Stable Diffusion: pictures to latents of an eighth of their size, and back.

Kingma & Welling 2013, arXiv:1312.6114; Rombach et al. 2022, arXiv:2112.10752. Names of parameters, keys and values
are diffusers'.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import votive
from votive import nn

from ...tensor import Tensor
from .conditions import check_sample
from .gaussian import DiagonalGaussianDistribution, Generators
from .model import DiffusionModel
from .output import AutoencoderKLOutput, DecoderOutput
from .tiles import blended, tiles_of
from .unet_2d_condition import groups_of, older_attention_names
from .unet_blocks import DownStage, MidStage, Stage, UpStage, picture_attention


class _Coder(nn.Module):
    """What both sides have: a convolution, stages, a norm, a convolution."""

    def __init__(self, channels: int, out: int, first: int, last: int, groups: int, middle: MidStage) -> None:
        super().__init__()
        self.conv_in = nn.Conv2d(channels, first, 3, padding=1)
        self.mid_block = middle
        self.conv_norm_out = nn.GroupNorm(groups, last, eps=1e-6)
        self.conv_act = nn.SiLU()
        self.conv_out = nn.Conv2d(last, out, 3, padding=1)

    def finished(self, x: Tensor) -> Tensor:
        """The end of either side."""
        return self.conv_out(self.conv_act(self.conv_norm_out(x)))


class Encoder(_Coder):
    """Pictures to means and log-variances of latents."""

    def __init__(self, model: AutoencoderKL) -> None:
        c, widths = model.config, list(model.config.block_out_channels)
        last = widths[-1]
        groups = groups_of(c.norm_num_groups, last)
        super().__init__(c.in_channels, 2 * c.latent_channels, widths[0], last, groups, model.middle(last))
        befores = [widths[0], *widths[:-1]]
        self.down_blocks = nn.ModuleList(
            DownStage(model.stage(kind, c.layers_per_block, width, i < len(widths) - 1), before, width)
            for i, (kind, before, width) in enumerate(zip(c.down_block_types, befores, widths, strict=True))
        )

    def forward(self, sample: Tensor) -> Tensor:
        x = self.conv_in(sample)
        for block in self.down_blocks:
            x = block(x)[0]
        return self.finished(self.mid_block(x))


class Decoder(_Coder):
    """Latents to pictures."""

    def __init__(self, model: AutoencoderKL) -> None:
        c, widths = model.config, list(model.config.block_out_channels)[::-1]
        first = widths[0]
        groups = groups_of(c.norm_num_groups, widths[-1])
        super().__init__(c.latent_channels, c.out_channels, first, widths[-1], groups, model.middle(first))
        befores = [first, *widths[:-1]]
        layers = c.layers_per_block + 1
        self.up_blocks = nn.ModuleList(
            UpStage(model.stage(kind, layers, width, i < len(widths) - 1), before, width, [0] * layers)
            for i, (kind, before, width) in enumerate(zip(c.up_block_types, befores, widths, strict=True))
        )

    def forward(self, sample: Tensor) -> Tensor:
        x = self.mid_block(self.conv_in(sample))
        for block in self.up_blocks:
            x = block(x)
        return self.finished(x)


class AutoencoderKL(DiffusionModel):
    """Pictures in -1 .. 1 to a distribution of latents, and latents to pictures.

    >>> from votive.models.diffusion import AutoencoderKL
    >>> vae = AutoencoderKL(block_out_channels=(8, 8), norm_num_groups=4, latent_channels=2,
    ...     down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2)
    >>> latents = vae.encode(votive.zeros(1, 3, 8, 8)).latent_dist.mode()
    >>> latents.shape, vae.decode(latents).sample.shape
    (votive.Size([1, 2, 4, 4]), votive.Size([1, 3, 8, 8]))
    """

    defaults: ClassVar[dict[str, Any]] = {
        "in_channels": 3, "out_channels": 3, "down_block_types": ("DownEncoderBlock2D",),
        "up_block_types": ("UpDecoderBlock2D",), "block_out_channels": (64,), "layers_per_block": 1,
        "act_fn": "silu", "latent_channels": 4, "norm_num_groups": 32, "sample_size": 32,
        "scaling_factor": 0.18215, "shift_factor": None, "latents_mean": None, "latents_std": None,
        "force_upcast": True, "use_quant_conv": True, "use_post_quant_conv": True,
        "mid_block_add_attention": True,
    }  # fmt: skip

    def build(self) -> None:
        """Make the layers that the configuration describes."""
        c = self.config
        if not len(c.down_block_types) == len(c.up_block_types) == len(c.block_out_channels):
            raise ValueError(
                f"{type(self).__name__}: down_block_types, up_block_types and block_out_channels must be of one "
                f"length; they have {len(c.down_block_types)}, {len(c.up_block_types)} and {len(c.block_out_channels)}."
            )
        latents = c.latent_channels
        self.encoder, self.decoder = Encoder(self), Decoder(self)
        self.quant_conv = nn.Conv2d(2 * latents, 2 * latents, 1) if c.use_quant_conv else None
        self.post_quant_conv = nn.Conv2d(latents, latents, 1) if c.use_post_quant_conv else None
        self.use_slicing = self.use_tiling = False
        size = c.sample_size
        self.tile_sample_min_size: int = size[0] if isinstance(size, list | tuple) else size
        self.tile_latent_min_size = int(self.tile_sample_min_size / self.factor)
        self.tile_overlap_factor = 0.25

    def stage(self, kind: str, layers: int, width: int, resample: bool) -> Stage:
        """What one stage of either side is made from."""
        c = self.config
        groups = groups_of(c.norm_num_groups, width)
        return Stage(
            kind, layers, None, groups, act_fn=c.act_fn, head_dim=width, resample=resample, downsample_padding=0
        )

    def middle(self, width: int) -> MidStage:
        """The lowest resolution of either side."""
        stage = self.stage("UNetMidBlock2D", 1, width, False)
        parts: list[nn.Module] = []
        if self.config.mid_block_add_attention:
            parts = [picture_attention(stage, width, stage.groups)]
        return MidStage(stage, width, parts, 1, 1.0)

    @property
    def factor(self) -> int:
        """Pixels for one number of the latents, along one side."""
        return 2 ** (len(self.config.block_out_channels) - 1)

    def older_names(self) -> dict[str, str]:
        """Names of the weights of attention in the first files."""
        return older_attention_names(self)

    def enable_slicing(self, on: bool = True) -> None:
        """Compute one picture of a batch after the other, in less memory."""
        self.use_slicing = on

    def enable_tiling(self, on: bool = True) -> None:
        """Compute large pictures in overlapping tiles that are blended, in less memory; results differ a little."""
        self.use_tiling = on

    def disable_slicing(self) -> None:
        """Compute batches at once."""
        self.use_slicing = False

    def disable_tiling(self) -> None:
        """Compute pictures whole."""
        self.use_tiling = False

    def encode(self, x: Tensor, return_dict: bool = True) -> AutoencoderKLOutput | tuple[DiagonalGaussianDistribution]:
        """The distribution of the latents of pictures (batch, channels, height, width) in -1 .. 1."""
        check_sample(type(self).__name__, x, self.config.in_channels)
        found = DiagonalGaussianDistribution(self._by_slices(self._encoded, x))
        return AutoencoderKLOutput(latent_dist=found) if return_dict else (found,)

    def decode(self, z: Tensor, return_dict: bool = True) -> DecoderOutput | tuple[Tensor]:
        """Pictures of latents; what a denoiser made is divided by `config.scaling_factor` before."""
        check_sample(type(self).__name__, z, self.config.latent_channels)
        found = self._by_slices(self._decoded, z)
        return DecoderOutput(sample=found) if return_dict else (found,)

    def _by_slices(self, compute: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
        if self.use_slicing and x.shape[0] > 1:
            return votive.cat([compute(part) for part in x.split(1)])
        return compute(x)

    def _encoded(self, x: Tensor) -> Tensor:
        def whole(part: Tensor) -> Tensor:
            part = self.run_block(self.encoder, part)
            return part if self.quant_conv is None else self.quant_conv(part)

        size, latent = self.tile_sample_min_size, self.tile_latent_min_size
        if self.use_tiling and max(x.shape[2:]) > size:
            step = int(size * (1 - self.tile_overlap_factor))
            return blended(tiles_of(x, size, step, whole), latent, int(latent * self.tile_overlap_factor))
        return whole(x)

    def _decoded(self, z: Tensor) -> Tensor:
        def whole(part: Tensor) -> Tensor:
            part = part if self.post_quant_conv is None else self.post_quant_conv(part)
            return self.run_block(self.decoder, part)

        size, latent = self.tile_sample_min_size, self.tile_latent_min_size
        if self.use_tiling and max(z.shape[2:]) > latent:
            step = int(latent * (1 - self.tile_overlap_factor))
            return blended(tiles_of(z, latent, step, whole), size, int(size * self.tile_overlap_factor))
        return whole(z)

    def forward(
        self, sample: Tensor, sample_posterior: bool = False, return_dict: bool = True, generator: Generators = None
    ) -> DecoderOutput | tuple[Tensor]:
        """Pictures as they come out again: of the mean of their latents, or of a draw."""
        found = self.encode(sample, return_dict=False)[0]
        assert isinstance(found, DiagonalGaussianDistribution), "that is what encode gives"
        return self.decode(found.sample(generator) if sample_posterior else found.mode(), return_dict)
