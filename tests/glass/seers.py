"""Small models that take more than texts: their configurations, and what they are called with. Needs no reference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import votive
from tests import tiny_sizes

Given = Callable[[], dict[str, Any]]

SIDE: dict[str, Any] = tiny_sizes.transformer(16, 24, layers=2, heads=2)
TEXT = {**SIDE, "vocab_size": 61, "max_position_embeddings": 32, "pad_token_id": 0}
SEEN = {**SIDE, "image_size": 16, "patch_size": 8}
STAGES: dict[str, Any] = {"hidden_sizes": [8, 12, 16], "depths": [1, 2, 1], "num_stages": 3}
PYRAMID: dict[str, Any] = {
    "num_encoder_blocks": 2,
    "depths": [1, 1],
    "sr_ratios": [2, 1],
    "hidden_sizes": [8, 16],
    "patch_sizes": [7, 3],
    "strides": [4, 2],
    "num_attention_heads": [1, 2],
    "mlp_ratios": [4, 2],
}
WINDOWS = {"image_size": 16, "patch_size": 2, "embed_dim": 8, "depths": [2, 2], "num_heads": [1, 2], "window_size": 4}
WAVE: dict[str, Any] = {
    **SIDE,
    "vocab_size": 20,
    "conv_dim": [12, 8],
    "conv_kernel": [10, 3],
    "conv_stride": [5, 2],
    "num_conv_pos_embeddings": 8,
    "num_conv_pos_embedding_groups": 4,
}
# Where a picture stands in a text.
IMAGE = 60
TALKS: dict[str, Any] = {**TEXT, "num_key_value_heads": 1}
GEMMA = {**TALKS, "head_dim": 8, "layer_types": ["sliding_attention", "full_attention"]}
TOWER: dict[str, Any] = {"depth": 2, "num_heads": 2, "patch_size": 4, "spatial_merge_size": 2, "temporal_patch_size": 2}
SPATIAL = {**TALKS, "rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [1, 1, 2]}}


def _pixels(size: int) -> Given:
    return lambda: {"pixel_values": votive.rand(2, 3, size, size)}


def _ids(*spaces: int) -> dict[str, Any]:
    return {"input_ids": votive.tensor([[5, *spaces, 6, 7], [8, *spaces, 9, 5]])}


def _naflex() -> dict[str, Any]:
    return {
        "pixel_values": votive.rand(2, 6, 48),
        "pixel_attention_mask": votive.ones(2, 6, dtype=votive.int64),
        "spatial_shapes": votive.tensor([[2, 3], [3, 2]]),
    }


def _grids() -> dict[str, Any]:
    ids = _ids(IMAGE)
    return {
        **ids,
        "pixel_values": votive.rand(8, 96),
        "image_grid_thw": votive.tensor([[1, 2, 2], [1, 2, 2]]),
        "mm_token_type_ids": (ids["input_ids"] == IMAGE).long(),
    }


def _gemma3() -> dict[str, Any]:
    ids = _ids(*[IMAGE] * 4)
    return {**ids, **_pixels(16)(), "token_type_ids": (ids["input_ids"] == IMAGE).long()}


_PATCHES = {**SIDE, "patch_size": 4, "num_patches": 16}
_QWEN = {"text_config": SPATIAL, "image_token_id": IMAGE, "video_token_id": IMAGE - 1}
_QWEN2 = {**TOWER, "embed_dim": 16, "hidden_size": 16, "mlp_ratio": 2}
_QWEN25 = {**TOWER, "hidden_size": 16, "out_hidden_size": 16, "intermediate_size": 24, "window_size": 16}
_LLAVA = {
    "text_config": {**TALKS, "model_type": "llama"},
    "vision_config": {**SEEN, "model_type": "clip_vision_model"},
    "image_token_index": IMAGE,
}
_GEMMA = {
    "text_config": GEMMA,
    "vision_config": {**SEEN, "model_type": "siglip_vision_model"},
    "mm_tokens_per_image": 4,
    "image_token_index": IMAGE,
}
_NETWORK = {"embedding_size": 8, "hidden_sizes": [16, 32], "depths": [1, 2]}
_FINDS = {
    **tiny_sizes.whisper(16, layers=(2, 2), heads=2),
    "encoder_ffn_dim": 24,
    "decoder_ffn_dim": 24,
    "num_queries": 5,
    "backbone_config": {"model_type": "resnet", **_NETWORK, "out_features": ["stage2"]},
}
_READS = {**SEEN, "image_size": 16, "patch_size": 4, "output_channels": 16, "num_pos_feats": 8, "window_size": 2}
_CUTS = {
    "vision_config": {**_READS, "global_attn_indexes": [1]},
    "prompt_encoder_config": {"hidden_size": 16, "image_size": 16, "patch_size": 4},
    "mask_decoder_config": {"hidden_size": 16, "mlp_dim": 24, "num_attention_heads": 2, "iou_head_hidden_dim": 8},
}


def _points() -> dict[str, Any]:
    boxes = votive.tensor([[[1.0, 2.0, 9.0, 12.0]], [[0.0, 0.0, 5.0, 7.0]]])
    points = votive.tensor([[[[3.0, 4.0]]], [[[9.0, 2.0]]]])
    return {**_pixels(16)(), "input_points": points, "input_boxes": boxes, "input_masks": votive.rand(2, 1, 16, 16)}


# What stands for a prompt that is given.
UNASKED = {"sam": {"prompt_encoder.no_mask_embed"}}


_TELLS = {"text_config": {**TEXT, "is_decoder": True}, "vision_config": SEEN}


SEERS: dict[str, tuple[dict[str, Any], Given]] = {
    "blip": (_TELLS, lambda: {**_ids(4, 3), **_pixels(16)()}),
    "blip_vision_model": (SEEN, _pixels(16)),
    "convnext": (STAGES, _pixels(32)),
    "convnextv2": (STAGES, _pixels(32)),
    "dinov2": (SEEN, _pixels(16)),
    "dinov2_with_registers": (SEEN, _pixels(16)),
    "detr": (_FINDS, _pixels(32)),
    "resnet": (_NETWORK, _pixels(32)),
    "sam": (_CUTS, _points),
    "sam_vision_model": (_READS, _pixels(16)),
    "segformer": (PYRAMID, _pixels(32)),
    "siglip": ({"text_config": TEXT, "vision_config": SEEN}, lambda: {**_ids(4, 3), **_pixels(16)()}),
    "siglip_vision_model": (SEEN, _pixels(16)),
    "siglip2": ({"text_config": TEXT, "vision_config": _PATCHES}, lambda: {**_ids(4, 3), **_naflex()}),
    "siglip2_vision_model": (_PATCHES, _naflex),
    "swin": (WINDOWS, _pixels(16)),
    "gemma3": (_GEMMA, _gemma3),
    "llava": (_LLAVA, lambda: {**_ids(*[IMAGE] * 4), **_pixels(16)()}),
    "qwen2_vl": ({**_QWEN, "vision_config": _QWEN2}, _grids),
    "qwen2_5_vl": ({**_QWEN, "vision_config": {**_QWEN25, "fullatt_block_indexes": [1]}}, _grids),
    "hubert": (WAVE, lambda: {"input_values": votive.rand(2, 200)}),
    "wav2vec2": (WAVE, lambda: {"input_values": votive.rand(2, 200)}),
}
