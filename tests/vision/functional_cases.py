"""The functionals that are compared with torchvision: names, arguments, and on what."""

from __future__ import annotations

from typing import Any

import numpy as np

DISPLACEMENT = np.random.default_rng(7).normal(0, 0.06, (1, 24, 31, 2)).astype(np.float32)
CORNERS = ([[0, 0], [30, 0], [30, 23], [0, 23]], [[3, 2], [27, 4], [29, 20], [1, 22]])

# Geometry: images, PIL images, masks and boxes follow.
GEOMETRY: dict[str, tuple[str, tuple[Any, ...], dict[str, Any]]] = {
    "hflip": ("horizontal_flip", (), {}),
    "vflip": ("vertical_flip", (), {}),
    "shrink": ("resize", ([10, 12],), {}),
    "shrink_cubic": ("resize", ([11, 14],), {"interpolation": "bicubic"}),
    "shrink_nearest": ("resize", ([11, 14],), {"interpolation": "nearest"}),
    "shrink_exact": ("resize", ([11, 14],), {"interpolation": "nearest-exact"}),
    "grow": ("resize", ([40, 50],), {}),
    "grow_cubic": ("resize", ([40, 50],), {"interpolation": "bicubic"}),
    "short_edge": ("resize", ([12],), {}),
    "long_edge": ("resize", (None,), {"max_size": 20}),
    "limited": ("resize", ([20],), {"max_size": 24}),
    "crop": ("crop", (3, 4, 12, 15), {}),
    "crop_outside": ("crop", (-2, 20, 12, 18), {}),
    "center": ("center_crop", ([11, 14],), {}),
    "center_larger": ("center_crop", ([30, 14],), {}),
    "resized_crop": ("resized_crop", (2, 3, 15, 16, [9, 11]), {}),
    "pad": ("pad", ([2, 3],), {}),
    "pad_four": ("pad", ([1, 2, 3, 4],), {"fill": 9}),
    "pad_cut": ("pad", ([-2, 3, 4, -1],), {}),
    "affine": ("affine", (17.0, [3, -2], 1.2, [5.0, -4.0]), {}),
    "affine_centre": ("affine", (-40, [0.0, 0.0], 0.8, [8.0]), {"center": [5.0, 6.0], "fill": 3}),
    "rotate": ("rotate", (33.0,), {}),
    "rotate_quarter": ("rotate", (90,), {}),
    "rotate_upside": ("rotate", (180,), {"expand": True}),
    "rotate_centre": ("rotate", (10.0,), {"center": [3.0, 4.0]}),
    "perspective": ("perspective", CORNERS, {"interpolation": "nearest"}),
}
# Images only, because masks and boxes cannot, or do so without these arguments.
IMAGES: dict[str, tuple[str, tuple[Any, ...], dict[str, Any]]] = {
    # In torchvision the canvas of boxes may then differ from the size of the image by one.
    "rotate_expand": ("rotate", (-21.0,), {"expand": True}),
    "shrink_plain": ("resize", ([10, 12],), {"antialias": False}),
    "shrink_cubic_plain": ("resize", ([10, 12],), {"antialias": False, "interpolation": 3}),
    "pad_edge": ("pad", ([2, 3],), {"padding_mode": "edge"}),
    "pad_reflect": ("pad", ([2, 3],), {"padding_mode": "reflect"}),
    "pad_symmetric": ("pad", ([5, 3, 1, 2],), {"padding_mode": "symmetric"}),
    "affine_smooth": ("affine", (17.0, [3, -2], 1.2, [5.0, -4.0]), {"interpolation": "bilinear"}),
    "affine_fill": ("affine", (30.0, [1, 2], 0.7, 0.0), {"interpolation": 2, "fill": [0.2]}),
    "rotate_smooth": ("rotate", (33.0,), {"interpolation": "bilinear", "expand": True}),
    "perspective_smooth": ("perspective", CORNERS, {"interpolation": "bilinear", "fill": 0.5}),
}
COLOUR: dict[str, tuple[str, tuple[Any, ...], dict[str, Any]]] = {
    "brighter": ("adjust_brightness", (1.4,), {}),
    "darker": ("adjust_brightness", (0.3,), {}),
    "contrast": ("adjust_contrast", (1.7,), {}),
    "less_contrast": ("adjust_contrast", (0.4,), {}),
    "saturation": ("adjust_saturation", (1.6,), {}),
    "less_saturation": ("adjust_saturation", (0.2,), {}),
    "hue": ("adjust_hue", (0.23,), {}),
    "hue_back": ("adjust_hue", (-0.41,), {}),
    "gamma": ("adjust_gamma", (2.2,), {}),
    "gamma_gain": ("adjust_gamma", (0.6,), {"gain": 1.3}),
    "sharper": ("adjust_sharpness", (2.5,), {}),
    "softer": ("adjust_sharpness", (0.1,), {}),
    "posterize": ("posterize", (3,), {}),
    "solarize": ("solarize", (0.6,), {}),
    "autocontrast": ("autocontrast", (), {}),
    "equalize": ("equalize", (), {}),
    "invert": ("invert", (), {}),
    "grey": ("rgb_to_grayscale", (), {}),
    "grey_three": ("rgb_to_grayscale", (3,), {}),
    "permute": ("permute_channels", ([2, 0, 1],), {}),
    "blur": ("gaussian_blur", ([5, 3], [1.1, 0.6]), {}),
    "blur_default": ("gaussian_blur", (3,), {}),
}
ELASTIC = ("elastic", "elastic_nearest")


def image(kind: str = "uint8", shape: tuple[int, ...] = (3, 24, 31), seed: int = 0) -> Any:
    """A smooth picture with some noise, as an array."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[: shape[-2], : shape[-1]]
    waves = [np.sin(x / (3 + c) + c) * np.cos(y / (4 + c) - c) for c in range(shape[-3])]
    values = 0.5 + 0.4 * np.stack(waves) + rng.normal(0, 0.07, shape)
    values = values.clip(0, 1)
    return (values * 255).round().astype(np.uint8) if kind == "uint8" else values.astype(kind)


def boxes() -> Any:
    """Corner boxes in an image of 24 x 31, one across the border."""
    return np.array([[2, 3, 9, 12], [0, 0, 31, 24], [20, 15, 35, 23], [5, 5, 6, 6]], np.float32)


def mask() -> Any:
    """A map of labels."""
    return (image(shape=(1, 24, 31), seed=3)[0] // 60).astype(np.uint8)


def scaled(case: tuple[str, tuple[Any, ...], dict[str, Any]], kind: str) -> Any:
    """The arguments for images of this type: thresholds and fills are in its range."""
    name, args, options = case
    if kind == "uint8" and name == "solarize":
        args = (args[0] * 255,)
    if kind == "uint8" and "fill" in options and isinstance(options["fill"], (float, list)):
        fill = options["fill"]
        fill = [round(255 * f) for f in fill] if isinstance(fill, list) else round(255 * fill)
        options = {**options, "fill": fill}
    return name, args, options
