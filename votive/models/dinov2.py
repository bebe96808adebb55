"""DINOv2, a ViT that learned without labels, also with registers. Oquab et al. 2023, arXiv:2304.07193; 2309.16588.

Parameter names are those of Hugging Face checkpoints; those that transformers 5 has in memory are understood too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import votive
from votive import nn
from votive.nn import functional as F

from ..io.source import WeightSource
from ..tensor import Tensor
from .attention import AttentionMask, Weights, padding_mask
from .backbone import Backbone, BackboneConfig, BackboneOutput, LayerScale, dropped_path
from .bert import class_output
from .clip_sides import CLIPMLP
from .encoder import Encoder
from .output import EncoderOutput, PredictionOutput
from .pretrained import PreTrainedModel
from .refitted import JOINED, Part, Refitted
from .vit import PatchConfig, ViTAttention, ViTPatchEmbeddings, check_pictures


@dataclass(kw_only=True)
class Dinov2Config(PatchConfig, BackboneConfig):
    """The numbers of a DINOv2.

    >>> votive.models.Dinov2Config(hidden_size=64, num_attention_heads=4).intermediate_size
    256
    """

    model_type = "dinov2"

    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    mlp_ratio: int = 4
    hidden_act: str = "gelu"
    hidden_dropout_prob: float = 0.0
    attention_probs_dropout_prob: float = 0.0
    layer_norm_eps: float = 1e-6
    patch_size: int | list[int] | tuple[int, int] = 14
    qkv_bias: bool = True
    layerscale_value: float = 1.0
    drop_path_rate: float = 0.0
    use_swiglu_ffn: bool = False
    apply_layernorm: bool = True
    reshape_hidden_states: bool = True
    use_mask_token: bool = True

    def stage_count(self) -> int:
        return self.num_hidden_layers

    @property
    def intermediate_size(self) -> int:
        """The width of the MLP."""
        return int(self.hidden_size * self.mlp_ratio)

    @property
    def registers(self) -> int:
        """How many tokens stand between the class token and the patches."""
        return 0


@dataclass(kw_only=True)
class Dinov2WithRegistersConfig(Dinov2Config):
    """The numbers of a DINOv2 with registers, which hold what belongs to no patch.

    >>> votive.models.Dinov2WithRegistersConfig().registers
    4
    """

    model_type = "dinov2_with_registers"

    patch_size: int | list[int] | tuple[int, int] = 16
    num_register_tokens: int = 4

    @property
    def registers(self) -> int:
        return self.num_register_tokens


class Dinov2Embeddings(nn.Module):
    """Patches with their places behind the class token and registers."""

    def __init__(self, config: Dinov2Config) -> None:
        super().__init__()
        self.config, width = config, config.hidden_size
        self.cls_token = nn.Parameter(votive.zeros(1, 1, width))
        masked = config.use_mask_token or bool(config.registers)
        self.mask_token = nn.Parameter(votive.zeros(1, width)) if masked else None
        if isinstance(config, Dinov2WithRegistersConfig):
            self.register_tokens = nn.Parameter(votive.zeros(1, config.registers, width))
        self.patch_embeddings = ViTPatchEmbeddings(config)  # type: ignore[arg-type]  # which has its fields
        count = 1 + config.grid[0] * config.grid[1]
        self.position_embeddings = nn.Parameter(votive.zeros(1, count, width))
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def positions(self, pixel_values: Tensor) -> Tensor:
        """What is added for the places of the patches, which were learned in a square."""
        learned, (high, wide) = self.position_embeddings, self.config.patches
        height, width = pixel_values.shape[2:]
        new, count = (height // high, width // wide), learned.shape[1] - 1
        if new[0] * new[1] == count and height == width:
            return learned
        side = int(count**0.5)
        if side * side != count:
            raise ValueError(
                f"{type(self).__name__}: pictures are {height} x {width} pixels; a model of pictures that are no "
                f"squares, image_size={self.config.image_size}, cannot be given other sizes."
            )
        grid = learned[:, 1:].reshape(1, side, side, -1).permute(0, 3, 1, 2).float()
        shrink = hasattr(self, "register_tokens")
        grid = F.interpolate(grid, size=new, mode="bicubic", align_corners=False, antialias=shrink).to(learned.dtype)
        return votive.cat([learned[:, :1], grid.permute(0, 2, 3, 1).flatten(1, 2)], 1)

    def forward(self, pixel_values: Tensor, bool_masked_pos: Tensor | None = None) -> Tensor:
        x = self.patch_embeddings(pixel_values)
        if bool_masked_pos is not None:
            if self.mask_token is None:
                raise ValueError(f"{type(self).__name__}: use_mask_token=False; patches cannot be hidden.")
            x = votive.where(bool_masked_pos.bool().unsqueeze(-1), self.mask_token.unsqueeze(0).to(x.dtype), x)
        x = votive.cat([self.cls_token.expand(x.shape[0], -1, -1), x], 1) + self.positions(pixel_values)
        if hasattr(self, "register_tokens"):
            x = votive.cat([x[:, :1], self.register_tokens.expand(x.shape[0], -1, -1), x[:, 1:]], 1)
        return self.dropout(x)


class Dinov2SwiGLU(nn.ModuleDict):
    """`out(silu(gate(x)) * up(x))`, with both halves from one product."""

    def __init__(self, width: int, inner: int) -> None:
        super().__init__({"weights_in": nn.Linear(width, 2 * inner), "weights_out": nn.Linear(inner, width)})

    def forward(self, x: Tensor) -> Tensor:
        gate, up = self["weights_in"](x).chunk(2, -1)
        return self["weights_out"](F.silu(gate) * up)


class Dinov2Layer(nn.Module):
    """Norm and attention, norm and MLP; what they add is scaled by feature."""

    def __init__(self, config: Dinov2Config) -> None:
        super().__init__()
        width, eps = config.hidden_size, config.layer_norm_eps
        self.drop = config.drop_path_rate
        self.norm1 = nn.LayerNorm(width, eps=eps)
        self.attention = ViTAttention(config, dropout=0.0)  # type: ignore[arg-type]  # which has its fields
        self.layer_scale1 = LayerScale(width, config.layerscale_value)
        self.norm2 = nn.LayerNorm(width, eps=eps)
        # Two thirds of the MLP's width, rounded up to a multiple of 8.
        inner = (int(config.intermediate_size * 2 / 3) + 7) // 8 * 8
        self.mlp = Dinov2SwiGLU(width, inner) if config.use_swiglu_ffn else CLIPMLP(config)
        self.layer_scale2 = LayerScale(width, config.layerscale_value)

    def forward(self, x: Tensor, mask: AttentionMask, weights: Weights = None) -> Tensor:
        y = self.layer_scale1(self.attention(self.norm1(x), mask, weights))
        x = x + dropped_path(y, self.drop, self.training)
        return x + dropped_path(self.layer_scale2(self.mlp(self.norm2(x))), self.drop, self.training)


class _Dinov2(PreTrainedModel):
    """What all classes of DINOv2 share."""

    config_class = Dinov2Config
    base_model_prefix = "dinov2"
    # From the names that transformers 5 has in memory to those in files.
    renames = {
        r"\.attention\.q_proj\.": ".attention.attention.query.",
        r"\.attention\.k_proj\.": ".attention.attention.key.",
        r"\.attention\.v_proj\.": ".attention.attention.value.",
        r"\.attention\.o_proj\.": ".attention.output.dense.",
        r"\.mlp\.down_proj\.": ".mlp.weights_out.",
    }

    def init_weights(self, module: nn.Module) -> None:
        std = self.config.initializer_range
        if isinstance(module, (nn.Linear, nn.Conv2d)):
            nn.init.trunc_normal_(module.weight, std=std)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, Dinov2Embeddings):
            nn.init.trunc_normal_(module.position_embeddings, std=std)
            nn.init.trunc_normal_(module.cls_token, std=std)

    def get_input_embeddings(self) -> nn.Module:
        """What makes vectors of patches."""
        return getattr(self, self.base_model_prefix, self).embeddings.patch_embeddings

    def adapted(self, source: WeightSource) -> WeightSource:
        names = source.names()
        if not any(".mlp.gate_proj." in name for name in names):
            return source
        # Newer names have the halves of one product apart.
        parts = {}
        for name in names:
            if ".mlp.gate_proj." in name:
                both = (name, name.replace("gate_proj", "up_proj"))
                parts[name.replace("gate_proj", "weights_in")] = Part(both, JOINED)
            elif ".mlp.up_proj." not in name:
                parts[name] = Part((name,))
        return Refitted(source, parts)


class Dinov2Model(_Dinov2):
    """The encoder; `pooler_output` is the normed class token.

    >>> config = votive.models.Dinov2Config(image_size=16, patch_size=8, hidden_size=8, num_hidden_layers=1,
    ...     num_attention_heads=2)
    >>> votive.models.Dinov2Model(config)(votive.ones(1, 3, 16, 24)).last_hidden_state.shape
    votive.Size([1, 7, 8])
    """

    def __init__(self, config: Dinov2Config) -> None:
        super().__init__(config)
        self.embeddings = Dinov2Embeddings(config)
        self.encoder = Encoder(Dinov2Layer(config) for _ in range(config.num_hidden_layers))
        self.layernorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.post_init()

    def forward(
        self,
        pixel_values: Tensor | None = None,
        bool_masked_pos: Tensor | None = None,
        attention_mask: Tensor | None = None,
        output_attentions: bool = False,
        output_hidden_states: bool = False,
    ) -> EncoderOutput:
        """`attention_mask` (batch, tokens) is 0 at tokens that nobody is to see."""
        pictures = check_pictures(type(self).__name__, pixel_values, self.config.num_channels)
        x = self.embeddings(pictures.to(self.dtype), bool_masked_pos)
        found = self.encoder(x, padding_mask(attention_mask), output_attentions, output_hidden_states)
        x = self.layernorm(found.last_hidden_state)
        return replace(found, last_hidden_state=x, pooler_output=x[:, 0])


class Dinov2ForImageClassification(_Dinov2):
    """DINOv2 that gives a picture a class, from the class token and the mean of the patches.

    >>> config = votive.models.Dinov2Config(image_size=16, patch_size=8, hidden_size=8, num_hidden_layers=1,
    ...     num_attention_heads=2, num_labels=3)
    >>> votive.models.Dinov2ForImageClassification(config)(votive.ones(1, 3, 16, 16)).logits.shape
    votive.Size([1, 3])
    """

    model_class: type[Dinov2Model] = Dinov2Model

    def __init__(self, config: Dinov2Config) -> None:
        super().__init__(config)
        setattr(self, self.base_model_prefix, self.model_class(config))
        self.classifier = nn.Linear(2 * config.hidden_size, config.label_count)
        self.post_init()

    def forward(
        self, pixel_values: Tensor | None = None, labels: Tensor | None = None, **kwargs: Any
    ) -> PredictionOutput:
        """As the encoder, and `labels`: classes (batch,), or values per class."""
        found = getattr(self, self.base_model_prefix)(pixel_values, **kwargs)
        x = found.last_hidden_state
        read = votive.cat([x[:, 0], x[:, 1 + self.config.registers :].mean(1)], 1)
        return class_output(self.classifier(read), labels, self.config, found)


class Dinov2Backbone(_Dinov2, Backbone):
    """DINOv2 as a backbone: `feature_maps` (batch, features, height, width) of the stages in `out_features`.

    >>> config = votive.models.Dinov2Config(image_size=16, patch_size=8, hidden_size=8, num_hidden_layers=2,
    ...     num_attention_heads=2, out_indices=[1, 2])
    >>> [m.shape for m in votive.models.Dinov2Backbone(config)(votive.ones(1, 3, 16, 16)).feature_maps]
    [votive.Size([1, 8, 2, 2]), votive.Size([1, 8, 2, 2])]
    """

    def __init__(self, config: Dinov2Config) -> None:
        super().__init__(config)
        self.embeddings = Dinov2Embeddings(config)
        self.encoder = Encoder(Dinov2Layer(config) for _ in range(config.num_hidden_layers))
        self.layernorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.post_init()

    @property
    def num_features(self) -> list[int]:
        return [self.config.hidden_size] * (self.config.num_hidden_layers + 1)

    def forward(
        self,
        pixel_values: Tensor | None = None,
        attention_mask: Tensor | None = None,
        output_attentions: bool = False,
        output_hidden_states: bool = False,
    ) -> BackboneOutput:
        """As the encoder."""
        config = self.config
        pictures = check_pictures(type(self).__name__, pixel_values, config.num_channels)
        x = self.embeddings(pictures.to(self.dtype))
        found = self.encoder(x, padding_mask(attention_mask), output_attentions, True)
        size = [n // p for n, p in zip(pictures.shape[2:], config.patches, strict=True)]
        maps = []
        for _, y in self.chosen(found.hidden_states):
            y = self.layernorm(y) if config.apply_layernorm else y
            if config.reshape_hidden_states:
                y = y[:, 1 + config.registers :].unflatten(1, size).permute(0, 3, 1, 2).contiguous()
            maps.append(y)
        return BackboneOutput(
            feature_maps=tuple(maps),
            hidden_states=found.hidden_states if output_hidden_states else None,
            attentions=found.attentions,
        )


class Dinov2WithRegistersModel(Dinov2Model):
    """DINOv2's encoder with registers.

    >>> config = votive.models.Dinov2WithRegistersConfig(image_size=16, patch_size=8, hidden_size=8,
    ...     num_hidden_layers=1, num_attention_heads=2)
    >>> votive.models.Dinov2WithRegistersModel(config)(votive.ones(1, 3, 16, 16)).last_hidden_state.shape
    votive.Size([1, 9, 8])
    """

    config_class = Dinov2WithRegistersConfig
    base_model_prefix = "dinov2_with_registers"


class Dinov2WithRegistersForImageClassification(Dinov2ForImageClassification):
    """DINOv2 with registers that gives a picture a class.

    >>> votive.models.Dinov2WithRegistersForImageClassification.base_model_prefix
    'dinov2_with_registers'
    """

    config_class = Dinov2WithRegistersConfig
    base_model_prefix = "dinov2_with_registers"
    model_class = Dinov2WithRegistersModel


class Dinov2WithRegistersBackbone(Dinov2Backbone):
    """DINOv2 with registers as a backbone.

    >>> votive.models.Dinov2WithRegistersBackbone.base_model_prefix
    'dinov2_with_registers'
    """

    config_class = Dinov2WithRegistersConfig
    base_model_prefix = "dinov2_with_registers"
