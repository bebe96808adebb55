"""One value everywhere."""

from __future__ import annotations

from ....core.layout import Spec
from ...common.slot import Slot
from ..programs.copy import copy_view
from ..programs.fill import can_fill, fill_view
from ..programs.types import Run
from ..rows import cuda


@cuda("_fill", into=True, careful=True)
def fill(x: Slot, value: Slot) -> Run:
    if not can_fill(x.dtype):
        return None
    if isinstance(value.spec, Spec):
        return lambda outs, x, value: copy_view(outs[0], value)
    if isinstance(value.spec, complex) and not x.dtype.is_complex:
        return None
    return lambda outs, x, value: fill_view(outs[0], value)
