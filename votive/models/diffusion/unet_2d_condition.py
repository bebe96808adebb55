"""The U-Net of Stable Diffusion 1, 2 and XL: it denoises while it looks at a text.

Ronneberger et al. 2015, arXiv:1505.04597; Rombach et al. 2022, arXiv:2112.10752; Podell et al. 2023,
arXiv:2307.01952. Names of parameters, keys and values are diffusers'.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any, ClassVar

from votive import nn

from ...tensor import Tensor
from .conditions import build_conditions, check_sample, condition_vector, mask_as_bias, time_width, timestep_tensor
from .embeddings import activation
from .lora import lora_scaled
from .model import DiffusionModel
from .output import UNetOutput
from .settings import per_block
from .unet_blocks import DownStage, MidStage, Stage, UpStage, text_attention

_SIMPLE = "only 'UNetMidBlock2DSimpleCrossAttn' and its kin have it, which are not known here"


class UNet2DConditionModel(DiffusionModel):
    """Predicts the noise in samples (batch, channels, height, width) at timesteps, beside a text's vectors.

    `attention_head_dim` is the number of heads, as in all files: diffusers named it wrongly and kept the name.

    >>> from votive.models.diffusion import UNet2DConditionModel
    >>> unet = UNet2DConditionModel(block_out_channels=(8, 16), cross_attention_dim=6, norm_num_groups=4,
    ...     attention_head_dim=2, down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
    ...     up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"), layers_per_block=1)
    >>> unet(votive.ones(2, 4, 8, 8), 10, votive.ones(2, 5, 6)).sample.shape
    votive.Size([2, 4, 8, 8])
    """

    defaults: ClassVar[dict[str, Any]] = {
        "sample_size": None, "in_channels": 4, "out_channels": 4, "center_input_sample": False,
        "flip_sin_to_cos": True, "freq_shift": 0,
        "down_block_types": ("CrossAttnDownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D", "DownBlock2D"),
        "mid_block_type": "UNetMidBlock2DCrossAttn",
        "up_block_types": ("UpBlock2D", "CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "CrossAttnUpBlock2D"),
        "only_cross_attention": False, "block_out_channels": (320, 640, 1280, 1280), "layers_per_block": 2,
        "downsample_padding": 1, "mid_block_scale_factor": 1, "dropout": 0.0, "act_fn": "silu",
        "norm_num_groups": 32, "norm_eps": 1e-5, "cross_attention_dim": 1280, "transformer_layers_per_block": 1,
        "reverse_transformer_layers_per_block": None, "encoder_hid_dim": None, "encoder_hid_dim_type": None,
        "attention_head_dim": 8, "num_attention_heads": None, "dual_cross_attention": False,
        "use_linear_projection": False, "class_embed_type": None, "addition_embed_type": None,
        "addition_time_embed_dim": None, "num_class_embeds": None, "upcast_attention": False,
        "resnet_time_scale_shift": "default", "resnet_skip_time_act": False, "resnet_out_scale_factor": 1.0,
        "time_embedding_type": "positional", "time_embedding_dim": None, "time_embedding_act_fn": None,
        "timestep_post_act": None, "time_cond_proj_dim": None, "conv_in_kernel": 3, "conv_out_kernel": 3,
        "projection_class_embeddings_input_dim": None, "attention_type": "default",
        "class_embeddings_concat": False, "mid_block_only_cross_attention": None, "cross_attention_norm": None,
        "addition_embed_type_num_heads": 64,
    }  # fmt: skip
    choices: ClassVar[dict[str, tuple[Any, ...]]] = {
        "mid_block_type": ("UNetMidBlock2DCrossAttn", "UNetMidBlock2D", None),
        "resnet_time_scale_shift": ("default", "scale_shift"),
        "time_embedding_type": ("positional", "fourier"),
        "class_embed_type": (None, "timestep", "identity", "projection", "simple_projection"),
        "addition_embed_type": (None, "text", "text_time"),
        "encoder_hid_dim_type": (None, "text_proj"),
    }
    refused: ClassVar[dict[str, tuple[tuple[Any, ...], str]]] = {
        "num_attention_heads": ((None,), "files say the number of heads as attention_head_dim"),
        "dual_cross_attention": ((False, None), "there is no DualTransformer2DModel here"),
        "attention_type": (("default", None), "GLIGEN's gated attention is not known here"),
        "cross_attention_norm": ((None,), _SIMPLE),
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
        count = len(widths)
        heads = per_block(name, "attention_head_dim", c.attention_head_dim, count)
        crosses = per_block(name, "cross_attention_dim", c.cross_attention_dim, count)
        layers = per_block(name, "layers_per_block", c.layers_per_block, count)
        only = per_block(name, "only_cross_attention", c.only_cross_attention, count)
        depths = per_block(name, "transformer_layers_per_block", c.transformer_layers_per_block, count)
        back = c.reverse_transformer_layers_per_block
        if back is None:
            if any(isinstance(d, list | tuple) for d in depths):
                raise ValueError(
                    f"{name}: with a list for a block in transformer_layers_per_block the way up differs: give "
                    "reverse_transformer_layers_per_block."
                )
            back = depths[::-1]

        temb = time_width(c) * (2 if c.class_embeddings_concat else 1)
        kernel = c.conv_in_kernel
        self.conv_in = nn.Conv2d(c.in_channels, widths[0], kernel, padding=(kernel - 1) // 2)
        build_conditions(self, name)
        self.time_embed_act = None if c.time_embedding_act_fn is None else activation(c.time_embedding_act_fn)

        def stage(i: int, kind: str, depth: Any, more: int, resample: bool) -> Stage:
            return Stage(
                kind,
                layers[i] + more,
                temb,
                groups_of(c.norm_num_groups, widths[i]),
                eps=c.norm_eps,
                act_fn=c.act_fn,
                dropout=c.dropout,
                time_norm=c.resnet_time_scale_shift,
                skip_time_act=c.resnet_skip_time_act,
                resnet_scale=c.resnet_out_scale_factor,
                head_dim=heads[i],
                heads=heads[i],
                cross_attention_dim=crosses[i],
                transformer_layers=list(depth) if isinstance(depth, list | tuple) else depth,
                use_linear_projection=c.use_linear_projection,
                only_cross_attention=only[i],
                resample=resample,
                downsample_padding=c.downsample_padding,
            )

        befores = [widths[0], *widths[:-1]]
        self.down_blocks = nn.ModuleList(
            DownStage(stage(i, downs[i], depths[i], 0, i < count - 1), befores[i], widths[i]) for i in range(count)
        )
        self.mid_block = self._mid(stage(count - 1, "UNetMidBlock2D", depths[-1], 0, False), widths[-1])
        stages = []
        for j, kind in enumerate(ups):
            i = count - 1 - j
            own = stage(i, kind, back[j], 1, j < count - 1)
            stages.append(UpStage(own, widths[min(i + 1, count - 1)], widths[i], skips(widths, layers, i)))
        self.up_blocks = nn.ModuleList(stages)
        self.conv_norm_out = None
        if c.norm_num_groups is not None:
            self.conv_norm_out = nn.GroupNorm(c.norm_num_groups, widths[0], eps=c.norm_eps)
            self.conv_act = activation(c.act_fn)
        kernel = c.conv_out_kernel
        self.conv_out = nn.Conv2d(widths[0], c.out_channels, kernel, padding=(kernel - 1) // 2)

    def _mid(self, stage: Stage, width: int) -> MidStage | None:
        kind = self.config.mid_block_type
        if kind is None:
            return None
        if kind == "UNetMidBlock2D":
            return MidStage(stage, width, [], 0, self.config.mid_block_scale_factor)
        # Here attention to the picture stays where others have only that to the text.
        depth = stage.transformer_layers
        plain = Stage(**{**vars(stage), "only_cross_attention": False})
        part = text_attention(plain, width, depth if isinstance(depth, int) else depth[0])
        return MidStage(plain, width, [part], 1, self.config.mid_block_scale_factor)

    def older_names(self) -> dict[str, str]:
        """Names of the weights of attention in the first files."""
        return older_attention_names(self)

    def forward(
        self,
        sample: Tensor,
        timestep: Tensor | float,
        encoder_hidden_states: Tensor | None = None,
        class_labels: Tensor | None = None,
        timestep_cond: Tensor | None = None,
        attention_mask: Tensor | None = None,
        cross_attention_kwargs: Mapping[str, Any] | None = None,
        added_cond_kwargs: Mapping[str, Tensor] | None = None,
        down_block_additional_residuals: Sequence[Tensor] | None = None,
        mid_block_additional_residual: Tensor | None = None,
        down_intrablock_additional_residuals: Sequence[Tensor] | None = None,
        encoder_attention_mask: Tensor | None = None,
        return_dict: bool = True,
    ) -> UNetOutput | tuple[Tensor]:
        """`encoder_attention_mask` (batch, tokens) is 1 at tokens that are seen; residuals are a ControlNet's."""
        check_sample(type(self).__name__, sample, self.config.in_channels)
        text = encoder_hidden_states
        mask = mask_as_bias(attention_mask, sample.dtype)
        text_mask = mask_as_bias(encoder_attention_mask, sample.dtype)
        scale = _lora_scale(cross_attention_kwargs)
        if self.config.center_input_sample:
            sample = 2 * sample - 1.0
        t = timestep_tensor(timestep, sample)
        emb = condition_vector(self, sample, t, timestep_cond, class_labels, text, added_cond_kwargs)
        if self.time_embed_act is not None:
            emb = self.time_embed_act(emb)
        if self.encoder_hid_proj is not None:
            text = self.encoder_hid_proj(text)
        with nullcontext() if scale is None else lora_scaled(self, scale):
            x = self.conv_in(sample)
            kept: tuple[Tensor, ...] = (x,)
            controlled = mid_block_additional_residual is not None and down_block_additional_residuals is not None
            inner = list(down_intrablock_additional_residuals or ())
            if not controlled and (down_block_additional_residuals or mid_block_additional_residual) is not None:
                raise ValueError(
                    f"{type(self).__name__}: down_block_additional_residuals and mid_block_additional_residual come "
                    "together; a T2I-adapter's are down_intrablock_additional_residuals."
                )
            for block in self.down_blocks:
                more = inner.pop(0) if inner else None
                behind = not block.looks or not hasattr(block.attentions[0], "transformer_blocks")
                x, found = self.run_block(block, x, emb, text, mask, text_mask, None if behind else more)
                if behind and more is not None:
                    # A stage without a text adds them to its result, which is what goes up last as well.
                    x = x + more
                    found = (*found[:-1], x)
                kept = (*kept, *found)
            if controlled:
                assert down_block_additional_residuals is not None, "that is what controlled means"
                kept = tuple(a + b for a, b in zip(kept, down_block_additional_residuals, strict=True))
            if self.mid_block is not None:
                x = self.run_block(self.mid_block, x, emb, text, mask, text_mask)
                if inner and inner[0].shape == x.shape:
                    x = x + inner.pop(0)
            if mid_block_additional_residual is not None and controlled:
                x = x + mid_block_additional_residual
            x = climb(self, x, kept, emb, text, mask, text_mask)
        if self.conv_norm_out is not None:
            x = self.conv_act(self.conv_norm_out(x))
        x = self.conv_out(x)
        return UNetOutput(sample=x) if return_dict else (x,)


def climb(unet: Any, x: Tensor, kept: tuple[Tensor, ...], *seen: Tensor | None) -> Tensor:
    """The way up: each stage takes what was kept last, and goes to the resolution of what is left."""
    for block in unet.up_blocks:
        count = len(block.resnets)
        own, kept = kept[-count:], kept[:-count]
        size = (kept[-1].shape[2], kept[-1].shape[3]) if kept else None
        emb, *rest = seen
        rest = rest or [None, None, None]
        x = unet.run_block(block, x, own, emb, *rest, size)
    return x


def skips(widths: Sequence[int], layers: Sequence[int], i: int) -> list[int]:
    """Channels of what the stage at resolution `i` takes on the way up, in its order.

    >>> from votive.models.diffusion.unet_2d_condition import skips
    >>> skips([8, 16], [2, 2], 1)
    [16, 16, 8]
    """
    below = widths[i - 1] if i else widths[0]
    return [widths[i]] * layers[i] + [below]


def groups_of(groups: int | None, channels: int) -> int:
    """How many groups the norms of a block have."""
    return min(channels // 4, 32) if groups is None else groups


def older_attention_names(model: nn.Module) -> dict[str, str]:
    """Names that weights of attention to pictures had in the first files, and the present ones."""
    parts = {"query": "to_q", "key": "to_k", "value": "to_v", "proj_attn": "to_out.0"}
    return {
        f"{path}.{old}.{kind}": f"{path}.{new}.{kind}"
        for path, module in model.named_modules()
        if getattr(module, "older", False)
        for old, new in parts.items()
        for kind in ("weight", "bias")
    }


def _lora_scale(options: Mapping[str, Any] | None) -> float | None:
    """The scale of adaptations in `cross_attention_kwargs`; whatever else it holds is refused."""
    rest = dict(options or {})
    scale = rest.pop("scale", None)
    if rest:
        raise ValueError(f"cross_attention_kwargs: {sorted(rest)[0]!r} is not known; only 'scale' (of LoRA) is.")
    return scale
