"""Which dtypes kernels take, and the types that they compute in."""

from __future__ import annotations

from typing import Any

import triton.language as tl

from ....core import dtype as dt

FLOATS = frozenset((dt.float32, dt.float64, *dt.HALF))


def floats(*specs: Any) -> bool:
    """Whether all tensors are real floating-point ones."""
    return all(s.dtype in FLOATS for s in specs)


def wide(dtype: dt.dtype) -> Any:
    """The type that kernels compute in."""
    return tl.float64 if dtype is dt.float64 else tl.float32
