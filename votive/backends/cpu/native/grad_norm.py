"""The norm of all gradients and their scaling: one launch each."""

from __future__ import annotations

import math
from typing import Any

from .optimizer_step import fit
from .rows import OUT, native

_ORDERS = {1.0: 1, 2.0: 2, math.inf: 3}


@native("_total_norm", "total_norm")
def total_norm(tensors: Any, ord: float) -> Any:
    if ord not in _ORDERS or not fit(tensors):
        return None
    return len(tensors.spec), _ORDERS[ord], tensors, OUT


@native("_scale_", "scale_all")
def scale(tensors: Any, factor: Any) -> Any:
    if not fit(tensors) or factor.numel != 1 or factor.dtype.is_complex:
        return None
    return len(tensors.spec), tensors, factor
