"""Images rotated, moved, scaled and sheared. Knows grids and matrices, no randomness."""

from __future__ import annotations

import numbers
from collections.abc import Sequence

from ....ops.registry import F
from ....tensor import Tensor
from ...io.raw import pillow
from ...tv_tensors import BoundingBoxes, KeyPoints
from ...types import Fill, PILImage
from .boxes import Canvas, Move, Placed, moved
from .cropping import pil_fill
from .grids import NEAREST, affine_grid, float_like, sampled
from .interpolation import Interpolation, mode_of, pil_mode
from .kernels import PIL, functional, on_masks
from .matrices import affine_matrix, expanded_size

Centre = Sequence[float] | None

# --- affine --------------------------------------------------------------------------------------


def _checked(
    angle: object, translate: object, scale: float, shear: object, center: object
) -> tuple[float, list[float], list[float], Centre]:
    """The arguments of `affine`, checked and in one form."""
    op = "affine"
    if not isinstance(angle, (int, float)):
        raise TypeError(f"{op}: angle must be a number, got {type(angle).__name__}.")
    if not isinstance(translate, (list, tuple)):
        raise TypeError(f"{op}: translate must be a sequence, got {type(translate).__name__}.")
    if len(translate) != 2:
        raise ValueError(f"{op}: translate must have two elements, got {translate}.")
    if scale <= 0.0:
        raise ValueError(f"{op}: scale must be positive, got {scale}.")
    if isinstance(shear, numbers.Number):
        shear = [shear, 0.0]
    if not isinstance(shear, (list, tuple)):
        raise TypeError(f"{op}: shear must be a number or a sequence, got {type(shear).__name__}.")
    shear = [shear[0]] * 2 if len(shear) == 1 else list(shear)
    if len(shear) != 2:
        raise ValueError(f"{op}: shear must have one or two elements, got {shear}.")
    if center is not None and not isinstance(center, (list, tuple)):
        raise TypeError(f"{op}: center must be a sequence, got {type(center).__name__}.")
    return float(angle), [float(t) for t in translate], shear, center


def _from_centre(center: Centre, width: int, height: int) -> list[float]:
    """A centre in pixels as its distance from the middle, from which grids are counted."""
    return [0.0, 0.0] if center is None else [center[0] - width * 0.5, center[1] - height * 0.5]


@functional
def affine(
    inpt: Tensor,
    angle: float,
    translate: Sequence[float],
    scale: float,
    shear: float | Sequence[float],
    interpolation: Interpolation = NEAREST,
    fill: Fill = None,
    center: Centre = None,
) -> Tensor:
    """Rotated clockwise by `angle` degrees, moved by (x, y) pixels, scaled and sheared by degrees.

    >>> image = votive.tensor([[[1.0, 2.0, 3.0]]])
    >>> votive.vision.transforms.functional.affine(image, 0, [1, 0], 1.0, 0.0)
    tensor([[[0., 1., 2.]]])
    """
    angle, translate, shear, center = _checked(angle, translate, scale, shear, center)
    height, width = inpt.shape[-2:]
    matrix = affine_matrix(_from_centre(center, width, height), angle, translate, scale, shear)
    like = float_like(inpt)
    grid = affine_grid(matrix, (width, height), (width, height), like)
    return sampled("affine", inpt, grid, mode_of("affine", interpolation), fill)


@affine.on(PIL)
def _affine_pil(
    image: PILImage,
    angle: float,
    translate: Sequence[float],
    scale: float,
    shear: float | Sequence[float],
    interpolation: Interpolation = NEAREST,
    fill: Fill = None,
    center: Centre = None,
) -> PILImage:
    angle, translate, shear, center = _checked(angle, translate, scale, shear, center)
    center = [image.width * 0.5, image.height * 0.5] if center is None else center
    matrix = affine_matrix(center, angle, translate, scale, shear)
    how, colour = pil_mode(mode_of("affine", interpolation)), pil_fill("affine", image, fill)
    return image.transform(image.size, pillow().Transform.AFFINE, matrix, how, fillcolor=colour)


on_masks(affine, interpolation=NEAREST)


