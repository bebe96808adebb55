"""Pictures of pictures: grids, boxes and masks drawn on images. Knows no model."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from ..autograd import no_grad
from ..core import dtype as dt
from ..ops.registry import F
from ..tensor import Tensor
from .io.raw import pillow

if TYPE_CHECKING:
    from PIL import ImageDraw, ImageFont

__all__ = ["draw_bounding_boxes", "draw_keypoints", "draw_segmentation_masks", "make_grid", "save_image"]


Colour = str | tuple[int, ...]
Colours = Colour | list[Colour] | None

# --- grids ---------------------------------------------------------------------------------------


def _unit_range(image: Tensor, value_range: tuple[float, float] | None) -> Tensor:
    low, high = value_range or (image.min().item(), image.max().item())
    return (image.clamp(min=low, max=high) - low) / max(high - low, 1e-5)


@no_grad()
def make_grid(
    tensor: Tensor | Sequence[Tensor],
    nrow: int = 8,
    padding: int = 2,
    normalize: bool = False,
    value_range: tuple[float, float] | None = None,
    scale_each: bool = False,
    pad_value: float = 0.0,
) -> Tensor:
    """Images (B, C, H, W), or a list of them, side by side, `nrow` in a row; one is returned alone.

    `normalize` brings values into 0..1, from `value_range` or from their smallest and largest,
    of all images or with `scale_each` of each.

    >>> votive.vision.utils.make_grid(votive.zeros(3, 1, 4, 4), nrow=2).shape
    votive.Size([3, 14, 14])
    """
    op = "make_grid"
    if isinstance(tensor, (list, tuple)):
        if not all(isinstance(t, Tensor) for t in tensor):
            raise TypeError(f"{op}: needs a tensor or a list of tensors.")
        tensor = F.stack(list(tensor))
    if not isinstance(tensor, Tensor):
        raise TypeError(f"{op}: needs a tensor or a list of tensors, got {type(tensor).__name__}.")
    if tensor.ndim not in (2, 3, 4):
        raise ValueError(f"{op}: needs (B, C, H, W), got {tuple(tensor.shape)}.")
    images = tensor.reshape((1,) * (4 - tensor.ndim) + tuple(tensor.shape))
    if images.shape[1] == 1:
        images = F.cat((images,) * 3, 1)
    if normalize:
        if value_range is not None and not isinstance(value_range, tuple):
            raise TypeError(f"{op}: value_range must be a tuple (min, max), got {value_range!r}.")
        if scale_each:
            images = F.stack([_unit_range(image, value_range) for image in images])
        else:
            images = _unit_range(images, value_range)
    count, channels, height, width = images.shape
    if count == 1:
        return images.squeeze(0)
    across = min(nrow, count)
    down = math.ceil(count / across)
    height, width = height + padding, width + padding
    shape = (channels, height * down + padding, width * across + padding)
    grid = F.full(shape, pad_value, dtype=images.dtype, device=images.device)
    for k, image in enumerate(images):
        top, left = k // across * height + padding, k % across * width + padding
        grid[:, top : top + height - padding, left : left + width - padding] = image
    return grid


@no_grad()
def save_image(
    tensor: Tensor | Sequence[Tensor], fp: str | Path | BinaryIO, format: str | None = None, **kwargs: Any
) -> None:
    """Write images in 0..1 as one file, several as a grid; keywords are those of `make_grid`.

    >>> import tempfile, os
    >>> name = os.path.join(tempfile.mkdtemp(), "a.png")
    >>> votive.vision.utils.save_image(votive.rand(4, 3, 8, 8), name, nrow=2)
    """
    grid = make_grid(tensor, **kwargs)
    bytes_ = (grid * 255 + 0.5).clamp(0, 255).permute(1, 2, 0).to(dt.uint8)
    array = np.ascontiguousarray(bytes_.numpy(force=True))
    pillow().fromarray(array).save(fp, format=format)


# --- colours -------------------------------------------------------------------------------------


def _palette(count: int) -> list[Colour]:
    """Colours that differ: multiples of three large numbers, wrapped around."""
    steps = (2**25 - 1, 2**15 - 1, 2**21 - 1)
    return [tuple(i * s % 255 for s in steps) for i in range(count)]


def _colours(op: str, colours: Colours, count: int) -> list[tuple[int, ...]]:
    """One RGB colour for each of `count` things."""
    from PIL import ImageColor

    if colours is None:
        chosen = _palette(count)
    elif isinstance(colours, list):
        if len(colours) < count:
            raise ValueError(f"{op}: {len(colours)} colors for {count} objects.")
        chosen = colours[:count]
    elif isinstance(colours, (tuple, str)):
        chosen = [colours] * count
    else:
        raise ValueError(f"{op}: colors must be a color or a list of them, got {colours!r}.")
    return [ImageColor.getrgb(c) if isinstance(c, str) else tuple(c) for c in chosen]


def _check_image(op: str, image: object, channels: tuple[int, ...]) -> None:
    if not isinstance(image, Tensor):
        raise TypeError(f"{op}: needs a tensor, got {type(image).__name__}.")
    if image.dtype is not dt.uint8 and not image.dtype.is_floating_point:
        raise ValueError(f"{op}: the image must be uint8 or float, got {image.dtype}.")
    if image.ndim != 3:
        raise ValueError(f"{op}: takes one image (C, H, W), got {tuple(image.shape)}.")
    if image.shape[0] not in channels:
        raise ValueError(f"{op}: needs {channels} channels, got {image.shape[0]}.")


# --- drawing -------------------------------------------------------------------------------------


def _font(op: str, font: str | None, font_size: int | None) -> ImageFont.ImageFont | ImageFont.FreeTypeFont:
    from PIL import ImageFont

    if font is None:
        if font_size is not None:
            warnings.warn(f"{op}: font_size is ignored without a font.", stacklevel=4)
        return ImageFont.load_default()
    return ImageFont.truetype(font=font, size=font_size or 10)


def _drawn(image: Tensor, draw: Callable[[ImageDraw.ImageDraw], None], rgba: bool = False) -> Tensor:
    """An image after `draw` was called with a pen for it."""
    from PIL import ImageDraw

    from .transforms.functional import pil_to_tensor, to_dtype, to_pil_image

    kind = image.dtype
    image = F.cat((image,) * 3, 0) if image.shape[0] == 1 else image
    canvas = to_pil_image(to_dtype(image.detach(), dt.uint8, scale=True))
    draw(ImageDraw.Draw(canvas, "RGBA") if rgba else ImageDraw.Draw(canvas))
    return to_dtype(pil_to_tensor(canvas), kind, scale=True)


@no_grad()
def draw_bounding_boxes(
    image: Tensor,
    boxes: Tensor,
    labels: list[str] | None = None,
    colors: Colours = None,
    fill: bool | None = False,
    width: int = 1,
    font: str | None = None,
    font_size: int | None = None,
    label_colors: Colours = None,
    label_background_colors: Colours = None,
    fill_labels: bool = False,
) -> Tensor:
    """The image with (x1, y1, x2, y2) boxes on it, each with its label and colour.

    >>> image = votive.zeros(3, 8, 8, dtype=votive.uint8)
    >>> out = votive.vision.utils.draw_bounding_boxes(
    ...     image, votive.tensor([[1, 1, 5, 5]]), colors="red"
    ... )
    >>> out[:, 1, 3]
    tensor([255,   0,   0], dtype=votive.uint8)
    """
    op = "draw_bounding_boxes"
    _check_image(op, image, (1, 3))
    if boxes.ndim != 2 or boxes.shape[1] != 4:
        raise ValueError(f"{op}: boxes must be (N, 4), got {tuple(boxes.shape)}; rotated ones are not drawn.")
    if bool(F.logical_or(boxes[:, 0] > boxes[:, 2], boxes[:, 1] > boxes[:, 3]).any().item()):
        raise ValueError(f"{op}: boxes must be (x1, y1, x2, y2); convert them with box_convert.")
    count = boxes.shape[0]
    if count == 0:
        warnings.warn(f"{op}: there are no boxes, nothing was drawn.", stacklevel=3)
        return image
    if labels is not None and len(labels) != count:
        raise ValueError(f"{op}: {len(labels)} labels for {count} boxes.")
    pillow()
    lines = _colours(op, colors, count)
    inks = lines
    if label_colors or fill_labels:
        inks = _colours(op, label_colors or "black", count)
    papers = lines
    if fill_labels and label_background_colors:
        papers = _colours(op, label_background_colors, count)
    letters = _font(op, font, font_size)

    def draw(pen: ImageDraw.ImageDraw) -> None:
        for k, box in enumerate(boxes.long().tolist()):
            inside = (*lines[k], 100) if fill else None
            pen.rectangle(box, width=width, outline=lines[k], fill=inside)
            if labels is not None:
                at = (box[0] + width + 1, box[1] + width + 1)
                if fill_labels:
                    x1, y1, x2, y2 = pen.textbbox(at, labels[k], font=letters)
                    pen.rectangle((x1 - 1, y1 - 1, x2 + 1, y2 + 1), fill=papers[k])
                pen.text(at, labels[k], fill=inks[k], font=letters)

    return _drawn(image, draw, bool(fill))


@no_grad()
def draw_segmentation_masks(image: Tensor, masks: Tensor, alpha: float = 0.8, colors: Colours = None) -> Tensor:
    """The image with bool masks (N, H, W) over it, each in its colour; where two lie it is black.

    >>> image = votive.zeros(3, 2, 2, dtype=votive.uint8)
    >>> mask = votive.tensor([[True, False], [False, False]])
    >>> votive.vision.utils.draw_segmentation_masks(image, mask, 0.5, "white")[:, 0, 0]
    tensor([127, 127, 127], dtype=votive.uint8)
    """
    op = "draw_segmentation_masks"
    _check_image(op, image, (3,))
    masks = masks.unsqueeze(0) if masks.ndim == 2 else masks
    if masks.ndim != 3 or masks.dtype is not dt.bool_:
        raise ValueError(f"{op}: masks must be bool (N, H, W) or (H, W), got {masks.dtype} {tuple(masks.shape)}.")
    if tuple(masks.shape[-2:]) != tuple(image.shape[-2:]):
        raise ValueError(f"{op}: masks of {tuple(masks.shape[-2:])} on an image of {tuple(image.shape[-2:])}.")
    if masks.shape[0] == 0:
        warnings.warn(f"{op}: there are no masks, nothing was drawn.", stacklevel=3)
        return image
    pillow()
    kind, painted = image.dtype, image.detach()
    scale = 1.0 if kind is dt.uint8 else 1 / 255
    for mask, colour in zip(masks, _colours(op, colors, masks.shape[0]), strict=True):
        ink = F.tensor([c * scale for c in colour], device=image.device).to(kind)
        painted = F.where(mask, ink.reshape(3, 1, 1), painted)
    painted = F.where(masks.sum(0) > 1, F.zeros_like(painted), painted)
    wide = image.float() if kind is dt.uint8 else image
    return (wide * (1 - alpha) + painted * alpha).to(kind)


@no_grad()
def draw_keypoints(
    image: Tensor,
    keypoints: Tensor,
    connectivity: list[tuple[int, int]] | None = None,
    colors: Colours = None,
    radius: int = 2,
    width: int = 3,
    visibility: Tensor | None = None,
) -> Tensor:
    """The image with points (N, K, 2) on it, white unless `colors` says otherwise, some joined by white lines.

    >>> image = votive.zeros(3, 9, 9, dtype=votive.uint8)
    >>> out = votive.vision.utils.draw_keypoints(image, votive.tensor([[[4, 4]]]), colors="red")
    >>> out[0, 4, 4].item()
    255
    """
    op = "draw_keypoints"
    _check_image(op, image, (3,))
    if keypoints.ndim != 3 or keypoints.shape[-1] != 2:
        raise ValueError(f"{op}: keypoints must be (N, K, 2), got {tuple(keypoints.shape)}.")
    if isinstance(colors, list):
        raise ValueError(f"{op}: takes one color, got a list.")
    shown = np.ones(tuple(keypoints.shape[:2]), bool)
    if visibility is not None:
        seen = visibility.unsqueeze(-1) if visibility.ndim == 2 else visibility
        if tuple(seen.shape[:2]) != tuple(keypoints.shape[:2]):
            raise ValueError(f"{op}: visibility must be {tuple(keypoints.shape[:2])}, got {tuple(visibility.shape)}.")
        shown = seen[..., 0].bool().numpy(force=True)
    pillow()
    ink = _colours(op, "white" if colors is None else colors, 1)[0]

    def draw(pen: ImageDraw.ImageDraw) -> None:
        for points, visible in zip(keypoints.long().tolist(), shown, strict=True):
            for (x, y), on in zip(points, visible, strict=True):
                if on:
                    box = [x - radius, y - radius, x + radius, y + radius]
                    pen.ellipse(box, fill=ink, outline=None, width=0)
            for a, b in connectivity or ():
                if visible[a] and visible[b]:
                    pen.line((*points[a], *points[b]), width=width)

    return _drawn(image, draw)
