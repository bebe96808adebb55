"""Products that end in an activation, with NumPy. Rounds between the steps as operators would."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...base import kernel
from ...common.primitives import FUNCTIONS
from ..arrays import Array
from .addmm import addmm
from .matmul import linear

erf, tanh, sigmoid = (FUNCTIONS[name] for name in ("erf", "tanh", "sigmoid"))


def _gelu_tanh(x: Array) -> Any:
    return 0.5 * x * (1 + tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * (x * x * x))))


_ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "relu": lambda x: np.maximum(x, 0),
    "gelu": lambda x: 0.5 * x * (1 + erf(x * math.sqrt(0.5))),
    "gelu_tanh": _gelu_tanh,
    "silu": lambda x: x * sigmoid(x),
}


def _activated(y: Array, activation: str, out: Array) -> None:
    y = np.asarray(y)
    rounded = y.astype(out.dtype).astype(y.dtype)
    np.copyto(out, _ACTIVATIONS[activation](rounded), casting="unsafe")


@kernel("_linear_activated", into=True)
def linear_activated(x: Array, weight: Array, bias: Array | None, activation: str, out: Array) -> None:
    _activated(linear(x, weight, bias), activation, out)


@kernel("_addmm_activated", into=True)
def addmm_activated(x: Array, a: Array, b: Array, beta: float, alpha: float, activation: str, out: Array) -> None:
    _activated(addmm(x, a, b, beta, alpha), activation, out)
