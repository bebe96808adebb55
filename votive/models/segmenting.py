"""Maps of classes: from files and arrays, in other sizes, and from scores. Knows no model."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from votive.nn import functional as F

from ..tensor import Tensor
from .image_processing import BatchFeature
from .pixels import opened

Sizes = list[tuple[int, int]] | Tensor | None


def label_map(picture: Any) -> np.ndarray:
    """Classes (height, width) as 64-bit integers, of a path, a pillow image, an array or a tensor.

    >>> from votive.models.segmenting import label_map
    >>> label_map(np.zeros((1, 2, 3), np.uint8)).shape
    (2, 3)
    """
    if isinstance(picture, (str, os.PathLike)):
        picture = opened(picture)
    if isinstance(picture, Tensor):
        picture = picture.detach().cpu().numpy()
    x = np.asarray(picture)
    if x.ndim == 3 and x.shape[0] == 1:
        x = x[0]
    if x.ndim != 2 or (x.dtype.kind == "f" and not np.array_equal(x, np.floor(x))):
        raise ValueError(
            f"a map of classes must be (height, width) of whole numbers, got shape {x.shape} of {x.dtype}."
        )
    return x.astype(np.int64)


def nearest(x: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """A map (…, height, width) in another size, each pixel the one that lies there, as pillow takes it.

    >>> from votive.models.segmenting import nearest
    >>> nearest(np.array([[1, 2]]), (1, 4)).tolist()
    [[1, 1, 2, 2]]
    """
    rows, columns = (
        np.minimum(((np.arange(new) + 0.5) * (old / new)).astype(np.int64), old - 1)
        for new, old in zip(size, x.shape[-2:], strict=True)
    )
    return x[..., rows[:, None], columns]


def sizes_of(target_sizes: Sizes, count: int) -> list[tuple[int, int]] | None:
    """Heights and widths for so many pictures, from pairs or a tensor (pictures, 2).

    >>> from votive.models.segmenting import sizes_of
    >>> sizes_of(votive.tensor([[4, 6]]), 1)
    [(4, 6)]
    """
    if target_sizes is None:
        return None
    if len(target_sizes) != count:
        raise ValueError(f"target_sizes has {len(target_sizes)} sizes for {count} pictures; give one for each.")
    pairs = target_sizes.tolist() if isinstance(target_sizes, Tensor) else target_sizes
    return [(int(height), int(width)) for height, width in pairs]


def semantic_maps(scores: Tensor, target_sizes: Sizes, with_scores: bool) -> list[Tensor] | list[BatchFeature]:
    """The best class of each pixel, of scores (pictures, classes, height, width).

    >>> from votive.models.segmenting import semantic_maps
    >>> semantic_maps(votive.tensor([[[[0.0]], [[1.0]]]]), [(1, 2)], False)
    [tensor([[1, 1]])]
    """
    sizes, found = sizes_of(target_sizes, scores.shape[0]), []
    for i in range(scores.shape[0]):
        one = scores[i : i + 1]
        if sizes is not None:
            one = F.interpolate(one, size=sizes[i], mode="bilinear", align_corners=False)
        found.append(one[0])
    if with_scores:
        return [BatchFeature(segmentation=one.argmax(0), segmentation_scores=one) for one in found]
    return [one.argmax(0) for one in found]
