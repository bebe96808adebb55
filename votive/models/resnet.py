"""ResNet with Hugging Face's names. He et al. 2015, arXiv:1512.03385.

torchvision's, with its own names, is in `votive.vision.models`; names of timm's and torchvision's files are understood
here too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from votive import nn

from ..tensor import Tensor
from .activations import activation
from .backbone import Backbone, BackboneConfig, BackboneOutput, PictureModel
from .losses import class_output
from .output import EncoderOutput, PredictionOutput
from .vit import check_pictures

# From timm's and torchvision's names to those here; with what stands before them.
TIMM_NAMES = {
    r"^((?:.*\.)?)conv1\.(?=weight)": r"\1embedder.embedder.convolution.",
    r"^((?:.*\.)?)bn1\.": r"\1embedder.embedder.normalization.",
    r"layer(\d+)\.(\d+)\.embedder\.embedder\.": r"layer\1.\2.first.",
    r"layer(\d+)\.(\d+)\.first\.convolution\.": r"layer\1.\2.conv1.",
    r"layer(\d+)\.(\d+)\.first\.normalization\.": r"layer\1.\2.bn1.",
    **{
        rf"layer{n}\.(\d+)\.{old}\.": rf"encoder.stages.{n - 1}.layers.\1.{new}."
        for n in range(1, 5)
        for old, new in (
            ("downsample.0", "shortcut.convolution"),
            ("downsample.1", "shortcut.normalization"),
            *((f"conv{i}", f"layer.{i - 1}.convolution") for i in (1, 2, 3)),
            *((f"bn{i}", f"layer.{i - 1}.normalization") for i in (1, 2, 3)),
        )
    },
}


@dataclass(kw_only=True)
class ResNetConfig(BackboneConfig):
    """The numbers of a ResNet: features and depth of each stage.

    >>> votive.models.ResNetConfig(depths=[1, 1], hidden_sizes=[8, 16]).stage_names
    ['stem', 'stage1', 'stage2']
    """

    model_type = "resnet"

    num_channels: int = 3
    embedding_size: int = 64
    hidden_sizes: list[int] | tuple[int, ...] | None = None
    depths: list[int] | tuple[int, ...] | None = None
    layer_type: str = "bottleneck"
    hidden_act: str = "relu"
    downsample_in_first_stage: bool = False
    downsample_in_bottleneck: bool = False

    def __post_init__(self) -> None:
        self.hidden_sizes = list(self.hidden_sizes or (256, 512, 1024, 2048))
        self.depths = list(self.depths or (3, 4, 6, 3))
        super().__post_init__()
        name = type(self).__name__
        if self.layer_type not in ("basic", "bottleneck"):
            raise ValueError(f"{name}: layer_type must be 'basic' or 'bottleneck', got {self.layer_type!r}.")
        if len(self.depths) != len(self.hidden_sizes):
            raise ValueError(
                f"{name}: depths={self.depths} and hidden_sizes={self.hidden_sizes} are of as many stages."
            )

    def stage_count(self) -> int:
        return len(self.depths or ())

    @property
    def sizes(self) -> list[int]:
        """The features of the stages."""
        return list(self.hidden_sizes or ())


class ResNetConvLayer(nn.Module):
    """A convolution, a norm of the batch, and an activation if there is one."""

    def __init__(self, before: int, after: int, size: int = 3, stride: int = 1, act: str | None = "relu") -> None:
        super().__init__()
        self.convolution = nn.Conv2d(before, after, size, stride=stride, padding=size // 2, bias=False)
        self.normalization = nn.BatchNorm2d(after)
        self.act_fn = None if act is None else activation(act)

    def forward(self, x: Tensor) -> Tensor:
        x = self.normalization(self.convolution(x))
        return x if self.act_fn is None else self.act_fn(x)


class ResNetEmbeddings(nn.Module):
    """A wide convolution and a pool: a quarter of the picture's size."""

    def __init__(self, config: ResNetConfig) -> None:
        super().__init__()
        self.embedder = ResNetConvLayer(config.num_channels, config.embedding_size, 7, 2, config.hidden_act)
        self.pooler = nn.MaxPool2d(3, stride=2, padding=1)

    def forward(self, pixel_values: Tensor) -> Tensor:
        return self.pooler(self.embedder(pixel_values))


class ResNetLayer(nn.Module):
    """Two or three convolutions, added to what came in; a bottleneck's middle one has a quarter of the features."""

    def __init__(self, config: ResNetConfig, before: int, after: int, stride: int = 1) -> None:
        super().__init__()
        self.shortcut: nn.Module = nn.Identity()
        if before != after or stride != 1:
            self.shortcut = ResNetConvLayer(before, after, 1, stride, None)
        if config.layer_type == "basic":
            parts = [ResNetConvLayer(before, after, stride=stride), ResNetConvLayer(after, after, act=None)]
        else:
            inner = after // 4
            first, second = (stride, 1) if config.downsample_in_bottleneck else (1, stride)
            parts = [
                ResNetConvLayer(before, inner, 1, first),
                ResNetConvLayer(inner, inner, 3, second),
                ResNetConvLayer(inner, after, 1, act=None),
            ]
        self.layer = nn.Sequential(*parts)
        self.act_fn = activation(config.hidden_act)

    def forward(self, x: Tensor) -> Tensor:
        return self.act_fn(self.layer(x) + self.shortcut(x))


