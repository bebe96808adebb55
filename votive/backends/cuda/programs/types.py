"""Which dtypes kernels take, and the types that they compute in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import triton.language as tl

from ....core import dtype as dt
from ....core.layout import Spec
from ...common.slot import Slot

# What a kernel row gives: run(outs, *values); None where it refuses.
Run: TypeAlias = Callable[..., Any] | None

FLOATS = frozenset((dt.float32, dt.float64, *dt.HALF))


def floats(*specs: Slot | Spec) -> bool:
    """Whether all tensors are real floating-point ones."""
    return all(s.dtype in FLOATS for s in specs)


def wide(dtype: dt.dtype) -> Any:
    """The type that kernels compute in."""
    return tl.float64 if dtype is dt.float64 else tl.float32
