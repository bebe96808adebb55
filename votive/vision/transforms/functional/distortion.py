"""Images bent: perspective and elastic. Knows grids and matrices, no randomness."""

from __future__ import annotations

from typing import Any

from ....ops.registry import F
from ....tensor import Tensor
from ...tv_tensors import BoundingBoxes, Mask
from .boxes import moved
from .conversion import pil_to_tensor, to_pil_image
from .cropping import pil_fill
from .grids import BILINEAR, NEAREST, float_like, identity_grid, perspective_grid, sampled
from .interpolation import mode_of, pil_number
from .kernels import PIL, functional, on_planes
from .matrices import inverted_perspective, perspective_coefficients

# --- perspective ---------------------------------------------------------------------------------


def _eight(startpoints: Any, endpoints: Any, coefficients: Any) -> list[float]:
    if coefficients is None:
        if startpoints is None or endpoints is None:
            raise ValueError("perspective: needs start and end points, or coefficients.")
        return perspective_coefficients(startpoints, endpoints)
    if startpoints is not None and endpoints is not None:
        raise ValueError("perspective: takes points or coefficients, not both.")
    if len(coefficients) != 8:
        raise ValueError(f"perspective: needs 8 coefficients, got {len(coefficients)}.")
    return list(coefficients)


@functional
def perspective(
    inpt: Any,
    startpoints: Any,
    endpoints: Any,
    interpolation: Any = BILINEAR,
    fill: Any = None,
    coefficients: Any = None,
) -> Any:
    """Four points (x, y) of the image moved to four others, the rest with them.

    >>> corners = [[0, 0], [3, 0], [3, 3], [0, 3]]
    >>> image = votive.arange(16.0).reshape(1, 4, 4)
    >>> same = votive.vision.transforms.functional.perspective(image, corners, corners)
    >>> votive.allclose(same, image, atol=1e-4)
    True
    """
    c = _eight(startpoints, endpoints, coefficients)
    height, width = inpt.shape[-2:]
    like = float_like(inpt)
    grid = perspective_grid(c, width, height, like)
    return sampled("perspective", inpt, grid, mode_of("perspective", interpolation), fill)


@perspective.on(PIL)
def _perspective_pil(
    image: Any,
    startpoints: Any,
    endpoints: Any,
    interpolation: Any = BILINEAR,
    fill: Any = None,
    coefficients: Any = None,
) -> Any:
    c = _eight(startpoints, endpoints, coefficients)
    how = pil_number(mode_of("perspective", interpolation))
    return image.transform(image.size, 2, c, how, fillcolor=pil_fill("perspective", image, fill))


@perspective.on(Mask)
@on_planes
def _perspective_mask(
    mask: Any,
    startpoints: Any,
    endpoints: Any,
    interpolation: Any = BILINEAR,
    fill: Any = None,
    coefficients: Any = None,
) -> Any:
    kernel = perspective.kernels["tensor"]
    return kernel(mask, startpoints, endpoints, NEAREST, fill, coefficients)


def perspective_move(startpoints: Any, endpoints: Any, coefficients: Any) -> Any:
    """Where points go, as a function of (P, 2) points."""
    c = inverted_perspective(_eight(startpoints, endpoints, coefficients))

    def move(points: Any) -> Any:
        make = lambda rows: F.tensor(rows, dtype=points.dtype, device=points.device).transpose(0, 1)
        whole = F.cat((points, F.ones_like(points[:, :1])), 1)
        return (whole @ make([c[0:3], c[3:6]])) / (whole @ make([[c[6], c[7], 1.0]] * 2))

    return move


@perspective.on(BoundingBoxes)
def _perspective_boxes(
    boxes: Any,
    startpoints: Any,
    endpoints: Any,
    interpolation: Any = BILINEAR,
    fill: Any = None,
    coefficients: Any = None,
) -> Any:
    move = perspective_move(startpoints, endpoints, coefficients)
    return moved(boxes, move, boxes.canvas_size, whole_corners=True)


# --- elastic -------------------------------------------------------------------------------------


def _check_displacement(displacement: Any, size: Any) -> None:
    if not isinstance(displacement, Tensor):
        raise TypeError(f"elastic: displacement must be a Tensor, got {type(displacement).__name__}.")
    wanted = (1, *size, 2)
    if tuple(displacement.shape) != wanted:
        raise ValueError(f"elastic: displacement must have shape {wanted}, got {tuple(displacement.shape)}.")


@functional
def elastic(inpt: Any, displacement: Any, interpolation: Any = BILINEAR, fill: Any = None) -> Any:
    """Each pixel read `displacement` (1, H, W, 2) away, in halves of the image's size.

    >>> image = votive.arange(4.0).reshape(1, 2, 2)
    >>> votive.vision.transforms.functional.elastic(image, votive.zeros(1, 2, 2, 2))
    tensor([[[0., 1.],
             [2., 3.]]])
    """
    size = tuple(inpt.shape[-2:])
    _check_displacement(displacement, size)
    like = float_like(inpt)
    grid = identity_grid(size, like) + displacement.to(like.dtype).to(inpt.device)
    return sampled("elastic", inpt, grid, mode_of("elastic", interpolation), fill)


@elastic.on(PIL)
def _elastic_pil(image: Any, displacement: Any, interpolation: Any = BILINEAR, fill: Any = None) -> Any:
    out = elastic(pil_to_tensor(image), displacement, interpolation, fill)
    return to_pil_image(out, mode=image.mode)


@elastic.on(Mask)
@on_planes
def _elastic_mask(mask: Any, displacement: Any, interpolation: Any = BILINEAR, fill: Any = None) -> Any:
    return elastic.kernels["tensor"](mask, displacement, NEAREST, fill)


def elastic_move(canvas: tuple[int, int], displacement: Any) -> Any:
    """Where whole points (P, 2) go, read from the grid.

    The inverse of a displacement is taken to be its negative, which is nearly so.
    """
    height, width = canvas
    _check_displacement(displacement, canvas)

    def move(points: Any, like: Any) -> Any:
        back = identity_grid(canvas, like) - displacement.to(like.dtype).to(like.device)
        x, y = points[:, 0].clamp(0, width - 1), points[:, 1].clamp(0, height - 1)
        half = F.tensor([0.5 * width, 0.5 * height], dtype=like.dtype, device=like.device)
        return (back[0][y, x] + 1) * half - 0.5

    return move


@elastic.on(BoundingBoxes)
def _elastic_boxes(boxes: Any, displacement: Any, interpolation: Any = BILINEAR, fill: Any = None) -> Any:
    move = elastic_move(boxes.canvas_size, displacement)
    return moved(boxes, lambda p: move(F.ceil(p).long(), p), boxes.canvas_size, whole_corners=True, whole_result=True)
