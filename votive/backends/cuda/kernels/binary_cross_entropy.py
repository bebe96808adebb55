"""Binary cross entropy of what must be probabilities: looked at and computed in one pass."""

from __future__ import annotations

from ...common.slot import Slot
from ..programs.index_space import IndexSpace
from ..programs.program import pointer
from ..programs.types import Run, floats
from ..rows import cuda
from ..runtime.faults import faults


def _fault(name: str) -> int:
    return faults.place(RuntimeError, f"binary_cross_entropy: all elements of {name} must lie between 0 and 1.")


@cuda("_checked_bce", accepts=floats)
def checked_bce(x: Slot, t: Slot) -> Run:
    if t.shape != x.shape or t.dtype is not x.dtype:
        return None
    p = IndexSpace(x.shape, [x.spec.dense_like().strides, x.strides, t.strides])
    kind = pointer(x.dtype)
    wide = "tl.float64" if kind == "*fp64" else "tl.float32"
    lines = []
    for k, name in ((1, "x"), (2, "t")):
        lines += [
            f"{name}_v = {p.load(name, k)}.to({wide}) + (r * 0 + n * 0).to({wide})",
            f"{name}_bad = inside & ((({name}_v >= 0) & ({name}_v <= 1)) == 0)",
            f"tl.store({name}_fault + tl.zeros_like({name}_bad.to(tl.int32)), 1, mask={name}_bad)",
        ]
    lines += [
        "no = tl.maximum(m.f_log1p(-x_v), -100.0)",
        "yes = tl.maximum(m.f_log(x_v), -100.0)",
        *p.stores("((t_v - 1) * no - t_v * yes).to(o.dtype.element_ty)"),
    ]
    types = {"o": kind, "x": kind, "t": kind, "x_fault": "*i32", "t_fault": "*i32"}
    launch = p.kernel("checked_bce", types, lines)
    given = _fault("input"), _fault("target")
    return lambda outs, x, t: launch(outs[0].ptr, x.ptr, t.ptr, *given)
