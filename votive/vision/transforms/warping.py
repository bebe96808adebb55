"""Random rotations, affine maps, perspectives and elastic deformations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...ops.registry import F as ops
from ...tensor import Tensor
from ..types import FillByKind
from . import functional as F
from .base import RandomApplyTransform, Transform, angles, integer, numbers, query_size, uniform
from .functional.interpolation import Interpolation, mode_of
from .functional.matrices import perspective_coefficients


def _centre(name: str, center: Sequence[float] | None) -> list[float] | None:
    return None if center is None else numbers(name, "center", center)


class RandomRotation(Transform):
    """Rotated by a random angle, counterclockwise, from `degrees` (min, max), or -degrees to it.

    >>> votive.vision.transforms.RandomRotation((90, 90))(votive.tensor([[[1, 2], [3, 4]]]))
    tensor([[[2, 4],
             [1, 3]]])
    """

    def __init__(
        self,
        degrees: float | Sequence[float],
        interpolation: Interpolation = F.InterpolationMode.NEAREST,
        expand: bool = False,
        center: Sequence[float] | None = None,
        fill: FillByKind = 0,
    ) -> None:
        super().__init__()
        self.degrees = angles("RandomRotation", "degrees", degrees)
        self.interpolation = mode_of("RandomRotation", interpolation)
        self.expand = expand
        self.center = _centre("RandomRotation", center)
        self._set_fill(fill)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"angle": uniform(*self.degrees)}

    @staticmethod
    def get_params(degrees: Sequence[float]) -> float:
        """A random angle between two."""
        return uniform(*degrees)

    def transform(self, inpt: object, params: dict[str, Any]) -> Any:
        return self._call_kernel(
            F.rotate,
            inpt,
            **params,
            interpolation=self.interpolation,
            expand=self.expand,
            center=self.center,
            fill=self._fill(inpt),
        )


class RandomAffine(Transform):
    """Rotated, moved, scaled and sheared at random; `translate` is a fraction of (width, height).

    `shear`: (min, max) along x in degrees, or four numbers for x and y.

    >>> votive.vision.transforms.RandomAffine(10, (0.1, 0.1))(votive.zeros(3, 8, 8)).shape
    votive.Size([3, 8, 8])
    """

    def __init__(
        self,
        degrees: float | Sequence[float],
        translate: Sequence[float] | None = None,
        scale: Sequence[float] | None = None,
        shear: float | Sequence[float] | None = None,
        interpolation: Interpolation = F.InterpolationMode.NEAREST,
        fill: FillByKind = 0,
        center: Sequence[float] | None = None,
    ) -> None:
        super().__init__()
        name = "RandomAffine"
        self.degrees = angles(name, "degrees", degrees)
        self.translate = None if translate is None else numbers(name, "translate", translate)
        if self.translate and not all(0.0 <= t <= 1.0 for t in self.translate):
            raise ValueError(f"{name}: translate must be between 0 and 1, got {translate}.")
        self.scale = None if scale is None else numbers(name, "scale", scale)
        if self.scale and min(self.scale) <= 0:
            raise ValueError(f"{name}: scale must be positive, got {scale}.")
        self.shear = None if shear is None else angles(name, "shear", shear, (2, 4))
        self.interpolation = mode_of(name, interpolation)
        self._set_fill(fill)
        self.center = _centre(name, center)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        height, width = query_size(flat_inputs)
        return self._draw(height, width)

    @staticmethod
    def get_params(
        degrees: Sequence[float],
        translate: Sequence[float] | None,
        scale_ranges: Sequence[float] | None,
        shears: Sequence[float] | None,
        img_size: Sequence[int],
    ) -> tuple[float, tuple[int, int], float, tuple[float, float]]:
        """(angle, translations, scale, shears) for an image of `img_size` (width, height)."""
        drawn = RandomAffine(degrees, translate, scale_ranges, shears)._draw(img_size[1], img_size[0])
        return drawn["angle"], drawn["translate"], drawn["scale"], drawn["shear"]

    def _draw(self, height: int, width: int) -> dict[str, Any]:
        angle = uniform(*self.degrees)
        far = self.translate or (0.0, 0.0)
        reach = (far[0] * width, far[1] * height)
        translate = tuple(round(uniform(-r, r)) for r in reach)
        scale = 1.0 if self.scale is None else uniform(*self.scale)
        shear = self.shear or (0.0, 0.0)
        sheared = (uniform(*shear[:2]), uniform(*shear[2:]) if len(shear) == 4 else 0.0)
        return {"angle": angle, "translate": translate, "scale": scale, "shear": sheared}

    def transform(self, inpt: object, params: dict[str, Any]) -> Any:
        return self._call_kernel(
            F.affine, inpt, **params, interpolation=self.interpolation, fill=self._fill(inpt), center=self.center
        )


class RandomPerspective(RandomApplyTransform):
    """The corners moved inwards at random, by up to `distortion_scale` of half the size.

    >>> votive.vision.transforms.RandomPerspective(p=1)(votive.zeros(3, 8, 8)).shape
    votive.Size([3, 8, 8])
    """

    def __init__(
        self,
        distortion_scale: float = 0.5,
        p: float = 0.5,
        interpolation: Interpolation = F.InterpolationMode.BILINEAR,
        fill: FillByKind = 0,
    ) -> None:
        super().__init__(p=p)
        if not 0 <= distortion_scale <= 1:
            raise ValueError(f"RandomPerspective: distortion_scale must be in [0, 1], got {distortion_scale}.")
        self.distortion_scale = distortion_scale
        self.interpolation = mode_of("RandomPerspective", interpolation)
        self._set_fill(fill)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        height, width = query_size(flat_inputs)
        start, end = self.get_params(width, height, self.distortion_scale)
        return {"coefficients": perspective_coefficients(start, end)}

    @staticmethod
    def get_params(width: int, height: int, distortion_scale: float) -> tuple[list[list[int]], list[list[int]]]:
        """The corners of an image, and where they go."""
        down = int(distortion_scale * (height // 2)) + 1
        across = int(distortion_scale * (width // 2)) + 1
        left, right = (0, across), (width - across, width)
        top, bottom = (0, down), (height - down, height)
        start = [[0, 0], [width - 1, 0], [width - 1, height - 1], [0, height - 1]]
        end = [[integer(*x), integer(*y)] for x, y in ((left, top), (right, top), (right, bottom), (left, bottom))]
        return start, end

    def transform(self, inpt: object, params: dict[str, Any]) -> Any:
        return self._call_kernel(
            F.perspective,
            inpt,
            startpoints=None,
            endpoints=None,
            fill=self._fill(inpt),
            interpolation=self.interpolation,
            **params,
        )


def _two(name: str, what: str, value: float | Sequence[float]) -> list[float]:
    if isinstance(value, (int, float)):
        return [float(value)] * 2
    given = numbers(name, what, value, (1, 2))
    return [given[0], given[-1]]


class ElasticTransform(Transform):
    """Each pixel moved by smooth noise of strength `alpha` and smoothness `sigma`.

    >>> votive.vision.transforms.ElasticTransform(sigma=1.0)(votive.zeros(3, 16, 16)).shape
    votive.Size([3, 16, 16])
    """

    def __init__(
        self,
        alpha: float | Sequence[float] = 50.0,
        sigma: float | Sequence[float] = 5.0,
        interpolation: Interpolation = F.InterpolationMode.BILINEAR,
        fill: FillByKind = 0,
    ) -> None:
        super().__init__()
        self.alpha = _two("ElasticTransform", "alpha", alpha)
        self.sigma = _two("ElasticTransform", "sigma", sigma)
        self.interpolation = mode_of("ElasticTransform", interpolation)
        self._set_fill(fill)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"displacement": self.get_params(self.alpha, self.sigma, query_size(flat_inputs))}

    @staticmethod
    def get_params(alpha: Sequence[float], sigma: Sequence[float], size: Sequence[int]) -> Tensor:
        """A displacement (1, H, W, 2) for an image of `size` (height, width)."""
        moves = []
        for axis, extent in ((0, size[1]), (1, size[0])):
            noise = ops.rand((1, 1, *size)) * 2 - 1
            if sigma[axis] > 0:
                kernel = int(8 * sigma[axis] + 1) | 1  # odd
                noise = F.gaussian_blur(noise, [kernel, kernel], list(sigma))
            moves.append(noise * alpha[axis] / extent)
        return ops.cat(moves, 1).permute(0, 2, 3, 1)

    def transform(self, inpt: object, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.elastic, inpt, **params, fill=self._fill(inpt), interpolation=self.interpolation)
