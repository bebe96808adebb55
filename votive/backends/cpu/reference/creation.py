"""New memory and its fillings."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base import kernel
from ...common.assign import assign


@kernel("_empty", into=True, widen=False)
def empty(size: Any, stride: Any, dtype: Any, device: Any, out: Any) -> None:
    """Nothing to do: the memory is there."""


@kernel("_full", into=True, widen=False)
def full(size: Any, stride: Any, value: Any, dtype: Any, device: Any, out: Any) -> None:
    assign(out, np.asarray(value))


@kernel("_eye")
def eye(n: int, m: int, dtype: Any, device: Any) -> Any:
    return np.eye(n, m, dtype=dtype.np)
