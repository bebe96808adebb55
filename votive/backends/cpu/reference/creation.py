"""New memory and its fillings."""

from __future__ import annotations

from typing import Any

from ...base import kernel


@kernel("_empty", into=True, widen=False)
def empty(size: Any, stride: Any, dtype: Any, device: Any, out: Any) -> None:
    """Nothing to do: the memory is there."""


@kernel("_full", into=True, widen=False)
def full(size: Any, stride: Any, value: Any, dtype: Any, device: Any, out: Any) -> None:
    if out.dtype.kind in "iu" and isinstance(value, (int, float)):
        value = int(value)
    elif isinstance(value, complex) and out.dtype.kind != "c":
        value = value.real
    out[...] = value


@kernel("fill", into=True, widen=False)
def fill(x: Any, value: Any, out: Any) -> None:
    if hasattr(value, "ndim"):
        if value.ndim:
            raise RuntimeError(f"fill_: only supports a 0-d value, got {value.ndim} dimensions.")
        out[...] = value.astype(out.dtype)
    else:
        full(None, None, value, None, None, out)
