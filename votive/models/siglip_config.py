"""The numbers of SigLIP and SigLIP 2: of their readers of texts, of pictures, of both. No tensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .config import Config, LabeledConfig
from .nested import Nested


@dataclass(kw_only=True)
class _Side(Config):
    """What both transformers are made from."""

    part = ""  # what a whole SigLIP calls the configuration of this side

    hidden_size: int = 768
    intermediate_size: int = 3072
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    hidden_act: str = "gelu_pytorch_tanh"
    layer_norm_eps: float = 1e-6
    attention_dropout: float = 0.0

    def __post_init__(self) -> None:
        if self.hidden_size % self.num_attention_heads:
            raise ValueError(
                f"{type(self).__name__}: hidden_size={self.hidden_size} does not split into "
                f"{self.num_attention_heads} heads."
            )

    @classmethod
    def adapt(cls, values: dict[str, Any]) -> dict[str, Any]:
        """One side of a whole SigLIP's configuration, if that is what came."""
        inner = values.get(cls.part)
        return super().adapt(dict(inner) if isinstance(inner, dict) else values)


@dataclass(kw_only=True)
class SiglipTextConfig(_Side):
    """The numbers of SigLIP's reader of texts.

    >>> votive.models.SiglipTextConfig(hidden_size=96).projection_size
    96
    """

    model_type = "siglip_text_model"
    part = "text_config"

    vocab_size: int = 32000
    max_position_embeddings: int = 64
    pad_token_id: int | None = 1
    bos_token_id: int | None = 49406
    eos_token_id: int | list[int] | None = 49407
    projection_size: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.projection_size is None:
            self.projection_size = self.hidden_size


@dataclass(kw_only=True)
class SiglipVisionConfig(_Side):
    """The numbers of SigLIP's reader of pictures.

    >>> votive.models.SiglipVisionConfig().patch_size
    16
    """

    model_type = "siglip_vision_model"
    part = "vision_config"

    num_channels: int = 3
    image_size: int = 224
    patch_size: int = 16
    vision_use_head: bool = True


@dataclass(kw_only=True)
class SiglipConfig(Nested, LabeledConfig):
    """Both sides of a SigLIP.

    >>> votive.models.SiglipConfig().text_config.max_position_embeddings
    64
    """

    model_type = "siglip"
    sides = {"text_config": SiglipTextConfig, "vision_config": SiglipVisionConfig}

    text_config: Any = None
    vision_config: Any = None
    initializer_factor: float = 1.0

    @property
    def hidden_size(self) -> int:
        return self.vision_config.hidden_size


@dataclass(kw_only=True)
class Siglip2TextConfig(SiglipTextConfig):
    """The numbers of SigLIP 2's reader of texts.

    >>> votive.models.Siglip2TextConfig().vocab_size
    32000
    """

    model_type = "siglip2_text_model"


@dataclass(kw_only=True)
class Siglip2VisionConfig(_Side):
    """The numbers of SigLIP 2's reader of pictures of any shape, which come as `num_patches` patches.

    >>> votive.models.Siglip2VisionConfig().num_patches
    256
    """

    model_type = "siglip2_vision_model"
    part = "vision_config"

    num_channels: int = 3
    patch_size: int = 16
    vision_use_head: bool = True
    num_patches: int = 256


@dataclass(kw_only=True)
class Siglip2Config(SiglipConfig):
    """Both sides of a SigLIP 2.

    >>> votive.models.Siglip2Config().vision_config.num_patches
    256
    """

    model_type = "siglip2"
    sides = {"text_config": Siglip2TextConfig, "vision_config": Siglip2VisionConfig}
