"""SAM, which cuts out of a picture what points, boxes or masks mean. Kirillov et al. 2023, arXiv:2304.02643.

A picture is read once; a small decoder answers each prompt. Parameter names are those of Hugging Face checkpoints.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import votive
from votive import nn
from votive.nn import functional as F

from ..tensor import Tensor
from .config import Config
from .nested import Nested, Side
from .output import ModelOutput
from .pretrained import PreTrainedModel
from .sam_prompts import SamPositionalEmbedding, SamPromptEncoder, SamPromptEncoderConfig, only
from .sam_vision import SamLayerNorm, SamMLPBlock, SamVisionConfig, SamVisionEncoder


@dataclass(kw_only=True)
class SamMaskDecoderConfig(Config):
    """The numbers of what answers prompts.

    >>> votive.models.SamMaskDecoderConfig().num_multimask_outputs
    3
    """

    model_type = "sam_mask_decoder"

    hidden_size: int = 256
    hidden_act: str = "relu"
    mlp_dim: int = 2048
    num_hidden_layers: int = 2
    num_attention_heads: int = 8
    attention_downsample_rate: int = 2
    num_multimask_outputs: int = 3
    iou_head_depth: int = 3
    iou_head_hidden_dim: int = 256
    layer_norm_eps: float = 1e-6

    def __post_init__(self) -> None:
        inner = self.hidden_size // self.attention_downsample_rate
        if inner % self.num_attention_heads:
            raise ValueError(
                f"SamMaskDecoderConfig: hidden_size={self.hidden_size} divided by attention_downsample_rate="
                f"{self.attention_downsample_rate} does not split into {self.num_attention_heads} heads."
            )


@dataclass(kw_only=True)
class SamConfig(Nested, Config):
    """The numbers of the three parts.

    >>> votive.models.SamConfig(vision_config={"image_size": 256}).vision_config.grid
    16
    """

    model_type = "sam"
    sides: ClassVar[dict[str, Side]] = {
        "vision_config": SamVisionConfig,
        "prompt_encoder_config": SamPromptEncoderConfig,
        "mask_decoder_config": SamMaskDecoderConfig,
    }

    vision_config: Any = None
    prompt_encoder_config: Any = None
    mask_decoder_config: Any = None
    initializer_range: float = 0.02
    tie_word_embeddings: bool = True

    @property
    def hidden_size(self) -> int:
        return self.vision_config.hidden_size


@dataclass
class SamImageSegmentationOutput(ModelOutput):
    """Masks (batch, prompts, masks, height, width) as scores of pixels, and how well each is held to fit.

    >>> list(votive.models.SamImageSegmentationOutput(iou_scores=votive.ones(1)).keys())
    ['iou_scores']
    """

    iou_scores: Tensor | None = None
    pred_masks: Tensor | None = None
    vision_hidden_states: tuple[Tensor, ...] | None = None
    vision_attentions: tuple[Tensor, ...] | None = None
    mask_decoder_attentions: tuple[Tensor, ...] | None = None


class SamAttention(nn.Module):
    """Attention in fewer features; all are (batch, prompts, places, features)."""

    def __init__(self, config: SamMaskDecoderConfig, rate: int | None = None) -> None:
        super().__init__()
        width, self.heads = config.hidden_size, config.num_attention_heads
        inner = width // (config.attention_downsample_rate if rate is None else rate)
        self.q_proj, self.k_proj, self.v_proj = (nn.Linear(width, inner) for _ in range(3))
        self.out_proj = nn.Linear(inner, width)

    def forward(self, q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None = None) -> Tensor:
        prompts = q.shape[:2]
        each = self._split(self.q_proj(q)), self._split(self.k_proj(k)), self._split(self.v_proj(v))
        found = F.scaled_dot_product_attention(*each, attn_mask=bias)
        return self.out_proj(found.transpose(1, 2).flatten(2).unflatten(0, prompts))

    def _split(self, x: Tensor) -> Tensor:
        return x.flatten(0, 1).unflatten(-1, (self.heads, -1)).transpose(1, 2)


class SamTwoWayAttentionBlock(nn.Module):
    """Tokens look at each other and at the picture, then the picture looks at the tokens."""

    def __init__(self, config: SamMaskDecoderConfig, first: bool) -> None:
        super().__init__()
        width, eps, self.first = config.hidden_size, config.layer_norm_eps, first
        self.self_attn = SamAttention(config, 1)
        self.layer_norm1 = nn.LayerNorm(width, eps=eps)
        self.cross_attn_token_to_image = SamAttention(config)
        self.layer_norm2 = nn.LayerNorm(width, eps=eps)
        self.mlp = SamMLPBlock(width, config.mlp_dim, config.hidden_act)
        self.layer_norm3 = nn.LayerNorm(width, eps=eps)
        self.layer_norm4 = nn.LayerNorm(width, eps=eps)
        self.cross_attn_image_to_token = SamAttention(config)

    def forward(
        self, x: Tensor, picture: Tensor, tokens: Tensor, places: Tensor, bias: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The tokens' and the picture's stream, and what the latter was given."""
        if self.first:
            x = self.layer_norm1(self.self_attn(x, x, x))
        else:
            asked = x + tokens
            x = self.layer_norm1(x + self.self_attn(asked, asked, x))
        x = self.layer_norm2(x + self.cross_attn_token_to_image(x + tokens, picture + places, picture, bias))
        x = self.layer_norm3(x + self.mlp(x))
        added = self.cross_attn_image_to_token(picture + places, x + tokens, x)
        return x, self.layer_norm4(picture + added), added


