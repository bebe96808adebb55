"""Products of the backward pass with a second result, with NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...base import kernel
from ...common.primitives import FUNCTIONS
from ..arrays import Array
from .matmul import multiply

erf, tanh, sigmoid = (FUNCTIONS[name] for name in ("erf", "tanh", "sigmoid"))


@kernel("_linear_gradients")
def linear_gradients(grad: Array, x: Array, turned: bool) -> tuple[Array, ...]:
    return multiply(grad.T, x), grad.sum(0)


def _gelu(x: Array) -> Any:
    return 0.5 * (1 + erf(x * math.sqrt(0.5))) + x * np.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)


def _gelu_tanh(x: Array) -> Any:
    factor = math.sqrt(2 / math.pi)
    t = tanh(factor * (x + 0.044715 * (x * x * x)))
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * factor * (1 + 3 * 0.044715 * x * x)


def _silu(x: Array) -> Any:
    s = sigmoid(x)
    return s * (1 + x * (1 - s))


_SLOPES: dict[str, Callable[[Any], Any]] = {
    "relu": lambda x: x > 0,
    "gelu": _gelu,
    "gelu_tanh": _gelu_tanh,
    "silu": _silu,
}


@kernel("_linear_slope")
def linear_slope(grad: Array, weight: Array, kept: Array, activation: str) -> tuple[Array, ...]:
    back = multiply(grad, weight) * _SLOPES[activation](kept)
    return back, back.sum(0)
