"""Augmentations that choose for themselves: AutoAugment, RandAugment, TrivialAugment, AugMix.

Each draws a list of steps (operation, strength) first and applies it then, so that the same list
can be applied again. Knows pictures; masks and boxes are refused, as in torchvision.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import Enum
from typing import Any

import numpy as np

from ...ops.registry import F as ops
from ...tensor import Tensor
from ..tv_tensors import BoundingBoxes, KeyPoints, Mask, Video, wrap
from ..types import FillByKind, Picture
from . import functional as F
from . import policies
from .base import PICTURES, Transform, as_sample, chance, check_type, flatten, integer
from .functional.conversion import max_value
from .functional.interpolation import Interpolation, mode_of
from .functional.kernels import is_pil

Steps = list[tuple[str, float]]


class AutoAugmentPolicy(Enum):
    """The data set that a policy was found on.

    >>> votive.vision.transforms.AutoAugmentPolicy.CIFAR10.value
    'cifar10'
    """

    IMAGENET = "imagenet"
    CIFAR10 = "cifar10"
    SVHN = "svhn"


def strengths(range_: policies.Range | None, steps: int, height: int, width: int, bits: bool) -> np.ndarray | None:
    """`steps` strengths of an operation, from weakest to strongest; None if it has none."""
    if range_ is None:
        return None
    low, high, _ = range_
    if isinstance(high, tuple):
        high = {"width": width, "height": height}[high[0]] * high[1]
    if bits:
        # Numbers of bits: rounded to even in single precision, as in torchvision.
        each = np.float32((steps - 1) / (low - high))
        return np.round(np.float32(low) - np.arange(steps, dtype=np.float32) / each)
    return ops.linspace(low, high, steps).numpy()


class _Augment(Transform):
    """Applies steps to the picture of a sample."""

    def __init__(self, interpolation: Interpolation, fill: FillByKind) -> None:
        super().__init__()
        self.interpolation = mode_of(type(self).__name__, interpolation)
        self._set_fill(fill)

    def _picture(self, leaves: list[Any]) -> int:
        """Which of the leaves is the picture."""
        name = type(self).__name__
        for leaf in leaves:
            if isinstance(leaf, (BoundingBoxes, KeyPoints, Mask)):
                raise TypeError(f"{name}: does not take {type(leaf).__name__}.")
        needs = self._needs_transform_list(leaves)
        found = [k for k, n in enumerate(needs) if n and check_type(leaves[k], PICTURES)]
        if len(found) != 1:
            raise TypeError(f"{name}: needs one picture in a sample, found {len(found)}.")
        return found[0]

    def make_steps(self, height: int, width: int) -> Steps:
        """What will be done, drawn at random."""
        raise NotImplementedError

    def _step(self, space: policies.Space, name: str, bins: int, at: int, height: int, width: int) -> tuple[str, float]:
        range_ = space[name]
        found = strengths(range_, bins, height, width, name == "Posterize")
        if range_ is None or found is None:
            return name, 0.0
        strength = float(found[at])
        return name, -strength if range_[2] and chance(0.5) else strength

    def _one_of(self, space: policies.Space) -> str:
        return list(space)[integer(0, len(space))]

    def apply(self, image: Any, steps: Steps) -> Any:  # type: ignore[override]  # of a module without parts
        """The picture after the steps, one after the other."""
        for name, strength in steps:
            image = self._applied(image, name, strength)
        return image

    def _applied(self, image: Picture, name: str, strength: float) -> Any:
        mode, fill = self.interpolation, self._fill(image)
        if name in ("ShearX", "ShearY"):
            slant = math.degrees(math.atan(strength))
            shear = [slant, 0.0] if name == "ShearX" else [0.0, slant]
            # About the corner: a row or column at the border stays in place.
            return F.affine(image, 0.0, [0, 0], 1.0, shear, mode, fill, center=[0, 0])
        if name in ("TranslateX", "TranslateY"):
            by = [int(strength), 0] if name == "TranslateX" else [0, int(strength)]
            return F.affine(image, 0.0, by, 1.0, [0.0, 0.0], mode, fill)
        if name == "Rotate":
            return F.rotate(image, strength, mode, fill=fill)
        if name == "Solarize":
            top = max_value(image.dtype) if isinstance(image, Tensor) else 255
            return F.solarize(image, top * strength)
        if name in _FACTORS:
            return _FACTORS[name](image, 1.0 + strength)
        if name == "Posterize":
            return F.posterize(image, int(strength))
        return _PLAIN[name](image)

    def forward(self, *inputs: object) -> Any:
        leaves, rebuild = flatten(as_sample(inputs))
        at = self._picture(leaves)
        height, width = F.get_size(leaves[at])
        leaves[at] = self.apply(leaves[at], self.make_steps(height, width))
        return rebuild(leaves)


_FACTORS: dict[str, Callable[[Any, float], Any]] = {
    "Brightness": F.adjust_brightness,
    "Color": F.adjust_saturation,
    "Contrast": F.adjust_contrast,
    "Sharpness": F.adjust_sharpness,
}
_PLAIN: dict[str, Callable[[Any], Any]] = {
    "Identity": lambda image: image,
    "AutoContrast": F.autocontrast,
    "Equalize": F.equalize,
    "Invert": F.invert,
}


class AutoAugment(_Augment):
    """One of 25 pairs of operations that were found by search (Cubuk et al. 2019).

    >>> image = votive.zeros(3, 8, 8, dtype=votive.uint8)
    >>> votive.vision.transforms.AutoAugment()(image).shape
    votive.Size([3, 8, 8])
    """

    def __init__(
        self,
        policy: AutoAugmentPolicy = AutoAugmentPolicy.IMAGENET,
        interpolation: Interpolation = F.InterpolationMode.NEAREST,
        fill: FillByKind = None,
    ) -> None:
        super().__init__(interpolation, fill)
        if not isinstance(policy, AutoAugmentPolicy):
            raise ValueError(f"AutoAugment: policy must be an AutoAugmentPolicy, got {policy!r}.")
        self.policy = policy
        self._policies = getattr(policies, policy.name)

    def make_steps(self, height: int, width: int) -> Steps:
        chosen = self._policies[integer(0, len(self._policies))]
        return [
            self._step(policies.AUTO, name, 10, at or 0, height, width)
            for name, probability, at in chosen
            if chance(probability)
        ]


class RandAugment(_Augment):
    """`num_ops` random operations of one strength, step `magnitude` of `num_magnitude_bins`.

    >>> image = votive.zeros(3, 8, 8, dtype=votive.uint8)
    >>> votive.vision.transforms.RandAugment()(image).shape
    votive.Size([3, 8, 8])
    """

    def __init__(
        self,
        num_ops: int = 2,
        magnitude: int = 9,
        num_magnitude_bins: int = 31,
        interpolation: Interpolation = F.InterpolationMode.NEAREST,
        fill: FillByKind = None,
    ) -> None:
        super().__init__(interpolation, fill)
        if not isinstance(num_ops, int) or num_ops < 0:
            raise ValueError(f"RandAugment: num_ops must be a non-negative int, got {num_ops!r}.")
        if not 0 <= magnitude < num_magnitude_bins:
            raise ValueError(f"RandAugment: magnitude must be in 0..{num_magnitude_bins - 1}, got {magnitude}.")
        self.num_ops, self.magnitude, self.num_magnitude_bins = num_ops, magnitude, num_magnitude_bins

    def make_steps(self, height: int, width: int) -> Steps:
        bins, at = self.num_magnitude_bins, self.magnitude
        names = [self._one_of(policies.RAND) for _ in range(self.num_ops)]
        return [self._step(policies.RAND, name, bins, at, height, width) for name in names]


class TrivialAugmentWide(_Augment):
    """One random operation of a random strength (Müller and Hutter 2021).

    >>> image = votive.zeros(3, 8, 8, dtype=votive.uint8)
    >>> votive.vision.transforms.TrivialAugmentWide()(image).shape
    votive.Size([3, 8, 8])
    """

    def __init__(
        self,
        num_magnitude_bins: int = 31,
        interpolation: Interpolation = F.InterpolationMode.NEAREST,
        fill: FillByKind = None,
    ) -> None:
        super().__init__(interpolation, fill)
        self.num_magnitude_bins = num_magnitude_bins

    def make_steps(self, height: int, width: int) -> Steps:
        name, bins = self._one_of(policies.TRIVIAL), self.num_magnitude_bins
        return [self._step(policies.TRIVIAL, name, bins, integer(0, bins), height, width)]


class AugMix(_Augment):
    """The image mixed with `mixture_width` chains of random operations (Hendrycks et al. 2020).

    >>> image = votive.zeros(3, 8, 8, dtype=votive.uint8)
    >>> votive.vision.transforms.AugMix()(image).shape
    votive.Size([3, 8, 8])
    """

    def __init__(
        self,
        severity: int = 3,
        mixture_width: int = 3,
        chain_depth: int = -1,
        alpha: float = 1.0,
        all_ops: bool = True,
        interpolation: Interpolation = F.InterpolationMode.BILINEAR,
        fill: FillByKind = None,
    ) -> None:
        super().__init__(interpolation, fill)
        if not 1 <= severity <= 10:
            raise ValueError(f"AugMix: severity must be in 1..10, got {severity}.")
        self.severity, self.mixture_width, self.chain_depth = severity, mixture_width, chain_depth
        self.alpha, self.all_ops = alpha, all_ops

    def make_steps(self, height: int, width: int) -> Steps:
        """One chain."""
        space = policies.AUGMIX if self.all_ops else policies.AUGMIX_PARTIAL
        depth = self.chain_depth if self.chain_depth > 0 else integer(1, 4)
        names = [self._one_of(space) for _ in range(depth)]
        return [self._step(space, n, 10, integer(0, self.severity), height, width) for n in names]

    def _shares(self, count: int, parts: int) -> Tensor:
        """(count, parts) random shares of 1, from a symmetric Dirichlet distribution."""
        from ...distributions import Dirichlet

        return Dirichlet(ops.full((count, parts), self.alpha)).sample()

    def mixed(self, image: Tensor, chains: list[Steps], own: Tensor, others: Tensor) -> Tensor:
        """`own` parts of the images themselves and (N, chains) `others` parts of their chains."""
        shape, kind = tuple(image.shape), image.dtype
        dims = 5 if isinstance(image, Video) else 4
        batch = image.reshape((1,) * max(dims - len(shape), 0) + shape)
        ones = (batch.shape[0], *(1,) * (batch.ndim - 1))
        wide = batch if kind.is_floating_point else batch.float()
        mix = own.reshape(ones).to(wide.dtype) * wide
        for k, chain in enumerate(chains):
            mix = mix + others[:, k].reshape(ones).to(wide.dtype) * self.apply(batch, chain)
        return mix.reshape(shape).to(kind)

    def forward(self, *inputs: object) -> Any:
        leaves, rebuild = flatten(as_sample(inputs))
        at = self._picture(leaves)
        given = leaves[at]
        image = F.pil_to_tensor(given) if is_pil(given) else given
        height, width = F.get_size(image)
        dims = 5 if isinstance(image, Video) else 4
        count = image.shape[0] if image.ndim >= dims else 1
        both = self._shares(count, 2)
        others = self._shares(count, self.mixture_width) * both[:, 1:]
        chains = [self.make_steps(height, width) for _ in range(self.mixture_width)]
        mix = self.mixed(image, chains, both[:, 0], others)
        leaves[at] = F.to_pil_image(mix) if is_pil(given) else wrap(mix, like=given)
        return rebuild(leaves)
