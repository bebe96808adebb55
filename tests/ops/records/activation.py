"""Records for smooth, gated and shrinking activations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tests.ops.catalog import S, op

ONE: list[Any] = [(S(3, 4),), (S(),), (S(0, 3),)]
F = "nn.functional."
FLAT: list[Any] = [((S(3, dtype="int64"),), NotImplementedError)]
erf = np.vectorize(math.erf, otypes=[float])


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def softplus(x: Any, beta: float = 1.0, threshold: float = 20.0) -> Any:
    return np.where(x * beta > threshold, x, np.log(1 + np.exp(beta * x)) / beta)


def gelu(x: Any, approximate: str = "none") -> Any:
    if approximate == "none":
        return x * (1 + erf(x / math.sqrt(2))) / 2
    return x * sigmoid(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))


def glu(x: Any, dim: int = -1) -> Any:
    a, b = np.split(x, 2, axis=dim)
    return a * sigmoid(b)


def hardshrink(x: Any, lambd: float = 0.5) -> Any:
    return np.where(np.abs(x) > lambd, x, 0)


def softshrink(x: Any, lambd: float = 0.5) -> Any:
    return np.sign(x) * np.maximum(np.abs(x) - lambd, 0)


def hardsigmoid(x: Any) -> Any:
    return np.clip(x / 6 + 0.5, 0, 1)


SHRINK: list[Any] = [*ONE, (S(3, 4), 1.0), (S(3), {"lambd": 0.0})]

RECORDS = [
    op(
        F + "softplus",
        samples=[*ONE, (S(3, 4), 2.0), (S(3, 4), 1.0, 0.5)],
        reference=softplus,
        kinks=(0.5,),
        errors=FLAT,
    ),
    op(F + "logsigmoid", samples=ONE, reference=lambda x: np.log(sigmoid(x)), errors=FLAT),
    op(
        F + "gelu",
        samples=[*ONE, (S(3, 4), {"approximate": "tanh"})],
        reference=gelu,
        errors=[*FLAT, ((S(3), {"approximate": "erf"}), RuntimeError)],
    ),
    op(F + "silu", samples=ONE, reference=lambda x: x * sigmoid(x), errors=FLAT),
    op(F + "mish", samples=ONE, reference=lambda x: x * np.tanh(softplus(x)), errors=FLAT),
    op(
        F + "glu",
        samples=[(S(3, 4),), (S(4, 3), 0), (S(2, 4, 3), -2), (S(2, 0),)],
        reference=glu,
        errors=[((S(3),), RuntimeError), ((S(),), RuntimeError), ((S(4), 1), IndexError)],
    ),
    op(
        F + "swiglu",
        samples=[(S(3, 4), S(3, 4)), (S(3, 1), S(4)), (S(), S()), (S(0), S(0))],
        reference=lambda gate, up: gate * sigmoid(gate) * up,
        torch=False,
        errors=[((S(3), S(2)), RuntimeError)],
    ),
    op(
        F + "hardsigmoid",
        samples=ONE,
        reference=hardsigmoid,
        domain=(-5, 5),
        kinks=(-3.0, 3.0),
        errors=FLAT,
        tol={"float64": (1e-7, 1e-8)},
    ),  # torch's slope is 1/6 rounded to float32
    op(
        F + "hardswish",
        samples=ONE,
        reference=lambda x: x * hardsigmoid(x),
        domain=(-5, 5),
        kinks=(-3.0, 3.0),
        errors=FLAT,
    ),
    op("hardshrink", samples=SHRINK, reference=hardshrink, kinks=(-1.0, -0.5, 0.5, 1.0)),
    op(F + "hardshrink", samples=SHRINK, reference=hardshrink, kinks=(-1.0, -0.5, 0.5, 1.0)),
    op(
        F + "softshrink",
        samples=SHRINK,
        reference=softshrink,
        kinks=(-1.0, -0.5, 0.0, 0.5, 1.0),
        errors=[((S(3), -0.1), RuntimeError)],
    ),
    op(F + "tanhshrink", samples=ONE, reference=lambda x: x - np.tanh(x), dtypes="ifc"),
    op(F + "softsign", samples=ONE, reference=lambda x: x / (1 + np.abs(x)), dtypes="ifc", kinks=(0.0,)),
]
