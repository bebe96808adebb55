"""What transforms do, as functions of an image, a PIL image, a mask or boxes.

Each takes images (..., C, H, W) of bytes or floats in 0..1, with any leading dimensions, and is
differentiable where that means something.
"""

from .boxes import clamp_bounding_boxes, clamp_keypoints, convert_bounding_box_format
from .color import (
    adjust_brightness,
    adjust_contrast,
    adjust_hue,
    adjust_saturation,
    grayscale_to_rgb,
    permute_channels,
    rgb_to_grayscale,
)
from .conversion import convert_image_dtype, pil_to_tensor, to_dtype, to_image, to_pil_image, to_tensor
from .cropping import center_crop, crop, five_crop, horizontal_flip, pad, resized_crop, ten_crop, vertical_flip
from .distortion import elastic, perspective
from .filters import adjust_sharpness, erase, gaussian_blur, gaussian_noise, jpeg, normalize, uniform_temporal_subsample
from .interpolation import InterpolationMode
from .kernels import is_pure_tensor, register_kernel
from .resizing import resize
from .sizes import get_dimensions, get_image_size, get_num_channels, get_size
from .tone import adjust_gamma, autocontrast, equalize, invert, posterize, solarize
from .warping import affine, rotate

hflip, vflip = horizontal_flip, vertical_flip
elastic_transform = elastic
to_grayscale = rgb_to_grayscale
get_image_num_channels = get_num_channels

__all__ = [
    "InterpolationMode",
    "adjust_brightness",
    "adjust_contrast",
    "adjust_gamma",
    "adjust_hue",
    "adjust_saturation",
    "adjust_sharpness",
    "affine",
    "autocontrast",
    "center_crop",
    "clamp_bounding_boxes",
    "clamp_keypoints",
    "convert_bounding_box_format",
    "convert_image_dtype",
    "crop",
    "elastic",
    "elastic_transform",
    "equalize",
    "erase",
    "five_crop",
    "gaussian_blur",
    "gaussian_noise",
    "get_dimensions",
    "get_image_num_channels",
    "get_image_size",
    "get_num_channels",
    "get_size",
    "grayscale_to_rgb",
    "hflip",
    "horizontal_flip",
    "invert",
    "is_pure_tensor",
    "jpeg",
    "normalize",
    "pad",
    "permute_channels",
    "perspective",
    "pil_to_tensor",
    "posterize",
    "register_kernel",
    "resize",
    "resized_crop",
    "rgb_to_grayscale",
    "rotate",
    "solarize",
    "ten_crop",
    "to_dtype",
    "to_grayscale",
    "to_image",
    "to_pil_image",
    "to_tensor",
    "uniform_temporal_subsample",
    "vertical_flip",
    "vflip",
]
