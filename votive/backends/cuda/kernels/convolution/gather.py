"""Convolutions of any kind by tiles that gather the inputs they need, element by element: float64,
and what the kernels over staged inputs do not count in.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .....core import dtype as dt
from .....core.layout import Layout, Spec, contiguous_strides
from ....common.slot import Slot
from ... import precision
from ...programs.copy import copy_view
from ...programs.layouts import contiguous, next_power_of_two
from ...programs.lines import shared_program
from ...programs.program import pointer
from ...programs.reduction import row_reducer
from ...programs.types import Ints, wide
from ...runtime import here_count
from ...runtime.views import View, empty
from .implicit import Convolve, Weigh, three
from .kernels import convolve, weigh

BM, BN, BK = 128, 64, 32  # positions, channels, terms of a tile


def _fits(positions: int, groups: int, far: int, *shapes: Ints) -> bool:
    """Whether kernels can do it: only the distance between samples may need 64 bits, and the third
    dimension of a grid ends. What is larger goes to the CPU.

    `far`: the largest number on the way to an element, such as a place in the padding.
    """
    small = positions < 2**30 and groups < 65536 and far < 2**31
    return small and all(math.prod(s[1:]) < 2**31 for s in shapes)


def _far(x: Slot, stride: Ints, padding: Ints, dilation: Ints) -> int:
    """How far windows over `x` reach, in elements of its memory."""
    strides = contiguous_strides(x.shape) if _near(x) is contiguous else x.strides
    inside = zip(x.shape[2:], strides[2:], padding, strict=True)
    return max(sum((n + 2 * p) * max(abs(step), 1) for n, step, p in inside), *stride, *dilation)


def _steps_between(places: Any, stride: Ints) -> Ints:
    """The stride, or 1 where there is one place, which takes no step."""
    return tuple(1 if o == 1 else s for o, s in zip(places, stride, strict=True))


def _near(x: Slot) -> Any:
    """What brings the elements of a sample together if they lie further apart than 32 bits tell."""
    inside = zip(x.strides[1:], x.shape[1:], strict=True)
    return (lambda v: v) if sum(abs(s) * (n - 1) for s, n in inside) < 2**31 else contiguous


def _steps(spec: Slot | Spec) -> Ints:
    """Strides of (N, C, depth, height, width)."""
    return (*spec.strides[:2], *three(spec.strides[2:], 0))


def _tile(dtype: dt.dtype, rows: int, columns: int, terms: int) -> dict[str, Any]:

    half = dtype in dt.HALF
    double = dtype is dt.float64
    bm, bn, bk = (16, 16, 16) if double else (BM, BN, BK if half else 16)
    return {
        "PRECISION": "tf32" if half or precision.convolutions.allow_tf32 else "ieee",
        "DOT": not double,
        "WIDE": wide(dtype),
        "BM": max(16, min(bm, next_power_of_two(rows))),
        "BN": max(16, min(bn, next_power_of_two(columns))),
        "BK": max(16, min(bk, next_power_of_two(terms))),
    }


def _laid(weight: Slot, groups: int, transposed: bool) -> tuple[Spec, Spec]:
    """(the weight seen as (groups, columns, taps, terms), the same with these dense)."""
    n, per, *kernel = weight.shape
    first, second, *taps = weight.strides
    outer = n // groups
    if transposed:
        shape, steps = (groups, per, *kernel, outer), (outer * first, second, *taps, first)
    else:
        shape, steps = (groups, outer, *kernel, per), (outer * first, first, *taps, second)
    seen = weight.spec.like(shape, strides=steps)
    return seen, weight.spec.like(shape)


def gathered(p: Convolve) -> Callable[..., None] | None:
    """`run(out, x, weight, bias)`, or None where sizes are beyond what the kernel counts in."""
    x, weight, size, groups, transposed = p.x, p.weight, p.size, p.groups, p.transposed
    stride, padding, dilation = p.stride, p.padding, p.dilation
    columns = weight.shape[1] if transposed else weight.shape[0] // groups
    channels = x.shape[1] // groups
    kernel = three(weight.shape[2:], 1)
    rows, terms = x.shape[0] * math.prod(size), channels * math.prod(kernel)
    fixed = _tile(x.dtype, rows, columns, terms)
    fixed |= {"DIMS": x.ndim - 2, "TRANSPOSED": transposed, "BIAS": p.bias}
    fixed["PADDED"] = transposed or any(padding)
    kind = pointer(x.dtype)
    places = x.shape[2:] if transposed else size
    stride = _steps_between(places, stride)
    if transposed:  # coordinates of the input come last, and only those that are there
        taps = zip(size, weight.shape[2:], padding, dilation, strict=True)
        far = max(*stride, *dilation, *(i + 2 * p + d * k for i, k, p, d in taps))
    else:
        far = _far(x, stride, padding, dilation)
    if not _fits(rows, groups, far, x.shape, (1, groups * columns, *size)):
        return None
    steps = ["i64", *["i32"] * 4] * 2
    warps = 8 if fixed["BM"] * fixed["BN"] >= 8192 else 4
    program = shared_program(convolve, [kind] * 4 + ["i32"] * 21 + steps, fixed, warps=warps)
    seen, laid = _laid(weight, groups, transposed)
    numbers = (
        rows,
        columns,
        terms,
        channels,
        *three(size, 1),
        *three(x.shape[2:], 1),
        *kernel[1:],
        *three(stride, 1),
        *three(padding, 0),
        *three(dilation, 1),
    )
    grid = (-(-rows // fixed["BM"]), -(-columns // fixed["BN"]), groups)
    near = _near(x)

    def run(out: View, x: View, weight: View, bias: View | None) -> None:
        w = empty(laid)
        copy_view(w, View(weight.ptr, seen, weight.storage))
        x, bias = near(x), w if bias is None else bias
        program(grid, out.ptr, x.ptr, w.ptr, bias.ptr, *numbers, *_steps(x.spec), *_steps(out.spec))

    return run


def gathered_weight(p: Weigh) -> Callable[..., None] | None:
    """`run(out, x, grad)`, or None where sizes are beyond what the kernel counts in."""
    x, grad, kernel, groups = p.x, p.grad, p.kernel, p.groups
    stride, padding, dilation = p.stride, p.padding, p.dilation
    size, taps = three(grad.shape[2:], 1), three(kernel, 1)
    row, channels = grad.shape[1] // groups, x.shape[1] // groups
    positions, columns = x.shape[0] * math.prod(size), channels * math.prod(taps)
    fixed = {"DIMS": x.ndim - 2, "PADDED": any(padding)}
    fixed |= _tile(x.dtype, row, columns, positions)
    blocks = -(-row // fixed["BM"]) * -(-columns // fixed["BN"])
    parts = max(1, min(4 * here_count() // (blocks * groups), positions // (8 * fixed["BK"]), 64))
    part = -(-positions // parts)
    parts = -(-positions // part)
    stride = _steps_between(grad.shape[2:], stride)
    far = _far(x, stride, padding, dilation)
    if not _fits(positions, groups * parts, far, x.shape, grad.shape):
        return None
    total = dt.float64 if x.dtype is dt.float64 else dt.float32
    program = shared_program(
        weigh,
        [pointer(total)] + [pointer(x.dtype)] * 2 + ["i32"] * 21 + ["i64", *["i32"] * 4] * 2 + ["i32", "i32"],
        fixed,
        warps=8 if fixed["BM"] * fixed["BN"] >= 8192 else 4,
    )
    numbers = (
        positions,
        row,
        columns,
        channels,
        *size,
        *three(x.shape[2:], 1),
        *taps[1:],
        *three(stride, 1),
        *three(padding, 0),
        *three(dilation, 1),
    )
    grid = (-(-row // fixed["BM"]), -(-columns // fixed["BN"]), groups * parts)
    near, near_grad = _near(x), _near(grad)
    device = x.spec.device
    made = Spec(Layout((parts, groups * row * columns)), total, device)
    flat = Spec(Layout((groups * row * columns,)), total, device)
    join = row_reducer(Slot(0, made), (0,), total, "sum") if parts > 1 else None
    # Terms come out as (channel out, tap, channel in); weights are (out, in, tap).
    shape = (groups * row, channels, *kernel)
    inner = [channels * math.prod(kernel[d + 1 :]) for d in range(len(kernel))]
    permuted = Spec(Layout(shape, (columns, 1, *inner)), total, device)

    def run(out: View, x: View, grad: View) -> None:
        sums, x, grad = empty(made), near(x), near_grad(grad)
        steps = (*_steps(x.spec), *_steps(grad.spec))
        program(grid, sums.ptr, x.ptr, grad.ptr, *numbers, *steps, part, groups)
        if join is not None:
            summed = empty(flat)
            join([summed], sums)
            sums = summed
        copy_view(out, View(sums.ptr, permuted, sums.storage))

    return run