class ResNetStage(nn.ModuleDict):
    """Layers on one grid, which the first of them halves."""

    def __init__(self, config: ResNetConfig, stage: int) -> None:
        sizes, depth = [config.embedding_size, *config.sizes], (config.depths or ())[stage]
        stride = 2 if stage or config.downsample_in_first_stage else 1
        layers = [ResNetLayer(config, sizes[stage], sizes[stage + 1], stride)]
        layers += [ResNetLayer(config, sizes[stage + 1], sizes[stage + 1]) for _ in range(depth - 1)]
        super().__init__({"layers": nn.Sequential(*layers)})

    def forward(self, x: Tensor) -> Tensor:
        return self["layers"](x)


class ResNetEncoder(nn.ModuleDict):
    """All stages, one after the other."""

    def __init__(self, config: ResNetConfig) -> None:
        super().__init__({"stages": nn.ModuleList(ResNetStage(config, i) for i in range(config.stage_count()))})

    def forward(self, x: Tensor) -> list[Tensor]:
        """What came in, and what each stage gave."""
        states = [x]
        for stage in self["stages"]:
            states.append(stage(states[-1]))
        return states


class _ResNet(PictureModel):
    """What all classes of ResNet share."""

    config_class = ResNetConfig
    base_model_prefix = "resnet"
    renames: ClassVar[dict[str, str]] = {**TIMM_NAMES, r"^fc\.": "classifier.1."}

    def init_weights(self, module: nn.Module) -> None:
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def get_input_embeddings(self) -> nn.Module:
        """What makes features of pixels."""
        return getattr(self, self.base_model_prefix, self).embedder.embedder.convolution

    def states(self, pixel_values: Tensor | None) -> list[Tensor]:
        """What the stem and each stage give of pictures."""
        pictures = check_pictures(type(self).__name__, pixel_values, self.config.num_channels)
        return self.encoder(self.embedder(pictures.to(self.dtype)))


class ResNetModel(_ResNet):
    """The network without a head; `pooler_output` (batch, features, 1, 1) is the mean of the last stage.

    >>> config = votive.models.ResNetConfig(embedding_size=8, depths=[1, 1], hidden_sizes=[8, 16])
    >>> votive.models.ResNetModel(config)(votive.ones(1, 3, 16, 16)).last_hidden_state.shape
    votive.Size([1, 16, 2, 2])
    """

    def __init__(self, config: ResNetConfig) -> None:
        super().__init__(config)
        self.embedder = ResNetEmbeddings(config)
        self.encoder = ResNetEncoder(config)
        self.post_init()

    def forward(self, pixel_values: Tensor | None = None, output_hidden_states: bool = False) -> EncoderOutput:
        """Of pictures (batch, channels, height, width) of any size."""
        states = self.states(pixel_values)
        return EncoderOutput(
            last_hidden_state=states[-1],
            pooler_output=states[-1].mean((-2, -1), keepdim=True),
            hidden_states=tuple(states) if output_hidden_states else None,
        )


class ResNetForImageClassification(_ResNet):
    """ResNet that gives a picture one of `num_labels` classes.

    >>> config = votive.models.ResNetConfig(embedding_size=8, depths=[1, 1], hidden_sizes=[8, 16], num_labels=3)
    >>> votive.models.ResNetForImageClassification(config)(votive.ones(2, 3, 16, 16)).logits.shape
    votive.Size([2, 3])
    """

    def __init__(self, config: ResNetConfig) -> None:
        super().__init__(config)
        self.resnet = ResNetModel(config)
        self.classifier = nn.Sequential(nn.Flatten(), nn.Linear(config.sizes[-1], config.label_count))
        self.post_init()

    def forward(
        self, pixel_values: Tensor | None = None, labels: Tensor | None = None, output_hidden_states: bool = False
    ) -> PredictionOutput:
        """As the network, and `labels`: classes (batch,), or values per class."""
        found = self.resnet(pixel_values, output_hidden_states)
        return class_output(self.classifier(found.pooler_output), labels, self.config, found)


class ResNetBackbone(_ResNet, Backbone):
    """ResNet as a backbone: `feature_maps` (batch, features, height, width) of the stages in `out_features`.

    >>> config = votive.models.ResNetConfig(embedding_size=8, depths=[1, 1], hidden_sizes=[8, 16], out_indices=[1])
    >>> [m.shape for m in votive.models.ResNetBackbone(config)(votive.ones(1, 3, 16, 16)).feature_maps]
    [votive.Size([1, 8, 4, 4])]
    """

    def __init__(self, config: ResNetConfig) -> None:
        super().__init__(config)
        self.embedder = ResNetEmbeddings(config)
        self.encoder = ResNetEncoder(config)
        self.post_init()

    @property
    def num_features(self) -> list[int]:
        return [self.config.embedding_size, *self.config.sizes]

    def forward(self, pixel_values: Tensor | None = None, output_hidden_states: bool = False) -> BackboneOutput:
        """As the network."""
        states = self.states(pixel_values)
        return BackboneOutput(
            feature_maps=tuple(x for _, x in self.chosen(states)),
            hidden_states=tuple(states) if output_hidden_states else None,
        )
