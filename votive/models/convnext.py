"""ConvNeXt and its second version, convolutions shaped as a transformer. Liu et al. 2022, arXiv:2201.03545; 2301.00808.

The versions differ by one part of a layer: the first scales what it adds, the second norms how strongly each feature
answers to the whole picture. Parameter names are those of Hugging Face checkpoints.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import votive
from votive import nn

from ..tensor import Tensor
from .activations import activation
from .backbone import Backbone, BackboneConfig, BackboneOutput, PictureModel, dropped_path, path_rates, sized
from .losses import class_output
from .output import EncoderOutput, PredictionOutput
from .vit import check_pictures


@dataclass(kw_only=True)
class ConvNextConfig(BackboneConfig):
    """The numbers of a ConvNeXt: features and depth of each stage.

    >>> votive.models.ConvNextConfig(hidden_sizes=[8, 16], depths=[1, 1], num_stages=2).stage_names
    ['stem', 'stage1', 'stage2']
    """

    model_type = "convnext"

    num_channels: int = 3
    patch_size: int | list[int] | tuple[int, int] = 4
    num_stages: int = 4
    hidden_sizes: list[int] | tuple[int, ...] | None = None
    depths: list[int] | tuple[int, ...] | None = None
    hidden_act: str = "gelu"
    layer_norm_eps: float = 1e-12
    layer_scale_init_value: float = 1e-6
    drop_path_rate: float = 0.0
    image_size: int | list[int] | tuple[int, int] = 224

    def __post_init__(self) -> None:
        self.hidden_sizes = list(self.hidden_sizes or (96, 192, 384, 768))
        self.depths = list(self.depths or (3, 3, 9, 3))
        super().__post_init__()
        if not self.num_stages == len(self.depths) == len(self.hidden_sizes):
            raise ValueError(
                f"{type(self).__name__}: num_stages={self.num_stages}, depths={self.depths} and "
                f"hidden_sizes={self.hidden_sizes} are of as many stages."
            )

    def stage_count(self) -> int:
        return len(self.depths or ())

    @property
    def sizes(self) -> list[int]:
        """The features of the stages."""
        return list(self.hidden_sizes or ())


@dataclass(kw_only=True)
class ConvNextV2Config(ConvNextConfig):
    """The numbers of a ConvNeXt V2.

    >>> votive.models.ConvNextV2Config().hidden_sizes
    [96, 192, 384, 768]
    """

    model_type = "convnextv2"


class ConvNextLayerNorm(nn.LayerNorm):
    """A norm over the features of (batch, features, height, width)."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class GlobalResponseNorm(nn.Module):
    """Features (batch, height, width, features) by how strong they are in the picture, beside the others."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(votive.zeros(1, 1, 1, width))
        self.bias = nn.Parameter(votive.zeros(1, 1, 1, width))

    def forward(self, x: Tensor) -> Tensor:
        strength = votive.linalg.vector_norm(x, dim=(1, 2), keepdim=True)
        share = strength / (strength.mean(-1, keepdim=True) + 1e-6)
        return self.weight * (x * share) + self.bias + x


class ConvNextEmbeddings(nn.ModuleDict):
    """Features of patches, normed."""

    def __init__(self, config: ConvNextConfig) -> None:
        size, width = sized(config, "patch_size"), config.sizes[0]
        super().__init__(
            {
                "patch_embeddings": nn.Conv2d(config.num_channels, width, size, stride=size),
                "layernorm": ConvNextLayerNorm(width, eps=1e-6),
            }
        )

    def forward(self, pixel_values: Tensor) -> Tensor:
        return self["layernorm"](self["patch_embeddings"](pixel_values))


class ConvNextLayer(nn.Module):
    """A wide convolution of each feature, then an MLP of each place, added to what came in."""

    def __init__(self, config: ConvNextConfig, width: int, drop: float) -> None:
        super().__init__()
        self.drop = drop
        self.dwconv = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.layernorm = nn.LayerNorm(width, eps=1e-6)
        self.pwconv1 = nn.Linear(width, 4 * width)
        self.act_fn = activation(config.hidden_act)
        self.pwconv2 = nn.Linear(4 * width, width)
        self.grn = GlobalResponseNorm(4 * width) if isinstance(config, ConvNextV2Config) else None
        self.layer_scale_parameter = None
        if self.grn is None and config.layer_scale_init_value > 0:
            self.layer_scale_parameter = nn.Parameter(votive.full((width,), config.layer_scale_init_value))

    def forward(self, x: Tensor) -> Tensor:
        y = self.layernorm(self.dwconv(x).permute(0, 2, 3, 1))  # (B, H, W, C)
        y = self.act_fn(self.pwconv1(y))
        y = self.pwconv2(y if self.grn is None else self.grn(y))
        if self.layer_scale_parameter is not None:
            y = self.layer_scale_parameter * y
        return x + dropped_path(y.permute(0, 3, 1, 2), self.drop, self.training)


class ConvNextStage(nn.Module):
    """What halves the grid, and layers on it."""

    def __init__(self, config: ConvNextConfig, stage: int, drops: list[float]) -> None:
        super().__init__()
        before, width = config.sizes[max(stage - 1, 0)], config.sizes[stage]
        halves = [ConvNextLayerNorm(before, eps=1e-6), nn.Conv2d(before, width, 2, stride=2)] if stage else []
        self.downsampling_layer = nn.ModuleList(halves)
        self.layers = nn.ModuleList(ConvNextLayer(config, width, drop) for drop in drops)

    def forward(self, x: Tensor) -> Tensor:
        for part in (*self.downsampling_layer, *self.layers):
            x = part(x)
        return x


class ConvNextEncoder(nn.Module):
    """All stages, one after the other."""

    def __init__(self, config: ConvNextConfig) -> None:
        super().__init__()
        depths = config.depths or ()
        rates = iter(path_rates(config.drop_path_rate, sum(depths)))
        self.stages = nn.ModuleList(
            ConvNextStage(config, i, [next(rates) for _ in range(depth)]) for i, depth in enumerate(depths)
        )

    def forward(self, x: Tensor) -> list[Tensor]:
        """What came in, and what each stage gave."""
        states = [x]
        for stage in self.stages:
            states.append(stage(states[-1]))
        return states


class _ConvNext(PictureModel):
    """What all classes of ConvNeXt share."""

    config_class = ConvNextConfig
    base_model_prefix = "convnext"

    def get_input_embeddings(self) -> nn.Module:
        """What makes vectors of patches."""
        return getattr(self, self.base_model_prefix, self).embeddings["patch_embeddings"]

    def states(self, pixel_values: Tensor | None) -> list[Tensor]:
        """What the embeddings and each stage give of pictures."""
        pictures = check_pictures(type(self).__name__, pixel_values, self.config.num_channels)
        return self.encoder(self.embeddings(pictures.to(self.dtype)))


class ConvNextModel(_ConvNext):
    """The encoder: states are (batch, features, height, width); `pooler_output` is the normed mean of the last.

    >>> config = votive.models.ConvNextConfig(hidden_sizes=[8, 16], depths=[1, 1], num_stages=2)
    >>> out = votive.models.ConvNextModel(config)(votive.ones(1, 3, 16, 16))
    >>> out.last_hidden_state.shape, out.pooler_output.shape
    (votive.Size([1, 16, 2, 2]), votive.Size([1, 16]))
    """

    def __init__(self, config: ConvNextConfig) -> None:
        super().__init__(config)
        self.embeddings = ConvNextEmbeddings(config)
        self.encoder = ConvNextEncoder(config)
        self.layernorm = nn.LayerNorm(config.sizes[-1], eps=config.layer_norm_eps)
        self.post_init()

    def forward(self, pixel_values: Tensor | None = None, output_hidden_states: bool = False) -> EncoderOutput:
        """Of pictures (batch, channels, height, width) of any size."""
        states = self.states(pixel_values)
        return EncoderOutput(
            last_hidden_state=states[-1],
            pooler_output=self.layernorm(states[-1].mean((-2, -1))),
            hidden_states=tuple(states) if output_hidden_states else None,
        )


class ConvNextForImageClassification(_ConvNext):
    """ConvNeXt that gives a picture one of `num_labels` classes.

    >>> config = votive.models.ConvNextConfig(hidden_sizes=[8, 16], depths=[1, 1], num_stages=2, num_labels=3)
    >>> votive.models.ConvNextForImageClassification(config)(votive.ones(1, 3, 16, 16)).logits.shape
    votive.Size([1, 3])
    """

    model_class: ClassVar[type[ConvNextModel]] = ConvNextModel

    def __init__(self, config: ConvNextConfig) -> None:
        super().__init__(config)
        setattr(self, self.base_model_prefix, self.model_class(config))
        self.classifier = nn.Linear(config.sizes[-1], config.label_count)
        self.post_init()

    def forward(
        self, pixel_values: Tensor | None = None, labels: Tensor | None = None, **kwargs: Any
    ) -> PredictionOutput:
        """As the encoder, and `labels`: classes (batch,), or values per class."""
        found = getattr(self, self.base_model_prefix)(pixel_values, **kwargs)
        return class_output(self.classifier(found.pooler_output), labels, self.config, found)


class ConvNextBackbone(_ConvNext, Backbone):
    """ConvNeXt as a backbone: `feature_maps` (batch, features, height, width) of the stages in `out_features`.

    >>> config = votive.models.ConvNextConfig(hidden_sizes=[8, 16], depths=[1, 1], num_stages=2, out_indices=[1, 2])
    >>> [m.shape for m in votive.models.ConvNextBackbone(config)(votive.ones(1, 3, 16, 16)).feature_maps]
    [votive.Size([1, 8, 4, 4]), votive.Size([1, 16, 2, 2])]
    """

    def __init__(self, config: ConvNextConfig) -> None:
        super().__init__(config)
        self.embeddings = ConvNextEmbeddings(config)
        self.encoder = ConvNextEncoder(config)
        names, channels = config.out_features or (), self.channels
        self.hidden_states_norms = nn.ModuleDict(
            {name: ConvNextLayerNorm(n, eps=1e-6) for name, n in zip(names, channels, strict=True)}
        )
        self.post_init()

    @property
    def num_features(self) -> list[int]:
        return [self.config.sizes[0], *self.config.sizes]

    def forward(self, pixel_values: Tensor | None = None, output_hidden_states: bool = False) -> BackboneOutput:
        """As the encoder."""
        states = self.states(pixel_values)
        maps = tuple(self.hidden_states_norms[name](x) for name, x in self.chosen(states))
        return BackboneOutput(feature_maps=maps, hidden_states=tuple(states) if output_hidden_states else None)


class ConvNextV2Model(ConvNextModel):
    """The encoder of ConvNeXt V2.

    >>> config = votive.models.ConvNextV2Config(hidden_sizes=[8, 16], depths=[1, 1], num_stages=2)
    >>> votive.models.ConvNextV2Model(config)(votive.ones(1, 3, 16, 16)).pooler_output.shape
    votive.Size([1, 16])
    """

    config_class = ConvNextV2Config
    base_model_prefix = "convnextv2"


class ConvNextV2ForImageClassification(ConvNextForImageClassification):
    """ConvNeXt V2 that gives a picture a class.

    >>> votive.models.ConvNextV2ForImageClassification.base_model_prefix
    'convnextv2'
    """

    config_class = ConvNextV2Config
    base_model_prefix = "convnextv2"
    model_class = ConvNextV2Model


class ConvNextV2Backbone(ConvNextBackbone):
    """ConvNeXt V2 as a backbone.

    >>> votive.models.ConvNextV2Backbone.base_model_prefix
    'convnextv2'
    """

    config_class = ConvNextV2Config
    base_model_prefix = "convnextv2"
