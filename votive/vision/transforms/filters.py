"""Normalisation, blur, noise, erasing, losses of JPEG, and frames of videos."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...ops.registry import F as ops
from ...tensor import Tensor
from ..tv_tensors import Image, Video, wrap
from ..types import Picture
from . import functional as F
from .base import RandomApplyTransform, Transform, has_any, integer, numbers, pair, query_chw, uniform
from .functional.kernels import is_pil, is_pure_tensor
from .geometry import check_ranges, random_area


class _NoPIL(Transform):
    def check_inputs(self, flat_inputs: list[Any]) -> None:
        if has_any(flat_inputs, is_pil):
            raise TypeError(f"{type(self).__name__}: does not take PIL images; use ToImage first.")


class Normalize(_NoPIL):
    """`(image - mean) / std`, one of each per channel.

    >>> votive.vision.transforms.Normalize([0.5], [0.25])(votive.ones(1, 1, 1))
    tensor([[[2.]]])
    """

    def __init__(self, mean: Sequence[float], std: Sequence[float], inplace: bool = False) -> None:
        super().__init__()
        self.mean = list(mean)
        self.std = list(std)
        self.inplace = inplace

    def transform(self, inpt: object, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.normalize, inpt, self.mean, self.std, inplace=self.inplace)


class LinearTransformation(_NoPIL):
    """The flattened image less a mean vector, times a square matrix; whitening is one.

    >>> whiten = votive.vision.transforms.LinearTransformation(votive.eye(4), votive.ones(4))
    >>> whiten(votive.ones(1, 2, 2)).sum()
    tensor(0.)
    """

    _transformed_types = (is_pure_tensor, Image, Video)

    def __init__(self, transformation_matrix: Tensor, mean_vector: Tensor) -> None:
        super().__init__()
        name, shape = "LinearTransformation", tuple(transformation_matrix.shape)
        if len(shape) != 2 or shape[0] != shape[1]:
            raise ValueError(f"{name}: transformation_matrix must be square, got {shape}.")
        if tuple(mean_vector.shape) != shape[:1]:
            raise ValueError(f"{name}: mean_vector must have {shape[0]} elements, got {tuple(mean_vector.shape)}.")
        if transformation_matrix.dtype is not mean_vector.dtype:
            raise ValueError(
                f"{name}: matrix and vector must have one dtype, got "
                f"{transformation_matrix.dtype} and {mean_vector.dtype}."
            )
        self.transformation_matrix, self.mean_vector = transformation_matrix, mean_vector

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        shape, n = tuple(inpt.shape), self.mean_vector.shape[0]
        if math.prod(shape[-3:]) != n:
            raise ValueError(f"LinearTransformation: an image of {shape[-3:]} does not fit a matrix of {n}.")
        flat = inpt.reshape(-1, n) - self.mean_vector
        out = (flat @ self.transformation_matrix.to(flat.dtype)).reshape(shape)
        return wrap(out, like=inpt)


class GaussianBlur(Transform):
    """Blurred by a Gaussian whose sigma is drawn from (min, max).

    >>> votive.vision.transforms.GaussianBlur(3)(votive.zeros(3, 4, 4)).shape
    votive.Size([3, 4, 4])
    """

    def __init__(self, kernel_size: int | Sequence[int], sigma: float | Sequence[float] = (0.1, 2.0)) -> None:
        super().__init__()
        self.kernel_size = pair("GaussianBlur", "kernel_size", kernel_size)
        if any(k <= 0 or k % 2 == 0 for k in self.kernel_size):
            raise ValueError(f"GaussianBlur: kernel_size must be odd, got {kernel_size}.")
        if isinstance(sigma, (int, float)):
            sigma = (sigma, sigma)
        given = numbers("GaussianBlur", "sigma", sigma, (1, 2))
        self.sigma = [given[0], given[-1]]
        if not 0.0 < self.sigma[0] <= self.sigma[1]:
            raise ValueError(f"GaussianBlur: sigma must be 0 < min <= max, got {sigma}.")

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"sigma": [uniform(*self.sigma)] * 2}

    @staticmethod
    def get_params(sigma_min: float, sigma_max: float) -> float:
        """A random sigma between two."""
        return uniform(sigma_min, sigma_max)

    def transform(self, inpt: object, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.gaussian_blur, inpt, self.kernel_size, **params)


class GaussianNoise(_NoPIL):
    """Normal noise added to floats in 0..1 or to bytes.

    >>> votive.vision.transforms.GaussianNoise(0.5, 0.0)(votive.zeros(1, 1, 1))
    tensor([[[0.5000]]])
    """

    def __init__(self, mean: float = 0.0, sigma: float = 0.1, clip: bool = True) -> None:
        super().__init__()
        self.mean, self.sigma, self.clip = mean, sigma, clip

    def transform(self, inpt: object, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.gaussian_noise, inpt, self.mean, self.sigma, self.clip)


class RandomErasing(RandomApplyTransform):
    """A random rectangle replaced by `value`: a number, one per channel, or "random".

    >>> erase = votive.vision.transforms.RandomErasing(p=1, scale=(0.2, 0.2))
    >>> bool(erase(votive.ones(3, 8, 8)).min() == 0)
    True
    """

    def __init__(
        self,
        p: float = 0.5,
        scale: Sequence[float] = (0.02, 0.33),
        ratio: Sequence[float] = (0.3, 3.3),
        value: float | str | Sequence[float] = 0.0,
        inplace: bool = False,
    ) -> None:
        super().__init__(p=p)
        name = "RandomErasing"
        if not isinstance(value, (int, float, str, tuple, list)):
            raise TypeError(f"{name}: value must be a number, a sequence or 'random', got {value!r}.")
        if isinstance(value, str) and value != "random":
            raise ValueError(f"{name}: value must be a number, a sequence or 'random', got {value!r}.")
        check_ranges(name, scale, ratio)
        if scale[0] < 0 or scale[1] > 1:
            raise ValueError(f"{name}: scale must lie in [0, 1], got {scale}.")
        self.scale, self.ratio = scale, ratio
        self.value: list[float] | None = None
        if not isinstance(value, str):
            self.value = [float(v) for v in (value if isinstance(value, Sequence) else [value])]
        self.inplace = inplace

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        channels, height, width = query_chw(flat_inputs)
        if self.value is not None and len(self.value) not in (1, channels):
            raise ValueError(f"RandomErasing: {len(self.value)} values for an image of {channels} channels.")
        for _ in range(10):
            h, w = random_area(height, width, self.scale, self.ratio)
            if h < height and w < width:
                v = ops.randn((channels, h, w)) if self.value is None else (ops.tensor(self.value).reshape(-1, 1, 1))
                i, j = integer(0, height - h + 1), integer(0, width - w + 1)
                return {"i": i, "j": j, "h": h, "w": w, "v": v}
        return {"i": 0, "j": 0, "h": height, "w": width, "v": None}

    @staticmethod
    def get_params(
        img: Picture, scale: Sequence[float], ratio: Sequence[float], value: float | str | Sequence[float] | None = None
    ) -> tuple[int, int, int, int, Any]:
        """(row, column, height, width, value) of a rectangle; the image itself where none fits."""
        made = RandomErasing(1.0, scale, ratio, "random" if value is None else value)
        drawn = made.make_params([img])
        v = img if drawn["v"] is None else drawn["v"]
        return drawn["i"], drawn["j"], drawn["h"], drawn["w"], v

    def transform(self, inpt: object, params: dict[str, Any]) -> Any:
        if params["v"] is None:
            return inpt
        return self._call_kernel(F.erase, inpt, **params, inplace=self.inplace)


class JPEG(Transform):
    """Bytes written as JPEG of a random quality and read again.

    >>> image = votive.zeros(3, 8, 8, dtype=votive.uint8)
    >>> votive.vision.transforms.JPEG((10, 50))(image).shape
    votive.Size([3, 8, 8])
    """

    def __init__(self, quality: int | Sequence[int]) -> None:
        super().__init__()
        span = [quality, quality] if isinstance(quality, int) else list(quality)
        whole_numbers = all(isinstance(q, int) and not isinstance(q, bool) for q in span)
        if len(span) != 2 or not whole_numbers or not 1 <= span[0] <= span[1] <= 100:
            raise ValueError(f"JPEG: quality must be 1..100 or (min, max) of it, got {quality!r}.")
        self.quality = span

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"quality": integer(self.quality[0], self.quality[1] + 1)}

    def transform(self, inpt: object, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.jpeg, inpt, params["quality"])


class UniformTemporalSubsample(Transform):
    """Evenly spaced frames of videos.

    >>> votive.vision.transforms.UniformTemporalSubsample(3)(votive.zeros(8, 3, 2, 2)).shape
    votive.Size([3, 3, 2, 2])
    """

    _transformed_types = (is_pure_tensor, Video)

    def __init__(self, num_samples: int) -> None:
        super().__init__()
        self.num_samples = num_samples

    def transform(self, inpt: object, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.uniform_temporal_subsample, inpt, self.num_samples)
