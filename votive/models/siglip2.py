"""SigLIP 2: SigLIP with a reader of pictures of any shape. Tschannen et al. 2025, arXiv:2502.14786."""

from __future__ import annotations

from typing import Any, ClassVar

import votive
from votive import nn
from votive.nn import functional as F

from ..tensor import Tensor
from .attention import padding_mask
from .bert import class_output
from .clip import CLIPOutput
from .config import Config
from .output import EncoderOutput, PredictionOutput
from .siglip import SiglipForImageClassification, SiglipModel, SiglipTextModel, SiglipVision
from .siglip_config import Siglip2Config, Siglip2TextConfig, Siglip2VisionConfig

__all__ = [
    "Siglip2Config",
    "Siglip2ForImageClassification",
    "Siglip2Model",
    "Siglip2TextConfig",
    "Siglip2TextModel",
    "Siglip2VisionConfig",
    "Siglip2VisionModel",
]


class Siglip2VisionEmbeddings(nn.Module):
    """Patches, and places that were learned on a square and are resized to the shape of each picture."""

    def __init__(self, config: Siglip2VisionConfig) -> None:
        super().__init__()
        self.grid = int(config.num_patches**0.5)
        self.patch_embedding = nn.Linear(config.num_channels * config.patch_size**2, config.hidden_size)
        self.position_embedding = nn.Embedding(config.num_patches, config.hidden_size)

    @property
    def table(self) -> nn.Module:
        """What makes vectors of patches."""
        return self.patch_embedding

    def forward(self, pixel_values: Tensor, spatial_shapes: Tensor) -> Tensor:
        learned = self.position_embedding(votive.arange(self.grid**2, device=pixel_values.device))
        most = pixel_values.shape[1]
        grid = learned.view(1, self.grid, self.grid, -1).permute(0, 3, 1, 2).float()
        places = []
        for height, width in spatial_shapes.tolist():
            if not 0 < height * width <= most:
                raise ValueError(f"{type(self).__name__}: a picture of {height} x {width} patches in {most} places.")
            own = F.interpolate(grid, size=(height, width), mode="bilinear", align_corners=False, antialias=True)
            own = own[0].flatten(1).t().to(learned.dtype)  # (patches, C)
            places.append(votive.cat([own, own[:1].expand(most - height * width, -1)]))
        return self.patch_embedding(pixel_values) + votive.stack(places)


class Siglip2VisionModel(SiglipVision):
    """The reader of pictures of any shape, which come as patches (batch, patches, features of a patch).

    >>> config = votive.models.Siglip2VisionConfig(patch_size=2, num_patches=4, hidden_size=8,
    ...     intermediate_size=16, num_hidden_layers=1, num_attention_heads=2)
    >>> model = votive.models.Siglip2VisionModel(config)
    >>> model(votive.ones(1, 6, 12), votive.ones(1, 6), votive.tensor([[2, 3]])).last_hidden_state.shape
    votive.Size([1, 6, 8])
    """

    config_class: ClassVar[type[Config]] = Siglip2VisionConfig
    embeddings_class = Siglip2VisionEmbeddings

    def forward(
        self,
        pixel_values: Tensor,
        pixel_attention_mask: Tensor | None,
        spatial_shapes: Tensor,
        output_attentions: bool = False,
        output_hidden_states: bool = False,
    ) -> EncoderOutput:
        """`spatial_shapes` (batch, 2) are heights and widths in patches; the mask is 0 at padding."""
        x = self.embeddings(pixel_values.to(self.dtype), spatial_shapes)
        return self.read(x, padding_mask(pixel_attention_mask), output_attentions, output_hidden_states)


class Siglip2TextModel(SiglipTextModel):
    """SigLIP 2's reader of texts.

    >>> votive.models.Siglip2TextModel.config_class.model_type
    'siglip2_text_model'
    """

    config_class: ClassVar[type[Config]] = Siglip2TextConfig


class Siglip2Model(SiglipModel):
    """Both readers of SigLIP 2.

    >>> votive.models.Siglip2Model.config_class.model_type
    'siglip2'
    """

    config_class: ClassVar[type[Config]] = Siglip2Config
    text_class = Siglip2TextModel
    vision_class = Siglip2VisionModel

    def forward(  # type: ignore[override]
        self,
        input_ids: Tensor | None = None,
        pixel_values: Tensor | None = None,
        pixel_attention_mask: Tensor | None = None,
        spatial_shapes: Tensor | None = None,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        return_loss: bool = False,
        output_attentions: bool = False,
        output_hidden_states: bool = False,
    ) -> CLIPOutput:
        """As SiglipModel, of pictures as Siglip2VisionModel takes them."""
        wanted = {"output_attentions": output_attentions, "output_hidden_states": output_hidden_states}
        seen = self.vision_model(pixel_values, pixel_attention_mask, spatial_shapes, **wanted)
        return self.compared(seen, self.text_model(input_ids, attention_mask, position_ids, **wanted), return_loss)


class Siglip2ForImageClassification(SiglipForImageClassification):
    """SigLIP 2's reader of pictures with a head of classes on the mean of its patches.

    >>> votive.models.Siglip2ForImageClassification.config_class.model_type
    'siglip2'
    """

    config_class: ClassVar[type[Config]] = Siglip2Config
    vision_class = Siglip2VisionModel

    def forward(  # type: ignore[override]
        self,
        pixel_values: Tensor | None = None,
        pixel_attention_mask: Tensor | None = None,
        spatial_shapes: Tensor | None = None,
        labels: Tensor | None = None,
        **kwargs: Any,
    ) -> PredictionOutput:
        """As the reader of pictures, and `labels`; padding does not count for the mean."""
        found = self.vision_model(pixel_values, pixel_attention_mask, spatial_shapes, **kwargs)
        x = found.last_hidden_state
        if pixel_attention_mask is None:
            mean = x.mean(1)
        else:
            real = pixel_attention_mask.unsqueeze(-1).to(x.dtype)
            mean = (x * real).sum(1) / real.sum(1)
        return class_output(self.classifier(mean), labels, self.config, found)
