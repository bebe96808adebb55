"""Records for norms with running statistics; test_running_statistics.py tests what they become."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.ops.catalog import S, op


def lines(v: Any, ndim: int, default: float) -> Any:
    return default if v is None else v.reshape(1, -1, *[1] * (ndim - 2))


def batch_norm(
    x: Any,
    mean: Any,
    var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Any:
    over = tuple(d for d in range(x.ndim) if d != 1)
    if training:
        mean, var = x.mean(over), x.var(over)
    out = (x - lines(mean, x.ndim, 0)) / np.sqrt(lines(var, x.ndim, 0) + eps)
    return out * lines(weight, x.ndim, 1) + lines(bias, x.ndim, 0)


def instance_norm(
    x: Any,
    mean: Any = None,
    var: Any = None,
    weight: Any = None,
    bias: Any = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Any:
    if not use_input_stats:
        return batch_norm(x, mean, var, weight, bias, eps=eps)
    over = tuple(range(2, x.ndim))
    out = (x - x.mean(over, keepdims=True)) / np.sqrt(x.var(over, keepdims=True) + eps)
    return out * lines(weight, x.ndim, 1) + lines(bias, x.ndim, 0)


MEAN = S(3, grad=False)
VAR = S(3, low=0.5, high=2, grad=False)
TRAIN = {"training": True}

RECORDS = [
    op(
        "nn.functional.batch_norm",
        samples=[
            (S(4, 3), None, None, None, None, True),
            (S(2, 3, 4), None, None, S(3), S(3), TRAIN),
            (S(2, 3, 2, 2), None, None, S(3), None, True, 0.5, 0.5),
            (S(1, 3, 2, 2, 2), None, None, None, S(3), TRAIN),
        ],
        reference=batch_norm,
        errors=[
            ((S(2, 3), None, None), RuntimeError),
            ((S(2, 3), MEAN, None), RuntimeError),
            ((S(2, 3), MEAN, None, TRAIN), ValueError),
            ((S(1, 3), None, None, TRAIN), ValueError),
            ((S(1, 3, 1), None, None, TRAIN), ValueError),
            ((S(3), MEAN, VAR), RuntimeError),
            ((S(2, 3), S(2), VAR), RuntimeError),
            ((S(2, 3), MEAN, VAR, S(2)), RuntimeError),
            ((S(2, 3), MEAN, VAR, S(3), S(2)), RuntimeError),
            ((S(2, 3), MEAN, VAR, {"momentum": None}), TypeError),
            ((S(2, 3), S(3, dtype="float32"), S(3, dtype="float32")), RuntimeError),
            ((S(2, 3, dtype="int64"), MEAN, VAR), NotImplementedError),
        ],
    ),
    op(
        # Running statistics have no gradient, and tensors that need one are refused.
        "nn.functional.batch_norm",
        samples=[
            (S(2, 3), MEAN, VAR),
            (S(2, 3, 4), MEAN, VAR, S(3), S(3), False, 0.1, 0.5),
            (S(2, 3, 2, 2), MEAN, VAR, None, S(3)),
            (S(2, 3, 4), MEAN, VAR, S(3), S(3), TRAIN),
            (S(0, 3, 4), MEAN, VAR, S(3), S(3)),
        ],
        reference=batch_norm,
        grad=False,
    ),
    op(
        # No elements: a mean over nothing is NaN in NumPy, so torch is the reference.
        "nn.functional.batch_norm",
        samples=[
            (S(0, 3), MEAN, VAR, TRAIN),
            (S(2, 3, 0), None, None, S(3), S(3), TRAIN),
            (S(2, 0, 3), None, None, TRAIN),
        ],
        grad=False,
    ),
    op(
        "nn.functional.instance_norm",
        samples=[
            (S(2, 3, 4),),
            (S(2, 3, 2, 2), None, None, S(3), S(3)),
            (S(1, 3, 5), {"weight": S(3), "eps": 0.5}),
            (S(2, 3, 2, 1, 2), {"bias": S(3)}),
        ],
        reference=instance_norm,
        errors=[
            ((S(2, 3),), ValueError),
            ((S(2, 3, 1),), ValueError),
            ((S(2, 3, 4), {"use_input_stats": False}), RuntimeError),
            ((S(2, 3, 4), MEAN, None), ValueError),
            ((S(2, 3, 4), {"weight": S(2)}), RuntimeError),
            ((S(2, 3, 4), S(2), S(2)), RuntimeError),
            ((S(2, 3, 4, dtype="int64"),), NotImplementedError),
        ],
    ),
    op(
        "nn.functional.instance_norm",
        samples=[
            (S(2, 3, 4), MEAN, VAR),
            (S(2, 3, 1), MEAN, VAR, S(3), S(3), False),
            (S(0, 3, 2), MEAN, VAR, None, None, False),
        ],
        reference=instance_norm,
        grad=False,
    ),
    op(
        # Far from zero torch loses digits in half types, so NumPy is the reference.
        "nn.functional.batch_norm",
        samples=[(S(6, 3, low=9.9e3, high=1.01e4), None, None, S(3), TRAIN)],
        reference=batch_norm,
        torch=False,
        grad=False,
    ),
]
