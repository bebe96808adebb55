"""Native matrix products that end in an activation."""

from __future__ import annotations

from typing import Any

from ....core import dtype as dt
from .addmm import addmm
from .rows import OUT, native

_FLOATS = (dt.float32, dt.float64, *dt.HALF)
# As `Activation` in vt/gemm_core.h counts them.
_CODES = {"relu": 1, "gelu": 2, "gelu_tanh": 3, "silu": 4}


def _takes(*specs: Any) -> bool:
    return all(s.dtype in _FLOATS for s in specs)


@native("_linear_activated", "linear_activated", accepts=_takes, optional=True)
def linear(x: Any, weight: Any, bias: Any, activation: str) -> Any:
    return x, weight, bias, OUT, _CODES[activation]


@native("_addmm_activated", "addmm_activated", accepts=_takes, optional=True)
def addmm_activated(x: Any, a: Any, b: Any, beta: Any, alpha: Any, activation: str) -> Any:
    arranged = addmm(x, a, b, beta, alpha)
    if arranged is None:
        return None
    return *arranged[:4], _CODES[activation], *arranged[4:]
