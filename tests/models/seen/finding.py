"""Rows of finders of things in pictures."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..seeing import Row, pictures, transformers

DETR: dict[str, Any] = {
    "d_model": 16, "encoder_layers": 2, "decoder_layers": 2, "encoder_ffn_dim": 24, "decoder_ffn_dim": 24,
    "encoder_attention_heads": 2, "decoder_attention_heads": 4, "num_queries": 6,
}  # fmt: skip
MASK = np.array([[[1] * w + [0] * (64 - w)] * h + [[0] * 64] * (48 - h) for h, w in ((48, 64), (33, 50))])


def _config(**more: Any) -> Any:
    network = {"embedding_size": 8, "hidden_sizes": [16, 24], "depths": [1, 1], "out_features": ["stage2"]}
    return lambda: transformers.DetrConfig(
        backbone_config=transformers.ResNetConfig(**network), num_labels=3, **DETR, **more
    )


def _pixels(masked: bool = True) -> Any:
    values = pictures(2, 3, 48, 64)
    return lambda: {"pixel_values": values, **({"pixel_mask": MASK} if masked else {})}


def _things() -> dict[str, Any]:
    boxes = np.array([[0.4, 0.5, 0.3, 0.4], [0.7, 0.3, 0.2, 0.2], [0.2, 0.6, 0.1, 0.5]], np.float32)
    return {
        "labels": [
            {"class_labels": np.array([1, 2, 0]), "boxes": boxes},
            {"class_labels": np.array([2]), "boxes": boxes[:1] * 0.9},
        ]
    }


ROWS = {
    "detr": Row("DetrModel", _config(), _pixels()),
    "detr learned": Row("DetrModel", _config(position_embedding_type="learned"), _pixels(False)),
    "detr things": Row("DetrForObjectDetection", _config(), _pixels(), _things),
    "detr things of all layers": Row("DetrForObjectDetection", _config(auxiliary_loss=True), _pixels(False), _things),
}
