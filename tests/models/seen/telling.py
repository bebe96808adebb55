"""Rows of what says what is in pictures."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..seeing import Row, pictures, transformers

_SIDE: dict[str, Any] = {
    "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2,
    "initializer_range": 0.2,
}  # fmt: skip
_TEXT = {**_SIDE, "hidden_size": 12, "vocab_size": 40, "max_position_embeddings": 32, "bos_token_id": 38}
_READS = {**_SIDE, "image_size": 24, "patch_size": 8}
IDS = np.array([[38, 5, 7, 3, 9], [38, 11, 2, 30, 1]])
MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 1, 0]])


def _config(**text: Any) -> Any:
    return lambda: transformers.BlipConfig(vision_config=_READS, text_config={**_TEXT, "sep_token_id": 39, **text})


def _given(**more: Any) -> Any:
    values = pictures(2, 3, 24, 24)
    return lambda: {"pixel_values": values, **more}


def _answers() -> dict[str, Any]:
    return {"labels": np.array([[38, 6, 8, 39], [38, 2, 39, -100]])}


ROWS = {
    "blip": Row(
        "BlipForConditionalGeneration", _config(), _given(input_ids=IDS, attention_mask=MASK),
        lambda: {"labels": np.where(MASK == 1, IDS, -100)},
    ),
    "blip smoothed": Row(
        "BlipForConditionalGeneration", _config(label_smoothing=0.1, hidden_act="relu"), _given(input_ids=IDS),
        lambda: {"labels": IDS},
    ),
    "blip answers": Row(
        "BlipForQuestionAnswering", _config(hidden_size=16),
        _given(input_ids=IDS, attention_mask=MASK, decoder_input_ids=np.array([[38, 6, 8, 39], [38, 2, 39, 0]])),
        _answers, gain=1.5,
    ),
    "blip reader": Row("BlipVisionModel", lambda: transformers.BlipVisionConfig(**_READS), _given()),
    "blip reader of other sizes": Row(
        "BlipVisionModel", lambda: transformers.BlipVisionConfig(**_READS),
        lambda: {"pixel_values": pictures(1, 3, 32, 40), "interpolate_pos_encoding": True},
    ),
}  # fmt: skip
