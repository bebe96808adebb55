"""How often a window with overlaps leads to each place of a block."""

from __future__ import annotations

from typing import Any

from ....core import dtype as dt
from ....core.layout import Layout, Spec
from ..programs.index_space import Places
from ..programs.program import TYPE, pointer
from ..rows import cuda
from ..runtime.views import View, empty, zero


@cuda("_visits")
def visits(length: int, size: Any, stride: Any, offset: int, dtype: dt.dtype, device: Any) -> Any:
    if dtype not in TYPE:
        return None
    p = Places(size, [stride], reach=length)
    shift = p.arg("offset", offset)
    count = p.kernel(
        "visits",
        {"o": "*i32"},
        [
            f"at = {p.offsets[0] or '0'} + {shift} + r * 0 + n * 0",
            "tl.atomic_add(o + at, 1, mask=inside, sem='relaxed')",
        ],
    )
    flat = Places((length,), [(1,)])
    finish = flat.kernel(
        "visited",
        {"o": pointer(dtype), "x": "*i32"},
        [flat.store(f"tl.maximum({flat.load('x', 0)}, 1).to(o.dtype.element_ty)")],
    )
    counts = Spec(Layout((length,)), dt.int32, device)

    def run(outs: list[View]) -> None:
        made = empty(counts)
        zero(made)
        count(made.ptr)
        finish(outs[0].ptr, made.ptr)

    return run
