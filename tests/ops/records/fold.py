"""Records for unfold and fold."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.ops.catalog import S, op
from tests.ops.records.convolution import each


def places(size: Any, kernel: Any, dilation: Any, padding: Any, stride: Any) -> Any:
    """Row and column indices of every window in the padded image."""
    found = []
    for i, k, d, p, s in zip(size, kernel, dilation, padding, stride):
        n = (i + 2 * p - d * (k - 1) - 1) // s + 1
        found.append([[a * s + b * d for b in range(k)] for a in range(n)])
    return found


def unfold(x: Any, kernel: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Any:
    if x.ndim == 3:
        return unfold(x[None], kernel, dilation, padding, stride)[0]
    kernel, dilation, padding, stride = (each(v, 2) for v in (kernel, dilation, padding, stride))
    rows, columns = places(x.shape[2:], kernel, dilation, padding, stride)
    x = np.pad(x, [(0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2])
    windows = [x[:, :, r][:, :, :, c] for r in rows for c in columns]
    return np.stack(windows, -1).reshape(len(x), x.shape[1] * kernel[0] * kernel[1], len(windows))


def fold(x: Any, size: Any, kernel: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Any:
    if x.ndim == 2:
        return fold(x[None], size, kernel, dilation, padding, stride)[0]
    size, kernel, dilation, padding, stride = (each(v, 2) for v in (size, kernel, dilation, padding, stride))
    rows, columns = places(size, kernel, dilation, padding, stride)
    channels = x.shape[1] // (kernel[0] * kernel[1])
    out = np.zeros((len(x), channels, *(i + 2 * p for i, p in zip(size, padding))), x.dtype)
    for n, (r, c) in enumerate((r, c) for r in rows for c in columns):
        out[:, :, np.array(r)[:, None], c] += x[:, :, n].reshape(len(x), channels, *kernel)
    return out[:, :, padding[0] : padding[0] + size[0], padding[1] : padding[1] + size[1]]


RECORDS = [
    op(
        "nn.functional.unfold",
        samples=[
            (S(2, 3, 4, 5), 2),
            (S(2, 3, 4, 5), (2, 3), (2, 1), (1, 0), (1, 2)),
            (S(3, 4, 5), (4, 5)),
            (S(0, 3, 4, 5), 2),
        ],
        reference=unfold,
        dtypes="bfc",
        errors=[
            ((S(2, 3, 4, 5), 5), RuntimeError),
            ((S(4, 5), 2), RuntimeError),
            ((S(2, 3, 4, 5), 0), RuntimeError),
            ((S(2, 3, 4, 5), 2, 0), RuntimeError),
            ((S(2, 3, 4, 5), 2, 1, -1), RuntimeError),
            ((S(2, 0, 4, 5), 2), RuntimeError),
        ],
    ),
    op(
        "nn.functional.fold",
        samples=[
            (S(2, 12, 12), (4, 5), 2),
            (S(2, 6, 8), (4, 5), (3, 2), 1, (1, 0), (2, 1)),
            (S(2, 4, 6), (3, 4), 2, (1, 1)),
            (S(4, 12), (4, 5), 2),
            (S(0, 4, 6), (3, 4), 2),
        ],
        reference=fold,
        dtypes="fc",
        errors=[
            ((S(2, 5, 12), (4, 5), 2), RuntimeError),
            ((S(2, 4, 7), (3, 4), 2), RuntimeError),
            ((S(2, 4, 6), (1, 1), 2), RuntimeError),
            ((S(2, 4, 6, 1), (3, 4), 2), RuntimeError),
        ],
    ),
]
