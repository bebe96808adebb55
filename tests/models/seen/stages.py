"""Rows of readers of pictures that have stages, each on a coarser grid."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..seeing import Row, configured, pictures

SWIN: dict[str, Any] = {
    "image_size": 32,
    "patch_size": 2,
    "embed_dim": 8,
    "depths": [2, 2],
    "num_heads": [2, 4],
    "window_size": 4,
}


def _classes() -> dict[str, Any]:
    return {"labels": np.array([1, 0])}


def _pixels(*size: int, batch: int = 2, **more: Any) -> Any:
    return lambda: {"pixel_values": pictures(batch, 3, *size), **more}


def _hidden(count: int) -> Any:
    return {"bool_masked_pos": (np.arange(2 * count).reshape(2, count) % 3 == 0)}


ROWS = {
    "swin": Row("SwinModel", configured("SwinConfig", **SWIN), _pixels(41, 30)),
    "swin places": Row(
        "SwinModel",
        configured("SwinConfig", **SWIN, use_absolute_embeddings=True, qkv_bias=False, mlp_ratio=2.5),
        _pixels(20, 28, batch=1, interpolate_pos_encoding=True),
    ),
    "swin classes": Row("SwinForImageClassification", configured("SwinConfig", **SWIN), _pixels(32, 32), _classes),
    "swin one window": Row(
        "SwinForImageClassification", configured("SwinConfig", **SWIN, num_labels=3), _pixels(16, 24), _classes
    ),
    "swin paints": Row(
        "SwinForMaskedImageModeling",
        configured("SwinConfig", **SWIN, encoder_stride=4),
        _pixels(32, 32),
        lambda: _hidden(256),
    ),
    "swin backbone": Row("SwinBackbone", configured("SwinConfig", **SWIN, out_indices=[1, 2]), _pixels(12, 26)),
}
