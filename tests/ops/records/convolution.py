"""Records for convolution and its transpose."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from tests.ops.catalog import S, op


def each(value: Any, n: int) -> tuple[int, ...]:
    """One integer per dimension."""
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * n


def conv(x: Any, w: Any, b: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1) -> Any:
    """Every output element by its definition: one sum of products per channel and position."""
    n = w.ndim - 2
    if x.ndim == n + 1:
        return conv(x[None], w, b, stride, padding, dilation, groups)[0]
    stride, dilation, kernel = each(stride, n), each(dilation, n), w.shape[2:]
    if padding == "same":
        total = [d * (k - 1) for d, k in zip(dilation, kernel)]
        around = [(t // 2, t - t // 2) for t in total]
    else:
        around = [(p, p) for p in each(0 if padding == "valid" else padding, n)]
    x = np.pad(x, [(0, 0), (0, 0), *around])
    size = [(i - d * (k - 1) - 1) // s + 1 for i, k, s, d in zip(x.shape[2:], kernel, stride, dilation)]
    out = np.zeros((len(x), len(w), *size), np.result_type(x, w))
    per_in, per_out = w.shape[1], len(w) // groups
    for o, at in itertools.product(range(len(w)), np.ndindex(*size)):
        first = o // per_out * per_in
        window = tuple(slice(a * s, a * s + d * (k - 1) + 1, d) for a, s, d, k in zip(at, stride, dilation, kernel))
        part = x[(slice(None), slice(first, first + per_in), *window)]
        out[(slice(None), o, *at)] = (part * w[o]).sum(tuple(range(1, part.ndim)))
    return out if b is None else out + b.reshape(-1, *(1,) * n)


def conv_transpose(
    x: Any,
    w: Any,
    b: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Any:
    """Every input element adds its multiple of the kernel."""
    n = w.ndim - 2
    if x.ndim == n + 1:
        return conv_transpose(x[None], w, b, stride, padding, output_padding, groups, dilation)[0]
    stride, dilation, padding = each(stride, n), each(dilation, n), each(padding, n)
    extra, kernel = each(output_padding, n), w.shape[2:]
    full = [(i - 1) * s + d * (k - 1) + 1 + e for i, s, d, k, e in zip(x.shape[2:], stride, dilation, kernel, extra)]
    per_in, per_out = x.shape[1] // groups, w.shape[1]
    out = np.zeros((len(x), per_out * groups, *full), np.result_type(x, w))
    for c, at in itertools.product(range(x.shape[1]), np.ndindex(*x.shape[2:])):
        first = c // per_in * per_out
        window = tuple(slice(a * s, a * s + d * (k - 1) + 1, d) for a, s, d, k in zip(at, stride, dilation, kernel))
        value = x[(slice(None), c, *at)].reshape(-1, *(1,) * (n + 1))
        out[(slice(None), slice(first, first + per_out), *window)] += value * w[c]
    out = out[(..., *(slice(p, f - p) for p, f in zip(padding, full)))]
    return out if b is None else out + b.reshape(-1, *(1,) * n)


def conv_tbc(x: Any, w: Any, b: Any, pad: int = 0) -> Any:
    y = conv(x.transpose(1, 2, 0), w.transpose(2, 1, 0), b, padding=pad)
    return y.transpose(2, 0, 1)


X1, X2, X3 = S(2, 4, 7), S(2, 4, 5, 6), S(1, 2, 3, 4, 4)
MISMATCHED = [
    ((S(4), S(3, 4, 2)), RuntimeError),  # no channels
    ((X1, S(3, 4)), RuntimeError),  # no kernel
    ((X1, S(3, 4, 8)), RuntimeError),  # kernel larger than the input
    ((X1, S(3, 4, 4), None, 1, 0, 3), RuntimeError),  # the same by its dilation
    ((S(0, 4, 7), S(3, 4, 8)), RuntimeError),
    ((X1, S(3, 3, 2)), RuntimeError),
    ((X1, S(3, 2, 2), None, 1, 0, 1, 2), RuntimeError),  # 3 outputs in 2 groups
    ((X1, S(3, 4, 2), S(4)), RuntimeError),
    ((X1, S(3, 4, 2, dtype="float32")), RuntimeError),
    ((X1, S(3, 4, 2), S(3, dtype="float32")), RuntimeError),
    ((X1, S(3, 4, 2), None, 0), RuntimeError),
    ((X1, S(3, 4, 2), None, 1, -1), RuntimeError),
    ((X1, S(3, 4, 2), None, 1, 0, 0), RuntimeError),
    ((X1, S(3, 4, 2), None, 1, 0, 1, 0), RuntimeError),
    ((X1, S(3, 4, 2), None, (1, 1)), RuntimeError),
    ((X1, S(3, 4, 2), None, 1, "most"), RuntimeError),
    ((X1, S(3, 4, 2), None, 2, "same"), RuntimeError),
    ((X1, S(3, 4, 2), None, 1.5), TypeError),
    ((S(2, 4, 7, dtype="bool"), S(3, 4, 2, dtype="bool")), NotImplementedError),
    ((S(2, 4, 0), S(3, 4, 2), None, 1, 2), RuntimeError),
]
# Integers are samples of their own: sums of products wrap around in uint8, not in the reference.
LONG = {"dtype": "int64", "low": -9, "high": 9}

RECORDS = [
    op(
        "nn.functional.conv1d",
        samples=[
            (X1, S(3, 4, 3)),
            (X1, S(3, 4, 3), S(3)),
            (X1, S(4, 2, 2), S(4), 2, 1, 3, 2),
            (X1, S(8, 1, 3), None, 1, 2, 2, 4),
            (X1, S(3, 4, 4), S(3), 1, "same", 1),
            (X1, S(3, 4, 3), S(3), 2, "valid"),
            (S(4, 7), S(3, 4, 7), S(3)),
            (S(0, 4, 7), S(3, 4, 3), S(3)),
            (X1, S(3, 4, 1), {"stride": (3,), "padding": (2,)}),
            (S(2, 2, 6, **LONG), S(3, 2, 2, **LONG), S(3, **LONG)),
        ],
        reference=conv,
        dtypes="fc",
        errors=MISMATCHED,
    ),
    op(
        "nn.functional.conv2d",
        samples=[
            (X2, S(3, 4, 3, 2), S(3)),
            (X2, S(4, 2, 2, 3), S(4), (2, 1), (1, 2), (2, 1), 2),
            (X2, S(4, 1, 3, 3), None, 1, 1, 1, 4),
            (X2, S(2, 4, 2, 3), S(2), 1, "same", (3, 1)),
            (S(4, 5, 6), S(3, 4, 5, 6)),
            (S(0, 4, 5, 6), S(3, 4, 2, 2), S(3), 2),
            (X2, S(3, 4, 1, 1), None, 3),
            (S(1, 2, 4, 4, **LONG), S(2, 1, 2, 2, **LONG), None, 1, 1, 1, 2),
        ],
        reference=conv,
        dtypes="fc",
        errors=[
            ((X2, S(3, 4, 6, 2)), RuntimeError),
            ((S(4, 5), S(3, 4, 2, 2)), RuntimeError),
            ((X2, S(3, 4, 2, 2), None, (1, 1, 1)), RuntimeError),
        ],
    ),
    op(
        "nn.functional.conv3d",
        samples=[
            (X3, S(3, 2, 2, 2, 3), S(3)),
            (X3, S(2, 1, 2, 3, 1), S(2), (1, 2, 1), (1, 0, 2), (2, 1, 1), 2),
            (S(2, 3, 4, 4), S(1, 2, 2, 2, 2), None, 1, "same"),
            (S(0, 2, 3, 4, 4), S(1, 2, 2, 2, 2)),
        ],
        reference=conv,
        dtypes="fc",
        errors=[((X3, S(3, 2, 4, 2, 2)), RuntimeError), ((S(2, 3, 4), S(3, 2, 2, 2, 2)), RuntimeError)],
    ),
    op(
        "nn.functional.conv_transpose1d",
        samples=[
            (X1, S(4, 3, 3)),
            (X1, S(4, 2, 3), S(4), 2, 1, 1, 2, 1),
            (X1, S(4, 1, 2), S(4), 1, 0, 0, 4, 3),
            # More output padding than the stride leaves room for a window that no input has.
            (X1, S(4, 3, 2), None, 1, 0, 2, 1, 3),
            (S(4, 3), S(4, 2, 2), S(2)),
            (S(0, 4, 3), S(4, 2, 2), S(2)),
            (S(2, 2, 3, **LONG), S(2, 3, 2, **LONG), S(3, **LONG)),
        ],
        reference=conv_transpose,
        dtypes="fc",
        errors=[
            ((X1, S(3, 4, 3)), RuntimeError),
            ((X1, S(4, 3, 3), S(4)), RuntimeError),
            ((X1, S(4, 3, 3), None, 1, 0, 1), RuntimeError),
            ((X1, S(4, 3, 3), None, 1, 0, -1), RuntimeError),
            ((S(2, 4, 1), S(4, 3, 2), None, 1, 1), RuntimeError),
            ((X1, S(4, 3, 3), None, 1, "same"), TypeError),
            ((X1, S(4, 0, 3)), RuntimeError),
            ((X1, S(4, 3, 3), None, 1, 0, 0, 3), RuntimeError),
        ],
    ),
    op(
        "nn.functional.conv_transpose2d",
        samples=[
            (S(2, 4, 3, 2), S(4, 2, 2, 3), S(2)),
            (S(2, 4, 3, 2), S(4, 1, 3, 2), S(2), (2, 3), (1, 0), (1, 2), 2, (1, 2)),
            (S(4, 2, 2), S(4, 1, 1, 2)),
            (S(0, 4, 2, 2), S(4, 1, 1, 2)),
        ],
        reference=conv_transpose,
        dtypes="fc",
        errors=[((X2, S(3, 2, 2, 2)), RuntimeError)],
    ),
    op(
        "nn.functional.conv_transpose3d",
        samples=[
            (S(1, 2, 2, 3, 2), S(2, 3, 2, 1, 2), S(3)),
            (S(1, 2, 2, 3, 2), S(2, 1, 2, 2, 1), S(2), (1, 2, 1), (1, 0, 0), (0, 1, 0), 2),
            (S(2, 2, 2, 2), S(2, 1, 2, 2, 2)),
        ],
        reference=conv_transpose,
        dtypes="fc",
        errors=[((X3, S(3, 2, 2, 2, 2)), RuntimeError)],
    ),
    op(
        "nn.functional.conv_tbc",
        samples=[(S(5, 2, 3), S(2, 3, 4), S(4)), (S(5, 2, 3), S(3, 3, 1), S(1), 2)],
        reference=conv_tbc,
        errors=[((S(5, 3), S(2, 3, 4), S(4)), RuntimeError)],
    ),
]
