"""Gemma 3 with pictures, and PaliGemma: a SigLIP, a projector and a Gemma, in which tokens of a picture see each other.

arXiv:2503.19786 and 2407.07726. Parameter names are those of Hugging Face checkpoints.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import votive
from votive import nn
from votive.nn import functional as F

from ..tensor import Tensor
from .auto import AutoModel
from .config import Config
from .decoder.norms import GemmaRMSNorm
from .gemma import Gemma3ForCausalLM, Gemma3TextConfig, Gemma3TextModel
from .multimodal import Merged, PictureTextOutput, Together, TowerLM, put_in
from .nested import MultimodalConfig


@dataclass(kw_only=True)
class Gemma3Config(MultimodalConfig, Config):
    """The numbers of a Gemma 3 that reads pictures, of which each is `mm_tokens_per_image` tokens.

    >>> votive.models.Gemma3Config().vision_config.model_type
    'siglip_vision_model'
    """

    model_type = "gemma3"
    sides = {"text_config": Gemma3TextConfig, "vision_config": ("siglip_vision_model", {})}

    text_config: Any = None
    vision_config: Any = None
    mm_tokens_per_image: int | None = 256
    boi_token_index: int | None = 255_999
    eoi_token_index: int | None = 256_000
    image_token_index: int | None = 262_144
    initializer_range: float | None = 0.02  # type: ignore[assignment]
    tie_word_embeddings: bool | None = True  # type: ignore[assignment]

    @classmethod
    def adapt(cls, values: dict[str, Any]) -> dict[str, Any]:
        for name in ("image_token", "boi_token", "eoi_token"):
            if f"{name}_id" in values:
                values.setdefault(f"{name}_index", values[f"{name}_id"])
                del values[f"{name}_id"]
        return super().adapt(values)

    @property
    def image_token_id(self) -> int | None:
        """The token that stands for a part of a picture."""
        return self.image_token_index


class _Gemma3Text(Together, Gemma3TextModel):  # type: ignore[valid-type, misc]
    """Gemma 3's decoder, among whose positions those of a picture see each other."""


class _Gemma3LM(Gemma3ForCausalLM):  # type: ignore[valid-type, misc]
    """The same with its head."""

    model_class = _Gemma3Text


class Gemma3Projector(nn.Module):
    """Patches averaged to fewer, normed, and brought to the decoder's width."""

    def __init__(self, config: Gemma3Config) -> None:
        super().__init__()
        seen, width = config.vision_config, config.text_config.hidden_size
        assert config.mm_tokens_per_image is not None, "the model asks for it"
        self.side = seen.image_size // seen.patch_size
        self.pool = self.side // int(config.mm_tokens_per_image**0.5)
        if self.pool < 1:
            raise ValueError(
                f"Gemma3Config: mm_tokens_per_image={config.mm_tokens_per_image} are more than the {self.side**2} "
                "patches of a picture."
            )
        self.mm_input_projection_weight = nn.Parameter(votive.zeros(seen.hidden_size, width))
        self.mm_soft_emb_norm = GemmaRMSNorm(seen.hidden_size, eps=seen.layer_norm_eps)

    def forward(self, x: Tensor) -> Tensor:
        grid = x.transpose(1, 2).unflatten(2, (self.side, self.side))
        pooled = F.avg_pool2d(grid, self.pool, self.pool).flatten(2).transpose(1, 2)
        return self.mm_soft_emb_norm(pooled) @ self.mm_input_projection_weight


def picture_groups(token_type_ids: Tensor) -> Tensor:
    """For each position the number of its picture, -1 for text: a picture is a run of ones.

    >>> from votive.models.gemma3 import picture_groups
    >>> picture_groups(votive.tensor([[0, 1, 1, 0, 1]]))
    tensor([[-1,  0,  0, -1,  1]])
    """
    ones = token_type_ids == 1
    before = F.pad(ones[:, :-1].long(), (1, 0)).bool()
    return votive.where(ones, (ones & ~before).long().cumsum(1) - 1, -1)


class Gemma3ForConditionalGeneration(TowerLM):
    """Gemma 3 that reads pictures; `token_type_ids` are 1 at their tokens, which then see each other.

    >>> small = {"hidden_size": 8, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    >>> config = votive.models.Gemma3Config(mm_tokens_per_image=1, image_token_index=9,
    ...     text_config={**small, "vocab_size": 10, "num_key_value_heads": 1, "head_dim": 4},
    ...     vision_config={**small, "image_size": 16, "patch_size": 8})
    >>> model = votive.models.Gemma3ForConditionalGeneration(config).eval()
    >>> model(votive.tensor([[1, 9, 2]]), votive.ones(1, 3, 16, 16)).logits.shape
    votive.Size([1, 3, 10])
    """

    config_class = Gemma3Config
    seen = ("pixel_values", "token_type_ids")

    def __init__(self, config: Gemma3Config) -> None:
        super().__init__(config)
        self.add_parts(AutoModel.from_config(config.vision_config), Gemma3Projector(config), _Gemma3LM)
        self.post_init()

    def get_image_features(self, pixel_values: Tensor) -> Any:
        """What the decoder reads of pictures, (pictures, mm_tokens_per_image, width).

        >>> hasattr(votive.models.Gemma3ForConditionalGeneration, "get_image_features")
        True
        """
        return self.multi_modal_projector(self.vision_tower(pixel_values).last_hidden_state)

    def merged(
        self, input_ids: Tensor | None, inputs_embeds: Tensor | None, mask: Tensor | None, **given: Any
    ) -> Merged:
        token, types = self.config.image_token_id, given.get("token_type_ids")
        embeds, features = self.text_embeds(input_ids, inputs_embeds, token), None
        if given.get("pixel_values") is not None:
            assert token is not None, "the configuration names it"
            features = self.get_image_features(given["pixel_values"])
            where = self.stand_for(input_ids, inputs_embeds, token)
            embeds = put_in(embeds, where, features, type(self).__name__)
        return Merged(embeds, features, groups=None if types is None else picture_groups(types))

    def forward(
        self,
        input_ids: Tensor | None = None,
        pixel_values: Tensor | None = None,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        past_key_values: nn.KVCache | None = None,
        token_type_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,
        use_cache: bool | None = None,
        logits_to_keep: int = 0,
        **options: Any,
    ) -> PictureTextOutput:
        """As a decoder; `pixel_values` (pictures, channels, height, width) go where their tokens stand, in order."""
        given = {"pixel_values": pixel_values, "token_type_ids": token_type_ids}
        options |= {"labels": labels, "use_cache": use_cache, "logits_to_keep": logits_to_keep}
        return self.answered(given, input_ids, attention_mask, position_ids, past_key_values, inputs_embeds, **options)
