"""Networks that read pictures, with torchvision's names: `votive.vision.models.resnet18()`.

ViT, DeiT, BEiT, CLIP and TrOCR with the names of their Hugging Face checkpoints are in
`votive.models`.
"""

from . import efficientnet_lite, mobilenetv2, presets, resnet, u_net, vision_transformer
from .efficientnet_lite import (
    EfficientNetLite,
    efficientnet_lite0,
    efficientnet_lite1,
    efficientnet_lite2,
    efficientnet_lite3,
    efficientnet_lite4,
)
from .mobilenetv2 import MobileNetV2, mobilenet_v2
from .presets import ImageClassification, imagenet_classes, preset
from .resnet import (
    ResNet,
    resnet18,
    resnet34,
    resnet50,
    resnet101,
    resnet152,
    resnext50_32x4d,
    resnext101_32x8d,
    resnext101_64x4d,
    wide_resnet50_2,
    wide_resnet101_2,
)
from .u_net import UNet, unet
from .vision_transformer import VisionTransformer, vit_b_16, vit_b_32, vit_h_14, vit_l_16, vit_l_32
from .weights import get_model, get_model_builder, list_models, load_weights, model_from_file

__all__ = [
    "EfficientNetLite", "ImageClassification", "MobileNetV2", "ResNet", "UNet", "VisionTransformer",
    "efficientnet_lite", "efficientnet_lite0", "efficientnet_lite1", "efficientnet_lite2",
    "efficientnet_lite3", "efficientnet_lite4", "get_model", "get_model_builder",
    "imagenet_classes", "list_models", "load_weights", "mobilenet_v2", "mobilenetv2",
    "model_from_file", "preset", "presets", "resnet", "resnet101", "resnet152", "resnet18",
    "resnet34", "resnet50", "resnext101_32x8d", "resnext101_64x4d", "resnext50_32x4d", "u_net",
    "unet", "vision_transformer", "vit_b_16", "vit_b_32", "vit_h_14", "vit_l_16", "vit_l_32",
    "wide_resnet101_2", "wide_resnet50_2",
]  # fmt: skip
