"""ONNX's Resize in all its modes: along each dimension, a matrix of weights."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..ops.registry import F
from ..surface.interchange import from_numpy
from ..tensor import Tensor
from .read import Attributes, whole


def resized(a: Attributes, x: Tensor, roi: Any, scales: Any, sizes: Any) -> Any:
    """The input with other sizes."""
    if a.op == "Upsample" or a.opset < 11:
        scales, roi = (roi if scales is None else scales), None
    axes = [d % x.ndim for d in a("axes", range(x.ndim))]
    old = [x.shape[d] for d in axes]
    if sizes is not None and sizes.numel():
        new, factors = _fitted(a, whole(sizes), old)
    else:
        given = scales if scales is not None else F.tensor(a("scales"))
        factors = [float(s) for s in given.tolist()]
        new = [math.floor(n * s) for n, s in zip(old, factors, strict=True)]
    region = (
        [float(v) for v in roi.tolist()] if roi is not None and roi.numel() else [0.0] * len(axes) + [1.0] * len(axes)
    )
    count = len(axes)
    for i, d in enumerate(axes):
        if (
            new[i] == old[i]
            and factors[i] == 1
            and a("coordinate_transformation_mode", "half_pixel") != "tf_crop_and_resize"
        ):
            continue
        weights = _matrix(a, old[i], new[i], factors[i], region[i], region[count + i])
        matrix = from_numpy(weights.astype(np.float64))
        wide = x.transpose(d, -1).double() @ matrix
        x = wide.transpose(d, -1).to(x.dtype)
    return x


def _fitted(a: Attributes, wanted: list[int], old: list[int]) -> tuple[list[int], list[float]]:
    policy = a("keep_aspect_ratio_policy", "stretch")
    factors = [w / o for w, o in zip(wanted, old, strict=True)]
    if policy == "stretch":
        return wanted, factors
    one = min(factors) if policy == "not_larger" else max(factors)
    return [int(one * o + 0.5) for o in old], [one] * len(old)


def _place(a: Attributes, i: int, old: int, new: int, scale: float, lo: float, hi: float) -> float:
    """Which place of the input a place of the result shows."""
    mode = a("coordinate_transformation_mode", "half_pixel" if a.opset >= 11 and a.op == "Resize" else "asymmetric")
    if mode == "align_corners":
        length = old * scale  # not rounded, where scales were given
        return 0.0 if length == 1 else i * (old - 1) / (length - 1)
    if mode == "asymmetric":
        return i / scale
    if mode == "pytorch_half_pixel":
        return (i + 0.5) / scale - 0.5 if new > 1 else -0.5
    if mode == "half_pixel_symmetric":
        full = old * scale
        return old / 2 * (1 - new / full) + (i + 0.5) / scale - 0.5
    if mode == "tf_crop_and_resize":
        return lo * (old - 1) + i * (hi - lo) * (old - 1) / (new - 1) if new > 1 else 0.5 * (lo + hi) * (old - 1)
    return (i + 0.5) / scale - 0.5


def _matrix(a: Attributes, old: int, new: int, scale: float, lo: float, hi: float) -> np.ndarray[Any, Any]:
    mode = a("mode", "nearest")
    found = np.zeros((old, new))
    outside = a("coordinate_transformation_mode", "") == "tf_crop_and_resize"
    for i in range(new):
        at = _place(a, i, old, new, scale, lo, hi)
        if outside and not 0 <= at <= old - 1:
            found[:, i] = np.nan
            continue
        if mode == "nearest":
            found[min(max(_nearest(a, at), 0), old - 1), i] = 1
            continue
        for place, weight in _weights(a, at, mode, scale, old):
            found[min(max(place, 0), old - 1), i] += weight
    if outside and np.isnan(found).any():
        raise NotImplementedError("Resize: values outside of the region (extrapolation_value) are not supported.")
    return found


def _nearest(a: Attributes, at: float) -> int:
    how = a("nearest_mode", "round_prefer_floor" if a.opset >= 11 and a.op == "Resize" else "floor")
    if how == "floor":
        return math.floor(at)
    if how == "ceil":
        return math.ceil(at)
    if how == "round_prefer_ceil":
        return math.floor(at + 0.5)
    return math.ceil(at - 0.5)


def _weights(a: Attributes, at: float, mode: str, scale: float, old: int) -> list[tuple[int, float]]:
    """Places and weights of a filter around a place."""
    smooth = a("antialias", 0) and scale < 1
    stretch = scale if smooth else 1.0
    reach = (1 if mode == "linear" else 2) / stretch
    first, last = math.floor(at - reach) + 1, math.ceil(at + reach) - 1
    coefficient = a("cubic_coeff_a", -0.75)
    found = [(p, _filter(mode, abs(p - at) * stretch, coefficient)) for p in range(first, last + 1)]
    if not found:
        found = [(round(at), 1.0)]
    if a("exclude_outside", 0):
        found = [(p, w if 0 <= p < old else 0.0) for p, w in found]
    total = sum(w for _, w in found)
    return [(p, w / total) for p, w in found] if (smooth or a("exclude_outside", 0)) and total else found


def _filter(mode: str, x: float, a: float) -> float:
    if mode == "linear":
        return max(0.0, 1 - x)
    if x <= 1:
        return ((a + 2) * x - (a + 3)) * x * x + 1
    return (((x - 5) * x + 8) * x - 4) * a if x < 2 else 0.0
