"""Qwen2-VL and Qwen2.5-VL, decoders whose positions are time, height and width. arXiv:2409.12191 and 2502.13923.

Parameter names are those of Hugging Face checkpoints; the towers are in `qwen2_vl_tower.py`, the numbers in
`qwen2_vl_config.py`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Any, ClassVar

import numpy as np

import votive
from votive import nn
from votive.nn.layers.rope import Angles

from ..tensor import Tensor
from .config import Config
from .decoder import DecoderForCausalLM, decoder_classes
from .decoder.attention import Rotate
from .decoder.model import Decoder, Turn
from .multimodal import Merged, PictureTextLM, PictureTextOutput, put_in
from .output import CausalLMOutput
from .pretrained import DecoderLM
from .qwen2_vl_config import (
    Qwen2_5_VLConfig,
    Qwen2_5_VLTextConfig,
    Qwen2_5_VLVisionConfig,
    Qwen2VLConfig,
    Qwen2VLTextConfig,
    Qwen2VLVisionConfig,
)
from .qwen2_vl_tower import QwenTower

__all__ = [
    "Qwen2VLConfig",
    "Qwen2VLForConditionalGeneration",
    "Qwen2VLTextConfig",
    "Qwen2VLTextModel",
    "Qwen2VLVisionConfig",
    "Qwen2VisionTransformerPretrainedModel",
    "Qwen2_5_VLConfig",
    "Qwen2_5_VLForConditionalGeneration",
    "Qwen2_5_VLTextConfig",
    "Qwen2_5_VLTextModel",
    "Qwen2_5_VLVisionConfig",
    "Qwen2_5_VisionTransformerPretrainedModel",
]


class SpatialDecoder(Decoder):
    """A decoder that takes positions of three axes, (3, batch, positions), of which each turns some pairs of features.

    >>> votive.models.qwen2_vl.SpatialDecoder.config_class.model_type
    'qwen2_vl_text'
    """

    config_class: ClassVar[type[Config]] = Qwen2VLTextConfig

    def rotations(self, length: int, past: int, position_ids: Tensor | None) -> Callable[[int], Rotate]:
        if position_ids is None or position_ids.dim() == 2:
            return super().rotations(length, past, position_ids)
        if position_ids.shape[0] == 4:
            position_ids = position_ids[1:]  # the first are those of texts, which nothing looks at
        module, sections = self.rotary_emb, self.config.sections
        found = module.angles(length, past, position_ids.expand(3, -1, -1))

        def mixed(table: Tensor) -> Tensor:
            parts = table.split(sections, -1)  # (3, B, T, pairs) each
            return votive.cat([part[i % 3] for i, part in enumerate(parts)], -1)

        turn = Turn(module, Angles(mixed(found.cos), mixed(found.sin), 0))
        return lambda layer: turn


Qwen2VLTextModel, _Qwen2VLLM = decoder_classes(
    "Qwen2VL", Qwen2VLTextConfig, base=SpatialDecoder, model="TextModel", classifier=False
)
Qwen2_5_VLTextModel, _Qwen25VLLM = decoder_classes(
    "Qwen2_5_VL", Qwen2_5_VLTextConfig, base=SpatialDecoder, model="TextModel", classifier=False
)


class Qwen2VisionTransformerPretrainedModel(QwenTower):
    """Qwen2-VL's tower.

    >>> votive.models.qwen2_vl.Qwen2VisionTransformerPretrainedModel.config_class.model_type
    'qwen2_vl_vision'
    """


class Qwen2_5_VisionTransformerPretrainedModel(QwenTower):
    """Qwen2.5-VL's tower.

    >>> votive.models.qwen2_vl.Qwen2_5_VisionTransformerPretrainedModel.config_class.model_type
    'qwen2_5_vl_vision'
    """

    config_class: ClassVar[type[Config]] = Qwen2_5_VLVisionConfig


def spatial_places(
    kinds: np.ndarray,
    real: np.ndarray | None,
    grids: tuple[Iterator[Any], Iterator[Any]],
    merge: int,
    steps: Iterator[float],
) -> tuple[np.ndarray, np.ndarray]:
    """Positions (3, batch, positions) of texts with pictures and videos, and what later positions are moved by.

    `kinds` (batch, positions) are 0 for text, 1 for pictures, 2 for videos, whose `grids` come in their order; `steps`
    are how far frames of a video are apart.

    >>> from votive.models.qwen2_vl import spatial_places
    >>> found, shift = spatial_places(np.array([[0, 1, 1, 0]]), None, (iter([(1, 2, 4)]), iter([])), 2, iter([]))
    >>> found[:, 0].tolist(), shift.tolist()
    ([[0, 1, 1, 3], [0, 1, 1, 3], [0, 1, 2, 3]], [[0]])
    """
    found = np.zeros((3, *kinds.shape), np.int64)
    shift = np.zeros((len(kinds), 1), np.int64)
    for row, own in enumerate(kinds):
        at = np.arange(len(own)) if real is None else np.flatnonzero(real[row])
        parts, now = [], 0
        for kind, run in groupby(own[at].tolist()):
            left = len(list(run))
            if kind == 0:
                parts.append(np.tile(now + np.arange(left), (3, 1)))
                now += left
            while kind and left > 0:  # several pictures may stand side by side
                try:
                    t, h, w = (int(n) for n in next(grids[kind - 1]))
                except StopIteration:
                    raise ValueError("the texts have more tokens of pictures or videos than grids tell of.") from None
                step = next(steps) if kind == 2 else 1
                grid = np.stack(np.meshgrid(np.arange(t), np.arange(h // merge), np.arange(w // merge), indexing="ij"))
                grid[0] = (grid[0] * step).astype(np.int64)
                parts.append(now + grid.reshape(3, -1))
                now += max(h, w) // merge
                left -= grid[0].size
        places = np.concatenate(parts, 1) if parts else np.zeros((3, 0), np.int64)
        if places.shape[1] != len(at):
            raise ValueError(
                f"text {row} has {len(at)} tokens, and with the grids of its pictures {places.shape[1]} places; "
                "prepare texts and pictures together, with the model's processor."
            )
        found[:, row, at] = places
        shift[row] = places.max(initial=-1) + 1 - len(at)
    return found, shift


class Qwen2VLForConditionalGeneration(PictureTextLM, DecoderForCausalLM):
    """Qwen2-VL: pictures and videos come as patches, `pixel_values` (patches, features), and `image_grid_thw`.

    >>> config = votive.models.Qwen2VLConfig(image_token_id=9, text_config={"vocab_size": 10, "hidden_size": 16,
    ...     "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1,
    ...     "rope_scaling": {"type": "mrope", "mrope_section": [2, 1, 1]}},
    ...     vision_config={"depth": 1, "embed_dim": 8, "hidden_size": 16, "num_heads": 2, "patch_size": 2})
    >>> model = votive.models.Qwen2VLForConditionalGeneration(config).eval()
    >>> picture = {"pixel_values": votive.ones(8, 24), "image_grid_thw": votive.tensor([[1, 2, 4]])}
    >>> model(votive.tensor([[1, 9, 9, 2]]), **picture).logits.shape
    votive.Size([1, 4, 10])
    """

    config_class: ClassVar[type[Config]] = Qwen2VLConfig
    model_class: ClassVar[type[Decoder]] = Qwen2VLTextModel
    tower_class: ClassVar[type[QwenTower]] = Qwen2VisionTransformerPretrainedModel
    base_model_prefix = "model"
    tied = {"lm_head.weight": "model.embed_tokens.weight"}
    # From the names that transformers 5 has in memory to those in files.
    renames = {r"^model\.language_model\.": "model.", r"^model\.visual\.": "visual."}
    seen = (
        "pixel_values",
        "pixel_values_videos",
        "image_grid_thw",
        "video_grid_thw",
        "mm_token_type_ids",
        "second_per_grid_ts",
    )

    def __init__(self, config: Qwen2VLConfig) -> None:
        text = copy.copy(config.text_config)
        text.tie_word_embeddings = config.tie_word_embeddings
        DecoderForCausalLM.__init__(self, text)
        self.config = config
        self.visual = self.tower_class(config.vision_config)
        self.post_init()

    @property
    def decoder(self) -> DecoderForCausalLM:
        return self

    def read(self, *args: Any, **options: Any) -> CausalLMOutput:
        return DecoderLM.forward(self, *args, **options)  # type: ignore[return-value]  # no experts

    def get_image_features(self, pixel_values: Tensor, image_grid_thw: Tensor) -> Any:
        """What the decoder reads of pictures or videos, (groups of patches, width).

        >>> hasattr(votive.models.Qwen2VLForConditionalGeneration, "get_image_features")
        True
        """
        return self.visual(pixel_values, image_grid_thw).pooler_output

    get_video_features = get_image_features

    def merged(
        self, input_ids: Tensor | None, inputs_embeds: Tensor | None, mask: Tensor | None, **given: Any
    ) -> Merged:
        config, name = self.config, type(self).__name__
        embeds, features = self.text_embeds(input_ids, inputs_embeds, None), None
        kinds = [("pixel_values", "image_grid_thw", config.image_token_id)]
        kinds.append(("pixel_values_videos", "video_grid_thw", config.video_token_id))
        for values, grid, token in kinds:
            if given.get(values) is None:
                continue
            if given.get(grid) is None:
                raise ValueError(f"{name}: {values} need {grid}, frames, rows and columns of patches of each.")
            found = self.get_image_features(given[values], given[grid])
            embeds = put_in(embeds, self.stand_for(input_ids, inputs_embeds, token), found, name)
            features = found if features is None else features
        if input_ids is None or all(given.get(grid) is None for _, grid, _ in kinds):
            return Merged(embeds, features)
        places, shift = self.get_rope_index(
            input_ids,
            given.get("mm_token_type_ids"),
            given.get("image_grid_thw"),
            given.get("video_grid_thw"),
            given.get("second_per_grid_ts"),
            mask,
        )
        return Merged(embeds, features, places=places, shift=shift)

    def get_rope_index(
        self,
        input_ids: Tensor,
        mm_token_type_ids: Tensor | None = None,
        image_grid_thw: Tensor | None = None,
        video_grid_thw: Tensor | None = None,
        second_per_grid_ts: Any = None,
        attention_mask: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Positions (3, batch, positions), and (batch, 1) by how much later ones are moved.

        >>> hasattr(votive.models.Qwen2VLForConditionalGeneration, "get_rope_index")
        True
        """
        config = self.config
        if mm_token_type_ids is None:
            kinds = (input_ids == config.image_token_id).long() + 2 * (input_ids == config.video_token_id).long()
        else:
            kinds = mm_token_type_ids
        speed = getattr(config.vision_config, "tokens_per_second", None)
        seconds = [1.0] * (0 if video_grid_thw is None else len(video_grid_thw))
        if second_per_grid_ts is not None:
            seconds = [float(s) for s in second_per_grid_ts]
        found, shift = spatial_places(
            kinds.numpy(force=True),
            None if attention_mask is None else attention_mask.numpy(force=True),
            (iter(_rows(image_grid_thw)), iter(_rows(video_grid_thw))),
            config.vision_config.spatial_merge_size,
            iter(seconds if speed is None else [speed * s for s in seconds]),
        )
        device = input_ids.device
        return votive.from_numpy(found).to(device), votive.from_numpy(shift).to(device)

    def forward(  # type: ignore[override]
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        past_key_values: nn.KVCache | None = None,
        inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,
        use_cache: bool | None = None,
        pixel_values: Tensor | None = None,
        pixel_values_videos: Tensor | None = None,
        image_grid_thw: Tensor | None = None,
        video_grid_thw: Tensor | None = None,
        mm_token_type_ids: Tensor | None = None,
        logits_to_keep: int = 0,
        second_per_grid_ts: Any = None,
        **options: Any,
    ) -> PictureTextOutput:
        """As a decoder; `mm_token_type_ids` are 1 at tokens of pictures and 2 at those of videos."""
        given = {
            "pixel_values": pixel_values,
            "pixel_values_videos": pixel_values_videos,
            "image_grid_thw": image_grid_thw,
            "video_grid_thw": video_grid_thw,
            "mm_token_type_ids": mm_token_type_ids,
            "second_per_grid_ts": second_per_grid_ts,
        }
        options |= {"labels": labels, "use_cache": use_cache, "logits_to_keep": logits_to_keep}
        return self.answered(given, input_ids, attention_mask, position_ids, past_key_values, inputs_embeds, **options)


def _rows(grid: Tensor | None) -> list[Any]:
    return [] if grid is None else grid.tolist()


class Qwen2_5_VLForConditionalGeneration(Qwen2VLForConditionalGeneration):
    """Qwen2.5-VL: most layers of its tower see windows, and frames of videos are as far apart as they were.

    >>> votive.models.Qwen2_5_VLForConditionalGeneration.config_class.model_type
    'qwen2_5_vl'
    """

    config_class: ClassVar[type[Config]] = Qwen2_5_VLConfig
    model_class: ClassVar[type[Decoder]] = Qwen2_5_VLTextModel
    tower_class = Qwen2_5_VisionTransformerPretrainedModel
