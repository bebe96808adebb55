"""Batches mixed with themselves: MixUp and CutMix. Knows batches of images and labels."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from ...nn import functional as NF
from ...ops.registry import F as ops
from ...tensor import Tensor
from ..tv_tensors import BoundingBoxes, Image, KeyPoints, Mask, Video, wrap
from .base import Transform, as_sample, flatten, has_any, integer, query_size
from .functional.kernels import is_pil, is_pure_tensor

Getter = str | Callable[[Any], Any] | None


def labels_in(sample: object) -> Any:
    """The labels of a sample: its second item, or what a dict holds under a name like `labels`."""
    if isinstance(sample, (tuple, list)):
        sample = sample[1]
    if is_pure_tensor(sample):
        return sample
    if not isinstance(sample, Mapping):
        raise ValueError(
            "labels_getter='default': needs a dict, or a pair of a picture and a dict or tensor, "
            f"got {type(sample).__name__}."
        )
    exact = [k for k in sample if k.lower() == "labels"]
    near = [k for k in sample if "label" in k.lower()]
    if not exact and not near:
        raise ValueError(
            f"labels_getter='default': no name in {list(sample)} contains 'label'; pass a "
            "function, or None if there are no labels."
        )
    return sample[(exact or near)[0]]


def labels_finder(name: str, getter: Getter) -> Callable[[Any], Any]:
    """The function that finds the labels of a sample."""
    if getter == "default":
        return labels_in
    if getter is None:
        return lambda sample: None
    if callable(getter):
        return getter
    raise ValueError(f"{name}: labels_getter must be 'default', a function or None, got {getter!r}.")


class _Mixing(Transform):
    """Each image with the one before it in the batch, labels in the same proportion."""

    def __init__(
        self, *, alpha: float = 1.0, num_classes: int | None = None, labels_getter: Getter = "default"
    ) -> None:
        super().__init__()
        self.alpha = float(alpha)
        self.num_classes = num_classes
        self._find_labels = labels_finder(type(self).__name__, labels_getter)

    def _share(self) -> float:
        """The part of the image itself, from Beta(alpha, alpha)."""
        from ...distributions import Beta

        return float(Beta(ops.tensor(self.alpha), ops.tensor(self.alpha)).sample().item())

    def _check_labels(self, labels: object) -> None:
        name = type(self).__name__
        if not isinstance(labels, Tensor):
            raise ValueError(f"{name}: labels must be a tensor, got {type(labels).__name__}.")
        shape = tuple(labels.shape)
        if labels.ndim not in (1, 2):
            raise ValueError(f"{name}: labels must be (N,) or (N, classes), got {shape}.")
        if labels.ndim == 1 and self.num_classes is None:
            raise ValueError(f"{name}: labels that are numbers of classes need num_classes.")
        if labels.ndim == 2 and self.num_classes not in (None, shape[1]):
            raise ValueError(f"{name}: labels {shape} do not fit num_classes={self.num_classes}.")

    def forward(self, *inputs: object) -> Any:
        sample = as_sample(inputs)
        leaves, rebuild = flatten(sample)
        name = type(self).__name__
        if has_any(leaves, is_pil, BoundingBoxes, KeyPoints, Mask):
            raise ValueError(f"{name}: does not take PIL images, boxes, points and masks.")
        labels = self._find_labels(sample)
        self._check_labels(labels)
        # Labels are no picture, even where they come first.
        needs = self._needs_transform_list([None if leaf is labels else leaf for leaf in leaves])
        pictures = [leaf for leaf, need in zip(leaves, needs, strict=True) if need]
        for picture in pictures:
            wanted = 5 if isinstance(picture, Video) else 4
            if picture.ndim != wanted or picture.shape[0] != labels.shape[0]:
                raise ValueError(
                    f"{name}: needs a batch of {labels.shape[0]} pictures with {wanted} "
                    f"dimensions, got shape {tuple(picture.shape)}."
                )
        params = self.make_params(pictures)
        share = params["lam_adjusted"] if "lam_adjusted" in params else params["lam"]
        return rebuild(
            [
                self._mixed_labels(leaf, share) if leaf is labels else self.transform(leaf, params) if need else leaf
                for leaf, need in zip(leaves, needs, strict=True)
            ]
        )

    def _mixed_labels(self, labels: Tensor, share: float) -> Tensor:
        if labels.ndim == 1:
            labels = NF.one_hot(labels.long(), self.num_classes)
        labels = labels if labels.dtype.is_floating_point else labels.float()
        return labels.roll(1, 0) * (1.0 - share) + labels * share


class MixUp(_Mixing):
    """Images and labels as weighted sums with their neighbours in the batch (Zhang et al. 2018).

    >>> mix = votive.vision.transforms.MixUp(num_classes=3)
    >>> images, labels = mix(votive.rand(4, 3, 8, 8), votive.tensor([0, 1, 2, 0]))
    >>> labels.shape, votive.allclose(labels.sum(1), votive.ones(4))
    (votive.Size([4, 3]), True)
    """

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"lam": self._share()}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        share = params["lam"]
        mixed = inpt.roll(1, 0) * (1.0 - share) + inpt * share
        return wrap(mixed, like=inpt)


class CutMix(_Mixing):
    """A rectangle of the neighbour put into each image, labels by area (Yun et al. 2019).

    >>> mix = votive.vision.transforms.CutMix(num_classes=3)
    >>> images, labels = mix(votive.rand(4, 3, 8, 8), votive.tensor([0, 1, 2, 0]))
    >>> images.shape, labels.shape
    (votive.Size([4, 3, 8, 8]), votive.Size([4, 3]))
    """

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        height, width = query_size(flat_inputs)
        half = 0.5 * math.sqrt(1.0 - self._share())
        x, y = integer(0, width), integer(0, height)
        across, down = int(half * width), int(half * height)
        x1, y1, x2, y2 = max(x - across, 0), max(y - down, 0), x + across, y + down
        x2, y2 = min(x2, width), min(y2, height)
        left = 1.0 - (x2 - x1) * (y2 - y1) / (width * height)
        return {"box": (x1, y1, x2, y2), "lam_adjusted": left}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        x1, y1, x2, y2 = params["box"]
        out = inpt.clone()
        out[..., y1:y2, x1:x2] = inpt.roll(1, 0)[..., y1:y2, x1:x2]
        return out if isinstance(out, Image) else wrap(out, like=inpt)
