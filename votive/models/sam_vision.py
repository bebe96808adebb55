"""SAM's reader of pictures: attention within windows, in some layers everywhere, with places relative to each other.

Knows no prompts. Parameter names are those of Hugging Face checkpoints; pictures are (batch, height, width, features)
between layers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import votive
from votive import nn
from votive.nn import functional as F
from votive.nn.fused_linear import feed_forward

from ..tensor import Tensor
from .activations import activation
from .attention import Weights
from .config import Config
from .output import EncoderOutput
from .pretrained import PreTrainedModel
from .stack import Trace
from .vit import Pair, check_pictures


@dataclass(kw_only=True)
class SamVisionConfig(Config):
    """The numbers of SAM's reader of pictures.

    >>> votive.models.SamVisionConfig().mlp_dim
    3072
    """

    model_type = "sam_vision_model"

    hidden_size: int = 768
    output_channels: int = 256
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    num_channels: int = 3
    image_size: int = 1024
    patch_size: int = 16
    hidden_act: str = "gelu"
    layer_norm_eps: float = 1e-6
    attention_dropout: float | None = 0.0
    initializer_range: float = 1e-10
    qkv_bias: bool = True
    mlp_ratio: float = 4.0
    use_abs_pos: bool = True
    use_rel_pos: bool = True
    window_size: int = 14
    global_attn_indexes: list[int] | tuple[int, ...] = field(default_factory=lambda: [2, 5, 8, 11])
    num_pos_feats: int = 128
    mlp_dim: int | None = None

    @classmethod
    def adapt(cls, values: dict[str, Any]) -> dict[str, Any]:
        """The part of a whole SAM, if that is what came."""
        inner = values.get("vision_config")
        return super().adapt(dict(inner) if isinstance(inner, dict) else values)

    def __post_init__(self) -> None:
        if self.mlp_dim is None:
            self.mlp_dim = int(self.hidden_size * self.mlp_ratio)
        if self.hidden_size % self.num_attention_heads:
            raise ValueError(
                f"SamVisionConfig: hidden_size={self.hidden_size} does not split into {self.num_attention_heads} heads."
            )

    @property
    def grid(self) -> int:
        """How many patches a side of a picture has."""
        return self.image_size // self.patch_size


class SamLayerNorm(nn.LayerNorm):
    """A norm of features that stand before height and width.

    >>> votive.models.sam_vision.SamLayerNorm(3)(votive.ones(1, 3, 2, 2)).shape
    votive.Size([1, 3, 2, 2])
    """

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class SamMLPBlock(nn.Module):
    """`lin2(act(lin1(x)))`.

    >>> votive.models.sam_vision.SamMLPBlock(4, 8, "gelu")(votive.ones(1, 4)).shape
    votive.Size([1, 4])
    """

    def __init__(self, width: int, inner: int, act: str) -> None:
        super().__init__()
        self.lin1, self.lin2 = nn.Linear(width, inner), nn.Linear(inner, width)
        self.act = activation(act)

    def forward(self, x: Tensor) -> Tensor:
        return feed_forward(self.lin1, self.act, self.lin2, x)


def relative(table: Tensor, size: int) -> Tensor:
    """Rows (size, size, features) of a table of distances, stretched where it was made for another size.

    >>> votive.models.sam_vision.relative(votive.arange(3.0).view(3, 1), 2).squeeze(-1).tolist()
    [[1.0, 0.0], [2.0, 1.0]]
    """
    wanted = 2 * size - 1
    if table.shape[0] != wanted:
        table = F.interpolate(table.T.unsqueeze(0), size=wanted, mode="linear")[0].T
    places = votive.arange(size, device=table.device)
    return table[places.unsqueeze(1) - places + size - 1]


class SamVisionAttention(nn.Module):
    """Attention of all places of a window, or of a picture."""

    def __init__(self, config: SamVisionConfig, window: int) -> None:
        super().__init__()
        self.heads, self.dropout = config.num_attention_heads, config.attention_dropout or 0.0
        width, side = config.hidden_size, window or config.grid
        self.qkv = nn.Linear(width, 3 * width, bias=config.qkv_bias)
        self.proj = nn.Linear(width, width)
        self.use_rel_pos = config.use_rel_pos
        if self.use_rel_pos:
            self.rel_pos_h = nn.Parameter(votive.zeros(2 * side - 1, width // self.heads))
            self.rel_pos_w = nn.Parameter(votive.zeros(2 * side - 1, width // self.heads))

    def places(self, q: Tensor, height: int, width: int) -> Tensor:
        """What queries (rows, height * width, features) add to scores by how far each place is."""
        grid = q.reshape(q.shape[0], height, width, -1)
        rows, columns = relative(self.rel_pos_h, height), relative(self.rel_pos_w, width)
        up = votive.einsum("bhwc,hkc->bhwk", grid, rows)
        across = votive.einsum("bhwc,wkc->bhwk", grid, columns)
        return (up.unsqueeze(-1) + across.unsqueeze(-2)).reshape(q.shape[0], height * width, height * width)

    def forward(self, x: Tensor, weights: Weights = None) -> Tensor:
        B, height, width, C = x.shape
        T, D = height * width, C // self.heads
        made = self.qkv(x).reshape(B, T, 3, self.heads, D).permute(2, 0, 3, 1, 4)
        q, k, v = made.reshape(3, B * self.heads, T, D).unbind(0)
        scores = (q * D**-0.5) @ k.transpose(-2, -1)
        if self.use_rel_pos:
            scores = scores + self.places(q, height, width)
        chances = F.softmax(scores.float(), -1).to(q.dtype)
        if weights is not None:
            weights.append(chances)
        chances = F.dropout(chances, self.dropout, self.training)
        out = (chances @ v).reshape(B, self.heads, height, width, D).permute(0, 2, 3, 1, 4)
        return self.proj(out.reshape(B, height, width, C))


def in_windows(x: Tensor, side: int) -> tuple[Tensor, Pair]:
    """Windows (windows, side, side, features) of padded pictures, and how large these are.

    >>> votive.models.sam_vision.in_windows(votive.ones(1, 3, 4, 2), 2)[1]
    (4, 4)
    """
    B, height, width, C = x.shape
    down, right = -height % side, -width % side
    x = F.pad(x, (0, 0, 0, right, 0, down))
    size = height + down, width + right
    cut = x.reshape(B, size[0] // side, side, size[1] // side, side, C).permute(0, 1, 3, 2, 4, 5)
    return cut.reshape(-1, side, side, C), size


def from_windows(x: Tensor, padded: Pair, size: Pair) -> Tensor:
    """The inverse of `in_windows`, without the padding.

    >>> windows, padded = votive.models.sam_vision.in_windows(votive.arange(6.0).view(1, 3, 2, 1), 2)
    >>> votive.models.sam_vision.from_windows(windows, padded, (3, 2)).flatten().tolist()
    [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    """
    side, rows, columns = x.shape[1], padded[0] // x.shape[1], padded[1] // x.shape[1]
    grid = x.reshape(-1, rows, columns, side, side, x.shape[-1]).permute(0, 1, 3, 2, 4, 5)
    return grid.reshape(-1, *padded, x.shape[-1])[:, : size[0], : size[1]]


class SamVisionLayer(nn.Module):
    """Norm and attention, norm and MLP, each added to what came in."""

    def __init__(self, config: SamVisionConfig, window: int) -> None:
        super().__init__()
        width, self.window = config.hidden_size, window
        self.layer_norm1 = nn.LayerNorm(width, eps=config.layer_norm_eps)
        self.attn = SamVisionAttention(config, window)
        self.layer_norm2 = nn.LayerNorm(width, eps=config.layer_norm_eps)
        assert config.mlp_dim is not None, "known once the configuration is made"
        self.mlp = SamMLPBlock(width, config.mlp_dim, config.hidden_act)

    def forward(self, x: Tensor, weights: Weights = None) -> Tensor:
        y = self.layer_norm1(x)
        if self.window:
            cut, padded = in_windows(y, self.window)
            y = from_windows(self.attn(cut, weights), padded, (x.shape[1], x.shape[2]))
        else:
            y = self.attn(y, weights)
        x = x + y
        return x + self.mlp(self.layer_norm2(x))


class SamVisionNeck(nn.Module):
    """Fewer features, (batch, features, height, width)."""

    def __init__(self, config: SamVisionConfig) -> None:
        super().__init__()
        width, out = config.hidden_size, config.output_channels
        self.conv1 = nn.Conv2d(width, out, 1, bias=False)
        self.layer_norm1 = SamLayerNorm(out, eps=1e-6)
        self.conv2 = nn.Conv2d(out, out, 3, padding=1, bias=False)
        self.layer_norm2 = SamLayerNorm(out, eps=1e-6)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer_norm2(self.conv2(self.layer_norm1(self.conv1(x.permute(0, 3, 1, 2)))))


class SamPatchEmbeddings(nn.Module):
    """A vector for each patch."""

    def __init__(self, config: SamVisionConfig) -> None:
        super().__init__()
        self.projection = nn.Conv2d(config.num_channels, config.hidden_size, config.patch_size, config.patch_size)

    def forward(self, pictures: Tensor) -> Tensor:
        return self.projection(pictures).permute(0, 2, 3, 1)


class SamVisionEncoder(nn.Module):
    """Patches, layers, the neck."""

    def __init__(self, config: SamVisionConfig) -> None:
        super().__init__()
        self.config = config
        self.patch_embed = SamPatchEmbeddings(config)
        if config.use_abs_pos:
            self.pos_embed = nn.Parameter(votive.zeros(1, config.grid, config.grid, config.hidden_size))
        window = [0 if i in config.global_attn_indexes else config.window_size for i in range(config.num_hidden_layers)]
        self.layers = nn.ModuleList(SamVisionLayer(config, side) for side in window)
        self.neck = SamVisionNeck(config)

    def forward(
        self, pixel_values: Tensor | None, output_attentions: bool = False, output_hidden_states: bool = False
    ) -> EncoderOutput:
        pictures = check_pictures("SamModel", pixel_values, self.config.num_channels)
        size = self.config.image_size
        if tuple(pictures.shape[2:]) != (size, size):
            raise ValueError(
                f"SamModel: pictures are {pictures.shape[2]} x {pictures.shape[3]} pixels, the model was made for "
                f"{size} x {size}; let SamImageProcessor resize and pad them."
            )
        trace = Trace(output_attentions, output_hidden_states)
        x = self.patch_embed(pictures.to(self.patch_embed.projection.weight.dtype))
        if self.config.use_abs_pos:
            x = x + self.pos_embed
        trace.add_state(x)
        for layer in self.layers:
            x = layer(x, trace.weights)
            trace.add_state(x)
        return EncoderOutput(
            last_hidden_state=self.neck(x), hidden_states=trace.hidden_states, attentions=trace.attentions
        )


class SamVisionModel(PreTrainedModel):
    """The reader of pictures alone: features (batch, features, height, width) of patches.

    >>> config = votive.models.SamVisionConfig(hidden_size=8, num_hidden_layers=1, num_attention_heads=2,
    ...     image_size=32, patch_size=8, output_channels=4, window_size=2, global_attn_indexes=[])
    >>> votive.models.SamVisionModel(config)(votive.ones(1, 3, 32, 32)).last_hidden_state.shape
    votive.Size([1, 4, 4, 4])
    """

    config_class: ClassVar[type[Config]] = SamVisionConfig
    base_model_prefix = "sam"

    def __init__(self, config: SamVisionConfig) -> None:
        super().__init__(config)
        self.vision_encoder = SamVisionEncoder(config)
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        """What makes vectors of patches."""
        return self.vision_encoder.patch_embed

    def forward(
        self, pixel_values: Tensor | None = None, output_attentions: bool = False, output_hidden_states: bool = False
    ) -> EncoderOutput:
        found: EncoderOutput = self.vision_encoder(pixel_values, output_attentions, output_hidden_states)
        return found
