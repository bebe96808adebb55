"""Records for pooling over sliding windows."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.ops.catalog import S, op
from tests.ops.records.convolution import each

INF, NAN = float("inf"), float("nan")


def over_boxes(x: Any, boxes: list[list[list[int]]], pick: Callable[[Any, Any], Any]) -> Any:
    """`pick(values, flat positions)` for every window; boxes list its elements per dimension."""
    n = len(boxes)
    sizes, lead = x.shape[-n:], x.shape[:-n]
    flat = x.reshape(*lead, math.prod(sizes))
    found = []
    for at in np.ndindex(*(len(b) for b in boxes)):
        grid = np.meshgrid(*(boxes[d][at[d]] for d in range(n)), indexing="ij")
        position = np.ravel_multi_index([g.reshape(-1) for g in grid], sizes)
        found.append(pick(flat[..., position], position))
    shape = (*lead, *(len(b) for b in boxes))
    return np.stack(found, -1).reshape(shape) if found else np.zeros(shape)


def boxes_of(sizes: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil: bool) -> list[list[list[int]]]:
    """Elements of each window within the input, for each dimension."""
    n = len(sizes)
    kernel = each(kernel, n)
    stride = each(stride or kernel, n)
    found = []
    for i, k, s, p, d in zip(sizes, kernel, stride, each(padding, n), each(dilation, n)):
        windows, start = [], -p
        # Whole windows, then with ceil one that hangs over, if it does not start behind the end.
        while start + d * (k - 1) < i + p or (ceil and start < i and start - s + d * (k - 1) < i + p - 1):
            windows.append([e for e in range(start, start + d * k, d) if 0 <= e < i])
            start += s
        found.append(windows)
    return found


def best(values: Any, positions: Any) -> Any:
    return values[..., 0] if values.shape[-1] == 1 else values.max(-1)


def where_best(values: Any, positions: Any) -> Any:
    """The first of the largest values; the last NaN."""
    nan = np.isnan(values)
    last = values.shape[-1] - 1 - np.argmax(nan[..., ::-1], -1)
    return positions[np.where(nan.any(-1), last, np.argmax(values, -1))]


def max_pool(n: int) -> Any:
    def reference(
        x: Any,
        kernel: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        boxes = boxes_of(x.shape[-n:], kernel, stride, padding, dilation, ceil_mode)
        values = over_boxes(x, boxes, best)
        return (values, over_boxes(x, boxes, where_best)) if return_indices else values

    return reference


def avg_pool(n: int) -> Any:
    def reference(
        x: Any,
        kernel: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: Any = None,
    ) -> Any:
        sizes, around = x.shape[-n:], each(padding, n)
        boxes = boxes_of(sizes, kernel, stride, padding, 1, ceil_mode)
        total = over_boxes(x, boxes, lambda v, _: v.sum(-1))
        if divisor_override is not None:
            counts: Any = np.array(divisor_override)
        else:
            step = each(stride or kernel, n)
            counts = np.ones(())
            for d, (windows, k) in enumerate(zip(boxes, each(kernel, n))):
                starts = [w * step[d] - around[d] for w in range(len(windows))]
                ends = [min(s + k, sizes[d] + around[d]) for s in starts]
                inside = [len(w) for w in windows]
                full = [e - s for s, e in zip(starts, ends)]
                counts = np.multiply.outer(counts, full if count_include_pad else inside)
        quotient = total / counts
        return np.trunc(quotient).astype(np.int64) if x.dtype.kind == "i" else quotient

    return reference


def lp_pool(n: int) -> Any:
    def reference(x: Any, p: float, kernel: Any, stride: Any = None, ceil_mode: bool = False) -> Any:
        boxes = boxes_of(x.shape[-n:], kernel, stride, 0, 1, ceil_mode)
        if p == INF:
            return over_boxes(np.abs(x), boxes, best)
        if p == -INF:
            return over_boxes(np.abs(x), boxes, lambda v, _: v.min(-1))
        # torch makes up for missing elements: a window that hangs over counts as a whole one.
        whole = math.prod(each(kernel, n))
        return over_boxes(x, boxes, lambda v, _: ((v**p).mean(-1) * whole) ** (1 / p))

    return reference


def max_unpool(n: int) -> Any:
    def reference(
        x: Any, index: Any, kernel: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
    ) -> Any:
        kernel = each(kernel, n)
        stride = kernel if stride is None else each(stride, n)
        size = output_size and output_size[-n:]
        size = size or [(i - 1) * s + k - 2 * p for i, k, s, p in zip(x.shape[-n:], kernel, stride, each(padding, n))]
        lead = x.shape[:-n]
        out = np.zeros((*lead, math.prod(size)), x.dtype)
        for at in np.ndindex(*x.shape):
            out[(*at[:-n], index[at])] = x[at]
        return out.reshape(*lead, *size)

    return reference


INDICES = {"return_indices": True}
CEIL = {"ceil_mode": True, "return_indices": True}
NANS = S(values=[[[1, NAN, 2, NAN, 3, 4, 1]]], grad=False)
LOWEST = S(values=[[[-INF, -INF, -INF, 1]]], grad=False)
TIES = S(values=[[[2, 2, 1, 2]]], grad=False)
X1, X2, X3 = S(2, 3, 7), S(2, 2, 5, 6), S(1, 2, 4, 5, 4)
LONG = {"dtype": "int64", "low": -9, "high": 9}

POOL_ERRORS = [
    ((S(7), 2), RuntimeError),
    ((X1, 8), RuntimeError),
    ((X1, 0), RuntimeError),
    ((X1, 2, 0), RuntimeError),
    ((X1, 2, 1, 2), RuntimeError),
    ((X1, 2, 1, -1), RuntimeError),
    ((X1, (2, 2)), RuntimeError),
    ((X1, 2.0), TypeError),
    ((S(2, 0, 7), 2), RuntimeError),
    ((S(2, 3, 0), 2), RuntimeError),
    ((S(2, 3, 7, dtype="complex128"), 2), NotImplementedError),
]

RECORDS = [
    op(
        "nn.functional.max_pool1d",
        samples=[
            (X1, 3),
            (X1, 3, 2, 1, 1, True, INDICES),
            (X1, 2, 3, 1, 2, True, INDICES),
            (X1, 2, 1, 1, 3, INDICES),
            (S(3, 7), (7,), (1,), INDICES),
            (S(0, 3, 7), 2, INDICES),
            (NANS, 3, 1, 1, INDICES),
            (LOWEST, 2, 1, 1, INDICES),
            (TIES, 3, 1, 1, INDICES),
        ],
        reference=max_pool(1),
        errors=[*POOL_ERRORS, ((X1, 2, 1, 0, 0), RuntimeError)],
    ),
    op(
        "nn.functional.max_pool2d",
        samples=[
            (X2, 2),
            (X2, (3, 2), (1, 2), (1, 0), (1, 2), True, INDICES),
            (X2, 2, 2, CEIL),
            (X2, 2, 3, 1, CEIL),
            (X2, 1, 3, CEIL),
            (S(2, 5, 6), 2, (), INDICES),
            (S(0, 2, 5, 6), 2),
            (S(values=[[[NAN, 1, 2], [NAN, 3, 4], [1, 1, 1]]], grad=False), 3, 1, 1, INDICES),
            (S(1, 1, 4, 4, dtype="uint8", low=0, high=9), 3, 1, 1, INDICES),
            (S(1, 1, 4, 4, **LONG), 3, 2, 1, INDICES),
        ],
        reference=max_pool(2),
        errors=[((S(5, 6), 2), RuntimeError), ((X2, (6, 1)), RuntimeError)],
    ),
    op(
        "nn.functional.max_pool3d",
        samples=[
            (X3, 2),
            (X3, (2, 3, 2), 2, 1, 1, True, INDICES),
            (S(2, 4, 5, 4), 2, 1, 0, 2, INDICES),
            (S(0, 2, 4, 5, 4), 2),
        ],
        reference=max_pool(3),
        errors=[((S(4, 5, 4), 2), RuntimeError), ((X3, (1, 2)), RuntimeError)],
    ),
    op(
        "nn.functional.avg_pool1d",
        samples=[
            (X1, 3),
            (X1, 3, 2, 1, True),
            (X1, 3, 2, 1, True, False),
            (X1, 2, 4, 1, True),
            (X1, 2, 5),
            (S(3, 7), (2,), (3,), (1,)),
            (S(0, 3, 7), 2),
            (S(values=[[[1, INF, 2, NAN, 3, 4, 1]]], grad=False), 2),
            (S(2, 3, 8, **LONG), 3, 1, 1),
        ],
        reference=avg_pool(1),
        errors=POOL_ERRORS,
    ),
    op(
        "nn.functional.avg_pool2d",
        samples=[
            (X2, 2),
            (X2, (3, 2), (2, 3), (1, 1), True, False),
            (X2, (3, 2), (2, 3), (1, 1), True, True),
            (X2, (3, 2), 1, 0, False, True, 5),
            (X2, 2, {"divisor_override": -3}),
            (S(2, 5, 6), 3, ()),
            (S(0, 2, 5, 6), 2),
            (S(1, 2, 5, 6, **LONG), 3, 2, 1, {"divisor_override": 2}),
        ],
        reference=avg_pool(2),
        errors=[((X2, 7), RuntimeError), ((X2, 2, {"divisor_override": 0}), RuntimeError)],
    ),
    op(
        "nn.functional.avg_pool3d",
        samples=[
            (X3, 2),
            (X3, (2, 3, 1), 2, (1, 1, 0), True, False),
            (X3, (2, 3, 1), 2, (1, 1, 0), True, True, 7),
            (S(2, 4, 5, 4), 3),
        ],
        reference=avg_pool(3),
        errors=[((S(4, 5, 4), 2), RuntimeError)],
    ),
    op(
        "nn.functional.lp_pool1d",
        samples=[
            (X1, 2, 3),
            (X1, 3.0, 3, 2, True),
            (S(3, 7), 1, 2),
            (S(2, 3, 7, low=-2, high=2), INF, 3),
            (S(2, 3, 7, low=-2, high=2), -INF, 3),
        ],
        reference=lp_pool(1),
        domain=(0.1, 2.0),
        errors=[((X1, 2, 8), RuntimeError)],
    ),
    op(
        "nn.functional.lp_pool2d",
        samples=[(X2, 2, 2), (X2, 1.5, (2, 3), 2, True), (S(2, 5, 6), 3, 2)],
        reference=lp_pool(2),
        domain=(0.1, 2.0),
        errors=[((X2, 2, 7), RuntimeError)],
    ),
    op(
        "nn.functional.lp_pool3d",
        samples=[(X3, 2, 2), (X3, 3, (2, 3, 1), 2, True)],
        reference=lp_pool(3),
        domain=(0.1, 2.0),
        errors=[((X3, 2, 7), RuntimeError)],
    ),
    op(
        "nn.functional.max_unpool1d",
        samples=[
            (S(1, 2, 3), S(values=[[[0, 3, 4], [1, 2, 5]]], dtype="int64"), 2),
            (S(2, 2), S(values=[[2, 3], [0, 4]], dtype="int64"), 2, 2, 0, (5,)),
            (S(1, 1, 3), S(values=[[[4, 0, 2]]], dtype="int64"), 3, 2, 1),
            (S(0, 2, 3), S(0, 2, 3, dtype="int64", low=0, high=1), 2),
        ],
        reference=max_unpool(1),
        errors=[
            ((S(1, 1, 2), S(values=[[[0, 5]]], dtype="int64"), 2), RuntimeError),
            ((S(1, 1, 2), S(values=[[[0, 1, 2]]], dtype="int64"), 2), RuntimeError),
            ((S(1, 1, 2), S(values=[[[0, 1]]], dtype="int32"), 2), RuntimeError),
            ((S(1, 1, 2), S(values=[[[0, 1]]], dtype="int64"), 2, 2, 0, (9,)), ValueError),
            ((S(1, 1, 2), S(values=[[[0, 1]]], dtype="int64"), 2, 2, 0, (1, 4)), ValueError),
        ],
    ),
    op(
        "nn.functional.max_unpool2d",
        samples=[
            (S(1, 1, 2, 2), S(values=[[[[0, 3], [12, 15]]]], dtype="int64"), 2),
            (S(1, 2, 1), S(values=[[[1], [7]]], dtype="int64"), (2, 1), (2, 2), 0, (5, 2)),
        ],
        reference=max_unpool(2),
        errors=[((S(2, 2), S(values=[[0, 1], [1, 1]], dtype="int64"), 2), RuntimeError)],
    ),
    op(
        "nn.functional.max_unpool3d",
        samples=[(S(1, 1, 1, 2, 1), S(values=[[[[[5], [11]]]]], dtype="int64"), (2, 1, 3))],
        reference=max_unpool(3),
        errors=[((S(1, 1, 1), S(values=[[[0]]], dtype="int64"), 2), RuntimeError)],
    ),
]
