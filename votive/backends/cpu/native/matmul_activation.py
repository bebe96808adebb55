"""Native matrix products that end in an activation."""

from __future__ import annotations

from ...common.slot import Slot
from ..arrays import Args
from .addmm import addmm
from .dtypes import floats
from .rows import OUT, native

# As `Activation` in vt/gemm_core.h counts them.
_CODES = {"relu": 1, "gelu": 2, "gelu_tanh": 3, "silu": 4}


@native("_linear_activated", "linear_activated", accepts=floats, optional=True)
def linear(x: Slot, weight: Slot, bias: Slot | None, activation: str) -> Args:
    return x, weight, bias, OUT, _CODES[activation]


@native("_addmm_activated", "addmm_activated", accepts=floats, optional=True)
def addmm_activated(x: Slot, a: Slot, b: Slot, beta: Slot, alpha: Slot, activation: str) -> Args:
    arranged = addmm(x, a, b, beta, alpha)
    if arranged is None:
        return None
    return *arranged[:4], _CODES[activation], *arranged[4:]
