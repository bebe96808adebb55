"""Architectures of timm on small images: outputs, features, keys of state dicts, and a training step."""

from __future__ import annotations

import functools
from typing import Any

import common  # noqa: F401  # first: it sees to torchvision
import numpy as np
import timm
import torch
from common import array, fill, gradients, main, numbers

SMALL = {"img_size": 64}
# architecture: (size of images, options)
ARCHITECTURES: dict[str, tuple[int, dict[str, Any]]] = {
    "resnet18": (64, {}),
    "resnet26d": (64, {}),
    "resnext26ts": (64, {}),
    "seresnet18": (64, {}),
    "resnetv2_18": (64, {}),
    "densenet121": (32, {}),
    "hrnet_w18_small": (64, {}),
    "mobilenetv2_035": (64, {}),
    "mobilenetv3_small_050": (64, {}),
    "efficientnet_b0": (64, {}),
    "tf_efficientnetv2_b0": (64, {}),
    "mnasnet_small": (64, {}),
    "ghostnet_050": (64, {}),
    "regnetx_002": (64, {}),
    "regnety_002": (64, {}),
    "repvgg_a0": (32, {}),
    "dla34": (64, {}),
    "dpn48b": (64, {}),
    "res2net50_14w_8s": (64, {}),
    "skresnet18": (64, {}),
    "inception_v3": (96, {"aux_logits": False}),
    "xception41": (64, {}),
    "convnext_atto": (64, {}),
    "convnextv2_atto": (64, {}),
    "vit_tiny_patch16_224": (64, SMALL),
    "deit_tiny_patch16_224": (64, SMALL),
    "beit_base_patch16_224": (32, {"img_size": 32, "embed_dim": 48, "depth": 2, "num_heads": 4}),
    "eva02_tiny_patch14_224": (56, {"img_size": 56, "depth": 2}),
    "swin_tiny_patch4_window7_224": (56, {"img_size": 56, "embed_dim": 24, "depths": (1, 1), "num_heads": (2, 4)}),
    "swinv2_tiny_window8_256": (64, {"img_size": 64, "embed_dim": 24, "depths": (1, 1), "num_heads": (2, 4)}),
    "mixer_s32_224": (64, SMALL),
    "gmlp_ti16_224": (64, SMALL),
    "poolformer_s12": (64, {}),
    "levit_128s": (224, {}),
    "mobilevit_xxs": (64, {}),
    "maxvit_pico_rw_256": (64, {"img_size": 64}),
    "coatnet_pico_rw_224": (64, {"img_size": 64}),
    "pvt_v2_b0": (64, {}),
    "cait_xxs24_224": (64, {"img_size": 64, "depth": 2}),
    "crossvit_tiny_240": (240, {}),
    "edgenext_xx_small": (64, {}),
    "nfnet_l0": (64, {}),
}


def build(name: str) -> tuple[Any, Any]:
    """The model with our weights, and two images."""
    size, options = ARCHITECTURES[name]
    model = fill(timm.create_model(name, pretrained=False, num_classes=7, **options))
    with torch.no_grad():
        for key, buffer in model.named_buffers():
            if key.endswith("running_mean"):
                buffer.copy_(torch.from_numpy(numbers(key, *buffer.shape, scale=0.1)))
            elif key.endswith("running_var"):
                buffer.copy_(torch.from_numpy(np.abs(numbers(key, *buffer.shape, scale=0.2)) + np.float32(0.8)))
    for module in model.modules():
        # Nothing random: both draw other numbers.
        for key in ("p", "drop_prob", "drop_rate"):
            if isinstance(getattr(module, key, None), float):
                setattr(module, key, 0.0)
    return model, torch.from_numpy(numbers(name, 2, 3, size, size))


def forward(name: str) -> dict[str, Any]:
    """Outputs, features before the head, and what a state dict holds."""
    model, images = build(name)
    model.eval()
    with torch.no_grad():
        features = model.forward_features(images)
        found = {"logits": array(model(images))}
    for place, feature in enumerate(features if isinstance(features, list | tuple) else [features]):
        found[f"features.{place}"] = array(feature)
    state = model.state_dict()
    found["keys"] = np.array("\n".join(f"{key} {tuple(value.shape)} {value.dtype}" for key, value in state.items()))
    return found


def step(name: str) -> dict[str, Any]:
    """Loss, gradients and running statistics of a training step, in double precision.

    Normalizing over the few values of two small images magnifies rounding a thousandfold and more.
    """
    model, images = build(name)
    model, images = model.double().train(), images.double()
    loss = torch.nn.functional.cross_entropy(model(images), torch.tensor([1, 3]))
    loss.backward()
    found = {"loss": array(loss), **gradients(model)}
    found.update({f"buffer.{key}": array(b) for key, b in model.named_buffers() if "running" in key})
    return found


CASES = {f"{name}.{part.__name__}": functools.partial(part, name) for name in ARCHITECTURES for part in (forward, step)}

if __name__ == "__main__":
    main(CASES)
