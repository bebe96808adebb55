"""Native matrix products: `matmul` and `linear`."""

from __future__ import annotations

from ....core import dtype as dt
from ....core.layout import Spec
from ...common.slot import Slot
from ..arrays import Args
from .rows import OUT, native

PRODUCTS = (dt.float32, dt.float64, *dt.HALF, dt.int8, dt.uint8, dt.int16, dt.int32, dt.int64)


def takes(*specs: Spec) -> bool:
    """Complex numbers and wide unsigned ones are left to the reference."""
    return all(s.dtype in PRODUCTS for s in specs)


@native("matmul", "matmul", accepts=takes)
def matmul(a: Slot, b: Slot) -> Args:
    return a, b, OUT


@native("linear", "linear", accepts=takes)
def linear(x: Slot, weight: Slot, bias: Slot | None) -> Args:
    return x, weight, bias, OUT
