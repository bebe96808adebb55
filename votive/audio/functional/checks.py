"""What several functionals check of their signals, and how shapes are shown in errors."""

from __future__ import annotations

from ...core.errors import fail
from ...tensor import Tensor


def shapes(*tensors: Tensor) -> str:
    """The shapes of tensors, for an error."""
    return " and ".join(str(tuple(t.shape)) for t in tensors)


def check_complex(op: str, what: str, *tensors: Tensor) -> None:
    """Raise unless all are complex."""
    if not all(t.is_complex() for t in tensors):
        fail(TypeError, op, f"{what} must be complex, got {' and '.join(str(t.dtype) for t in tensors)}.")
