"""Conditions on values, tested on the device: one that fails raises when the host next waits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...common.slot import Slot
from ..runtime.faults import faults
from ..runtime.views import View
from .index_space import IndexSpace
from .program import pointer


def required(x: Slot, bad: str, text: str, kind: type[Exception] = RuntimeError) -> Any:
    """check(view): an error with this text when `bad`, a condition on `v`, holds anywhere."""
    p = IndexSpace(x.shape, [x.strides])
    wide = "tl.float64" if x.dtype.itemsize == 8 else "tl.float32"
    kernel = p.kernel(
        "check",
        {"x": pointer(x.dtype), "fault": "*i32"},
        [
            f"v = {p.load('x', 0)}.to({wide}) + (r * 0 + n * 0).to({wide})",
            f"bad = inside & ({bad})",
            "tl.store(fault + tl.zeros_like(bad.to(tl.int32)), 1, mask=bad)",
        ],
    )
    fault = faults.place(kind, text)
    check: Callable[[View], None] = lambda v: kernel(v.ptr, fault)
    return check
