"""One value everywhere, on native kernels."""

from __future__ import annotations

from ....core import dtype as dt
from ....core.layout import Spec
from ...common.slot import Slot
from ..arrays import Args
from .dtypes import known
from .loader import codes
from .rows import OUT, native


def plain(value: Slot, dtype: dt.dtype) -> bool:
    """Whether a number reaches kernels whole: they read int64 and float64."""
    return dtype in codes and dtype is not dt.uint64 and not isinstance(value, complex)


@native("_fill", "fill", accepts=known, careful=True)
def fill(x: Slot, value: Slot) -> Args:
    if not isinstance(value.spec, Spec) and not plain(value.spec, x.dtype):
        return None
    return OUT, value
