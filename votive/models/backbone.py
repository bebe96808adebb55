"""Backbones: networks whose stages other networks read. Knows stages by their names only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import votive
from votive import nn

from ..tensor import Tensor
from .config import Config, LabeledConfig
from .output import ModelOutput
from .pretrained import PreTrainedModel


@dataclass
class BackboneOutput(ModelOutput):
    """Of a backbone: what the stages that were asked for gave.

    >>> list(votive.models.BackboneOutput(feature_maps=(votive.ones(1),)).keys())
    ['feature_maps']
    """

    feature_maps: tuple[Tensor, ...] | None = None
    hidden_states: tuple[Tensor, ...] | None = None
    attentions: tuple[Tensor, ...] | None = None


@dataclass(kw_only=True)
class BackboneConfig(LabeledConfig):
    """A configuration whose stages have names; `out_features` are those that a backbone gives, by default the last.

    >>> votive.models.SwinConfig(depths=[1, 1], num_heads=[3, 6], out_indices=[1]).out_features
    ['stage1']
    """

    out_features: list[str] | None = None
    out_indices: list[int] | None = None

    def stage_count(self) -> int:
        """How many stages there are behind the stem."""
        raise NotImplementedError

    @property
    def stage_names(self) -> list[str]:
        """The names of the stages."""
        return ["stem", *(f"stage{i + 1}" for i in range(self.stage_count()))]

    def __post_init__(self) -> None:
        super().__post_init__()
        self.extra.pop("stage_names", None)  # computed
        names, asked, places = self.stage_names, self.out_features, self.out_indices
        if asked is None and places is None:
            asked = names[-1:]
        elif asked is None:
            assert places is not None, "one of both is there"
            if any(not -len(names) <= i < len(names) for i in places):
                raise ValueError(f"{type(self).__name__}: out_indices={places} must be stages of {names}.")
            asked = [names[i] for i in places]
        if asked != [name for name in names if name in asked]:
            raise ValueError(
                f"{type(self).__name__}: out_features={asked} must be some of {names}, in this order and each once."
            )
        found = [names.index(name) for name in asked]
        if places is not None and [i % len(names) for i in places] != found:
            raise ValueError(
                f"{type(self).__name__}: out_features={self.out_features} and out_indices={places} are other stages."
            )
        self.out_features, self.out_indices = asked, places if places is not None else found


class PictureModel(PreTrainedModel):
    """Networks of convolutions and products: all of them begin with normal weights and zero biases.

    >>> issubclass(votive.models.SwinModel, votive.models.backbone.PictureModel)
    True
    """

    def init_weights(self, module: nn.Module) -> None:
        super().init_weights(module)
        if isinstance(module, (nn.Conv2d, nn.ConvTranspose2d)):
            nn.init.normal_(module.weight, std=self.config.initializer_range)
            if module.bias is not None:
                nn.init.zeros_(module.bias)


class Backbone(PreTrainedModel):
    """What backbones share: which of the states they give.

    >>> votive.models.backbone.Backbone.wants_states
    True
    """

    # States of all stages come as the hidden states of the network.
    wants_states: ClassVar[bool] = True

    @property
    def channels(self) -> list[int]:
        """The channels of the feature maps."""
        names = self.config.stage_names
        return [self.num_features[names.index(name)] for name in self.config.out_features]

    @property
    def num_features(self) -> list[int]:
        """The channels of all stages."""
        raise NotImplementedError

    def chosen(self, states: Any) -> list[tuple[str, Tensor]]:
        """Of the states of all stages those that are asked for, with their names."""
        config = self.config
        return [(n, x) for n, x in zip(config.stage_names, states, strict=True) if n in config.out_features]


class LayerScale(nn.Module):
    """A factor for each feature of what is added to a stream.

    >>> votive.models.backbone.LayerScale(2, 0.5)(votive.ones(1, 2))
    tensor([[0.5000, 0.5000]], grad_fn=<MulBackward0>)
    """

    def __init__(self, width: int, start: float) -> None:
        super().__init__()
        self.lambda1 = nn.Parameter(votive.full((width,), start))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.lambda1


def dropped_path(y: Tensor, p: float, training: bool) -> Tensor:
    """In training, zeros for a share `p` of the samples; the others make up for it: arXiv:1603.09382.

    >>> votive.models.backbone.dropped_path(votive.ones(2, 1), 0.5, False).shape
    votive.Size([2, 1])
    """
    if not training or not p:
        return y
    kept = votive.rand(y.shape[0], *([1] * (y.dim() - 1)), device=y.device) >= p
    return y / (1 - p) * kept.to(y.dtype)


def path_rates(most: float, count: int) -> list[float]:
    """Shares that rise evenly from 0 to `most` over so many layers.

    >>> votive.models.backbone.path_rates(0.2, 3)
    [0.0, 0.1, 0.2]
    """
    return [most * i / max(count - 1, 1) for i in range(count)]


def sized(config: Config, key: str) -> tuple[int, int]:
    """Height and width that a configuration gives as one number or two.

    >>> votive.models.backbone.sized(votive.models.ViTConfig(image_size=[32, 16]), "image_size")
    (32, 16)
    """
    size = getattr(config, key)
    return (size, size) if isinstance(size, int) else (int(size[0]), int(size[1]))