class SamTwoWayTransformer(nn.Module):
    """Blocks, and a last look of the tokens at the picture."""

    def __init__(self, config: SamMaskDecoderConfig) -> None:
        super().__init__()
        self.layers = nn.ModuleList(SamTwoWayAttentionBlock(config, i == 0) for i in range(config.num_hidden_layers))
        self.final_attn_token_to_image = SamAttention(config)
        self.layer_norm_final_attn = nn.LayerNorm(config.hidden_size)

    def forward(
        self,
        tokens: Tensor,
        picture: Tensor,
        places: Tensor,
        bias: Tensor | None,
        target: Tensor | None,
        kept: list[Tensor] | None,
    ) -> tuple[Tensor, Tensor]:
        picture, places = (x.flatten(2).transpose(1, 2).unsqueeze(1) for x in (picture, places))
        x = tokens
        for layer in self.layers:
            x, picture, added = layer(x if target is None else x + target, picture, tokens, places, bias)
            if kept is not None:
                kept.append(added)
        found = self.final_attn_token_to_image(x + tokens, picture + places, picture)
        return self.layer_norm_final_attn(x + found), picture


class SamFeedForward(nn.Module):
    """Products with ReLU between them."""

    def __init__(self, width: int, inner: int, out: int, depth: int) -> None:
        super().__init__()
        self.proj_in, self.proj_out = nn.Linear(width, inner), nn.Linear(inner, out)
        self.layers = nn.ModuleList(nn.Linear(inner, inner) for _ in range(depth - 2))

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.proj_in(x))
        for layer in self.layers:
            x = F.relu(layer(x))
        return self.proj_out(x)


