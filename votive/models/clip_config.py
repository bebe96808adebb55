"""The numbers of CLIP: of its reader of texts, its reader of pictures, of both. No tensors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .config import Config, LabeledConfig


@dataclass(kw_only=True)
class _Side(Config):
    """What both transformers are made from."""

    # What a whole CLIP calls the configuration of this side.
    part = ""

    hidden_size: int = 512
    intermediate_size: int = 2048
    projection_dim: int = 512
    num_hidden_layers: int = 12
    num_attention_heads: int = 8
    hidden_act: str = "quick_gelu"
    layer_norm_eps: float = 1e-5
    attention_dropout: float | None = 0.0
    initializer_factor: float = 1.0

    def __post_init__(self) -> None:
        if self.hidden_size % self.num_attention_heads:
            raise ValueError(
                f"{type(self).__name__}: hidden_size={self.hidden_size} does not split into "
                f"{self.num_attention_heads} heads."
            )

    @classmethod
    def adapt(cls, values: dict[str, Any]) -> dict[str, Any]:
        """One side of a whole CLIP's configuration, if that is what came."""
        inner = values.get(cls.part)
        if isinstance(inner, dict):
            values = {"projection_dim": values.get("projection_dim", 512), **inner}
        return super().adapt(values)


@dataclass(kw_only=True)
class CLIPTextConfig(_Side):
    """The numbers of CLIP's reader of texts.

    >>> votive.models.CLIPTextConfig().max_position_embeddings
    77
    """

    model_type = "clip_text_model"
    part = "text_config"

    vocab_size: int = 49408
    max_position_embeddings: int = 77
    pad_token_id: int | None = 1
    bos_token_id: int | None = 49406
    eos_token_id: int | list[int] | None = 49407


@dataclass(kw_only=True)
class CLIPVisionConfig(_Side):
    """The numbers of CLIP's reader of pictures.

    >>> votive.models.CLIPVisionConfig().patch_size
    32
    """

    model_type = "clip_vision_model"
    part = "vision_config"

    hidden_size: int = 768
    intermediate_size: int = 3072
    num_attention_heads: int = 12
    num_channels: int = 3
    image_size: int = 224
    patch_size: int = 32


@dataclass(kw_only=True)
class CLIPConfig(LabeledConfig):
    """Both sides, and the width of the space they share.

    >>> votive.models.CLIPConfig(text_config={"hidden_size": 64}).text_config.hidden_size
    64
    """

    model_type = "clip"

    text_config: Any = field(default_factory=dict)
    vision_config: Any = field(default_factory=dict)
    projection_dim: int = 512
    logit_scale_init_value: float = 2.6592
    initializer_factor: float = 1.0

    @classmethod
    def adapt(cls, values: dict[str, Any]) -> dict[str, Any]:
        # The first files say it twice, and what is under the longer name counts, as a whole.
        for name, kind in (("text_config", CLIPTextConfig), ("vision_config", CLIPVisionConfig)):
            nested = values.pop(f"{name}_dict", None)
            if nested is not None:
                values[name] = {**(values.get(name) or {}), **kind.from_dict(nested).to_dict()}
        return super().adapt(values)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, kind in (("text_config", CLIPTextConfig), ("vision_config", CLIPVisionConfig)):
            given = getattr(self, name)
            if given is None or isinstance(given, dict):
                setattr(self, name, kind.from_dict(given or {}))
            elif not isinstance(given, kind):
                raise TypeError(f"CLIPConfig: {name} must be a {kind.__name__} or a dict, got {type(given).__name__}.")

    @property
    def hidden_size(self) -> int:
        return self.projection_dim

    def to_dict(self) -> dict[str, Any]:
        """What config.json holds, the sides as objects in it."""
        sides = {n: getattr(self, n).to_dict() for n in ("text_config", "vision_config")}
        return {**super().to_dict(), **sides}
