"""ViT, a transformer that reads pictures as patches. Dosovitskiy et al. 2020, arXiv:2010.11929.

Parameter names are those of Hugging Face checkpoints; those that transformers 5 has in memory are
understood too. DeiT and BEiT are this file with other embeddings and other layers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import votive
from votive import nn
from votive.nn import functional as F

from ..io.source import WeightSource
from ..tensor import Tensor
from .activations import activation
from .attention import AttentionMask, Weights, padding_mask, self_attention
from .bert import class_output
from .config import LabeledConfig
from .encoder import DenseOutput, Encoder, Intermediate, intermediate_output
from .output import EncoderOutput, PredictionOutput
from .pretrained import PreTrainedModel

Pair = tuple[int, int]


@dataclass(kw_only=True)
class PatchConfig(LabeledConfig):
    """The size of pictures and of their patches.

    >>> votive.models.vit.PatchConfig(image_size=32, patch_size=[8, 16]).grid
    (4, 2)
    """

    hidden_size: int = 768
    num_attention_heads: int = 12
    image_size: int | list[int] | tuple[int, int] = 224
    patch_size: int | list[int] | tuple[int, int] = 16
    num_channels: int = 3

    def __post_init__(self) -> None:
        name = type(self).__name__
        for key in ("image_size", "patch_size"):
            size = getattr(self, key)
            if not isinstance(size, int) and len(size) != 2:
                raise ValueError(f"{name}: {key} must be one number or two, got {size!r}.")
        super().__post_init__()
        if self.hidden_size % self.num_attention_heads:
            raise ValueError(
                f"{name}: hidden_size={self.hidden_size} does not split into {self.num_attention_heads} heads."
            )
        if min(self.patches) < 1 or min(self.grid) < 1:
            raise ValueError(f"{name}: pictures of {self.image_size} pixels hold no patch of {self.patch_size}.")

    @property
    def pixels(self) -> Pair:
        """Height and width of pictures."""
        return _pair(self.image_size)

    @property
    def patches(self) -> Pair:
        """Height and width of a patch."""
        return _pair(self.patch_size)

    @property
    def grid(self) -> Pair:
        """How many patches stand above and beside each other."""
        (height, width), (high, wide) = self.pixels, self.patches
        return height // high, width // wide


@dataclass(kw_only=True)
class ViTConfig(PatchConfig):
    """The numbers of a ViT.

    >>> votive.models.ViTConfig(image_size=32, patch_size=8).grid
    (4, 4)
    """

    model_type = "vit"

    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_act: str = "gelu"
    hidden_dropout_prob: float = 0.0
    attention_probs_dropout_prob: float = 0.0
    layer_norm_eps: float = 1e-12
    qkv_bias: bool = True
    encoder_stride: int = 16
    pooler_output_size: int | None = None
    pooler_act: str = "tanh"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.pooler_output_size is None:
            self.pooler_output_size = self.hidden_size


def _pair(size: int | list[int] | Pair) -> Pair:
    return (size, size) if isinstance(size, int) else (int(size[0]), int(size[1]))


class ViTPatchEmbeddings(nn.Module):
    """A vector for each patch: a convolution whose stride is its size."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        self.config = config
        self.projection = nn.Conv2d(config.num_channels, config.hidden_size, config.patches, stride=config.patches)

    def forward(self, pixel_values: Tensor) -> Tensor:
        check_pictures(type(self).__name__, pixel_values, self.config.num_channels)
        return self.projection(pixel_values).flatten(2).transpose(1, 2)  # (B, patches, C)


def check_pictures(name: str, pixel_values: Tensor | None, channels: int) -> Tensor:
    """The pictures, which must have so many channels."""
    if pixel_values is None or pixel_values.dim() != 4 or pixel_values.shape[1] != channels:
        came = None if pixel_values is None else tuple(pixel_values.shape)
        raise ValueError(f"{name}: pixel_values must be pictures (batch, {channels}, height, width), got {came}.")
    return pixel_values


def stretched(positions: Tensor, first: int, old: Pair, new: Pair) -> Any:
    """Embeddings (1, first + patches, C) of a grid `old` for a grid `new`; the first ones stay."""
    grid = positions[:, first:].reshape(1, *old, -1).permute(0, 3, 1, 2)
    grid = F.interpolate(grid, size=new, mode="bicubic", align_corners=False)
    return votive.cat([positions[:, :first], grid.permute(0, 2, 3, 1).flatten(1, 2)], 1)


