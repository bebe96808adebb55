"""Records for resizing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tests.ops.catalog import S, op
from tests.ops.records.adaptive_pooling import adaptive_avg
from tests.ops.records.convolution import each


def keys(d: float, a: float) -> float:
    """The cubic convolution kernel."""
    d = abs(d)
    if d < 1:
        return (a + 2) * d**3 - (a + 3) * d**2 + 1
    return a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a if d < 2 else 0.0


FILTERS = {
    "bilinear": lambda d: max(1 - abs(d), 0.0),
    "bicubic": lambda d: keys(d, -0.5),
    "lanczos": lambda d: float(np.sinc(d) * np.sinc(d / 3)) if abs(d) < 3 else 0.0,
}


def matrix(n: int, o: int, mode: str, align: bool, step: float, smooth: bool) -> Any:
    """The (o, n) matrix that resizes one dimension."""
    out = np.zeros((o, n))
    for i in range(o):
        at = i * step if align and not smooth else (i + 0.5) * step - 0.5
        if mode == "nearest":
            out[i, min(int(i * step), n - 1)] = 1
        elif mode == "nearest-exact":
            out[i, min(int((i + 0.5) * step), n - 1)] = 1
        elif smooth:
            row = [FILTERS[mode]((j - at) / max(step, 1.0)) for j in range(n)]
            out[i] = np.array(row) / sum(row)
        elif mode == "bicubic":
            for j in range(math.floor(at) - 1, math.floor(at) + 3):
                out[i, min(max(j, 0), n - 1)] += keys(j - at, -0.75)
        else:
            at = min(max(at, 0.0), n - 1)
            out[i] = [max(1 - abs(j - at), 0.0) for j in range(n)]
    return out


def resize(
    x: Any,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: Any = None,
    recompute_scale_factor: Any = None,
    antialias: bool = False,
) -> Any:
    n = x.ndim - 2
    sizes = x.shape[2:]
    factor = None if scale_factor is None else each(scale_factor, n)
    size = each(size, n) if factor is None else [int(s * f) for s, f in zip(sizes, factor)]
    if mode == "area":
        return adaptive_avg(n)(x, tuple(size))
    for d, (i, o) in enumerate(zip(sizes, size), 2):
        if align_corners:
            step = (i - 1) / (o - 1) if o > 1 else 0.0
        else:
            step = i / o if factor is None or recompute_scale_factor else 1 / factor[d - 2]
        if i == o and mode != "bicubic":
            step = 1.0
        weights = matrix(i, o, mode, bool(align_corners), step, antialias)
        x = np.moveaxis(np.tensordot(weights, x, (1, d)), 0, d)
    return x


def options(**given: Any) -> dict[str, Any]:
    return given


X3, X4, X5 = S(2, 2, 5), S(2, 2, 4, 5), S(1, 2, 3, 4, 3)
BYTES = S(1, 3, 9, 8, dtype="uint8", low=0, high=256)

RECORDS = [
    op(
        "nn.functional.interpolate",
        samples=[
            (X3, 8),
            (X4, (3, 7)),
            (X5, 2),
            (X4, None, 2),
            (X4, None, (1.5, 0.6)),
            (X3, 7, options(mode="nearest-exact")),
            (X4, (3, 9), options(mode="nearest-exact")),
            (X3, 8, options(mode="linear")),
            (X3, 3, options(mode="linear", align_corners=True)),
            (X3, 1, options(mode="linear", align_corners=True)),
            (X4, (7, 3), options(mode="bilinear")),
            (X4, (7, 3), options(mode="bilinear", align_corners=True)),
            (X4, options(scale_factor=(1.7, 0.7), mode="bilinear")),
            (X4, options(scale_factor=1.7, mode="bilinear", recompute_scale_factor=True)),
            (X4, options(scale_factor=1.1, mode="bilinear")),  # 4 and 5 stay what they are
            (X4, (2, 9), options(mode="bilinear", antialias=True)),
            (X4, (7, 3), options(mode="bicubic")),
            (X4, (7, 3), options(mode="bicubic", align_corners=True)),
            (X4, options(scale_factor=(1.1, 1.7), mode="bicubic")),
            (S(1, 1, 9, 8), (3, 10), options(mode="bicubic", antialias=True)),
            (S(1, 1, 9, 8), (3, 10), options(mode="bicubic", antialias=True, align_corners=True)),
            (S(1, 1, 9, 8), (3, 10), options(mode="lanczos", antialias=True)),
            (X5, (5, 2, 4), options(mode="trilinear")),
            (X5, (5, 2, 4), options(mode="trilinear", align_corners=True)),
            (X3, 3, options(mode="area")),
            (X4, options(scale_factor=0.6, mode="area")),
            (X5, (2, 3, 5), options(mode="area")),
            (S(0, 2, 4, 5), 3, options(mode="bilinear")),
            (S(1, 1, 1, 1), (2, 3), options(mode="bicubic")),
        ],
        reference=resize,
        errors=[
            ((X4,), ValueError),
            ((X4, 2, 2.0), ValueError),
            ((X4, (2,)), ValueError),
            ((X4, (2, 2.5)), TypeError),
            ((X4, options(scale_factor=(2.0,))), ValueError),
            ((X4, 2, options(align_corners=False)), ValueError),
            ((X4, 2, options(recompute_scale_factor=True)), ValueError),
            ((X4, 2, options(antialias=True)), ValueError),
            ((X3, 2, options(mode="linear", antialias=True)), ValueError),
            ((X4, 2, options(mode="lanczos")), ValueError),
            ((X4, 2, options(mode="linear")), NotImplementedError),
            ((X3, 2, options(mode="bilinear")), NotImplementedError),
            ((X5, 2, options(mode="bicubic")), NotImplementedError),
            ((X4, 2, options(mode="sharp")), NotImplementedError),
            ((S(2, 3), ()), NotImplementedError),
            ((X4, (0, 2)), RuntimeError),
            ((X4, options(scale_factor=0.1)), RuntimeError),
            ((S(2, 2, 0, 5), 2), RuntimeError),
            ((S(2, 0, 4, 5), 2), RuntimeError),
            ((S(2, 2, 4, 5, dtype="int64"), 2), NotImplementedError),
            ((S(2, 2, 5, dtype="uint8"), 2, options(mode="linear")), NotImplementedError),
        ],
    ),
    # Bytes are mixed in fixed point and rounded after each dimension: torch is the reference.
    op(
        "nn.functional.interpolate",
        samples=[
            (BYTES, (5, 12)),
            (BYTES, (5, 12), options(mode="bilinear")),
            (BYTES, (9, 3), options(mode="bilinear", antialias=True)),
            (BYTES, (5, 12), options(mode="bicubic")),
            (BYTES, (5, 3), options(mode="bicubic", antialias=True)),
            (S(1, 5, 7, 7, dtype="uint8", low=0, high=256), (4, 9), options(mode="bicubic")),
        ],
        grad=False,
    ),
    op(
        "nn.functional.upsample",
        samples=[(X4, (3, 7)), (X3, options(scale_factor=2, mode="linear", align_corners=True))],
        reference=resize,
        torch=False,  # warns that it is deprecated
        errors=[((X4,), ValueError)],
    ),
    op(
        "nn.functional.upsample_nearest",
        samples=[(X4, (3, 7)), (X5, None, 2)],
        reference=resize,
        torch=False,
        errors=[((X4,), ValueError)],
    ),
    op(
        "nn.functional.upsample_bilinear",
        samples=[(X4, (3, 7)), (X4, None, 2)],
        reference=lambda x, size=None, factor=None: resize(x, size, factor, "bilinear", True),
        torch=False,
        errors=[((X3, 2), NotImplementedError)],
    ),
]
