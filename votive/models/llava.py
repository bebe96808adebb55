"""LLaVA, a decoder that reads what a projector makes of patches. Liu et al. 2023, arXiv:2304.08485 and 2310.03744.

Parameter names are those of Hugging Face checkpoints; those that transformers 5 has in memory are understood too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import votive
from votive import nn

from ..tensor import Tensor
from .activations import activation
from .auto import AutoModel
from .config import Config
from .multimodal import Merged, PictureTextOutput, TowerLM, put_in
from .nested import MultimodalConfig

STRATEGIES = ("default", "full")
_TOWER = {
    "intermediate_size": 4096,
    "hidden_size": 1024,
    "patch_size": 14,
    "image_size": 336,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "vocab_size": 32000,
    "projection_dim": 768,
}


@dataclass(kw_only=True)
class LlavaConfig(MultimodalConfig, Config):
    """The numbers of a LLaVA: of its tower, its decoder, and which of the tower's states are read.

    >>> votive.models.LlavaConfig().vision_config.image_size
    336
    """

    model_type = "llava"
    sides = {"vision_config": ("clip_vision_model", _TOWER), "text_config": ("llama", {})}

    vision_config: Any = None
    text_config: Any = None
    image_token_index: int = 32000
    image_seq_length: int = 576
    projector_hidden_act: str = "gelu"
    vision_feature_select_strategy: str = "default"
    vision_feature_layer: Any = -2  # a number, or several
    multimodal_projector_bias: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.vision_feature_select_strategy not in STRATEGIES:
            raise ValueError(
                f"{type(self).__name__}: vision_feature_select_strategy must be 'default' or 'full', "
                f"got {self.vision_feature_select_strategy!r}."
            )
        layers = self.vision_feature_layer
        if not all(type(i) is int for i in (layers if isinstance(layers, (list, tuple)) else [layers])):
            raise ValueError(
                f"{type(self).__name__}: vision_feature_layer must be a number or several, got {layers!r}."
            )
        self.tie_word_embeddings = self.tie_word_embeddings or self.text_config.tie_word_embeddings

    @classmethod
    def adapt(cls, values: dict[str, Any]) -> dict[str, Any]:
        if "image_token_id" in values:
            values.setdefault("image_token_index", values["image_token_id"])
            del values["image_token_id"]
        return super().adapt(values)

    @property
    def image_token_id(self) -> int:
        """The token that stands for a picture's patch."""
        return self.image_token_index


class LlavaProjector(nn.Module):
    """`linear_2(act(linear_1(x)))`, from the tower's width to the decoder's."""

    def __init__(self, config: LlavaConfig) -> None:
        super().__init__()
        layers = config.vision_feature_layer
        count = 1 if isinstance(layers, int) else len(layers)
        inner, bias = config.text_config.hidden_size, config.multimodal_projector_bias
        self.linear_1 = nn.Linear(config.vision_config.hidden_size * count, inner, bias=bias)
        self.linear_2 = nn.Linear(inner, inner, bias=bias)
        self.act = activation(config.projector_hidden_act)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear_2(self.act(self.linear_1(x)))


class LlavaForConditionalGeneration(TowerLM):
    """A decoder that reads pictures where the token `image_token_index` stands, once for each patch.

    >>> small = {"hidden_size": 8, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    >>> config = votive.models.LlavaConfig(vision_feature_layer=-1, image_token_index=9,
    ...     text_config={"model_type": "llama", **small, "vocab_size": 10},
    ...     vision_config={"model_type": "clip_vision_model", **small, "image_size": 16, "patch_size": 8})
    >>> model = votive.models.LlavaForConditionalGeneration(config).eval()
    >>> ids = votive.tensor([[1, 9, 9, 9, 9, 2]])
    >>> model.generate(ids, pixel_values=votive.ones(1, 3, 16, 16), max_new_tokens=2, min_new_tokens=2).shape
    votive.Size([1, 8])
    """

    config_class = LlavaConfig
    seen = ("pixel_values", "vision_feature_layer", "vision_feature_select_strategy")

    def __init__(self, config: LlavaConfig) -> None:
        super().__init__(config)
        self.add_parts(AutoModel.from_config(config.vision_config), LlavaProjector(config))
        self.post_init()

    def get_image_features(
        self,
        pixel_values: Tensor,
        vision_feature_layer: int | list[int] | None = None,
        vision_feature_select_strategy: str | None = None,
    ) -> Any:
        """What the decoder reads of pictures, (pictures, patches, width).

        >>> hasattr(votive.models.LlavaForConditionalGeneration, "get_image_features")
        True
        """
        layers = self.config.vision_feature_layer if vision_feature_layer is None else vision_feature_layer
        strategy = vision_feature_select_strategy or self.config.vision_feature_select_strategy
        if strategy not in STRATEGIES:
            raise ValueError(f"{type(self).__name__}: unknown vision_feature_select_strategy {strategy!r}.")
        states = self.vision_tower(pixel_values, output_hidden_states=True).hidden_states
        first = 1 if strategy == "default" else 0  # without the class token
        found = [states[i][:, first:] for i in ([layers] if isinstance(layers, int) else layers)]
        return self.multi_modal_projector(votive.cat(found, -1) if len(found) > 1 else found[0])

    def merged(
        self, input_ids: Tensor | None, inputs_embeds: Tensor | None, mask: Tensor | None, **given: Any
    ) -> Merged:
        embeds = self.text_embeds(input_ids, inputs_embeds, self.config.image_token_id)
        if given.get("pixel_values") is None:
            return Merged(embeds)
        features = self.get_image_features(**given)
        where = self.stand_for(input_ids, inputs_embeds, self.config.image_token_id)
        flat = features.flatten(0, 1)
        return Merged(put_in(embeds, where, flat, type(self).__name__), flat)

    def forward(
        self,
        input_ids: Tensor | None = None,
        pixel_values: Tensor | None = None,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        past_key_values: nn.KVCache | None = None,
        inputs_embeds: Tensor | None = None,
        vision_feature_layer: int | list[int] | None = None,
        vision_feature_select_strategy: str | None = None,
        labels: Tensor | None = None,
        logits_to_keep: int = 0,
        **options: Any,
    ) -> PictureTextOutput:
        """As a decoder; `pixel_values` (pictures, channels, height, width) go where their tokens stand, in order."""
        given = {
            "pixel_values": pixel_values,
            "vision_feature_layer": vision_feature_layer,
            "vision_feature_select_strategy": vision_feature_select_strategy,
        }
        options |= {"labels": labels, "logits_to_keep": logits_to_keep}
        return self.answered(given, input_ids, attention_mask, position_ids, past_key_values, inputs_embeds, **options)