class ViTEmbeddings(nn.Module):
    """Patches and the class token, each with its position."""

    # Names of the tokens before the patches.
    tokens: tuple[str, ...] = ("cls_token",)

    def __init__(self, config: ViTConfig, use_mask_token: bool = False) -> None:
        super().__init__()
        self.config, width = config, config.hidden_size
        for name in self.tokens:
            setattr(self, name, nn.Parameter(votive.zeros(1, 1, width)))
        self.mask_token = nn.Parameter(votive.zeros(1, 1, width)) if use_mask_token else None
        self.patch_embeddings = ViTPatchEmbeddings(config)
        count = len(self.tokens) + math.prod(config.grid)
        self.position_embeddings = nn.Parameter(votive.zeros(1, count, width))
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def positions(self, pixel_values: Tensor, interpolate: bool) -> Tensor:
        """What is added for the places of the patches."""
        size, config = tuple(pixel_values.shape[2:]), self.config
        if not interpolate:
            if size != config.pixels:
                raise ValueError(
                    f"{type(self).__name__}: pictures are {size[0]} x {size[1]} pixels, the model "
                    f"was made for {config.pixels[0]} x {config.pixels[1]}; resize them, or pass "
                    "interpolate_pos_encoding=True."
                )
            return self.position_embeddings
        new = size[0] // config.patches[0], size[1] // config.patches[1]
        if new == config.grid:
            return self.position_embeddings
        return stretched(self.position_embeddings, len(self.tokens), config.grid, new)

    def forward(
        self, pixel_values: Tensor, bool_masked_pos: Tensor | None = None, interpolate_pos_encoding: bool = False
    ) -> Tensor:
        x = self.patch_embeddings(pixel_values)
        if bool_masked_pos is not None:
            x = masked(self, x, bool_masked_pos)
        first = [getattr(self, name).expand(x.shape[0], -1, -1) for name in self.tokens]
        x = votive.cat([*first, x], 1)
        return self.dropout(x + self.positions(pixel_values, interpolate_pos_encoding))


def masked(embeddings: nn.Module, x: Tensor, bool_masked_pos: Tensor) -> Any:
    """Patches (B, patches, C) with the mask token where the mask is 1."""
    if embeddings.mask_token is None:
        raise ValueError(
            f"{type(embeddings).__name__}: there is no mask token; build the model with "
            "use_mask_token=True to hide patches by bool_masked_pos."
        )
    mask = bool_masked_pos.unsqueeze(-1).to(x.dtype)
    return x * (1.0 - mask) + embeddings.mask_token * mask


class ViTSelfAttention(nn.Module):
    """Attention of all patches to all."""

    def __init__(self, config: ViTConfig, key_bias: bool | None = None) -> None:
        super().__init__()
        width, bias = config.hidden_size, config.qkv_bias
        self.heads, self.dropout = config.num_attention_heads, config.attention_probs_dropout_prob
        self.query = nn.Linear(width, width, bias=bias)
        self.key = nn.Linear(width, width, bias=bias if key_bias is None else key_bias)
        self.value = nn.Linear(width, width, bias=bias)

    def forward(self, x: Tensor, mask: AttentionMask, weights: Weights = None) -> Tensor:
        projections = self.query, self.key, self.value
        dropout = self.dropout if self.training else 0.0
        return self_attention(x, projections, self.heads, mask, dropout, weights)


class ViTAttention(nn.ModuleDict):
    """Attention, and the product that it ends with."""

    def __init__(self, config: ViTConfig, dropout: float | None = None) -> None:
        width = config.hidden_size
        output = DenseOutput(width, width, config.hidden_dropout_prob if dropout is None else dropout)
        super().__init__({"attention": ViTSelfAttention(config), "output": output})

    def forward(self, x: Tensor, mask: AttentionMask, weights: Weights = None) -> Tensor:
        return self["output"](self["attention"](x, mask, weights))


