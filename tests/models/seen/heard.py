"""Rows of readers of recordings."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..seeing import Row, configured, pictures

WAVE: dict[str, Any] = {
    "vocab_size": 20, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24,
    "conv_dim": [12, 12, 8], "conv_kernel": [10, 3, 2], "conv_stride": [5, 2, 2], "num_conv_pos_embeddings": 8,
    "num_conv_pos_embedding_groups": 4, "classifier_proj_size": 12,
}  # fmt: skip
STABLE = {**WAVE, "feat_extract_norm": "layer", "do_stable_layer_norm": True, "conv_bias": True}
LENGTHS = (400, 333, 127)
PADDED = np.array([[1] * n + [0] * (400 - n) for n in LENGTHS])


def _samples(padded: bool = True, **more: Any) -> Any:
    values = pictures(3, 400)
    if not padded:
        return lambda: {"input_values": values, **more}
    return lambda: {"input_values": (values * PADDED).astype(np.float32), "attention_mask": PADDED, **more}


def _letters() -> dict[str, Any]:
    return {"labels": np.array([[3, 4, 4, 9], [5, 7, -100, -100], [6, -100, -100, -100]])}


def _classes() -> dict[str, Any]:
    return {"labels": np.array([1, 0, 2])}


def _moments() -> dict[str, Any]:
    return {"labels": np.eye(3, dtype=np.float32)[np.arange(3 * 19).reshape(3, 19) % 3]}


HIDDEN = {"mask_time_indices": np.arange(3 * 19).reshape(3, 19) % 5 == 0}

ROWS = {
    "wav2vec2": Row("Wav2Vec2Model", configured("Wav2Vec2Config", **WAVE), _samples(False)),
    "wav2vec2 hides": Row("Wav2Vec2Model", configured("Wav2Vec2Config", **STABLE), _samples(**HIDDEN)),
    "wav2vec2 shortens": Row(
        "Wav2Vec2Model",
        configured("Wav2Vec2Config", **WAVE, add_adapter=True, num_adapter_layers=2, output_hidden_size=12),
        _samples(),
    ),
    "wav2vec2 letters": Row("Wav2Vec2ForCTC", configured("Wav2Vec2Config", **WAVE), _samples(), _letters),
    "wav2vec2 letters mean": Row(
        "Wav2Vec2ForCTC",
        configured(
            "Wav2Vec2Config",
            **{**STABLE, "num_conv_pos_embeddings": 7},
            adapter_attn_dim=6,
            ctc_loss_reduction="mean",
            mask_time_prob=0.0,
        ),
        _samples(False),
        _letters,
    ),
    "wav2vec2 letters shortened": Row(
        "Wav2Vec2ForCTC",
        configured("Wav2Vec2Config", **WAVE, add_adapter=True, num_adapter_layers=1, ctc_zero_infinity=True),
        _samples(),
        _letters,
    ),
    "wav2vec2 classes": Row(
        "Wav2Vec2ForSequenceClassification", configured("Wav2Vec2Config", **WAVE, num_labels=3), _samples(), _classes
    ),
    "wav2vec2 classes of all layers": Row(
        "Wav2Vec2ForSequenceClassification",
        configured("Wav2Vec2Config", **STABLE, num_labels=3, use_weighted_layer_sum=True),
        _samples(False),
        _classes,
    ),
    "wav2vec2 moments": Row(
        "Wav2Vec2ForAudioFrameClassification",
        configured("Wav2Vec2Config", **WAVE, num_labels=3, use_weighted_layer_sum=True),
        _samples(),
        _moments,
    ),
    "hubert": Row("HubertModel", configured("HubertConfig", **WAVE, feat_proj_layer_norm=False), _samples()),
    "hubert letters": Row("HubertForCTC", configured("HubertConfig", **STABLE), _samples(), _letters),
    "hubert classes": Row(
        "HubertForSequenceClassification",
        configured("HubertConfig", **WAVE, num_labels=3, conv_pos_batch_norm=True),
        _samples(),
        _classes,
    ),
}
