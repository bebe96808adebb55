"""CLIP, which puts texts and pictures into one space. Radford et al. 2021, arXiv:2103.00020.

The two readers are in `clip_sides.py`, their numbers in `clip_config.py`. Parameter names are those
of Hugging Face checkpoints.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import votive
from votive import nn
from votive.nn import functional as F

from ..tensor import Tensor
from .bert import class_output
from .clip_config import CLIPConfig, CLIPTextConfig, CLIPVisionConfig
from .clip_sides import _CLIP, CLIPTextModel, CLIPVisionModel
from .output import EncoderOutput, ModelOutput, PredictionOutput

__all__ = [
    "CLIPConfig",
    "CLIPForImageClassification",
    "CLIPModel",
    "CLIPOutput",
    "CLIPTextConfig",
    "CLIPTextModel",
    "CLIPTextModelWithProjection",
    "CLIPVisionConfig",
    "CLIPVisionModel",
    "CLIPVisionModelWithProjection",
]


@dataclass
class CLIPOutput(ModelOutput):
    """How near texts and pictures are, and where they lie.

    >>> votive.models.CLIPOutput(logits_per_image=votive.ones(2, 3)).logits_per_image.shape
    votive.Size([2, 3])
    """

    loss: Tensor | None = None
    logits_per_image: Tensor | None = None
    logits_per_text: Tensor | None = None
    text_embeds: Tensor | None = None
    image_embeds: Tensor | None = None
    text_model_output: EncoderOutput | None = None
    vision_model_output: EncoderOutput | None = None


@dataclass
class CLIPTextModelOutput(ModelOutput):
    """Texts in the shared space, (batch, projection_dim).

    >>> list(votive.models.clip.CLIPTextModelOutput(text_embeds=votive.ones(1, 2)).keys())
    ['text_embeds']
    """

    text_embeds: Tensor | None = None
    last_hidden_state: Tensor | None = None
    hidden_states: tuple[Tensor, ...] | None = None
    attentions: tuple[Tensor, ...] | None = None


@dataclass
class CLIPVisionModelOutput(ModelOutput):
    """Pictures in the shared space, (batch, projection_dim).

    >>> list(votive.models.clip.CLIPVisionModelOutput(image_embeds=votive.ones(1, 2)).keys())
    ['image_embeds']
    """

    image_embeds: Tensor | None = None
    last_hidden_state: Tensor | None = None
    hidden_states: tuple[Tensor, ...] | None = None
    attentions: tuple[Tensor, ...] | None = None


class CLIPModel(_CLIP):
    """Both readers, and how near a text and a picture are.

    >>> small = {"hidden_size": 8, "intermediate_size": 16, "num_hidden_layers": 1,
    ...     "num_attention_heads": 2}
    >>> config = votive.models.CLIPConfig(projection_dim=4, text_config={**small, "vocab_size": 9,
    ...     "eos_token_id": 8}, vision_config={**small, "image_size": 16, "patch_size": 8})
    >>> model = votive.models.CLIPModel(config)
    >>> model(votive.tensor([[1, 8], [2, 8]]), votive.ones(3, 3, 16, 16)).logits_per_image.shape
    votive.Size([3, 2])
    """

    def __init__(self, config: CLIPConfig) -> None:
        super().__init__(config)
        text, picture, width = config.text_config, config.vision_config, config.projection_dim
        self.text_model, self.vision_model = CLIPTextModel(text), CLIPVisionModel(picture)
        self.visual_projection = nn.Linear(picture.hidden_size, width, bias=False)
        self.text_projection = nn.Linear(text.hidden_size, width, bias=False)
        self.logit_scale = nn.Parameter(votive.tensor(config.logit_scale_init_value))
        factor = config.initializer_factor
        for part in (self.visual_projection, self.text_projection):
            nn.init.normal_(part.weight, std=part.in_features**-0.5 * factor)
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        """The table of token embeddings."""
        return self.text_model.get_input_embeddings()

    def get_text_features(
        self, input_ids: Tensor | None = None, attention_mask: Tensor | None = None, position_ids: Tensor | None = None
    ) -> Any:
        """Texts (batch, projection_dim) in the shared space, not scaled to length one.

        >>> hasattr(votive.models.CLIPModel, "get_text_features")
        True
        """
        found = self.text_model(input_ids, attention_mask, position_ids)
        return self.text_projection(found.pooler_output)

    def get_image_features(self, pixel_values: Tensor | None = None, interpolate_pos_encoding: bool = False) -> Any:
        """Pictures (batch, projection_dim) in the shared space, not scaled to length one.

        >>> hasattr(votive.models.CLIPModel, "get_image_features")
        True
        """
        found = self.vision_model(pixel_values, interpolate_pos_encoding)
        return self.visual_projection(found.pooler_output)

    def forward(
        self,
        input_ids: Tensor | None = None,
        pixel_values: Tensor | None = None,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        return_loss: bool = False,
        interpolate_pos_encoding: bool = False,
        output_attentions: bool = False,
        output_hidden_states: bool = False,
    ) -> CLIPOutput:
        """`return_loss` asks for the contrastive loss of pairs that stand at the same place."""
        wanted = {"output_attentions": output_attentions, "output_hidden_states": output_hidden_states}
        seen = self.vision_model(pixel_values, interpolate_pos_encoding, **wanted)
        read = self.text_model(input_ids, attention_mask, position_ids, **wanted)
        pictures = _unit(self.visual_projection(seen.pooler_output))
        texts = _unit(self.text_projection(read.pooler_output))
        near = texts @ pictures.t() * self.logit_scale.exp()
        loss = None
        if return_loss:
            at = votive.arange(near.shape[0], device=near.device)
            loss = (F.cross_entropy(near, at) + F.cross_entropy(near.t(), at)) / 2
        return CLIPOutput(
            loss=loss,
            logits_per_image=near.t(),
            logits_per_text=near,
            text_embeds=texts,
            image_embeds=pictures,
            text_model_output=read,
            vision_model_output=seen,
        )


def _unit(x: Tensor) -> Any:
    return x / x.square().sum(-1, keepdim=True).sqrt()


class CLIPTextModelWithProjection(_CLIP):
    """The reader of texts and its way into the shared space.

    >>> config = votive.models.CLIPTextConfig(vocab_size=10, hidden_size=8, intermediate_size=16,
    ...     num_hidden_layers=1, num_attention_heads=2, projection_dim=4, eos_token_id=9)
    >>> model = votive.models.CLIPTextModelWithProjection(config)
    >>> model(votive.tensor([[1, 2, 9]])).text_embeds.shape
    votive.Size([1, 4])
    """

    config_class = CLIPTextConfig
    ignored = (*_CLIP.ignored, r"^(clip\.)?(vision_model|visual_projection|logit_scale)\b")

    def __init__(self, config: CLIPTextConfig) -> None:
        super().__init__(config)
        self.text_model = CLIPTextModel(config)
        self.text_projection = nn.Linear(config.hidden_size, config.projection_dim, bias=False)
        nn.init.normal_(self.text_projection.weight, std=config.hidden_size**-0.5)
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        """The table of token embeddings."""
        return self.text_model.get_input_embeddings()

    def forward(self, input_ids: Tensor | None = None, *args: Any, **kwargs: Any) -> CLIPTextModelOutput:
        """As CLIPTextModel."""
        found = self.text_model(input_ids, *args, **kwargs)
        return CLIPTextModelOutput(
            text_embeds=self.text_projection(found.pooler_output),
            last_hidden_state=found.last_hidden_state,
            hidden_states=found.hidden_states,
            attentions=found.attentions,
        )


class CLIPVisionModelWithProjection(_CLIP):
    """The reader of pictures and its way into the shared space.

    >>> config = votive.models.CLIPVisionConfig(image_size=16, patch_size=8, hidden_size=8,
    ...     intermediate_size=16, num_hidden_layers=1, num_attention_heads=2, projection_dim=4)
    >>> model = votive.models.CLIPVisionModelWithProjection(config)
    >>> model(votive.ones(1, 3, 16, 16)).image_embeds.shape
    votive.Size([1, 4])
    """

    config_class = CLIPVisionConfig
    ignored = (*_CLIP.ignored, r"^(clip\.)?(text_model|text_projection|logit_scale)\b")

    def __init__(self, config: CLIPVisionConfig) -> None:
        super().__init__(config)
        self.vision_model = CLIPVisionModel(config)
        self.visual_projection = nn.Linear(config.hidden_size, config.projection_dim, bias=False)
        nn.init.normal_(self.visual_projection.weight, std=config.hidden_size**-0.5)
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        """What makes vectors of patches."""
        return self.vision_model.get_input_embeddings()

    def forward(self, pixel_values: Tensor | None = None, *args: Any, **kwargs: Any) -> CLIPVisionModelOutput:
        """As CLIPVisionModel."""
        found = self.vision_model(pixel_values, *args, **kwargs)
        return CLIPVisionModelOutput(
            image_embeds=self.visual_projection(found.pooler_output),
            last_hidden_state=found.last_hidden_state,
            hidden_states=found.hidden_states,
            attentions=found.attentions,
        )


class CLIPForImageClassification(_CLIP):
    """The reader of pictures with a head of classes on the mean of its patches.

    >>> config = votive.models.CLIPConfig(num_labels=3, vision_config={"image_size": 16,
    ...     "patch_size": 8, "hidden_size": 8, "intermediate_size": 16, "num_hidden_layers": 1,
    ...     "num_attention_heads": 2})
    >>> votive.models.CLIPForImageClassification(config)(votive.ones(1, 3, 16, 16)).logits.shape
    votive.Size([1, 3])
    """

    ignored = (*_CLIP.ignored, r"^(text_model|text_projection|visual_projection|logit_scale)\b")

    def __init__(self, config: CLIPConfig) -> None:
        super().__init__(config)
        self.vision_model = CLIPVisionModel(config.vision_config)
        self.classifier = nn.Linear(config.vision_config.hidden_size, config.label_count)
        nn.init.normal_(self.classifier.weight, std=self.classifier.in_features**-0.5)
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        """What makes vectors of patches."""
        return self.vision_model.get_input_embeddings()

    def forward(
        self, pixel_values: Tensor | None = None, labels: Tensor | None = None, **kwargs: Any
    ) -> PredictionOutput:
        """As CLIPVisionModel, and `labels`: classes (batch,), or values per class."""
        found = self.vision_model(pixel_values, **kwargs)
        logits = self.classifier(found.last_hidden_state[:, 1:].mean(1))
        return class_output(logits, labels, self.config, found)
