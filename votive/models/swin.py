"""Swin, a transformer whose patches see each other in windows that move. Liu et al. 2021, arXiv:2103.14030.

Stages halve the grid and double the features. Parameter names are those of Hugging Face checkpoints; those that
transformers 5 has in memory are understood too. The numbers are in `swin_config.py`, layers in `swin_layers.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from votive import nn
from votive.nn import functional as F

from ..tensor import Tensor
from .backbone import Backbone, BackboneOutput, PictureModel
from .losses import class_loss
from .output import ModelOutput
from .stack import Trace
from .swin_config import SwinConfig
from .swin_layers import SwinEmbeddings, SwinEncoder, SwinRun
from .vit import check_pictures

__all__ = [
    "SwinBackbone",
    "SwinConfig",
    "SwinForImageClassification",
    "SwinForMaskedImageModeling",
    "SwinImageClassifierOutput",
    "SwinMaskedImageModelingOutput",
    "SwinModel",
    "SwinModelOutput",
]


@dataclass
class SwinModelOutput(ModelOutput):
    """Of Swin's encoder; `reshaped_hidden_states` are (batch, features, height, width).

    >>> list(votive.models.SwinModelOutput(last_hidden_state=votive.ones(1, 2, 3)).keys())
    ['last_hidden_state']
    """

    last_hidden_state: Tensor | None = None
    pooler_output: Tensor | None = None
    hidden_states: tuple[Tensor, ...] | None = None
    attentions: tuple[Tensor, ...] | None = None
    reshaped_hidden_states: tuple[Tensor, ...] | None = None


@dataclass
class SwinImageClassifierOutput(ModelOutput):
    """Of Swin with a head of classes.

    >>> list(votive.models.SwinImageClassifierOutput(logits=votive.ones(1, 2)).keys())
    ['logits']
    """

    loss: Tensor | None = None
    logits: Tensor | None = None
    hidden_states: tuple[Tensor, ...] | None = None
    attentions: tuple[Tensor, ...] | None = None
    reshaped_hidden_states: tuple[Tensor, ...] | None = None


@dataclass
class SwinMaskedImageModelingOutput(ModelOutput):
    """Of Swin that paints what is hidden: `reconstruction` (batch, channels, height, width).

    >>> list(votive.models.SwinMaskedImageModelingOutput(reconstruction=votive.ones(1, 3, 8, 8)).keys())
    ['reconstruction']
    """

    loss: Tensor | None = None
    reconstruction: Tensor | None = None
    hidden_states: tuple[Tensor, ...] | None = None
    attentions: tuple[Tensor, ...] | None = None
    reshaped_hidden_states: tuple[Tensor, ...] | None = None


class _Swin(PictureModel):
    """What all classes of Swin share."""

    config_class = SwinConfig
    base_model_prefix = "swin"
    ignored = (*PictureModel.ignored, r"relative_position_index$")
    # From the names that transformers 5 has in memory to those in files.
    renames: ClassVar[dict[str, str]] = {
        r"\.attention\.q_proj\.": ".attention.self.query.",
        r"\.attention\.k_proj\.": ".attention.self.key.",
        r"\.attention\.v_proj\.": ".attention.self.value.",
        r"\.attention\.o_proj\.": ".attention.output.dense.",
        r"\.attention\.relative_position_bias\.": ".attention.self.",
        r"\.mlp\.fc1\.": ".intermediate.dense.",
        r"\.mlp\.fc2\.": ".output.dense.",
    }

    def get_input_embeddings(self) -> nn.Module:
        """What makes vectors of patches."""
        return getattr(self, "swin", self).embeddings.patch_embeddings


class SwinModel(_Swin):
    """The encoder; `pooler_output` is the mean of the last stage.

    >>> config = votive.models.SwinConfig(image_size=16, patch_size=2, embed_dim=8, depths=[2, 1], num_heads=[2, 2],
    ...     window_size=4)
    >>> out = votive.models.SwinModel(config)(votive.ones(1, 3, 16, 16))
    >>> out.last_hidden_state.shape, out.pooler_output.shape
    (votive.Size([1, 16, 16]), votive.Size([1, 16]))
    """

    def __init__(self, config: SwinConfig, add_pooling_layer: bool = True, use_mask_token: bool = False) -> None:
        super().__init__(config)
        self.pools = add_pooling_layer
        self.embeddings = SwinEmbeddings(config, use_mask_token)
        self.encoder = SwinEncoder(config)
        self.layernorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.post_init()

    def read(
        self,
        pixel_values: Tensor | None,
        bool_masked_pos: Tensor | None = None,
        interpolate: bool = False,
        output_attentions: bool = False,
        whole: bool = False,
    ) -> SwinRun:
        """The stages' states; `whole` windows are never made smaller, as backbones have it."""
        pictures = check_pictures(type(self).__name__, pixel_values, self.config.num_channels)
        x, grid = self.embeddings(pictures.to(self.dtype), bool_masked_pos, interpolate)
        return self.encoder(x, grid, Trace(output_attentions, True), whole)

    def forward(
        self,
        pixel_values: Tensor | None = None,
        bool_masked_pos: Tensor | None = None,
        interpolate_pos_encoding: bool = False,
        output_attentions: bool = False,
        output_hidden_states: bool = False,
    ) -> SwinModelOutput:
        """`bool_masked_pos` (batch, patches) is 1 at patches that are hidden by the mask token."""
        found = self.read(pixel_values, bool_masked_pos, interpolate_pos_encoding, output_attentions)
        x = self.layernorm(found.last)
        return SwinModelOutput(
            last_hidden_state=x,
            pooler_output=x.mean(1) if self.pools else None,
            hidden_states=tuple(found.after) if output_hidden_states else None,
            attentions=found.attentions,
            reshaped_hidden_states=found.maps() if output_hidden_states else None,
        )


