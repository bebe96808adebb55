"""Random colours and tones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...ops.registry import F as ops
from ...tensor import Tensor
from . import functional as F
from .base import RandomApplyTransform, Transform, chance, query_chw, uniform
from .functional.kernels import Functional


class Grayscale(Transform):
    """The luma of the image, in one channel or in three.

    >>> votive.vision.transforms.Grayscale()(votive.zeros(3, 2, 2)).shape
    votive.Size([1, 2, 2])
    """

    def __init__(self, num_output_channels: int = 1) -> None:
        super().__init__()
        self.num_output_channels = num_output_channels

    def transform(self, inpt: object, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.rgb_to_grayscale, inpt, self.num_output_channels)


class RandomGrayscale(RandomApplyTransform):
    """Grey with probability `p`, with as many channels as before.

    >>> votive.vision.transforms.RandomGrayscale(p=1)(votive.zeros(3, 2, 2)).shape
    votive.Size([3, 2, 2])
    """

    def __init__(self, p: float = 0.1) -> None:
        super().__init__(p=p)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"num_input_channels": query_chw(flat_inputs)[0]}

    def transform(self, inpt: object, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.rgb_to_grayscale, inpt, params["num_input_channels"])


class RGB(Transform):
    """Three channels, from one if need be.

    >>> votive.vision.transforms.RGB()(votive.zeros(1, 2, 2)).shape
    votive.Size([3, 2, 2])
    """

    def transform(self, inpt: object, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.grayscale_to_rgb, inpt)


_ADJUST: tuple[tuple[str, Functional[..., Tensor]], ...] = (
    ("brightness_factor", F.adjust_brightness),
    ("contrast_factor", F.adjust_contrast),
    ("saturation_factor", F.adjust_saturation),
    ("hue_factor", F.adjust_hue),
)


def _range(name: str, value: object, centre: float, low: float, high: float) -> tuple[float, float] | None:
    """(min, max) of a factor, or None where it changes nothing."""
    if value is None:
        return None
    if isinstance(value, (int, float)):
        if value < 0:
            raise ValueError(f"ColorJitter: {name} must not be negative, got {value}.")
        span = [centre - value, centre + value]
        if centre == 1.0:
            span[0] = max(span[0], 0.0)
    elif isinstance(value, Sequence) and len(value) == 2:
        span = [float(v) for v in value]
    else:
        raise TypeError(f"ColorJitter: {name} must be a number or (min, max), got {value!r}.")
    if not low <= span[0] <= span[1] <= high:
        raise ValueError(f"ColorJitter: {name} must increase and lie in [{low}, {high}], got {span}.")
    return None if span[0] == span[1] == centre else (float(span[0]), float(span[1]))


class ColorJitter(Transform):
    """Brightness, contrast, saturation and hue changed by random factors, in random order.

    One number b means a factor in 1 - b .. 1 + b; for hue a rotation in -b .. b, at most 0.5.

    >>> votive.vision.transforms.ColorJitter(0.5, 0.5, 0.5, 0.1)(votive.zeros(3, 2, 2)).shape
    votive.Size([3, 2, 2])
    """

    def __init__(
        self,
        brightness: float | Sequence[float] | None = None,
        contrast: float | Sequence[float] | None = None,
        saturation: float | Sequence[float] | None = None,
        hue: float | Sequence[float] | None = None,
    ) -> None:
        super().__init__()
        infinite = float("inf")
        self.brightness = _range("brightness", brightness, 1.0, 0, infinite)
        self.contrast = _range("contrast", contrast, 1.0, 0, infinite)
        self.saturation = _range("saturation", saturation, 1.0, 0, infinite)
        self.hue = _range("hue", hue, 0.0, -0.5, 0.5)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        order, *drawn = self.get_params(self.brightness, self.contrast, self.saturation, self.hue)
        names = [name for name, _ in _ADJUST]
        return {"fn_idx": order.tolist(), **dict(zip(names, drawn, strict=True))}

    @staticmethod
    def get_params(
        brightness: Sequence[float] | None,
        contrast: Sequence[float] | None,
        saturation: Sequence[float] | None,
        hue: Sequence[float] | None,
    ) -> tuple[Tensor, float | None, float | None, float | None, float | None]:
        """The order of the four changes and a factor for each, from ranges or None."""
        order = ops.randperm(4)
        b, c, s, h = (None if span is None else uniform(*span) for span in (brightness, contrast, saturation, hue))
        return order, b, c, s, h

    def transform(self, inpt: object, params: dict[str, Any]) -> Any:
        for k in params["fn_idx"]:
            name, adjust = _ADJUST[int(k)]
            if params[name] is not None:
                inpt = self._call_kernel(adjust, inpt, params[name])
        return inpt


class RandomChannelPermutation(Transform):
    """Channels in random order.

    >>> votive.vision.transforms.RandomChannelPermutation()(votive.zeros(3, 2, 2)).shape
    votive.Size([3, 2, 2])
    """

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"permutation": ops.randperm(query_chw(flat_inputs)[0]).tolist()}

    def transform(self, inpt: object, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.permute_channels, inpt, params["permutation"])


class RandomPhotometricDistort(Transform):
    """The colour changes of SSD, each with probability `p` (Liu et al. 2016).

    >>> votive.vision.transforms.RandomPhotometricDistort()(votive.zeros(3, 2, 2)).shape
    votive.Size([3, 2, 2])
    """

    def __init__(
        self,
        brightness: Sequence[float] = (0.875, 1.125),
        contrast: Sequence[float] = (0.5, 1.5),
        saturation: Sequence[float] = (0.5, 1.5),
        hue: Sequence[float] = (-0.05, 0.05),
        p: float = 0.5,
    ) -> None:
        super().__init__()
        self.brightness, self.contrast, self.hue, self.saturation = brightness, contrast, hue, saturation
        self.p = p

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        channels = query_chw(flat_inputs)[0]
        spans = (self.brightness, self.contrast, self.saturation, self.hue)
        params: dict[str, Any] = {
            name: uniform(*span) if chance(self.p) else None for (name, _), span in zip(_ADJUST, spans, strict=True)
        }
        params["contrast_before"] = chance(0.5)
        shuffled = ops.randperm(channels).tolist() if chance(self.p) else None
        params["channel_permutation"] = shuffled
        return params

    def transform(self, inpt: object, params: dict[str, Any]) -> Any:
        brightness, contrast, saturation, hue = _ADJUST
        early = (brightness, contrast, saturation, hue)
        late = (brightness, saturation, hue, contrast)
        for name, adjust in early if params["contrast_before"] else late:
            if params[name] is not None:
                inpt = self._call_kernel(adjust, inpt, params[name])
        if params["channel_permutation"] is not None:
            inpt = self._call_kernel(F.permute_channels, inpt, params["channel_permutation"])
        return inpt


class RandomEqualize(RandomApplyTransform):
    """`functional.equalize` with probability `p`.

    >>> votive.vision.transforms.RandomEqualize(p=1)(votive.zeros(3, 2, 2)).shape
    votive.Size([3, 2, 2])
    """

    def transform(self, inpt: object, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.equalize, inpt)


class RandomInvert(RandomApplyTransform):
    """`functional.invert` with probability `p`.

    >>> votive.vision.transforms.RandomInvert(p=1)(votive.zeros(1, 1, 1))
    tensor([[[1.]]])
    """

    def transform(self, inpt: object, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.invert, inpt)


class RandomPosterize(RandomApplyTransform):
    """`functional.posterize` to `bits` bits with probability `p`.

    >>> votive.vision.transforms.RandomPosterize(1, p=1)(votive.full((1, 1, 1), 0.6))
    tensor([[[0.5000]]])
    """

    def __init__(self, bits: int, p: float = 0.5) -> None:
        super().__init__(p=p)
        self.bits = bits

    def transform(self, inpt: object, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.posterize, inpt, self.bits)


class RandomSolarize(RandomApplyTransform):
    """`functional.solarize` from `threshold` on with probability `p`.

    >>> votive.vision.transforms.RandomSolarize(0.5, p=1)(votive.ones(1, 1, 1))
    tensor([[[0.]]])
    """

    def __init__(self, threshold: float, p: float = 0.5) -> None:
        super().__init__(p=p)
        self.threshold = threshold

    def transform(self, inpt: object, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.solarize, inpt, self.threshold)


class RandomAutocontrast(RandomApplyTransform):
    """`functional.autocontrast` with probability `p`.

    >>> votive.vision.transforms.RandomAutocontrast(p=1)(votive.tensor([[[0.2, 0.4]]]))
    tensor([[[0., 1.]]])
    """

    def transform(self, inpt: object, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.autocontrast, inpt)


class RandomAdjustSharpness(RandomApplyTransform):
    """`functional.adjust_sharpness` with probability `p`.

    >>> votive.vision.transforms.RandomAdjustSharpness(2.0, p=1)(votive.zeros(3, 4, 4)).shape
    votive.Size([3, 4, 4])
    """

    def __init__(self, sharpness_factor: float, p: float = 0.5) -> None:
        super().__init__(p=p)
        self.sharpness_factor = sharpness_factor

    def transform(self, inpt: object, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.adjust_sharpness, inpt, self.sharpness_factor)
