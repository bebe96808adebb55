"""Rows of readers of pictures."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..seeing import Row, configured, pictures

PATCHES: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "image_size": 32,
    "patch_size": 8,
}
SIDE = {"hidden_size": 32, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 4}
TEXT = {**SIDE, "vocab_size": 50, "max_position_embeddings": 8}
SEEN = {**SIDE, "image_size": 32, "patch_size": 8}
IDS = np.array([[3, 7, 9, 49, 1, 1], [9, 12, 33, 20, 4, 49]])


def _classes() -> dict[str, Any]:
    return {"labels": np.array([1, 0])}


def _pixels(*size: int) -> Any:
    return lambda: {"pixel_values": pictures(2, 3, *size)}


def _naflex(**more: Any) -> Any:
    mask = np.ones((2, 12), np.int64)
    mask[0, 6:] = 0
    return lambda: {
        "pixel_values": pictures(2, 12, 48),
        "pixel_attention_mask": mask,
        "spatial_shapes": np.array([[2, 3], [4, 3]]),
        **more,
    }


NAFLEX = configured(
    "Siglip2Config", text_config=TEXT, vision_config={**SIDE, "patch_size": 4, "num_patches": 16}, num_labels=2
)
ROWS = {
    "dinov2": Row("Dinov2Model", configured("Dinov2Config", **PATCHES), _pixels(32, 32)),
    "dinov2 of another size": Row(
        "Dinov2Model", configured("Dinov2Config", **PATCHES, use_swiglu_ffn=True, qkv_bias=False), _pixels(40, 27)
    ),
    "dinov2 classes": Row(
        "Dinov2ForImageClassification", configured("Dinov2Config", **PATCHES), _pixels(32, 32), _classes
    ),
    "dinov2 backbone": Row(
        "Dinov2Backbone", configured("Dinov2Config", **PATCHES, out_indices=[1, 2]), _pixels(32, 48)
    ),
    "registers": Row(
        "Dinov2WithRegistersForImageClassification",
        configured("Dinov2WithRegistersConfig", **{**PATCHES, "num_register_tokens": 3}, layerscale_value=0.7),
        _pixels(24, 40),
        _classes,
    ),
    "siglip": Row(
        "SiglipModel",
        configured("SiglipConfig", text_config=TEXT, vision_config=SEEN),
        lambda: {"input_ids": IDS, **_pixels(32, 32)()},
        lambda: {"return_loss": True},
    ),
    "siglip text": Row(
        "SiglipTextModel",
        configured("SiglipTextConfig", **TEXT, projection_size=24),
        lambda: {"input_ids": IDS, "attention_mask": (IDS != 1).astype(np.int64)},
    ),
    "siglip classes": Row(
        "SiglipForImageClassification",
        configured("SiglipConfig", text_config=TEXT, vision_config={**SEEN, "vision_use_head": False}),
        lambda: {"interpolate_pos_encoding": True, **_pixels(40, 27)()},
        _classes,
    ),
    "siglip2": Row("Siglip2Model", NAFLEX, _naflex(input_ids=IDS), lambda: {"return_loss": True}),
    "siglip2 classes": Row("Siglip2ForImageClassification", NAFLEX, _naflex(), _classes),
}
