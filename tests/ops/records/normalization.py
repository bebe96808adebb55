"""Records for norms over the last dimensions and over neighbouring channels."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.ops.catalog import S, op

# Far from zero, constant, huge and tiny: where a one-pass variance loses its digits, as torch's
# does in half types. NumPy is the only reference for these.
HARD = S(values=[[1e4, 1e4 + 8, 1e4 - 8, 1e4], [5.0] * 4, [6e4, -6e4, 0, 3e4], [1e-4, 0, -1e-4, 0]], grad=False)


def layer_norm(x: Any, shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    last = tuple(range(-len(shape), 0))
    out = (x - x.mean(last, keepdims=True)) / np.sqrt(x.var(last, keepdims=True) + eps)
    out = out * (1 if weight is None else weight)
    return out + (0 if bias is None else bias)


def rms_norm(x: Any, shape: Any, weight: Any = None, eps: float = 1e-5) -> Any:
    out = x / np.sqrt((x * x).mean(tuple(range(-len(shape), 0)), keepdims=True) + eps)
    return out * (1 if weight is None else weight)


def local_response_norm(x: Any, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Any:
    out = np.empty(x.shape)
    for c in range(x.shape[1]):
        first = c - size // 2
        near = x[:, max(first, 0) : max(first + size, 0)]
        out[:, c] = x[:, c] / (k + alpha * (near * near).sum(1) / size) ** beta
    return out


WRONG_SHAPES: list[Any] = [
    ((S(2, 3), (4,)), RuntimeError),
    ((S(2, 3), ()), RuntimeError),
    ((S(2, 3), 3), TypeError),
    ((S(2, 3), (3,), S(2)), RuntimeError),
    ((S(2, 3, dtype="int64"), (3,)), NotImplementedError),
    ((S(2, 3, dtype="bool"), (3,)), NotImplementedError),
]

RECORDS = [
    op("layer_norm", [(HARD, (4,), S(4))], reference=layer_norm, torch=False, grad=False),
    op("rms_norm", [(HARD, (4,), S(4), 1e-5)], reference=rms_norm, torch=False, grad=False),
    op(
        "nn.functional.layer_norm",
        samples=[
            (S(2, 3), (3,)),
            (S(2, 3, 4), [3, 4], S(3, 4), S(3, 4)),
            (S(3, 4), (4,), S(4), None, 0.5),
            (S(3, 4), (4,), None, S(4)),
            (S(5), (5,), {"eps": 1.0}),
            (S(0, 3), (3,), S(3), S(3)),
            (S(2, 2, 1), (1,), S(1)),
        ],
        reference=layer_norm,
        errors=[
            *WRONG_SHAPES,
            ((S(2, 3), (3,), S(3), S(2)), RuntimeError),
            ((S(2, 3), (3,), S(3, dtype="float32")), RuntimeError),
            ((S(2, 3, dtype="complex64"), (3,)), NotImplementedError),
        ],
    ),
    op(
        # No elements: a mean over nothing is NaN in NumPy, so torch is the reference.
        "layer_norm",
        samples=[(S(2, 0), (0,)), (S(0, 0), (0,), None, None, 1e-5, True)],
        grad=False,
    ),
    op(
        "nn.functional.rms_norm",
        samples=[
            (S(2, 3), (3,), {"eps": 1e-5}),
            (S(2, 3, 4), [3, 4], S(3, 4), 1e-5),
            (S(5), (5,), S(5), 0.5),
            (S(0, 3), (3,), S(3), 1e-5),
        ],
        reference=rms_norm,
        errors=[*WRONG_SHAPES, ((S(3), (2, 3)), ValueError)],
    ),
    op(
        # The default eps is that of the type that is computed in; complex squares are not sizes.
        "rms_norm",
        samples=[(S(2, 4, low=-1e-3, high=1e-3), (4,)), (S(2, 3), (3,), S(3))],
        dtypes="fc",
        grad=False,
    ),
    op(
        "nn.functional.local_response_norm",
        samples=[
            (S(2, 3, 4), 2),
            (S(2, 3, 4), 3, 0.5, 0.5, 2.0),
            (S(1, 4, 2, 2), 1, {"alpha": 1.0}),
            (S(2, 3, 2, 1, 2), 9, {"alpha": 1.0, "beta": 1.0}),
        ],
        reference=local_response_norm,
        errors=[
            ((S(2, 3), 2), ValueError),
            ((S(2, 3, 4), 0), RuntimeError),
            ((S(2, 3, 4, dtype="complex64"), 2), NotImplementedError),
        ],
    ),
    op(
        "nn.functional.local_response_norm",
        samples=[(S(0, 3, 4), 2), (S(2, 0, 3), 2), (S(2, 4, 3, dtype="int64", low=-9, high=9), 3, 2.0, 0.5)],
        dtypes="i",  # integers give float32
        grad=False,
    ),
]
