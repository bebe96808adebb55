"""Random sizes: zooming out, and resizing by chance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..types import FillByKind
from . import functional as F
from .base import RandomApplyTransform, Transform, integer, numbers, query_size, uniform
from .functional.interpolation import Interpolation, mode_of


class RandomZoomOut(RandomApplyTransform):
    """The image somewhere on a larger canvas, up to `side_range` times its size.

    >>> zoom = votive.vision.transforms.RandomZoomOut(side_range=(2.0, 2.0), p=1)
    >>> zoom(votive.zeros(3, 8, 8)).shape
    votive.Size([3, 16, 16])
    """

    def __init__(self, fill: FillByKind = 0, side_range: Sequence[float] = (1.0, 4.0), p: float = 0.5) -> None:
        super().__init__(p=p)
        self._set_fill(fill)
        self.side_range = numbers("RandomZoomOut", "side_range", side_range)
        if not 1.0 <= side_range[0] <= side_range[1]:
            raise ValueError(f"RandomZoomOut: side_range must be 1 <= min <= max, got {side_range}.")

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        height, width = query_size(flat_inputs)
        r = uniform(*self.side_range)
        new_height, new_width = int(height * r), int(width * r)
        left = int((new_width - width) * uniform(0, 1))
        top = int((new_height - height) * uniform(0, 1))
        return {"padding": [left, top, new_width - left - width, new_height - top - height]}

    def transform(self, inpt: object, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.pad, inpt, **params, fill=self._fill(inpt))


class _RandomSize(Transform):
    """A size is drawn, then resized to."""

    interpolation: F.InterpolationMode
    antialias: bool | None

    def transform(self, inpt: object, params: dict[str, Any]) -> Any:
        return self._call_kernel(
            F.resize, inpt, params["size"], interpolation=self.interpolation, antialias=self.antialias
        )


class ScaleJitter(_RandomSize):
    """Scaled to fit `target_size` (width, height as torchvision reads it), times a random factor.

    >>> jitter = votive.vision.transforms.ScaleJitter((8, 8), scale_range=(0.5, 0.5))
    >>> jitter(votive.zeros(3, 16, 16)).shape
    votive.Size([3, 4, 4])
    """

    def __init__(
        self,
        target_size: tuple[int, int],
        scale_range: Sequence[float] = (0.1, 2.0),
        interpolation: Interpolation = F.InterpolationMode.BILINEAR,
        antialias: bool | None = True,
    ) -> None:
        super().__init__()
        self.target_size, self.scale_range = target_size, scale_range
        self.interpolation = mode_of("ScaleJitter", interpolation)
        self.antialias = antialias

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        height, width = query_size(flat_inputs)
        fit = min(self.target_size[1] / height, self.target_size[0] / width)
        r = fit * uniform(*self.scale_range)
        return {"size": (int(height * r), int(width * r))}


class RandomShortestSize(_RandomSize):
    """The shorter edge to one of `min_size`, the longer one to at most `max_size`.

    >>> votive.vision.transforms.RandomShortestSize([4])(votive.zeros(3, 8, 16)).shape
    votive.Size([3, 4, 8])
    """

    def __init__(
        self,
        min_size: int | Sequence[int],
        max_size: int | None = None,
        interpolation: Interpolation = F.InterpolationMode.BILINEAR,
        antialias: bool | None = True,
    ) -> None:
        super().__init__()
        self.min_size = [min_size] if isinstance(min_size, int) else list(min_size)
        self.max_size = max_size
        self.interpolation = mode_of("RandomShortestSize", interpolation)
        self.antialias = antialias

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        height, width = query_size(flat_inputs)
        r = self.min_size[integer(0, len(self.min_size))] / min(height, width)
        if self.max_size is not None:
            r = min(r, self.max_size / max(height, width))
        return {"size": (int(height * r), int(width * r))}


class RandomResize(_RandomSize):
    """The shorter edge to an integer from `min_size` on and below `max_size`.

    >>> votive.vision.transforms.RandomResize(4, 5)(votive.zeros(3, 8, 16)).shape
    votive.Size([3, 4, 8])
    """

    def __init__(
        self,
        min_size: int,
        max_size: int,
        interpolation: Interpolation = F.InterpolationMode.BILINEAR,
        antialias: bool | None = True,
    ) -> None:
        super().__init__()
        self.min_size, self.max_size = min_size, max_size
        self.interpolation = mode_of("RandomResize", interpolation)
        self.antialias = antialias

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"size": [integer(self.min_size, self.max_size)]}