def _by_matrix(matrix: Sequence[float]) -> Move:
    """A function that moves (P, 2) points by an affine map."""

    def move(points: Tensor) -> Tensor:
        m = F.tensor(matrix, dtype=points.dtype, device=points.device).reshape(2, 3).transpose(0, 1)
        return F.cat((points, F.ones_like(points[:, :1])), 1) @ m

    return move


def _affine_move(
    canvas: Canvas,
    angle: float,
    translate: Sequence[float],
    scale: float,
    shear: Sequence[float],
    center: Centre,
    expand: bool = False,
) -> tuple[Move, Canvas]:
    """Where points of a canvas go, as a function of (P, 2) points, and the new canvas."""
    height, width = canvas
    centre = [width * 0.5, height * 0.5] if center is None else center
    move = _by_matrix(affine_matrix(centre, angle, translate, scale, shear, inverse=False))
    if not expand:
        return move, canvas
    frame = F.tensor([[0, 0], [0, height], [width, height], [width, 0]])

    def shifted(points: Tensor) -> Tensor:
        return move(points) - F.amin(move(frame.to(points.dtype).to(points.device)), 0)

    # As large as the image becomes, which is counted from the middle.
    middle = _from_centre(center, width, height)
    inverse = affine_matrix(middle, angle, translate, scale, shear)
    wide, high = expanded_size(inverse, width, height)
    return shifted, (high, wide)


@affine.on(BoundingBoxes, KeyPoints)
def _affine_placed(
    inpt: Placed,
    angle: float,
    translate: Sequence[float],
    scale: float,
    shear: float | Sequence[float],
    interpolation: Interpolation = NEAREST,
    fill: Fill = None,
    center: Centre = None,
) -> Placed:
    angle, translate, shear, center = _checked(angle, translate, scale, shear, center)
    return moved(inpt, *_affine_move(inpt.canvas_size, angle, translate, scale, shear, center))


# --- rotate --------------------------------------------------------------------------------------


@functional
def rotate(
    inpt: Tensor,
    angle: float,
    interpolation: Interpolation = NEAREST,
    expand: bool = False,
    center: Centre = None,
    fill: Fill = None,
) -> Tensor:
    """Rotated counterclockwise by `angle` degrees; `expand` makes room for the corners.

    >>> votive.vision.transforms.functional.rotate(votive.tensor([[[1, 2], [3, 4]]]), 90)
    tensor([[[2, 4],
             [1, 3]]])
    """
    angle = angle % 360
    height, width = inpt.shape[-2:]
    if center is None:  # quarter turns need no reading between pixels
        if angle == 0:
            return inpt.clone()
        if angle == 180 or (angle in (90, 270) and (expand or height == width)):
            return F.rot90(inpt, int(angle) // 90, (-2, -1))
    matrix = affine_matrix(_from_centre(center, width, height), -angle, [0, 0], 1.0, [0, 0])
    size = expanded_size(matrix, width, height) if expand else (width, height)
    like = float_like(inpt)
    grid = affine_grid(matrix, (width, height), size, like)
    return sampled("rotate", inpt, grid, mode_of("rotate", interpolation), fill)


@rotate.on(PIL)
def _rotate_pil(
    image: PILImage,
    angle: float,
    interpolation: Interpolation = NEAREST,
    expand: bool = False,
    center: Centre = None,
    fill: Fill = None,
) -> PILImage:
    how = pil_mode(mode_of("rotate", interpolation))
    colour = pil_fill("rotate", image, fill)
    around = None if center is None else (center[0], center[1])
    return image.rotate(angle, how, expand=expand, center=around, fillcolor=colour)


on_masks(rotate, interpolation=NEAREST)


@rotate.on(BoundingBoxes, KeyPoints)
def _rotate_placed(
    inpt: Placed,
    angle: float,
    interpolation: Interpolation = NEAREST,
    expand: bool = False,
    center: Centre = None,
    fill: Fill = None,
) -> Placed:
    return moved(inpt, *_affine_move(inpt.canvas_size, -angle, [0, 0], 1.0, [0, 0], center, expand))
