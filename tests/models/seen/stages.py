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
CONVNEXT: dict[str, Any] = {"hidden_sizes": [8, 12, 16], "depths": [1, 2, 1], "num_stages": 3}
RESNET: dict[str, Any] = {"embedding_size": 8, "hidden_sizes": [16, 32, 64], "depths": [1, 2, 1]}
SEGFORMER: dict[str, Any] = {
    "num_encoder_blocks": 3,
    "depths": [1, 2, 1],
    "sr_ratios": [4, 2, 1],
    "hidden_sizes": [8, 16, 24],
    "patch_sizes": [7, 3, 3],
    "strides": [4, 2, 2],
    "num_attention_heads": [1, 2, 3],
    "mlp_ratios": [4, 4, 2],
    "decoder_hidden_size": 12,
}
STATES = ("output_hidden_states",)


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
    "convnext": Row("ConvNextModel", configured("ConvNextConfig", **CONVNEXT), _pixels(37, 50), asked=STATES),
    "convnext classes": Row(
        "ConvNextForImageClassification",
        configured("ConvNextConfig", **CONVNEXT, layer_scale_init_value=0.5, num_labels=3),
        _pixels(32, 32),
        _classes,
        asked=STATES,
    ),
    "convnext backbone": Row(
        "ConvNextBackbone",
        configured("ConvNextConfig", **{**CONVNEXT, "layer_scale_init_value": 0.0}, out_indices=[1, 3]),
        _pixels(40, 24, batch=1),
        asked=STATES,
    ),
    "convnextv2 backbone": Row(
        "ConvNextV2Backbone",
        configured("ConvNextV2Config", **CONVNEXT, out_features=["stem", "stage2"]),
        _pixels(33, 32),
        asked=STATES,
    ),
    "convnextv2": Row(
        "ConvNextV2ForImageClassification",
        configured("ConvNextV2Config", **CONVNEXT),
        _pixels(32, 32),
        _classes,
        asked=STATES,
    ),
    "resnet": Row("ResNetModel", configured("ResNetConfig", **RESNET), _pixels(37, 50), asked=STATES, gain=2.5),
    "resnet classes": Row(
        "ResNetForImageClassification",
        configured("ResNetConfig", **RESNET, layer_type="basic", downsample_in_first_stage=True),
        _pixels(40, 40),
        _classes,
        asked=STATES,
        gain=2.5,
    ),
    "resnet backbone": Row(
        "ResNetBackbone",
        configured("ResNetConfig", **RESNET, downsample_in_bottleneck=True, out_indices=[1, 3], hidden_act="silu"),
        _pixels(33, 64),
        asked=STATES,
        gain=2.5,
    ),
    "segformer": Row("SegformerModel", configured("SegformerConfig", **SEGFORMER), _pixels(45, 70)),
    "segformer classes": Row(
        "SegformerForImageClassification",
        configured("SegformerConfig", **SEGFORMER, reshape_last_stage=False),
        _pixels(64, 48),
        _classes,
    ),
    "segformer one class": Row(
        "SegformerForSemanticSegmentation",
        configured("SegformerConfig", **SEGFORMER, num_labels=1),
        _pixels(64, 64),
        lambda: {"labels": (np.arange(2 * 64 * 64).reshape(2, 64, 64) % 5).clip(0, 1)},
        gain=20.0,
    ),
    "segformer pixels": Row(
        "SegformerForSemanticSegmentation",
        configured("SegformerConfig", **SEGFORMER, num_labels=5),
        _pixels(45, 70),
        lambda: {
            "labels": np.where(np.arange(2 * 45 * 70) % 7 > 4, 255, np.arange(2 * 45 * 70) % 7).reshape(2, 45, 70)
        },
        gain=20.0,
    ),
}
