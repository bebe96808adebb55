"""Rows of decoders that read pictures."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..seeing import Row, configured, pictures

TEXT: dict[str, Any] = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
SEEN = {"hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 4}
SEEN |= {"image_size": 16, "patch_size": 4}
GEMMA = {**TEXT, "head_dim": 8, "query_pre_attn_scalar": 8, "sliding_window": 4, "num_hidden_layers": 3}
GEMMA |= {"layer_types": ["sliding_attention", "full_attention", "sliding_attention"]}
IMAGE = 60


def prompts(count: int) -> dict[str, Any]:
    """Two texts, the first padded on the left and with two pictures, the second with one."""
    one, rng = [IMAGE] * count, np.random.default_rng(0)
    first = [5, *one, 7, 8, *one, 9]
    second = [11, 12, *one, *rng.integers(3, 50, len(first) + 2 - count - 2).tolist()]
    ids = np.array([[0, 0, *first], second])
    return {"input_ids": ids, "attention_mask": np.array([[0, 0] + [1] * len(first), [1] * len(second)])}


def _labels(count: int) -> Any:
    def made() -> dict[str, Any]:
        given = prompts(count)
        labels = np.where(given["attention_mask"] == 1, given["input_ids"], -100)
        labels[0, 2] = -100  # the first is written from padding
        return {"labels": labels}

    return made


def _gemma3() -> dict[str, Any]:
    given = prompts(4)
    types = (given["input_ids"] == IMAGE).astype(np.int64)
    return {**given, "pixel_values": pictures(3, 3, 16, 16), "token_type_ids": types}


GEMMA3: dict[str, Any] = {
    "text_config": GEMMA,
    "vision_config": {**SEEN, "model_type": "siglip_vision_model"},
    "mm_tokens_per_image": 4,
    "image_token_index": IMAGE,
}
LLAVA: dict[str, Any] = {
    "text_config": {**TEXT, "model_type": "llama"},
    "vision_config": {**SEEN, "model_type": "clip_vision_model"},
    "image_token_index": IMAGE,
}
SPATIAL = {**TEXT, "rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [1, 1, 2]}}
TOWER = {"depth": 2, "num_heads": 2, "patch_size": 4, "spatial_merge_size": 2, "temporal_patch_size": 2}
QWEN2 = {**TOWER, "embed_dim": 24, "hidden_size": 32, "mlp_ratio": 2}
QWEN25 = {**TOWER, "hidden_size": 24, "out_hidden_size": 32, "intermediate_size": 40, "window_size": 16}
VIDEO = 61


def _qwen() -> dict[str, Any]:
    """Two pictures in the first text, in the second a picture and a video."""
    ids = np.array(
        [
            [0, 0, 0, 5, *[IMAGE] * 6, 7, 8, *[IMAGE] * 2, 9, 4, 4],
            [11, *[IMAGE] * 1, 12, *[VIDEO] * 8, 13, 3, 3, 3, 14, 15],
        ]
    )
    grids = np.array([[1, 4, 6], [1, 2, 4], [1, 2, 2]])
    return {
        "input_ids": ids,
        "attention_mask": (ids != 0).astype(np.int64),
        "pixel_values": pictures(36, 96),
        "image_grid_thw": grids,
        "pixel_values_videos": pictures(32, 96, seed=1),
        "video_grid_thw": np.array([[2, 4, 4]]),
        "mm_token_type_ids": (ids == IMAGE).astype(np.int64) + 2 * (ids == VIDEO),
    }


def _qwen_labels() -> dict[str, Any]:
    ids = _qwen()["input_ids"]
    labels = np.where(ids == 0, -100, ids)
    labels[0, 3] = -100
    return {"labels": labels}


SPACES = {"image_token_id": IMAGE, "video_token_id": VIDEO}
ROWS = {
    "qwen2_vl": Row(
        "Qwen2VLForConditionalGeneration",
        configured("Qwen2VLConfig", text_config=SPATIAL, vision_config=QWEN2, **SPACES),
        _qwen,
        _qwen_labels,
    ),
    "qwen2_5_vl": Row(
        "Qwen2_5_VLForConditionalGeneration",
        configured(
            "Qwen2_5_VLConfig",
            text_config=SPATIAL,
            vision_config={**QWEN25, "fullatt_block_indexes": [1]},
            tie_word_embeddings=True,
            **SPACES,
        ),
        lambda: {**_qwen(), "second_per_grid_ts": np.array([1.7])},
        _qwen_labels,
    ),
    "gemma3": Row("Gemma3ForConditionalGeneration", configured("Gemma3Config", **GEMMA3), _gemma3, _labels(4)),
    "gemma3 beyond its table": Row(
        "Gemma3ForConditionalGeneration",
        configured("Gemma3Config", **{**GEMMA3, "text_config": {**GEMMA, "vocab_size": IMAGE}}),
        _gemma3,
    ),
    "llava": Row(
        "LlavaForConditionalGeneration",
        configured("LlavaConfig", **LLAVA),
        lambda: {**prompts(16), "pixel_values": pictures(3, 3, 16, 16)},
        _labels(16),
    ),
    "llava of several layers": Row(
        "LlavaForConditionalGeneration",
        configured(
            "LlavaConfig",
            **{**LLAVA, "text_config": {**TEXT, "model_type": "mistral", "sliding_window": 5}},
            vision_feature_layer=[-2, -1],
            vision_feature_select_strategy="full",
            multimodal_projector_bias=False,
            tie_word_embeddings=True,
        ),
        lambda: {**prompts(17), "pixel_values": pictures(3, 3, 16, 16)},
        _labels(17),
    ),
}
