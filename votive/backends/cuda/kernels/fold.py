"""Sliding windows laid out as columns, and columns added up where they came from."""

from __future__ import annotations

import math

from ....core import dtype as dt
from ....core.layout import contiguous_strides
from ...common.slot import Slot
from ...common.windows import places_of
from ..programs.index_space import IndexSpace, without, word
from ..programs.layouts import contiguous, contiguous_output
from ..programs.program import pointer
from ..programs.types import Ints, Run, floats
from ..rows import cuda
from ..runtime.views import View
from .index import reach
from .pooling_boxes import span


@cuda("_unfold")
def unfold(x: Slot, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints) -> Run:
    if word(x.dtype) is None or not x.numel:
        return None
    n = len(kernel)
    places = places_of(x.shape[2:], kernel, stride, padding, dilation)
    if any(p < 1 for p in places):
        return None
    shape = (*x.shape[:2], *kernel, *places)
    steps = (*x.strides[:2], *(0,) * (2 * n))
    dims = tuple(range(2, 2 + 2 * n))
    windows = zip(x.shape[2:], places, kernel, stride, padding, dilation, strict=True)
    far = max(reach(x), *(span(*window) for window in windows))
    p = IndexSpace(shape, [contiguous_strides(shape), steps], apart=dims, reach=far)
    good, offset = "inside", p.offsets[1] or "0"
    for k in range(n):
        s, q, g = (p.arg(f"{w}{k}", v[k]) for w, v in (("s", stride), ("p", padding), ("g", dilation)))
        p.add(f"c{k} = {p.at(2 + n + k)} * {s} - {q} + {p.at(2 + k)} * {g}")
        good += f" & (c{k} >= 0) & (c{k} < {p.arg(f'size{k}', x.shape[2 + k])})"
        offset += f" + c{k} * {p.arg(f'xs{k}', x.strides[2 + k])}"
    kind = word(x.dtype)
    run = p.kernel(
        "unfold",
        {"o": kind, "x": kind},
        [f"v = tl.load(x + ({offset} + r * 0 + n * 0), mask={good}, other=0)", p.store("v")],
    )

    def launch(outs: list[View], x: View) -> None:
        with contiguous_output(outs[0]) as out:
            run(out.ptr, x.ptr)

    return launch


@cuda("_fold", accepts=floats)
def fold(x: Slot, size: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints) -> Run:
    if not x.numel:
        return None
    n = len(size)
    places = places_of(size, kernel, stride, padding, dilation)
    channels = x.shape[1] // math.prod(kernel)
    shape = (x.shape[0], channels, *size)
    columns = contiguous_strides((x.shape[0], channels, *kernel, *places))
    dims = tuple(range(2, 2 + n))
    steps = (*columns[:2], *(0,) * n)
    windows = zip(size, places, kernel, stride, padding, dilation, strict=True)
    far = max(x.numel, *(span(*window) for window in windows))
    p = IndexSpace(shape, [contiguous_strides(shape), without(steps, *dims)], apart=dims, reach=far)
    wide = "tl.float64" if x.dtype is dt.float64 else "tl.float32"
    lines = [f"acc = (r * 0 + n * 0).to({wide})"]
    pad, good, offset = "", "inside", p.offsets[1] or "0"
    for k in range(n):
        s, q, g = (p.arg(f"{w}{k}", v[k]) for w, v in (("s", stride), ("p", padding), ("g", dilation)))
        lines.append(f"{pad}for t{k} in range({p.arg(f'kernel{k}', kernel[k])}):")
        pad += "    "
        # The window whose tap t lies here, if one does.
        lines.append(f"{pad}b{k} = {p.at(2 + k)} + {q} - t{k} * {g}")
        lines.append(f"{pad}c{k} = b{k} // {s}")
        places_k = p.arg(f"places{k}", places[k])
        good += f" & (b{k} >= 0) & (c{k} * {s} == b{k}) & (c{k} < {places_k})"
        offset += f" + t{k} * {p.arg(f'ks{k}', columns[2 + k])}"
        offset += f" + c{k} * {p.arg(f'cs{k}', columns[2 + n + k])}"
    lines += [
        f"{pad}v = tl.load(x + ({offset} + r * 0 + n * 0), mask={good}, other=0)",
        f"{pad}acc += v.to({wide})",
        p.store("acc.to(o.dtype.element_ty)"),
    ]
    run = p.kernel("fold", {"o": pointer(x.dtype), "x": pointer(x.dtype)}, lines)

    def launch(outs: list[View], x: View) -> None:
        x = contiguous(x)
        with contiguous_output(outs[0]) as out:
            run(out.ptr, x.ptr)

    return launch
