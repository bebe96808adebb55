"""Operators and layers of vision models: boxes, regions, pyramids, losses, blocks.

Not here: deformable convolution, position-sensitive pooling, IoU of rotated boxes.
"""

from .box_losses import complete_box_iou_loss, distance_box_iou_loss, generalized_box_iou_loss
from .boxes import (
    batched_nms,
    box_area,
    box_convert,
    box_iou,
    clip_boxes_to_image,
    complete_box_iou,
    distance_box_iou,
    generalized_box_iou,
    masks_to_boxes,
    nms,
    remove_small_boxes,
)
from .dropping import DropBlock2d, DropBlock3d, StochasticDepth, drop_block2d, drop_block3d, stochastic_depth
from .focal_loss import sigmoid_focal_loss
from .layers import MLP, Conv2dNormActivation, Conv3dNormActivation, FrozenBatchNorm2d, Permute, SqueezeExcitation
from .poolers import MultiScaleRoIAlign
from .pyramid import ExtraFPNBlock, FeaturePyramidNetwork, LastLevelMaxPool, LastLevelP6P7
from .regions import RoIAlign, RoIPool, roi_align, roi_pool

__all__ = [
    "Conv2dNormActivation",
    "Conv3dNormActivation",
    "DropBlock2d",
    "DropBlock3d",
    "ExtraFPNBlock",
    "FeaturePyramidNetwork",
    "FrozenBatchNorm2d",
    "LastLevelMaxPool",
    "LastLevelP6P7",
    "MLP",
    "MultiScaleRoIAlign",
    "Permute",
    "RoIAlign",
    "RoIPool",
    "SqueezeExcitation",
    "StochasticDepth",
    "batched_nms",
    "box_area",
    "box_convert",
    "box_iou",
    "clip_boxes_to_image",
    "complete_box_iou",
    "complete_box_iou_loss",
    "distance_box_iou",
    "distance_box_iou_loss",
    "drop_block2d",
    "drop_block3d",
    "generalized_box_iou",
    "generalized_box_iou_loss",
    "masks_to_boxes",
    "nms",
    "remove_small_boxes",
    "roi_align",
    "roi_pool",
    "sigmoid_focal_loss",
    "stochastic_depth",
]
