"""Points, boxes and masks that tell SAM what is meant, as vectors. Knows no pictures.

Places are told by sines and cosines of random products of coordinates: Tancik et al. 2020, arXiv:2006.10739.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import votive
from votive import nn

from ..tensor import Tensor
from .activations import activation
from .config import Config
from .sam_vision import SamLayerNorm, SamVisionConfig

# Labels of points that are padding: one that counts as no point, one that is not there.
NO_POINT, PADDING = -1, -10


@dataclass(kw_only=True)
class SamPromptEncoderConfig(Config):
    """The numbers of what reads prompts.

    >>> votive.models.SamPromptEncoderConfig().image_embedding_size
    64
    """

    model_type = "sam_prompt_encoder"

    hidden_size: int = 256
    image_size: int = 1024
    patch_size: int = 16
    mask_input_channels: int = 16
    num_point_embeddings: int = 4
    hidden_act: str = "gelu"
    layer_norm_eps: float = 1e-6

    @property
    def image_embedding_size(self) -> int:
        """How many patches a side of a picture has."""
        return self.image_size // self.patch_size


def only(table: nn.Embedding) -> Tensor:
    """The rows of a table of tokens that nobody chooses; it is called, so that it can be seen and changed.

    >>> votive.models.sam_prompts.only(votive.nn.Embedding(1, 3)).shape
    votive.Size([1, 3])
    """
    return table(votive.arange(table.num_embeddings, device=table.weight.device))


class SamPositionalEmbedding(nn.Module):
    """Features of places (…, 2) between 0 and 1."""

    def __init__(self, config: SamVisionConfig) -> None:
        super().__init__()
        self.positional_embedding = nn.Parameter(votive.randn(2, config.num_pos_feats) * (config.hidden_size // 2))

    def forward(self, places: Tensor) -> Tensor:
        turns = 2 * math.pi * ((2 * places - 1).to(self.positional_embedding.dtype) @ self.positional_embedding)
        return votive.cat([turns.sin(), turns.cos()], -1)


class SamMaskEmbedding(nn.Module):
    """Features of masks (batch, 1, 4 * height, 4 * width) for each patch."""

    def __init__(self, config: SamPromptEncoderConfig) -> None:
        super().__init__()
        whole, quarter = config.mask_input_channels, config.mask_input_channels // 4
        self.conv1 = nn.Conv2d(1, quarter, 2, stride=2)
        self.conv2 = nn.Conv2d(quarter, whole, 2, stride=2)
        self.conv3 = nn.Conv2d(whole, config.hidden_size, 1)
        self.layer_norm1 = SamLayerNorm(quarter, eps=config.layer_norm_eps)
        self.layer_norm2 = SamLayerNorm(quarter * 4, eps=config.layer_norm_eps)
        self.activation = activation(config.hidden_act)

    def forward(self, masks: Tensor) -> Tensor:
        x = self.activation(self.layer_norm1(self.conv1(masks)))
        return self.conv3(self.activation(self.layer_norm2(self.conv2(x))))


class SamPromptEncoder(nn.Module):
    """Points (batch, prompts, points, 2), boxes (batch, boxes, 4) in pixels, and masks."""

    def __init__(self, config: SamPromptEncoderConfig, vision: SamVisionConfig) -> None:
        super().__init__()
        self.config, width = config, config.hidden_size
        self.shared_embedding = SamPositionalEmbedding(vision)
        self.mask_embed = SamMaskEmbedding(config)
        self.no_mask_embed = nn.Embedding(1, width)
        self.point_embed = nn.ModuleList(nn.Embedding(1, width) for _ in range(config.num_point_embeddings))
        self.not_a_point_embed = nn.Embedding(1, width)

    def points(self, points: Tensor, labels: Tensor, pad: bool) -> Tensor:
        """Features of points, which are inside (1) or outside (0) of what is meant."""
        points = points + 0.5  # the middle of a pixel
        if pad:
            points = votive.cat([points, votive.zeros_like(points[:, :, :1])], 2)
            labels = votive.cat([labels, votive.full_like(labels[:, :, :1], NO_POINT)], 2)
        x, labels = self.shared_embedding(points / self.config.image_size), labels.unsqueeze(-1)
        x = votive.where(labels == NO_POINT, only(self.not_a_point_embed), x)
        x = votive.where(labels == PADDING, votive.zeros_like(x), x)
        for label, table in enumerate(self.point_embed[:2]):
            x = votive.where(labels == label, x + only(table), x)
        return x

    def boxes(self, boxes: Tensor) -> Tensor:
        """Features of a box's two corners."""
        corners = (boxes + 0.5).reshape(*boxes.shape[:2], 2, 2)
        x = self.shared_embedding(corners / self.config.image_size)
        return x + votive.cat([only(table) for table in self.point_embed[2:]])

    def forward(
        self, points: Tensor | None, labels: Tensor | None, boxes: Tensor | None, masks: Tensor | None
    ) -> tuple[Tensor | None, Tensor]:
        """Features of points and boxes (batch, prompts, points, features), and of each patch."""
        sparse, count = [], 1
        if points is not None:
            if labels is None:
                raise ValueError("SamModel: input_points need input_labels, 1 inside and 0 outside.")
            sparse.append(self.points(points, labels, pad=boxes is None))
            count = points.shape[0]
        if boxes is not None:
            sparse.append(self.boxes(boxes))
            count = boxes.shape[0]
        if masks is not None:
            dense = self.mask_embed(masks)
        else:
            side = self.config.image_embedding_size
            dense = only(self.no_mask_embed).reshape(1, -1, 1, 1).expand(count, -1, side, side)
        return (votive.cat(sparse, 2) if sparse else None), dense
