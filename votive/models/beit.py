"""BEiT, a ViT pretrained like BERT. Bao et al. 2021, arXiv:2106.08254.

Attention may know places by a learned bias per distance, each layer's output is scaled by learned
numbers, and a picture's vector is the mean of its patches. Parameter names are those of Hugging
Face checkpoints.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

import votive
from votive import nn
from votive.nn import functional as F

from ..io.source import WeightSource
from ..tensor import Tensor
from .attention import AttentionMask, Weights, padding_mask
from .bert import class_output
from .config import Config
from .encoder import Encoder
from .output import EncoderOutput, PredictionOutput
from .vit import (
    Pair,
    ViTConfig,
    ViTEmbeddings,
    ViTLayer,
    ViTPatchEmbeddings,
    ViTSelfAttention,
    _ViT,
    check_pictures,
    masked,
    stretched,
)


@dataclass(kw_only=True)
class BeitConfig(ViTConfig):
    """The numbers of a BEiT.

    >>> votive.models.BeitConfig(image_size=32, patch_size=8).use_mean_pooling
    True
    """

    model_type = "beit"

    vocab_size: int = 8192
    use_mask_token: bool = False
    use_absolute_position_embeddings: bool = False
    use_relative_position_bias: bool = False
    use_shared_relative_position_bias: bool = False
    layer_scale_init_value: float = 0.1
    drop_path_rate: float = 0.1
    use_mean_pooling: bool = True


class BeitEmbeddings(nn.Module):
    """Patches behind the class token, with positions if the configuration asks for them."""

    def __init__(self, config: BeitConfig) -> None:
        super().__init__()
        self.config, width = config, config.hidden_size
        self.cls_token = nn.Parameter(votive.zeros(1, 1, width))
        self.mask_token = nn.Parameter(votive.zeros(1, 1, width)) if config.use_mask_token else None
        self.patch_embeddings = ViTPatchEmbeddings(config)
        self.position_embeddings = None
        if config.use_absolute_position_embeddings:
            count = 1 + config.grid[0] * config.grid[1]
            self.position_embeddings = nn.Parameter(votive.zeros(1, count, width))
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, pixel_values: Tensor, bool_masked_pos: Tensor | None = None) -> Tensor:
        x = self.patch_embeddings(pixel_values)
        if bool_masked_pos is not None:
            x = masked(self, x, bool_masked_pos)
        x = votive.cat([self.cls_token.expand(x.shape[0], -1, -1), x], 1)
        if self.position_embeddings is not None:
            new, positions = grid_of(self.config, pixel_values), self.position_embeddings
            if new != self.config.grid:
                positions = stretched(positions, 1, self.config.grid, new)
            x = x + positions
        return self.dropout(x)


def grid_of(config: Config, pixel_values: Tensor) -> Pair:
    """How many patches of these pictures stand above and beside each other."""
    return (pixel_values.shape[2] // config.patches[0], pixel_values.shape[3] // config.patches[1])


@lru_cache(maxsize=8)
def distances(height: int, width: int) -> np.ndarray:
    """For each pair of tokens, the class token first, the row of its distance in a table.

    The last three rows are for the class token: from it, to it, and itself.

    >>> from votive.models.beit import distances
    >>> distances(1, 2).tolist()
    [[5, 3, 3], [4, 1, 0], [4, 2, 1]]
    """
    rows = (2 * height - 1) * (2 * width - 1)
    y, x = (a.reshape(-1) for a in np.mgrid[0:height, 0:width])
    down, right = y[:, None] - y[None, :] + height - 1, x[:, None] - x[None, :] + width - 1
    table = np.empty((height * width + 1,) * 2, dtype=np.int64)
    table[1:, 1:] = down * (2 * width - 1) + right
    table[0, :], table[:, 0], table[0, 0] = rows, rows + 1, rows + 2
    return table


class BeitRelativePositionBias(nn.Module):
    """What is added to the scores of attention for the distance of two patches."""

    def __init__(self, config: BeitConfig) -> None:
        super().__init__()
        self.window = config.grid
        rows = (2 * self.window[0] - 1) * (2 * self.window[1] - 1) + 3
        self.relative_position_bias_table = nn.Parameter(votive.zeros(rows, config.num_attention_heads))

    def forward(self, window: Pair) -> Tensor:
        """The bias (1, heads, tokens, tokens) for a grid of patches of any size."""
        table: Tensor = self.relative_position_bias_table
        if window != self.window:
            old = table[:-3].reshape(1, *(2 * n - 1 for n in self.window), -1).permute(0, 3, 1, 2)
            size = tuple(2 * n - 1 for n in window)
            new = F.interpolate(old, size=size, mode="bilinear", align_corners=False)
            table = votive.cat([new.permute(0, 2, 3, 1).flatten(0, 2), table[-3:]])
        at = votive.from_numpy(distances(*window)).to(table.device)
        return table[at].permute(2, 0, 1).unsqueeze(0)


class BeitSelfAttention(ViTSelfAttention):
    """Attention whose keys have no bias, and which may have one for distances."""

    def __init__(self, config: BeitConfig) -> None:
        super().__init__(config, key_bias=False)
        self.relative_position_bias = None
        if config.use_relative_position_bias:
            self.relative_position_bias = BeitRelativePositionBias(config)


class BeitLayer(ViTLayer):
    """As in a ViT; what is added is scaled, and in training left out for some samples."""

    def __init__(self, config: BeitConfig, drop: float) -> None:
        super().__init__(config)
        self.drop = drop
        self.attention["attention"] = BeitSelfAttention(config)
        self.lambda_1 = self.lambda_2 = None
        if config.layer_scale_init_value > 0:
            start = votive.full((config.hidden_size,), config.layer_scale_init_value)
            self.lambda_1, self.lambda_2 = nn.Parameter(start), nn.Parameter(start.clone())

    def added(self, y: Tensor, scale: Tensor | None) -> Tensor:
        """What is added to the stream."""
        y = y if scale is None else scale * y
        if not self.training or not self.drop:
            return y
        # Stochastic depth, arXiv:1603.09382: the samples that are kept make up for the others.
        kept = votive.rand(y.shape[0], 1, 1, device=y.device) >= self.drop
        return y / (1 - self.drop) * kept.to(y.dtype)

    def forward(self, x: Tensor, mask: AttentionMask, weights: Weights = None, window: Pair = (0, 0)) -> Tensor:
        own = self.attention["attention"].relative_position_bias
        if own is not None:
            mask = mask.biased(own(window))
        x = x + self.added(self.attended(x, mask, weights), self.lambda_1)
        return x + self.added(self.thought(x), self.lambda_2)


class _Beit(_ViT):
    """What all BEiT classes share."""

    config_class = BeitConfig
    base_model_prefix = "beit"
    ignored = (*_ViT.ignored, r"relative_position_index$")
    renames = {
        **_ViT.renames,
        r"(layer\.\d+)\.(relative_position_bias)\.": r"\1.attention.attention.\2.",
        r"^((?:\w+\.)?)shared_position_bias\.": r"\1encoder.relative_position_bias.",
    }

    def init_weights(self, module: nn.Module) -> None:
        # Tokens, positions and the table of distances begin at zero.
        if not isinstance(module, ViTEmbeddings):
            super().init_weights(module)


class BeitPooler(nn.Module):
    """The mean of the patches, normed; or the class token."""

    def __init__(self, config: BeitConfig) -> None:
        super().__init__()
        self.layernorm = None
        if config.use_mean_pooling:
            self.layernorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)

    def forward(self, x: Tensor) -> Tensor:
        return x[:, 0] if self.layernorm is None else self.layernorm(x[:, 1:].mean(1))


class BeitModel(_Beit):
    """The encoder, for pictures of any size that patches fill.

    >>> config = votive.models.BeitConfig(image_size=16, patch_size=8, hidden_size=8,
    ...     intermediate_size=16, num_hidden_layers=1, num_attention_heads=2)
    >>> votive.models.BeitModel(config)(votive.ones(1, 3, 16, 24)).last_hidden_state.shape
    votive.Size([1, 7, 8])
    """

    def __init__(self, config: BeitConfig, add_pooling_layer: bool = True) -> None:
        super().__init__(config)
        self.embeddings = BeitEmbeddings(config)
        last = max(config.num_hidden_layers - 1, 1)
        self.encoder = Encoder(
            BeitLayer(config, config.drop_path_rate * i / last) for i in range(config.num_hidden_layers)
        )
        if config.use_shared_relative_position_bias:
            self.encoder["relative_position_bias"] = BeitRelativePositionBias(config)
        self.layernorm: Any = nn.Identity()
        if not config.use_mean_pooling:
            self.layernorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.pooler = BeitPooler(config) if add_pooling_layer else None
        self.post_init()

    def adapted(self, source: WeightSource) -> WeightSource:
        # A pooler that only picks the class token has nothing in files.
        pooler = self.pooler
        source = super().adapted(source)
        if pooler is not None and pooler.layernorm is None:
            self.pooler = pooler
        return source

    def forward(
        self,
        pixel_values: Tensor | None = None,
        bool_masked_pos: Tensor | None = None,
        interpolate_pos_encoding: bool = False,
        attention_mask: Tensor | None = None,
        output_attentions: bool = False,
        output_hidden_states: bool = False,
    ) -> EncoderOutput:
        """As ViTModel; places follow the size of the pictures whatever is asked for."""
        config = self.config
        pictures = check_pictures(type(self).__name__, pixel_values, config.num_channels)
        window = grid_of(config, pictures)
        x = self.embeddings(pictures.to(self.dtype), bool_masked_pos)
        mask = padding_mask(attention_mask)
        if "relative_position_bias" in self.encoder:
            mask = mask.biased(self.encoder["relative_position_bias"](window))
        found = self.encoder(x, mask, output_attentions, output_hidden_states, window)
        x = self.layernorm(found.last_hidden_state)
        return replace(found, last_hidden_state=x, pooler_output=None if self.pooler is None else self.pooler(x))


class BeitForImageClassification(_Beit):
    """BEiT that gives a picture a class.

    >>> config = votive.models.BeitConfig(image_size=16, patch_size=8, hidden_size=8,
    ...     intermediate_size=16, num_hidden_layers=1, num_attention_heads=2, num_labels=3)
    >>> votive.models.BeitForImageClassification(config)(votive.ones(1, 3, 16, 16)).logits.shape
    votive.Size([1, 3])
    """

    def __init__(self, config: BeitConfig) -> None:
        super().__init__(config)
        self.beit = BeitModel(config)
        self.classifier = nn.Linear(config.hidden_size, config.label_count)
        self.post_init()

    def adapted(self, source: WeightSource) -> WeightSource:
        pooler = self.beit.pooler
        source = super().adapted(source)
        self.beit.pooler = pooler  # the classes are read from it
        return source

    def forward(
        self, pixel_values: Tensor | None = None, labels: Tensor | None = None, **kwargs: Any
    ) -> PredictionOutput:
        """As the encoder, and `labels`: classes (batch,), or values per class."""
        found = self.beit(pixel_values, **kwargs)
        return class_output(self.classifier(found.pooler_output), labels, self.config, found)
