"""Native matrix products added to an input."""

from __future__ import annotations

from ...common.slot import Slot
from ..arrays import Args
from .matmul import takes
from .rows import OUT, native


@native("_addmm", "addmm", accepts=takes)
def addmm(x: Slot, a: Slot, b: Slot, beta: Slot, alpha: Slot) -> Args:
    kinds = [type(f.spec) for f in (beta, alpha)]
    if any(k not in (bool, int, float) for k in kinds):
        return None
    return x, a, b, OUT, *(int(k is not float) for k in kinds), beta, alpha
