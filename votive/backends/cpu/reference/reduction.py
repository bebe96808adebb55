"""Reductions."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base import kernel


@kernel("sum")
def sum(x: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:  # noqa: A001
    acc = np.float32 if dtype.name in ("float16", "bfloat16") else dtype.np
    return np.sum(x, axis=dim, keepdims=keepdim, dtype=acc)