class SamMaskDecoder(nn.Module):
    """Tokens for masks read prompts and the picture, and become weights of its pixels."""

    def __init__(self, config: SamMaskDecoderConfig) -> None:
        super().__init__()
        width, self.masks = config.hidden_size, config.num_multimask_outputs + 1
        self.iou_token = nn.Embedding(1, width)
        self.mask_tokens = nn.Embedding(self.masks, width)
        self.transformer = SamTwoWayTransformer(config)
        self.upscale_conv1 = nn.ConvTranspose2d(width, width // 4, 2, stride=2)
        self.upscale_conv2 = nn.ConvTranspose2d(width // 4, width // 8, 2, stride=2)
        self.upscale_layer_norm = SamLayerNorm(width // 4, eps=1e-6)
        self.output_hypernetworks_mlps = nn.ModuleList(
            SamFeedForward(width, width, width // 8, 3) for _ in range(self.masks)
        )
        self.iou_prediction_head = SamFeedForward(width, config.iou_head_hidden_dim, self.masks, config.iou_head_depth)

    def forward(
        self,
        picture: Tensor,
        places: Tensor,
        sparse: Tensor | None,
        dense: Tensor,
        several: bool,
        bias: Tensor | None = None,
        target: Tensor | None = None,
        kept: list[Tensor] | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Masks (batch, prompts, masks, height, width) and how well they fit; `several` leaves the first out."""
        B, _, height, width = picture.shape
        prompts = 1 if sparse is None else sparse.shape[1]
        tokens = votive.cat([only(self.iou_token), only(self.mask_tokens)]).expand(B, prompts, -1, -1)
        if sparse is not None:
            tokens = votive.cat([tokens, sparse.to(tokens.dtype)], 2)
        picture = (picture + dense).repeat_interleave(prompts, 0)
        places = places.repeat_interleave(prompts, 0)
        # Prompts of one picture are told apart by the batch of the picture, too.
        x, read = self.transformer(
            tokens.flatten(0, 1).unsqueeze(1),
            picture,
            places,
            bias,
            None if target is None else target.flatten(0, 1).unsqueeze(1),
            kept,
        )
        x = x.squeeze(1).unflatten(0, (B, prompts))
        grid = read.squeeze(1).transpose(1, 2).reshape(B * prompts, -1, height, width)
        grid = F.gelu(self.upscale_conv2(F.gelu(self.upscale_layer_norm(self.upscale_conv1(grid)))))
        made = [head(x[:, :, 1 + i]) for i, head in enumerate(self.output_hypernetworks_mlps)]
        flat = grid.flatten(2).unflatten(0, (B, prompts))
        masks = (votive.stack(made, 2) @ flat).unflatten(-1, tuple(grid.shape[2:]))
        fits = self.iou_prediction_head(x[:, :, 0])
        return (masks[:, :, 1:], fits[:, :, 1:]) if several else (masks[:, :, :1], fits[:, :, :1])


class SamModel(PreTrainedModel):
    """A picture, what is meant in it, and masks of that; pixels count as inside where a score is above 0.

    >>> config = votive.models.SamConfig(
    ...     vision_config=dict(hidden_size=8, num_hidden_layers=1, num_attention_heads=2, image_size=32, patch_size=8,
    ...         output_channels=16, num_pos_feats=8, window_size=2),
    ...     prompt_encoder_config=dict(hidden_size=16, image_size=32, patch_size=8),
    ...     mask_decoder_config=dict(hidden_size=16, mlp_dim=16, num_attention_heads=2, iou_head_hidden_dim=8))
    >>> model = votive.models.SamModel(config).eval()
    >>> found = model(votive.ones(1, 3, 32, 32), input_points=votive.tensor([[[[5.0, 9.0]]]]))
    >>> found.pred_masks.shape, found.iou_scores.shape
    (votive.Size([1, 1, 3, 16, 16]), votive.Size([1, 1, 3]))
    """

    config_class: ClassVar[type[Config]] = SamConfig
    base_model_prefix = "sam"
    tied = {"prompt_encoder.shared_embedding.positional_embedding": "shared_image_embedding.positional_embedding"}

    def __init__(self, config: SamConfig) -> None:
        super().__init__(config)
        self.shared_image_embedding = SamPositionalEmbedding(config.vision_config)
        self.vision_encoder = SamVisionEncoder(config.vision_config)
        self.prompt_encoder = SamPromptEncoder(config.prompt_encoder_config, config.vision_config)
        self.mask_decoder = SamMaskDecoder(config.mask_decoder_config)
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        """What makes vectors of patches."""
        return self.vision_encoder.patch_embed

    def get_image_wide_positional_embeddings(self) -> Tensor:
        """Features of all places of a picture (1, features, height, width)."""
        side = self.config.prompt_encoder_config.image_embedding_size
        table = self.shared_image_embedding.positional_embedding
        middle = (votive.arange(side, device=table.device, dtype=table.dtype) + 0.5) / side
        places = votive.stack([middle.expand(side, side), middle.unsqueeze(1).expand(side, side)], -1)
        return self.shared_image_embedding(places).permute(2, 0, 1).unsqueeze(0)

    def get_image_embeddings(
        self, pixel_values: Tensor, output_attentions: bool = False, output_hidden_states: bool = False
    ) -> Tensor:
        """What is read of pictures, for `image_embeddings` of many prompts; without gradients."""
        with votive.no_grad():
            found = self.vision_encoder(pixel_values, output_attentions, output_hidden_states)
        return found.last_hidden_state

    def get_prompt_embeddings(
        self,
        input_points: Tensor | None = None,
        input_labels: Tensor | None = None,
        input_boxes: Tensor | None = None,
        input_masks: Tensor | None = None,
    ) -> tuple[Tensor | None, Tensor]:
        """Features of prompts, and of each patch; without gradients."""
        with votive.no_grad():
            return self.prompt_encoder(input_points, input_labels, input_boxes, input_masks)

    def forward(
        self,
        pixel_values: Tensor | None = None,
        input_points: Tensor | None = None,
        input_labels: Tensor | None = None,
        input_boxes: Tensor | None = None,
        input_masks: Tensor | None = None,
        image_embeddings: Tensor | None = None,
        multimask_output: bool = True,
        attention_similarity: Tensor | None = None,
        target_embedding: Tensor | None = None,
        output_attentions: bool = False,
        output_hidden_states: bool = False,
    ) -> SamImageSegmentationOutput:
        """Of `pixel_values` or of `image_embeddings`; coordinates are pixels of the resized picture.

        `input_points` (batch, prompts, points, 2) are inside, or as `input_labels` say: 1 inside, 0 outside, -1 no
        point, -10 padding. `input_boxes` are (batch, boxes, 4) with left, top, right, bottom; `input_masks` scores of
        an earlier answer (batch, 1, height, width).
        """
        if (pixel_values is None) == (image_embeddings is None):
            raise ValueError("SamModel: give either pixel_values or image_embeddings.")
        _check(input_points, input_boxes)
        states = weights = None
        if image_embeddings is None:
            read = self.vision_encoder(pixel_values, output_attentions, output_hidden_states)
            image_embeddings, states, weights = read.last_hidden_state, read.hidden_states, read.attentions
        count = image_embeddings.shape[0]
        if input_points is not None and input_points.shape[0] != count:
            raise ValueError(f"SamModel: input_points are of {input_points.shape[0]} pictures, and there are {count}.")
        if input_points is not None and input_labels is None:
            input_labels = votive.ones_like(input_points[..., 0], dtype=votive.int32)
        sparse, dense = self.prompt_encoder(input_points, input_labels, input_boxes, input_masks)
        places = self.get_image_wide_positional_embeddings().expand(count, -1, -1, -1)
        kept: list[Tensor] | None = [] if output_attentions else None
        masks, fits = self.mask_decoder(
            image_embeddings, places, sparse, dense, multimask_output, attention_similarity, target_embedding, kept
        )
        return SamImageSegmentationOutput(
            iou_scores=fits,
            pred_masks=masks,
            vision_hidden_states=states,
            vision_attentions=weights,
            mask_decoder_attentions=None if kept is None else tuple(kept),
        )


def _check(points: Tensor | None, boxes: Tensor | None) -> None:
    if points is not None and points.dim() != 4:
        raise ValueError(f"SamModel: input_points must be (batch, prompts, points, 2), got {tuple(points.shape)}.")
    if boxes is not None and boxes.dim() != 3:
        raise ValueError(f"SamModel: input_boxes must be (batch, boxes, 4), got {tuple(boxes.shape)}.")
    if points is not None and boxes is not None and points.shape[1] != boxes.shape[1]:
        raise ValueError(f"SamModel: {points.shape[1]} prompts of points, but {boxes.shape[1]} boxes; each needs both.")