class SwinForImageClassification(_Swin):
    """Swin that gives a picture one of `num_labels` classes.

    >>> config = votive.models.SwinConfig(image_size=16, patch_size=2, embed_dim=8, depths=[1], num_heads=[2],
    ...     window_size=4, num_labels=3)
    >>> votive.models.SwinForImageClassification(config)(votive.ones(1, 3, 16, 16)).logits.shape
    votive.Size([1, 3])
    """

    def __init__(self, config: SwinConfig) -> None:
        super().__init__(config)
        self.swin = SwinModel(config)
        self.classifier = nn.Linear(config.hidden_size, config.label_count)
        self.post_init()

    def forward(
        self, pixel_values: Tensor | None = None, labels: Tensor | None = None, **kwargs: Any
    ) -> SwinImageClassifierOutput:
        """As the encoder, and `labels`: classes (batch,), or values per class."""
        found = self.swin(pixel_values, **kwargs)
        logits = self.classifier(found.pooler_output)
        return SwinImageClassifierOutput(
            loss=None if labels is None else class_loss(logits, labels, self.config),
            logits=logits,
            hidden_states=found.hidden_states,
            attentions=found.attentions,
            reshaped_hidden_states=found.reshaped_hidden_states,
        )


class SwinForMaskedImageModeling(_Swin):
    """Swin that paints hidden patches, arXiv:2111.09886: a product gives `encoder_stride`² pixels of each place.

    >>> config = votive.models.SwinConfig(image_size=16, patch_size=2, embed_dim=8, depths=[1], num_heads=[2],
    ...     window_size=4, encoder_stride=2)
    >>> model = votive.models.SwinForMaskedImageModeling(config)
    >>> model(votive.ones(1, 3, 16, 16), votive.ones(1, 64)).reconstruction.shape
    votive.Size([1, 3, 16, 16])
    """

    def __init__(self, config: SwinConfig) -> None:
        super().__init__(config)
        self.swin = SwinModel(config, add_pooling_layer=False, use_mask_token=True)
        pixels = config.encoder_stride**2 * config.num_channels
        self.decoder = nn.Sequential(nn.Conv2d(config.hidden_size, pixels, 1), nn.PixelShuffle(config.encoder_stride))
        self.post_init()

    def forward(
        self, pixel_values: Tensor | None = None, bool_masked_pos: Tensor | None = None, **kwargs: Any
    ) -> SwinMaskedImageModelingOutput:
        """As the encoder; the loss is the mean difference where `bool_masked_pos` (batch, patches) is 1."""
        config = self.config
        pixel_values = check_pictures(type(self).__name__, pixel_values, config.num_channels)
        found = self.swin(pixel_values, bool_masked_pos, **kwargs)
        x = found.last_hidden_state.transpose(1, 2)
        side = int(x.shape[2] ** 0.5)
        if side * side != x.shape[2]:
            raise ValueError(f"{type(self).__name__}: pictures must be squares, got {tuple(pixel_values.shape[2:])}.")
        painted = self.decoder(x.reshape(*x.shape[:2], side, side))
        loss = None
        if bool_masked_pos is not None:
            (high, wide), grid = config.patches, config.grid
            mask = bool_masked_pos.reshape(-1, *grid).repeat_interleave(high, 1).repeat_interleave(wide, 2)
            mask = mask.unsqueeze(1).to(painted.dtype)
            apart = F.l1_loss(pixel_values.to(painted.dtype), painted, reduction="none")
            loss = (apart * mask).sum() / (mask.sum() + 1e-5) / config.num_channels
        return SwinMaskedImageModelingOutput(
            loss=loss,
            reconstruction=painted,
            hidden_states=found.hidden_states,
            attentions=found.attentions,
            reshaped_hidden_states=found.reshaped_hidden_states,
        )


