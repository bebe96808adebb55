"""Images bent: perspective and elastic. Knows grids and matrices, no randomness."""

from __future__ import annotations

from collections.abc import Sequence

from ....ops.registry import F
from ....tensor import Tensor
from ...io.raw import pillow
from ...tv_tensors import BoundingBoxes, KeyPoints
from ...types import Fill, PILImage
from .boxes import Placed, moved
from .conversion import pil_to_tensor, to_pil_image
from .cropping import pil_fill
from .grids import BILINEAR, NEAREST, float_like, identity_grid, perspective_grid, sampled
from .interpolation import Interpolation, mode_of, pil_mode
from .kernels import PIL, functional, on_masks
from .matrices import Points, inverted_perspective, perspective_coefficients

# --- perspective ---------------------------------------------------------------------------------


def _eight(startpoints: Points | None, endpoints: Points | None, coefficients: Sequence[float] | None) -> list[float]:
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
    inpt: Tensor,
    startpoints: Points | None,
    endpoints: Points | None,
    interpolation: Interpolation = BILINEAR,
    fill: Fill = None,
    coefficients: Sequence[float] | None = None,
) -> Tensor:
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
    image: PILImage,
    startpoints: Points | None,
    endpoints: Points | None,
    interpolation: Interpolation = BILINEAR,
    fill: Fill = None,
    coefficients: Sequence[float] | None = None,
) -> PILImage:
    c = _eight(startpoints, endpoints, coefficients)
    how, colour = pil_mode(mode_of("perspective", interpolation)), pil_fill("perspective", image, fill)
    return image.transform(image.size, pillow().Transform.PERSPECTIVE, c, how, fillcolor=colour)


on_masks(perspective, interpolation=NEAREST)


@perspective.on(BoundingBoxes, KeyPoints)
def _perspective_placed(
    inpt: Placed,
    startpoints: Points | None,
    endpoints: Points | None,
    interpolation: Interpolation = BILINEAR,
    fill: Fill = None,
    coefficients: Sequence[float] | None = None,
) -> Placed:
    c = inverted_perspective(_eight(startpoints, endpoints, coefficients))

    def move(points: Tensor) -> Tensor:
        rows = [c[0:3], c[3:6]], [[c[6], c[7], 1.0]] * 2
        above, below = (F.tensor(r, dtype=points.dtype, device=points.device).transpose(0, 1) for r in rows)
        whole = F.cat((points, F.ones_like(points[:, :1])), 1)
        return (whole @ above) / (whole @ below)

    return moved(inpt, move, inpt.canvas_size, whole_corners=True)


# --- elastic -------------------------------------------------------------------------------------


def _check_displacement(displacement: object, size: tuple[int, int]) -> None:
    if not isinstance(displacement, Tensor):
        raise TypeError(f"elastic: displacement must be a Tensor, got {type(displacement).__name__}.")
    wanted = (1, *size, 2)
    if tuple(displacement.shape) != wanted:
        raise ValueError(f"elastic: displacement must have shape {wanted}, got {tuple(displacement.shape)}.")


@functional
def elastic(inpt: Tensor, displacement: Tensor, interpolation: Interpolation = BILINEAR, fill: Fill = None) -> Tensor:
    """Each pixel read `displacement` (1, H, W, 2) away, in halves of the image's size.

    >>> image = votive.arange(4.0).reshape(1, 2, 2)
    >>> votive.vision.transforms.functional.elastic(image, votive.zeros(1, 2, 2, 2))
    tensor([[[0., 1.],
             [2., 3.]]])
    """
    size = (inpt.shape[-2], inpt.shape[-1])
    _check_displacement(displacement, size)
    like = float_like(inpt)
    grid = identity_grid(size, like) + displacement.to(like.dtype).to(inpt.device)
    return sampled("elastic", inpt, grid, mode_of("elastic", interpolation), fill)


@elastic.on(PIL)
def _elastic_pil(
    image: PILImage, displacement: Tensor, interpolation: Interpolation = BILINEAR, fill: Fill = None
) -> PILImage:
    out = elastic(pil_to_tensor(image), displacement, interpolation, fill)
    return to_pil_image(out, mode=image.mode)


on_masks(elastic, interpolation=NEAREST)


@elastic.on(BoundingBoxes, KeyPoints)
def _elastic_placed(
    inpt: Placed, displacement: Tensor, interpolation: Interpolation = BILINEAR, fill: Fill = None
) -> Placed:
    height, width = canvas = inpt.canvas_size
    _check_displacement(displacement, canvas)

    def move(points: Tensor) -> Tensor:
        # The inverse of a displacement is taken to be its negative, which is nearly so.
        back = identity_grid(canvas, points) - displacement.to(points.dtype).to(points.device)
        whole = (F.ceil(points) if isinstance(inpt, BoundingBoxes) else points).long()
        x, y = whole[:, 0].clamp(0, width - 1), whole[:, 1].clamp(0, height - 1)
        half = F.tensor([0.5 * width, 0.5 * height], dtype=points.dtype, device=points.device)
        return (back[0][y, x] + 1) * half - 0.5

    return moved(inpt, move, canvas, whole_corners=True, whole_result=True)
