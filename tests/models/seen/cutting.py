"""Rows of what cuts things out of pictures."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..seeing import Row, pictures, transformers

_READS: dict[str, Any] = {
    "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "image_size": 48, "patch_size": 8,
    "output_channels": 16, "num_pos_feats": 8, "window_size": 4, "global_attn_indexes": [1],
    "initializer_range": 0.2,
}  # fmt: skip
_ANSWERS: dict[str, Any] = {
    "hidden_size": 16, "mlp_dim": 24, "num_attention_heads": 2, "iou_head_hidden_dim": 12,
}  # fmt: skip


def _config(reads: dict[str, Any] | None = None, **answers: Any) -> Any:
    prompts = {"hidden_size": 16, "image_size": 48, "patch_size": 8, "mask_input_channels": 8}
    return lambda: transformers.SamConfig(
        vision_config={**_READS, **(reads or {})},
        prompt_encoder_config=prompts,
        mask_decoder_config={**_ANSWERS, **answers},
    )


_POINTS = np.array([[[[5, 7], [30, 20]], [[40, 3], [9, 9]]], [[[1, 2], [3, 4]], [[47, 47], [0, 0]]]], np.float32)
_LABELS = np.array([[[1, 0], [1, -1]], [[0, 1], [1, -10]]])
_BOXES = np.array([[[2, 3, 30, 40], [5, 5, 9, 20]], [[0, 0, 47, 47], [10, 12, 20, 22]]], np.float32)


def _given(**more: Any) -> Any:
    values = pictures(2, 3, 48, 48)
    return lambda: {"pixel_values": values, **more}


ROWS = {
    "sam": Row("SamModel", _config(), _given(input_points=_POINTS, input_labels=_LABELS)),
    "sam boxes": Row("SamModel", _config(), _given(input_boxes=_BOXES)),
    "sam both": Row("SamModel", _config(), _given(input_points=_POINTS, input_labels=_LABELS, input_boxes=_BOXES)),
    "sam masks": Row(
        "SamModel",
        _config({"use_rel_pos": False, "qkv_bias": False}, num_multimask_outputs=2, iou_head_depth=4),
        _given(input_points=_POINTS, input_masks=pictures(2, 1, 24, 24, seed=1)),
    ),
    "sam alone": Row("SamModel", _config({"use_abs_pos": False, "window_size": 5}), _given()),
    "sam reader": Row(
        "SamVisionModel", lambda: transformers.SamVisionConfig(**_READS), _given(), idle="prompt_encoder"
    ),
}
