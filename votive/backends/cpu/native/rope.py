"""Rotary position embedding: a row of the kernel table."""

from __future__ import annotations

from ....core import dtype as dt
from ....core.layout import Spec
from ...common.slot import Slot
from ..arrays import Args
from .dtypes import floats
from .rows import OUT, native


def _accepts(x: Spec, cos: Spec, sin: Spec) -> bool:
    """Tables may be narrower than what is computed in, not wider."""
    narrow = dt.float64 not in (cos.dtype, sin.dtype)
    return floats(x, cos, sin) and (x.dtype is dt.float64 or narrow)


@native("_rope", "rope", accepts=_accepts)
def rope(x: Slot, cos: Slot, sin: Slot, offset: Slot, interleaved: bool) -> Args:
    return (x, cos, sin, OUT, offset, int(interleaved)) if type(offset.spec) is int else None
