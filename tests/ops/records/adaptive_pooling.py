"""Records for pooling to a given output size."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tests.ops.catalog import S, op
from tests.ops.records.convolution import each
from tests.ops.records.pooling import best, over_boxes, where_best

INDICES = {"return_indices": True}
NAN = float("nan")


def boxes_of(sizes: Any, wanted: Any) -> list[list[list[int]]]:
    """Elements of each adaptive window, for each dimension."""
    found = []
    for n, o in zip(sizes, each(wanted, len(sizes))):
        o = n if o is None else o
        found.append([list(range(i * n // o, math.ceil((i + 1) * n / o))) for i in range(o)])
    return found


def adaptive_avg(n: int) -> Any:
    return lambda x, size: over_boxes(x, boxes_of(x.shape[-n:], size), lambda v, _: v.mean(-1))


def adaptive_max(n: int) -> Any:
    def reference(x: Any, size: Any, return_indices: bool = False) -> Any:
        boxes = boxes_of(x.shape[-n:], size)
        values = over_boxes(x, boxes, best)
        return (values, over_boxes(x, boxes, where_best)) if return_indices else values

    return reference


def fractional(n: int) -> Any:
    """Window i of o starts at floor((i + u) a) - floor(u a), the last one at the end."""

    def reference(
        x: Any,
        kernel: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Any = None,
    ) -> Any:
        if x.ndim == n + 1:
            found = reference(x[None], kernel, output_size, output_ratio, return_indices, _random_samples)
            return tuple(f[0] for f in found) if return_indices else found[0]
        sizes, kernel = x.shape[-n:], each(kernel, n)
        size = each(output_size, n) if output_size else [int(s * r) for s, r in zip(sizes, output_ratio)]
        order = (1, 0) if n == 2 else (0, 1, 2)
        values, places = np.zeros((2, *x.shape[:2], *size))
        for at in np.ndindex(*x.shape[:2]):
            boxes = []
            for d in range(n):
                u = _random_samples[at][order[d]]
                a = (sizes[d] - kernel[d]) / max(size[d] - 1, 1)
                starts = [int((i + u) * a) - int(u * a) for i in range(size[d] - 1)]
                starts.append(sizes[d] - kernel[d])
                boxes.append([list(range(s, s + kernel[d])) for s in starts])
            values[at] = over_boxes(x[at], boxes, best)
            places[at] = over_boxes(x[at], boxes, where_best)
        return (values, places.astype(np.int64)) if return_indices else values

    return reference


def without_samples(name: str) -> Any:
    """torch's function without the gradient by samples, which it refuses; votive's is zero."""

    def twin(*args: Any, _random_samples: Any, **options: Any) -> Any:
        import torch

        fn = getattr(torch.nn.functional, name)
        return fn(*args, **options, _random_samples=_random_samples.detach())

    return twin


U = {"low": 0.0, "high": 1.0, "grad": False}
X1, X2, X3 = S(2, 3, 7), S(2, 2, 5, 4), S(1, 2, 4, 3, 5)
X5 = S(1, 2, 5, 6, 5)

ERRORS = [
    ((S(7), 2), RuntimeError),
    ((X1, -1), RuntimeError),
    ((X1, (1, 2)), RuntimeError),
    ((X1, None), TypeError),
    ((X1, 2.0), TypeError),
    ((S(2, 3, 0), 2), RuntimeError),
    ((S(2, 3, 7, dtype="int64"), 2), NotImplementedError),
]

RECORDS = [
    op(
        "nn.functional.adaptive_avg_pool1d",
        samples=[(X1, 3), (X1, (7,)), (X1, 10), (S(3, 7), 1), (S(0, 3, 7), 2)],
        reference=adaptive_avg(1),
        errors=ERRORS,
    ),
    op(
        "nn.functional.adaptive_avg_pool2d",
        samples=[(X2, 3), (X2, (None, 3)), (X2, (7, None)), (S(2, 5, 4), 1), (S(0, 2, 5, 4), 2)],
        reference=adaptive_avg(2),
        errors=[((S(5, 4), (2, 2)), ValueError), ((X2, (1,)), RuntimeError)],
    ),
    op(
        "nn.functional.adaptive_avg_pool3d",
        samples=[(X3, (3, 2, 1)), (S(2, 4, 3, 5), (2, None, 6)), (X3, 1)],
        reference=adaptive_avg(3),
        errors=[((S(4, 3, 5), (2, 2, 2)), ValueError)],
    ),
    op(
        "nn.functional.adaptive_max_pool1d",
        samples=[
            (X1, 3),
            (X1, 5, INDICES),
            (X1, 10, INDICES),
            (S(3, 7), 1, True),
            (S(0, 3, 7), 2),
            (S(values=[[[1, NAN, 2, NAN, 3, 4]]], grad=False), 2, INDICES),
        ],
        reference=adaptive_max(1),
        errors=[*ERRORS, ((S(2, 0, 7), 2), RuntimeError)],
    ),
    op(
        "adaptive_max_pool1d",
        samples=[(X1, 3), (S(3, 7), 1)],
        reference=lambda x, size: adaptive_max(1)(x, size, True),
        errors=ERRORS,
    ),
    op(
        "nn.functional.adaptive_max_pool2d",
        samples=[(X2, 3, INDICES), (X2, (None, 3)), (X2, (7, 2), INDICES), (S(2, 5, 4), 1)],
        reference=adaptive_max(2),
        errors=[((S(5, 4), (2, 2)), ValueError), ((X2, (1,)), RuntimeError)],
    ),
    op(
        "nn.functional.adaptive_max_pool3d",
        samples=[(X3, (3, 2, 1), INDICES), (S(2, 4, 3, 5), (2, None, 6)), (X3, 1)],
        reference=adaptive_max(3),
        errors=[((S(4, 3, 5), (2, 2, 2)), ValueError)],
    ),
    op(
        "nn.functional.fractional_max_pool2d",
        samples=[
            (S(2, 2, 6, 7), 2, (3, 4), {**INDICES, "_random_samples": S(2, 2, 2, **U)}),
            (S(2, 6, 7), (3, 2), None, (0.5, 0.6), {"_random_samples": S(1, 2, 2, **U)}),
            (S(2, 6, 7), (3, 2), 1, {"_random_samples": S(1, 2, 2, **U)}),
        ],
        reference=fractional(2),
        torch=without_samples("fractional_max_pool2d"),
        errors=[
            ((S(2, 6, 7), 3), ValueError),
            ((S(2, 6, 7), 3, (5, 2)), RuntimeError),
            ((S(2, 6, 7), 3, 2, {"_random_samples": S(1, 3, 2, **U)}), RuntimeError),
            ((S(6, 7), 3, 2), RuntimeError),
        ],
    ),
    op(
        "nn.functional.fractional_max_pool3d",
        samples=[
            (X5, (2, 3, 1), (2, 2, 3), {**INDICES, "_random_samples": S(1, 2, 3, **U)}),
            (S(2, 5, 6, 5), 2, None, (0.5, 0.6, 0.4), {"_random_samples": S(1, 2, 3, **U)}),
        ],
        reference=fractional(3),
        torch=without_samples("fractional_max_pool3d"),
        errors=[((S(2, 5, 6, 5), 3, (3, 2, 2)), RuntimeError)],
    ),
]
