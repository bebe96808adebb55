"""Rotary position embedding."""

from __future__ import annotations

import triton
import triton.language as tl

from ....core.layout import Spec
from ...common.slot import Slot
from ..programs.copy import copy_view
from ..programs.layouts import next_power_of_two
from ..programs.program import TYPE, Program
from ..programs.types import Run, floats, wide
from ..rows import cuda
from ..runtime.views import View, empty


@triton.jit
def _rope(
    o, x, cos, sin, rows, offset, H, T, D, ob, oh, ot, xb, xh, xt, xd, cb, ch, ct, cd, sb, sh, st,
    sd, A: tl.constexpr, INTERLEAVED: tl.constexpr, WIDE: tl.constexpr, BR: tl.constexpr,
    BA: tl.constexpr, BD: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * BR + tl.arange(0, BR)[:, None]
    t = row % T
    h = row // T % H
    b = (row // T // H).to(tl.int64)
    here = row < rows
    i = tl.arange(0, BA)[None, :]
    first = 2 * i if INTERLEAVED else i
    second = 2 * i + 1 if INTERLEAVED else i + A
    inside = here & (i < A)
    at = x + b * xb + h * xh + t * xt
    turn = b * cb + h * ch + (t + offset) * ct + i * cd
    other = b * sb + h * sh + (t + offset) * st + i * sd

    p = tl.load(at + first * xd, mask=inside, other=0.0).to(WIDE)
    q = tl.load(at + second * xd, mask=inside, other=0.0).to(WIDE)
    c = tl.load(cos + turn, mask=inside, other=0.0).to(WIDE)
    s = tl.load(sin + other, mask=inside, other=0.0).to(WIDE)

    to = o + b * ob + h * oh + t * ot
    kind = o.dtype.element_ty
    tl.store(to + first, (p * c - q * s).to(kind), mask=inside)
    tl.store(to + second, (q * c + p * s).to(kind), mask=inside)
    if BD > 0:
        # Features beyond the pairs stay as they are.
        k = 2 * A + tl.arange(0, BD)[None, :]
        rest = tl.load(at + k * xd, mask=here & (k < D), other=0.0)
        tl.store(to + k, rest, mask=here & (k < D))


def _four(spec: Spec) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """(batch, heads, length, features) and strides; None with more than two leading dimensions."""
    if spec.ndim > 4:
        return None
    pad = 4 - spec.ndim
    return (1,) * pad + spec.shape, (0,) * pad + spec.strides


@cuda("_rope", accepts=floats)
def rope(x: Slot, cos: Slot, sin: Slot, offset: Slot, interleaved: bool) -> Run:
    out = x.spec.dense_like()
    found, tables = _four(x.spec), [_four(s.spec) for s in (cos, sin)]
    # Features side by side; another order is copied to in the end.
    straight = out.ndim > 0 and out.strides[-1] == 1
    target = _four(out if straight else out.like(out.shape))
    if found is None or target is None or None in tables or not x.numel:
        return None
    (b, h, t, d), xs = found
    rows = b * h * t
    if max(b * s for s in (xs[0],)) >= 2**40 or rows >= 2**31:
        return None
    strides = []
    for shape, s in tables:  # type: ignore[misc]
        strides.append(tuple(0 if n == 1 and k < 2 else s[k] for k, n in enumerate(shape)))
    angles = cos.shape[-1]
    rest = d - 2 * angles
    ba = next_power_of_two(max(angles, 1))
    br = max(1, min(1024 // ba, next_power_of_two(rows)))
    types = ["*" + TYPE[s.dtype] for s in (x, x, cos, sin)] + ["i32"] * 5 + ["i64"] * 15
    program = Program(
        _rope,
        types,
        {
            "A": angles,
            "INTERLEAVED": interleaved,
            "WIDE": wide(x.dtype),
            "BR": br,
            "BA": ba,
            "BD": next_power_of_two(rest) if rest else 0,
        },
    )
    numbers = (h, t, d, *target[1][:3], *xs, *strides[0], *strides[1])
    grid = (-(-rows // br),)

    def run(outs: list[View], x: View, cos: View, sin: View, offset: int) -> None:
        made = outs[0] if straight else empty(out.like(out.shape))
        program(grid, made.ptr, x.ptr, cos.ptr, sin.ptr, rows, int(offset), *numbers)
        if not straight:
            copy_view(outs[0], made)

    return run
