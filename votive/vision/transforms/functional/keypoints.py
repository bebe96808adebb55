"""Points under transforms: each goes where the pixel under it goes. Registers kernels."""

from __future__ import annotations

from typing import Any

from ....core import dtype as dt
from ....ops.registry import F
from ...tv_tensors import KeyPoints, wrap
from .cropping import center_crop, centre_of, crop, horizontal_flip, pad, pair_of, resized_crop, sides, vertical_flip
from .distortion import elastic, elastic_move, perspective, perspective_move
from .kernels import is_pure_tensor
from .resizing import new_size, resize
from .sizes import get_size
from .warping import affine, affine_arguments, affine_move, rotate


@get_size.on(KeyPoints)
def _size(points: Any) -> list[int]:
    return list(points.canvas_size)


def _mirrored(points: Any, axis: int) -> Any:
    """The centre of the first pixel becomes that of the last one."""
    xy = list(F.unbind(points.as_tensor(), -1))
    xy[axis] = points.canvas_size[1 - axis] - 1 - xy[axis]
    return wrap(F.stack(xy, -1), like=points)


@horizontal_flip.on(KeyPoints)
def _hflip(points: Any) -> Any:
    return _mirrored(points, 0)


@vertical_flip.on(KeyPoints)
def _vflip(points: Any) -> Any:
    return _mirrored(points, 1)


@resize.on(KeyPoints)
def _resize(points: Any, size: Any, interpolation: Any = None, max_size: Any = None, antialias: Any = True) -> Any:
    height, width = points.canvas_size
    new = new_size(points.canvas_size, size, max_size)
    ratio = F.tensor([new[1] / width, new[0] / height], dtype=dt.float32, device=points.device)
    return wrap((points.as_tensor() * ratio).to(points.dtype), like=points, canvas_size=new)


def _shifted(points: Any, x: int, y: int, canvas: tuple[int, int]) -> Any:
    by = F.tensor([x, y], dtype=points.dtype, device=points.device)
    return wrap(points.as_tensor() + by, like=points, canvas_size=canvas)


@crop.on(KeyPoints)
def _crop(points: Any, top: int, left: int, height: int, width: int) -> Any:
    return _shifted(points, -left, -top, (height, width))


@center_crop.on(KeyPoints)
def _center_crop(points: Any, output_size: Any) -> Any:
    height, width = pair_of("center_crop", output_size)
    top, left = centre_of(points.canvas_size, height, width)
    return _shifted(points, -left, -top, (height, width))


@pad.on(KeyPoints)
def _pad(points: Any, padding: Any, fill: Any = None, padding_mode: str = "constant") -> Any:
    if padding_mode != "constant":
        raise ValueError(f"pad: points do not follow padding_mode {padding_mode!r}.")
    left, top, right, bottom = sides("pad", padding)
    height, width = points.canvas_size
    return _shifted(points, left, top, (height + top + bottom, width + left + right))


resized_crop.on(KeyPoints)(resized_crop.kernels["tensor"])


def _moved(points: Any, move: Any, canvas: tuple[int, int]) -> Any:
    plain = points.as_tensor()
    wide = plain if plain.dtype.is_floating_point else plain.to(dt.float32)
    out = move(wide.reshape(-1, 2)) if points.numel() else wide
    return wrap(out.to(plain.dtype).reshape(tuple(plain.shape)), like=points, canvas_size=canvas)


@affine.on(KeyPoints)
def _affine(
    points: Any,
    angle: float,
    translate: Any,
    scale: float,
    shear: Any,
    interpolation: Any = None,
    fill: Any = None,
    center: Any = None,
) -> Any:
    angle, translate, shear, center = affine_arguments(angle, translate, scale, shear, center)
    canvas = points.canvas_size
    return _moved(points, *affine_move(canvas, angle, translate, scale, shear, center, False))


@rotate.on(KeyPoints)
def _rotate(
    points: Any, angle: float, interpolation: Any = None, expand: bool = False, center: Any = None, fill: Any = None
) -> Any:
    canvas = points.canvas_size
    return _moved(points, *affine_move(canvas, -angle, [0, 0], 1.0, [0, 0], center, expand))


@perspective.on(KeyPoints)
def _perspective(
    points: Any, startpoints: Any, endpoints: Any, interpolation: Any = None, fill: Any = None, coefficients: Any = None
) -> Any:
    move = perspective_move(startpoints, endpoints, coefficients)
    return _moved(points, move, points.canvas_size)


@elastic.on(KeyPoints)
def _elastic(points: Any, displacement: Any, interpolation: Any = None, fill: Any = None) -> Any:
    move = elastic_move(points.canvas_size, displacement)
    return _moved(points, lambda p: move(p.long(), p), points.canvas_size)


def clamp_keypoints(inpt: Any, canvas_size: Any = None) -> Any:
    """Points moved into their image; a plain tensor needs `canvas_size` (height, width).

    >>> clamp = votive.vision.transforms.functional.clamp_keypoints
    >>> clamp(votive.tensor([[-1, 3], [20, 30]]), (8, 9))
    tensor([[0, 3],
            [8, 7]])
    """
    op, plain = "clamp_keypoints", is_pure_tensor(inpt)
    if not plain and not isinstance(inpt, KeyPoints):
        raise TypeError(f"{op}: takes a plain tensor or KeyPoints, got {type(inpt).__name__}.")
    if plain == (canvas_size is None):
        raise ValueError(f"{op}: canvas_size is for plain tensors, which need it, and only them.")
    height, width = canvas_size if plain else inpt.canvas_size
    points = inpt if plain else inpt.as_tensor()
    x, y = points[..., 0].clamp(0, width - 1), points[..., 1].clamp(0, height - 1)
    return wrap(F.stack((x, y), -1), like=inpt)
