"""New memory and its fillings."""

from __future__ import annotations

import numpy as np

from ....core.dtype import dtype
from ...base import kernel
from ...common.assign import assign
from ..arrays import Array, Ints


@kernel("_empty", into=True, widen=False)
def empty(size: Ints, stride: Ints, dtype: dtype, device: object, out: Array) -> None:
    """Nothing to do: the memory is there."""


@kernel("_full", into=True, widen=False)
def full(size: Ints, stride: Ints, value: float, dtype: dtype, device: object, out: Array) -> None:
    assign(out, np.asarray(value))


@kernel("_eye")
def eye(n: int, m: int, dtype: dtype, device: object) -> Array:
    return np.eye(n, m, dtype=dtype.np)
