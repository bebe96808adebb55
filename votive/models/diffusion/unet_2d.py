"""The U-Net of DDPM and of what followed: it denoises pictures, of a class if it is told one.

Ho et al. 2020, arXiv:2006.11239; Song et al. 2021, arXiv:2011.13456. Names of parameters, keys and values are
diffusers'.
"""

from __future__ import annotations

from typing import Any, ClassVar

from votive import nn

from ...tensor import Tensor
from .conditions import check_sample, timestep_tensor
from .embeddings import GaussianFourierProjection, TimestepEmbedding, Timesteps
from .model import DiffusionModel
from .output import UNetOutput
from .unet_2d_condition import climb, groups_of, older_attention_names, skips
from .unet_blocks import DownStage, MidStage, Stage, UpStage, picture_attention


class UNet2DModel(DiffusionModel):
    """Predicts the noise in pictures (batch, channels, height, width) at timesteps.

    `attention_head_dim` is the width of a head here, as its name says; None means one head.

    >>> from votive.models.diffusion import UNet2DModel
    >>> unet = UNet2DModel(in_channels=1, out_channels=1, block_out_channels=(8, 16), norm_num_groups=4,
    ...     down_block_types=("DownBlock2D", "AttnDownBlock2D"), up_block_types=("AttnUpBlock2D", "UpBlock2D"))
    >>> unet(votive.ones(2, 1, 8, 8), votive.tensor([3, 5])).sample.shape
    votive.Size([2, 1, 8, 8])
    """

    defaults: ClassVar[dict[str, Any]] = {
        "sample_size": None, "in_channels": 3, "out_channels": 3, "center_input_sample": False,
        "time_embedding_type": "positional", "time_embedding_dim": None, "freq_shift": 0, "flip_sin_to_cos": True,
        "down_block_types": ("DownBlock2D", "AttnDownBlock2D", "AttnDownBlock2D", "AttnDownBlock2D"),
        "mid_block_type": "UNetMidBlock2D",
        "up_block_types": ("AttnUpBlock2D", "AttnUpBlock2D", "AttnUpBlock2D", "UpBlock2D"),
        "block_out_channels": (224, 448, 672, 896), "layers_per_block": 2, "mid_block_scale_factor": 1,
        "downsample_padding": 1, "downsample_type": "conv", "upsample_type": "conv", "dropout": 0.0,
        "act_fn": "silu", "attention_head_dim": 8, "norm_num_groups": 32, "attn_norm_num_groups": None,
        "norm_eps": 1e-5, "resnet_time_scale_shift": "default", "add_attention": True, "class_embed_type": None,
        "num_class_embeds": None, "num_train_timesteps": None,
    }  # fmt: skip
    choices: ClassVar[dict[str, tuple[Any, ...]]] = {
        "mid_block_type": ("UNetMidBlock2D", None),
        "resnet_time_scale_shift": ("default", "scale_shift"),
        "time_embedding_type": ("positional", "fourier", "learned"),
        "downsample_type": ("conv", "resnet"),
        "upsample_type": ("conv", "resnet"),
        "class_embed_type": (None, "timestep", "identity"),
    }

    def build(self) -> None:
        """Make the layers that the configuration describes."""
        c, name = self.config, type(self).__name__
        downs, ups, widths = list(c.down_block_types), list(c.up_block_types), list(c.block_out_channels)
        if not len(downs) == len(ups) == len(widths):
            raise ValueError(
                f"{name}: down_block_types, up_block_types and block_out_channels must be of one length; they have "
                f"{len(downs)}, {len(ups)} and {len(widths)}."
            )
        count, first = len(widths), widths[0]
        temb = c.time_embedding_dim or 4 * first
        self.conv_in = nn.Conv2d(c.in_channels, first, 3, padding=1)
        told = first
        if c.time_embedding_type == "fourier":
            self.time_proj: nn.Module = GaussianFourierProjection(first, scale=16)
            told = 2 * first
        elif c.time_embedding_type == "learned":
            if c.num_train_timesteps is None:
                raise ValueError(f"{name}: time_embedding_type='learned' wants num_train_timesteps.")
            self.time_proj = nn.Embedding(c.num_train_timesteps, first)
        else:
            self.time_proj = Timesteps(first, c.flip_sin_to_cos, c.freq_shift)
        self.time_embedding = TimestepEmbedding(told, temb)
        self.class_embedding: nn.Module | None = None
        if c.class_embed_type is None and c.num_class_embeds is not None:
            self.class_embedding = nn.Embedding(c.num_class_embeds, temb)
        elif c.class_embed_type == "timestep":
            self.class_embedding = TimestepEmbedding(told, temb)
        elif c.class_embed_type == "identity":
            self.class_embedding = nn.Identity()

        def stage(i: int, kind: str, layers: int, resample: bool, by: str) -> Stage:
            attentive = "Attn" in kind
            return Stage(
                kind,
                layers,
                temb,
                groups_of(c.norm_num_groups, widths[i]),
                eps=c.norm_eps,
                act_fn=c.act_fn,
                dropout=c.dropout,
                time_norm=c.resnet_time_scale_shift,
                head_dim=c.attention_head_dim,
                resample=resample,
                resample_by=by if attentive else None,
                downsample_padding=c.downsample_padding,
            )

        befores = [first, *widths[:-1]]
        layers, down, up = c.layers_per_block, c.downsample_type, c.upsample_type
        self.down_blocks = nn.ModuleList(
            DownStage(stage(i, downs[i], layers, i < count - 1, down), befores[i], widths[i]) for i in range(count)
        )
        self.mid_block = None
        if c.mid_block_type is not None:
            self.mid_block = self._mid(stage(count - 1, c.mid_block_type, 1, False, down), widths[-1])
        stages = []
        for j, kind in enumerate(ups):
            i = count - 1 - j
            own = stage(i, kind, layers + 1, j < count - 1, up)
            stages.append(UpStage(own, widths[min(i + 1, count - 1)], widths[i], skips(widths, [layers] * count, i)))
        self.up_blocks = nn.ModuleList(stages)
        self.conv_norm_out = nn.GroupNorm(groups_of(c.norm_num_groups, first), first, eps=c.norm_eps)
        self.conv_act = nn.SiLU()
        self.conv_out = nn.Conv2d(first, c.out_channels, 3, padding=1)

    def _mid(self, stage: Stage, width: int) -> MidStage:
        c = self.config
        groups = c.attn_norm_num_groups
        if groups is None and c.resnet_time_scale_shift == "default":
            groups = stage.groups
        parts: list[nn.Module] = []
        if c.add_attention:
            parts = [picture_attention(stage, width, groups, c.mid_block_scale_factor)]
        return MidStage(stage, width, parts, 1, c.mid_block_scale_factor)

    def older_names(self) -> dict[str, str]:
        """Names of the weights of attention in the first files."""
        return older_attention_names(self)

    def forward(
        self, sample: Tensor, timestep: Tensor | float, class_labels: Tensor | None = None, return_dict: bool = True
    ) -> UNetOutput | tuple[Tensor]:
        """`class_labels` (batch,) where the configuration has classes."""
        c, name = self.config, type(self).__name__
        check_sample(name, sample, c.in_channels)
        if c.center_input_sample:
            sample = 2 * sample - 1.0
        if isinstance(timestep, float):
            timestep = int(timestep)
        t = timestep_tensor(timestep, sample)
        emb = self.time_embedding(self.time_proj(t).to(self.dtype))
        if self.class_embedding is not None:
            if class_labels is None:
                raise ValueError(f"{name}: the configuration asks for classes; give class_labels.")
            if c.class_embed_type == "timestep":
                class_labels = self.time_proj(class_labels).to(self.dtype)
            emb = emb + self.class_embedding(class_labels).to(self.dtype)
        elif class_labels is not None:
            raise ValueError(f"{name}: class_labels were given, and the configuration has no classes.")
        x = self.conv_in(sample)
        kept: tuple[Tensor, ...] = (x,)
        for block in self.down_blocks:
            x, found = self.run_block(block, x, emb)
            kept = (*kept, *found)
        if self.mid_block is not None:
            x = self.run_block(self.mid_block, x, emb)
        x = climb(self, x, kept, emb)
        x = self.conv_out(self.conv_act(self.conv_norm_out(x)))
        if c.time_embedding_type == "fourier":
            x = x / t.reshape(-1, 1, 1, 1)
        return UNetOutput(sample=x) if return_dict else (x,)
