"""Copies and casts on native kernels; the types that they lack stay with NumPy."""

from __future__ import annotations

from typing import Any

from ....core.layout import Spec
from ...common.slot import Slot
from .loader import codes
from .rows import OUT, native


def known(*specs: Spec) -> bool:
    """Whether kernels know the element types of all these."""
    return all(s.dtype in codes for s in specs)


@native("_copy_as", "copy", accepts=known)
def copy_as(x: Slot, dtype: Any, stride: Any) -> Any:
    return (OUT, x) if dtype in codes else None


@native("copy", "copy", accepts=known)
def copy(x: Slot, src: Slot) -> Any:
    return OUT, src


@native("_first_order", "copy", accepts=known)
def first_order(x: Slot) -> Any:
    return OUT, x
