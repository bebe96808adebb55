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
    "resnet": Row("ResNetModel", configured("ResNetConfig", **RESNET), _pixels(37, 50), asked=STATES, gain=1.0),
    "resnet classes": Row(
        "ResNetForImageClassification",
        configured("ResNetConfig", **RESNET, layer_type="basic", downsample_in_first_stage=True),
        _pixels(40, 40),
        _classes,
        asked=STATES,
        gain=1.0,
    ),
    "resnet backbone": Row(
        "ResNetBackbone",
        configured("ResNetConfig", **RESNET, downsample_in_bottleneck=True, out_indices=[1, 3], hidden_act="silu"),
        _pixels(33, 64),
        asked=STATES,
        gain=1.0,
    ),
}
