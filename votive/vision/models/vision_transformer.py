"""Vision transformers with torchvision's names. Dosovitskiy et al. 2020, arXiv:2010.11929.

`votive.models.ViTModel` is the same network with the names of Hugging Face's checkpoints.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from functools import partial
from typing import Any, NamedTuple

import votive
from votive import nn

from ...tensor import Tensor
from ..ops.layers import MLP, Conv2dNormActivation
from ..types import Layer, Weights
from .weights import build, registered

NORM = partial(nn.LayerNorm, eps=1e-6)


class ConvStemConfig(NamedTuple):
    """One convolution of a stem that takes the place of the cut into patches."""

    out_channels: int
    kernel_size: int
    stride: int
    norm_layer: Layer = nn.BatchNorm2d
    activation_layer: Layer = nn.ReLU


class MLPBlock(MLP):
    """Two linear layers with GELU between them.

    >>> from votive.vision.models.vision_transformer import MLPBlock
    >>> MLPBlock(4, 8, 0.0)(votive.ones(2, 4)).shape
    votive.Size([2, 4])
    """

    def __init__(self, in_dim: int, mlp_dim: int, dropout: float) -> None:
        super().__init__(in_dim, [mlp_dim, in_dim], activation_layer=nn.GELU, dropout=dropout)
        for layer in (self[0], self[3]):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.normal_(layer.bias, std=1e-6)


class EncoderBlock(nn.Module):
    """Attention and two linear layers, each behind its norm and beside a shortcut.

    >>> from votive.vision.models.vision_transformer import EncoderBlock
    >>> EncoderBlock(2, 8, 16, 0.0, 0.0)(votive.ones(1, 5, 8)).shape
    votive.Size([1, 5, 8])
    """

    def __init__(
        self,
        num_heads: int,
        hidden_dim: int,
        mlp_dim: int,
        dropout: float,
        attention_dropout: float,
        norm_layer: Layer = NORM,
    ) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.ln_1 = norm_layer(hidden_dim)
        self.self_attention = nn.MultiheadAttention(hidden_dim, num_heads, dropout=attention_dropout, batch_first=True)
        self.dropout = nn.Dropout(dropout)
        self.ln_2 = norm_layer(hidden_dim)
        self.mlp = MLPBlock(hidden_dim, mlp_dim, dropout)

    def forward(self, input: Tensor) -> Tensor:
        x = self.ln_1(input)
        x, _ = self.self_attention(x, x, x, need_weights=False)
        x = self.dropout(x) + input
        return x + self.mlp(self.ln_2(x))


class Encoder(nn.Module):
    """Positions are added, then block follows block.

    >>> from votive.vision.models.vision_transformer import Encoder
    >>> Encoder(5, 1, 2, 8, 16, 0.0, 0.0)(votive.ones(1, 5, 8)).shape
    votive.Size([1, 5, 8])
    """

    def __init__(
        self,
        seq_length: int,
        num_layers: int,
        num_heads: int,
        hidden_dim: int,
        mlp_dim: int,
        dropout: float,
        attention_dropout: float,
        norm_layer: Layer = NORM,
    ) -> None:
        super().__init__()
        self.pos_embedding = nn.Parameter(votive.empty(1, seq_length, hidden_dim))
        nn.init.normal_(self.pos_embedding, std=0.02)
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.Sequential(
            OrderedDict(
                (
                    f"encoder_layer_{i}",
                    EncoderBlock(num_heads, hidden_dim, mlp_dim, dropout, attention_dropout, norm_layer),
                )
                for i in range(num_layers)
            )
        )
        self.ln = norm_layer(hidden_dim)

    def forward(self, input: Tensor) -> Tensor:
        return self.ln(self.layers(self.dropout(input + self.pos_embedding)))


class VisionTransformer(nn.Module):
    """A transformer over the patches of pictures (batch, 3, image_size, image_size).

    >>> net = votive.vision.models.VisionTransformer(8, 4, 1, 2, 8, 16, num_classes=3)
    >>> net(votive.ones(2, 3, 8, 8)).shape
    votive.Size([2, 3])
    """

    def __init__(
        self,
        image_size: int,
        patch_size: int,
        num_layers: int,
        num_heads: int,
        hidden_dim: int,
        mlp_dim: int,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        num_classes: int = 1000,
        representation_size: int | None = None,
        norm_layer: Layer = NORM,
        conv_stem_configs: list[ConvStemConfig] | None = None,
    ) -> None:
        super().__init__()
        if image_size % patch_size:
            raise ValueError(
                f"VisionTransformer: patches of {patch_size} do not divide pictures of "
                f"{image_size}; image_size must be a multiple of patch_size."
            )
        self.image_size, self.patch_size, self.hidden_dim = image_size, patch_size, hidden_dim
        self.mlp_dim, self.attention_dropout, self.dropout = mlp_dim, attention_dropout, dropout
        self.num_classes, self.representation_size = num_classes, representation_size
        self.norm_layer = norm_layer
        if conv_stem_configs is None:
            self.conv_proj: nn.Module = nn.Conv2d(3, hidden_dim, patch_size, patch_size)
        else:
            self.conv_proj = _stem(conv_stem_configs, hidden_dim)
        self.seq_length = (image_size // patch_size) ** 2 + 1
        self.class_token = nn.Parameter(votive.zeros(1, 1, hidden_dim))
        self.encoder = Encoder(
            self.seq_length, num_layers, num_heads, hidden_dim, mlp_dim, dropout, attention_dropout, norm_layer
        )
        heads: OrderedDict[str, nn.Module] = OrderedDict()
        if representation_size is not None:
            heads["pre_logits"] = nn.Linear(hidden_dim, representation_size)
            heads["act"] = nn.Tanh()
        heads["head"] = nn.Linear(representation_size or hidden_dim, num_classes)
        self.heads = nn.Sequential(heads)
        self._start()

    def _start(self) -> None:
        """Start values: patches as a linear layer would have them, a head that knows nothing."""
        if isinstance(self.conv_proj, nn.Conv2d):
            inputs = self.conv_proj.in_channels * self.patch_size**2
            nn.init.trunc_normal_(self.conv_proj.weight, std=math.sqrt(1 / inputs))
            nn.init.zeros_(self.conv_proj.bias)
        else:
            last = self.conv_proj.conv_last
            nn.init.normal_(last.weight, std=math.sqrt(2.0 / last.out_channels))
            nn.init.zeros_(last.bias)
        if self.representation_size is not None:
            first = self.heads.pre_logits
            nn.init.trunc_normal_(first.weight, std=math.sqrt(1 / first.in_features))
            nn.init.zeros_(first.bias)
        nn.init.zeros_(self.heads.head.weight)
        nn.init.zeros_(self.heads.head.bias)

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim != 4 or tuple(x.shape[-2:]) != (self.image_size,) * 2:
            raise ValueError(
                f"VisionTransformer: takes pictures (batch, 3, {self.image_size}, "
                f"{self.image_size}), got {tuple(x.shape)}; resize them, or make the network with "
                "another image_size."
            )
        x = self.conv_proj(x).flatten(2).transpose(1, 2)  # (B, patches, hidden)
        token = self.class_token.expand(x.shape[0], -1, -1)
        x = self.encoder(votive.cat((token, x), 1))
        return self.heads(x[:, 0])


def _stem(configs: list[ConvStemConfig], hidden: int) -> nn.Sequential:
    """Convolutions instead of the cut into patches: Xiao et al. 2021, arXiv:2106.14881."""
    parts: OrderedDict[str, nn.Module] = OrderedDict()
    width = 3
    for i, c in enumerate(configs):
        parts[f"conv_bn_relu_{i}"] = Conv2dNormActivation(
            width, c.out_channels, c.kernel_size, c.stride, norm_layer=c.norm_layer, activation_layer=c.activation_layer
        )
        width = c.out_channels
    parts["conv_last"] = nn.Conv2d(width, hidden, 1)
    return nn.Sequential(parts)


def _built(
    patch: int, layers: int, heads: int, hidden: int, mlp: int, weights: Weights | None, given: dict[str, Any]
) -> VisionTransformer:
    size = given.pop("image_size", 224)
    return build(partial(VisionTransformer, size, patch, layers, heads, hidden, mlp, **given), weights)


@registered
def vit_b_16(*, weights: Weights | None = None, progress: bool = True, **kwargs: Any) -> VisionTransformer:
    """ViT-B/16; `weights` is a file or a state dict, `progress` has nothing to show here.

    >>> with votive.nn.init.skipped():
    ...     net = votive.vision.models.vit_b_16()
    >>> sum(p.numel() for p in net.parameters())
    86567656
    """
    return _built(16, 12, 12, 768, 3072, weights, kwargs)


@registered
def vit_b_32(*, weights: Weights | None = None, progress: bool = True, **kwargs: Any) -> VisionTransformer:
    """ViT-B/32; see `vit_b_16`.

    >>> with votive.nn.init.skipped():
    ...     net = votive.vision.models.vit_b_32()
    >>> sum(p.numel() for p in net.parameters())
    88224232
    """
    return _built(32, 12, 12, 768, 3072, weights, kwargs)


@registered
def vit_l_16(*, weights: Weights | None = None, progress: bool = True, **kwargs: Any) -> VisionTransformer:
    """ViT-L/16; see `vit_b_16`.

    >>> votive.vision.models.get_model_builder("vit_l_16").__name__
    'vit_l_16'
    """
    return _built(16, 24, 16, 1024, 4096, weights, kwargs)


@registered
def vit_l_32(*, weights: Weights | None = None, progress: bool = True, **kwargs: Any) -> VisionTransformer:
    """ViT-L/32; see `vit_b_16`.

    >>> votive.vision.models.get_model_builder("vit_l_32").__name__
    'vit_l_32'
    """
    return _built(32, 24, 16, 1024, 4096, weights, kwargs)


@registered
def vit_h_14(*, weights: Weights | None = None, progress: bool = True, **kwargs: Any) -> VisionTransformer:
    """ViT-H/14; see `vit_b_16`.

    >>> votive.vision.models.get_model_builder("vit_h_14").__name__
    'vit_h_14'
    """
    return _built(14, 32, 16, 1280, 5120, weights, kwargs)