class ViTLayer(nn.Module):
    """Norm and attention, norm and MLP, each added to what came in."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        width, hidden = config.hidden_size, config.intermediate_size
        self.attention = ViTAttention(config)
        self.intermediate = Intermediate(width, hidden, config.hidden_act)
        self.output = DenseOutput(hidden, width, config.hidden_dropout_prob)
        self.layernorm_before = nn.LayerNorm(width, eps=config.layer_norm_eps)
        self.layernorm_after = nn.LayerNorm(width, eps=config.layer_norm_eps)

    def attended(self, x: Tensor, mask: AttentionMask, weights: Weights) -> Tensor:
        """What attention adds."""
        return self.attention(self.layernorm_before(x), mask, weights)

    def thought(self, x: Tensor) -> Tensor:
        """What the MLP adds."""
        return intermediate_output(self.intermediate, self.output, self.layernorm_after(x))

    def forward(self, x: Tensor, mask: AttentionMask, weights: Weights = None) -> Tensor:
        x = x + self.attended(x, mask, weights)
        return x + self.thought(x)


class _ViT(PreTrainedModel):
    """What all ViT classes share."""

    config_class = ViTConfig
    base_model_prefix = "vit"
    # From the names that transformers 5 has in memory to those in files.
    renames = {
        r"^((?:\w+\.)?)layers\.(\d+)\.": r"\1encoder.layer.\2.",
        r"\.attention\.q_proj\.": ".attention.attention.query.",
        r"\.attention\.k_proj\.": ".attention.attention.key.",
        r"\.attention\.v_proj\.": ".attention.attention.value.",
        r"\.attention\.o_proj\.": ".attention.output.dense.",
        r"\.mlp\.fc1\.": ".intermediate.dense.",
        r"\.mlp\.fc2\.": ".output.dense.",
    }

    def init_weights(self, module: nn.Module) -> None:
        super().init_weights(module)
        std = self.config.initializer_range
        if isinstance(module, nn.Conv2d):
            nn.init.trunc_normal_(module.weight, std=std)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, ViTEmbeddings):
            nn.init.trunc_normal_(module.position_embeddings, std=std)
            nn.init.trunc_normal_(module.cls_token, std=std)

    def get_input_embeddings(self) -> nn.Module:
        """What makes vectors of patches."""
        return getattr(self, self.base_model_prefix, self).embeddings.patch_embeddings

    def adapted(self, source: WeightSource) -> WeightSource:
        """Without what only pretraining uses, where this model does not have it."""
        inner = getattr(self, self.base_model_prefix, self)
        names = list(source.names())
        if not any("pooler." in name for name in names):
            inner.pooler = None
        left = []
        if inner.pooler is None:
            left.append("pooler.")
        if inner.embeddings.mask_token is None:
            left.append("embeddings.mask_token")
        return source.renamed(lambda name: None if any(part in name for part in left) else name)


class ViTPooler(nn.Module):
    """One vector for the picture, from the class token."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.pooler_output_size or config.hidden_size)
        self.act_fn = activation(config.pooler_act)

    def forward(self, x: Tensor) -> Tensor:
        return self.act_fn(self.dense(x[:, 0]))


class ViTModel(_ViT):
    """The encoder; `pooler_output` is made from the class token, if the file has a pooler.

    >>> config = votive.models.ViTConfig(image_size=16, patch_size=8, hidden_size=8,
    ...     intermediate_size=16, num_hidden_layers=1, num_attention_heads=2)
    >>> out = votive.models.ViTModel(config)(votive.ones(1, 3, 16, 16))
    >>> out.last_hidden_state.shape, out.pooler_output.shape
    (votive.Size([1, 5, 8]), votive.Size([1, 8]))
    """

    embeddings_class: ClassVar[type[ViTEmbeddings]] = ViTEmbeddings
    layer_class: ClassVar[type[ViTLayer]] = ViTLayer

    def __init__(self, config: ViTConfig, add_pooling_layer: bool = True, use_mask_token: bool = False) -> None:
        super().__init__(config)
        self.embeddings = self.embeddings_class(config, use_mask_token)
        self.encoder = Encoder(self.layer_class(config) for _ in range(config.num_hidden_layers))
        self.layernorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.pooler = ViTPooler(config) if add_pooling_layer else None
        self.post_init()

    def forward(
        self,
        pixel_values: Tensor | None = None,
        bool_masked_pos: Tensor | None = None,
        interpolate_pos_encoding: bool = False,
        attention_mask: Tensor | None = None,
        output_attentions: bool = False,
        output_hidden_states: bool = False,
    ) -> EncoderOutput:
        """`attention_mask` (batch, tokens) is 0 at patches that nobody is to see."""
        pictures = check_pictures(type(self).__name__, pixel_values, self.config.num_channels)
        x = self.embeddings(pictures.to(self.dtype), bool_masked_pos, bool(interpolate_pos_encoding))
        mask = padding_mask(attention_mask)
        found = self.encoder(x, mask, output_attentions, output_hidden_states)
        x = self.layernorm(found.last_hidden_state)
        return replace(found, last_hidden_state=x, pooler_output=None if self.pooler is None else self.pooler(x))


class ViTForImageClassification(_ViT):
    """ViT that gives a picture one of `num_labels` classes.

    >>> config = votive.models.ViTConfig(image_size=16, patch_size=8, hidden_size=8,
    ...     intermediate_size=16, num_hidden_layers=1, num_attention_heads=2, num_labels=3)
    >>> votive.models.ViTForImageClassification(config)(votive.ones(1, 3, 16, 16)).logits.shape
    votive.Size([1, 3])
    """

    model_class: ClassVar[type[ViTModel]] = ViTModel

    def __init__(self, config: ViTConfig) -> None:
        super().__init__(config)
        setattr(self, self.base_model_prefix, self.model_class(config, add_pooling_layer=False))
        self.classifier = nn.Linear(config.hidden_size, config.label_count)
        self.post_init()

    def forward(
        self, pixel_values: Tensor | None = None, labels: Tensor | None = None, **kwargs: Any
    ) -> PredictionOutput:
        """As the encoder, and `labels`: classes (batch,), or values per class."""
        found = getattr(self, self.base_model_prefix)(pixel_values, **kwargs)
        logits = self.classifier(found.last_hidden_state[:, 0])
        return class_output(logits, labels, self.config, found)
