"""DeiT, a ViT that also learns from a teacher. Touvron et al. 2020, arXiv:2012.12877.

A second token stands before the patches, and its output was trained to say what another network
says. Parameter names are those of Hugging Face checkpoints.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from votive import nn

from ..tensor import Tensor
from .output import ModelOutput
from .vit import ViTConfig, ViTEmbeddings, ViTForImageClassification, ViTModel, _ViT


@dataclass(kw_only=True)
class DeiTConfig(ViTConfig):
    """The numbers of a DeiT, which are those of a ViT.

    >>> votive.models.DeiTConfig(image_size=32, patch_size=8).grid
    (4, 4)
    """

    model_type = "deit"


class DeiTEmbeddings(ViTEmbeddings):
    """Patches, the class token and the one for the teacher, each with its position."""

    tokens = ("cls_token", "distillation_token")


class _DeiT(_ViT):
    """What all DeiT classes share."""

    config_class = DeiTConfig
    base_model_prefix = "deit"


class DeiTModel(_DeiT, ViTModel):
    """The encoder; two tokens stand before the patches.

    >>> config = votive.models.DeiTConfig(image_size=16, patch_size=8, hidden_size=8,
    ...     intermediate_size=16, num_hidden_layers=1, num_attention_heads=2)
    >>> votive.models.DeiTModel(config)(votive.ones(1, 3, 16, 16)).last_hidden_state.shape
    votive.Size([1, 6, 8])
    """

    embeddings_class = DeiTEmbeddings


class DeiTForImageClassification(_DeiT, ViTForImageClassification):
    """DeiT that gives a picture a class by its class token.

    >>> config = votive.models.DeiTConfig(image_size=16, patch_size=8, hidden_size=8,
    ...     intermediate_size=16, num_hidden_layers=1, num_attention_heads=2, num_labels=3)
    >>> votive.models.DeiTForImageClassification(config)(votive.ones(1, 3, 16, 16)).logits.shape
    votive.Size([1, 3])
    """

    model_class = DeiTModel
    # Files of the model with two heads serve this one as well.
    ignored = (*_DeiT.ignored, r"^distillation_classifier\.")
    renames = {**_DeiT.renames, r"^cls_classifier\.": "classifier."}


@dataclass
class DeiTForImageClassificationWithTeacherOutput(ModelOutput):
    """The mean of both heads as `logits`, and what each of them says.

    >>> import votive.models.deit as deit
    >>> deit.DeiTForImageClassificationWithTeacherOutput(logits=votive.ones(1, 2)).logits.shape
    votive.Size([1, 2])
    """

    logits: Tensor | None = None
    cls_logits: Tensor | None = None
    distillation_logits: Tensor | None = None
    hidden_states: tuple[Tensor, ...] | None = None
    attentions: tuple[Tensor, ...] | None = None


class DeiTForImageClassificationWithTeacher(_DeiT):
    """DeiT with a head on each of its two tokens; for inference, as it computes no loss.

    >>> config = votive.models.DeiTConfig(image_size=16, patch_size=8, hidden_size=8,
    ...     intermediate_size=16, num_hidden_layers=1, num_attention_heads=2, num_labels=3)
    >>> model = votive.models.DeiTForImageClassificationWithTeacher(config)
    >>> model(votive.ones(1, 3, 16, 16)).cls_logits.shape
    votive.Size([1, 3])
    """

    def __init__(self, config: DeiTConfig) -> None:
        super().__init__(config)
        self.deit = DeiTModel(config, add_pooling_layer=False)
        self.cls_classifier = nn.Linear(config.hidden_size, config.label_count)
        self.distillation_classifier = nn.Linear(config.hidden_size, config.label_count)
        self.post_init()

    def forward(self, pixel_values: Tensor | None = None, **kwargs: Any) -> DeiTForImageClassificationWithTeacherOutput:
        """As the encoder."""
        found = self.deit(pixel_values, **kwargs)
        x = found.last_hidden_state
        own, distilled = self.cls_classifier(x[:, 0]), self.distillation_classifier(x[:, 1])
        return DeiTForImageClassificationWithTeacherOutput(
            logits=(own + distilled) / 2,
            cls_logits=own,
            distillation_logits=distilled,
            hidden_states=found.hidden_states,
            attentions=found.attentions,
        )
