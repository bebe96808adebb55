"""Records for rectifiers and exponential units."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.ops.catalog import S, op

ONE: list[Any] = [(S(3, 4),), (S(),), (S(0, 3),)]
F = "nn.functional."


def leaky(x: Any, slope: Any = 0.01, inplace: bool = False) -> Any:
    return np.maximum(x, 0) + slope * np.minimum(x, 0)


def prelu(x: Any, weight: Any) -> Any:
    return leaky(x, weight.reshape(1, -1, *[1] * (x.ndim - 2)) if x.ndim > 1 else weight)


def elu(x: Any, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Any:
    return scale * np.where(x > 0, x, alpha * (np.exp(x * input_scale) - 1))


def selu(x: Any) -> Any:
    return elu(x, 1.6732632423543772, 1.0507009873554805)


def celu(x: Any, alpha: float = 1.0) -> Any:
    return elu(x, alpha, 1.0, 1 / alpha)


def clipped(x: Any, low: float = -1.0, high: float = 1.0) -> Any:
    return np.clip(x, low, high)


def rrelu(x: Any, lower: float, upper: float, training: bool = False) -> Any:
    return leaky(x, (lower + upper) / 2)


BOUNDS: list[Any] = [*ONE, (S(3, 4), -1, 1), (S(3, 4), 0, 1.0)]
STEP: list[Any] = [(S(3, 4), 1, -2), (S(), 0.5, 3.0), (S(0), 0, 1)]
FLAT: list[Any] = [((S(3, dtype="int64"),), NotImplementedError)]

RECORDS = [
    op(
        "relu",
        samples=ONE,
        reference=lambda x: np.maximum(x, 0),
        dtypes="if",
        kinks=(0.0,),
        errors=[((S(3, dtype="bool"),), RuntimeError)],
    ),
    op(F + "relu", samples=ONE, reference=lambda x: np.maximum(x, 0), dtypes="if", kinks=(0.0,)),
    op(F + "relu6", samples=ONE, reference=lambda x: np.clip(x, 0, 6), dtypes="if", domain=(-3, 9), kinks=(0.0, 6.0)),
    op(
        F + "hardtanh",
        samples=BOUNDS,
        reference=clipped,
        dtypes="f",
        kinks=(-1.0, 0.0, 1.0),
        errors=[
            ((S(3), 2.0, 1.0), ValueError),
            ((S(3, dtype="bool"), 0, 1), RuntimeError),
            ((S(3, dtype="uint8"), -1, 1), RuntimeError),
        ],
    ),
    op(
        F + "threshold",
        samples=[*STEP, (S(5, dtype="int64"), 0, 3)],
        kinks=(0.0, 0.5, 1.0),
        reference=lambda x, threshold, value: np.where(x > threshold, x, value),
    ),
    op(
        "threshold",
        samples=STEP,
        dtypes="f",
        kinks=(0.0, 0.5, 1.0),
        reference=lambda x, threshold, value: np.where(x > threshold, x, value),
    ),
    op(F + "leaky_relu", samples=[*ONE, (S(3, 4), 0.3), (S(3), -0.5)], reference=leaky, kinks=(0.0,), errors=FLAT),
    op(
        "prelu",
        samples=[(S(3, 4), S(4)), (S(2, 3, 4), S(3)), (S(2, 3, 4), S(1)), (S(5), S(1)), (S(), S()), (S(0, 3), S(3))],
        reference=prelu,
        kinks=(0.0,),
        errors=[
            ((S(3, 4), S(3)), RuntimeError),
            ((S(3, 4), S(4, 1)), RuntimeError),
            ((S(), S(2)), RuntimeError),
            ((S(3, 4), S(4, dtype="float32")), RuntimeError),
        ],
    ),
    op(F + "prelu", samples=[(S(3, 4), S(4))], reference=prelu, kinks=(0.0,)),
    op(
        "rrelu",
        samples=[(S(3, 4), 0.1, 0.3), (S(), 0.25, 0.25), (S(0), 0.0, 1.0)],
        reference=rrelu,
        kinks=(0.0,),
        errors=[((S(3), 0.5, 0.1), RuntimeError)],
    ),
    op(
        F + "rrelu",
        samples=[(S(3, 4), 0.1, 0.3), (S(3, 4), 0.2, 0.2, True)],
        reference=rrelu,
        kinks=(0.0,),
        errors=[((S(3), 0.5, 0.1), RuntimeError)],
    ),
    op(F + "elu", samples=[*ONE, (S(3, 4), 0.5)], reference=elu, kinks=(0.0,), errors=FLAT),
    op("selu", samples=ONE, reference=selu, kinks=(0.0,)),
    op(F + "selu", samples=ONE, reference=selu, kinks=(0.0,)),
    op("celu", samples=[*ONE, (S(3, 4), 2.0)], reference=celu, kinks=(0.0,), errors=[((S(3), 0.0), RuntimeError)]),
    op(F + "celu", samples=[*ONE, (S(3, 4), 2.0)], reference=celu, kinks=(0.0,)),
]