class SwinBackbone(_Swin, Backbone):
    """Swin as a backbone: `feature_maps` (batch, features, height, width) of the stages in `out_features`.

    >>> config = votive.models.SwinConfig(image_size=16, patch_size=2, embed_dim=8, depths=[1, 1], num_heads=[2, 2],
    ...     window_size=4, out_indices=[1, 2])
    >>> [m.shape for m in votive.models.SwinBackbone(config)(votive.ones(1, 3, 16, 16)).feature_maps]
    [votive.Size([1, 8, 8, 8]), votive.Size([1, 16, 4, 4])]
    """

    def __init__(self, config: SwinConfig) -> None:
        super().__init__(config)
        self.swin = SwinModel(config, add_pooling_layer=False)
        norms = {name: nn.LayerNorm(n) for name, n in zip(config.out_features or (), self.channels, strict=True)}
        self.hidden_states_norms = nn.ModuleDict(norms)
        self.post_init()

    @property
    def num_features(self) -> list[int]:
        return [self.config.embed_dim, *(self.config.width_of(i) for i in range(len(self.config.depths)))]

    def filed(self, weights: dict[str, Any]) -> dict[str, Any]:
        """Files have stages and embeddings without the prefix, and the last norm with it."""
        bare = ("swin.encoder.", "swin.embeddings.")
        return {k.removeprefix("swin.") if k.startswith(bare) else k: v for k, v in weights.items()}

    def forward(
        self, pixel_values: Tensor | None = None, output_attentions: bool = False, output_hidden_states: bool = False
    ) -> BackboneOutput:
        """As the encoder; states are those before the grid is halved."""
        found = self.swin.read(pixel_values, output_attentions=output_attentions, whole=True)
        states = found.maps(before=True)
        maps = []
        for name, x in self.chosen(states):
            maps.append(self.hidden_states_norms[name](x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2).contiguous())
        return BackboneOutput(
            feature_maps=tuple(maps),
            hidden_states=states if output_hidden_states else None,
            attentions=found.attentions,
        )
