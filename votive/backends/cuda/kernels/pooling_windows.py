"""Pooling over large windows: a program has a few results and goes through their windows with many lanes, where a lane
for each result would walk alone. Up to three dimensions; missing ones have size 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import triton
import triton.language as tl

from ....core import dtype as dt
from ....core.layout import Spec
from ....formula import Formula, const, var
from ....formula.expr import apply
from ...common.slot import Slot
from ..programs.index_space import cached_by_spec
from ..programs.layouts import next_power_of_two
from ..programs.program import Program, pointer
from ..programs.reduction import reducer
from ..programs.types import Ints
from .index import reach

MOST_UNROLLED = 27  # elements of a window whose loads are written out
LANES = 1024  # of a tile
MANY_LANES = 2048  # where windows are long
CHANNELS = 64  # of a tile, where channels lie dense
MANY = 1 << 16  # results: enough that each may have a lane alone, if its window is short
SHORT = 128


@dataclass(frozen=True)
class Windows:
    """Windows along each dimension: of a kernel, or (`adaptive`) such that they cover it, the longest of that size."""

    kernel: Ints
    stride: Ints
    padding: Ints
    dilation: Ints
    adaptive: bool = False
    padded: bool = False  # padding counts as elements
    divisor: float | None = None

    def longest(self, sizes: Ints) -> Ints:
        """How many elements of dimensions of these sizes a window can hold."""
        return tuple(min(k, (i - 1) // d + 1) for k, i, d in zip(self.kernel, sizes, self.dilation, strict=True))

    def walked(self, x: Slot, size: Ints) -> bool:
        """Whether lanes should share windows: they are long, and results are not so many that each may have its own."""
        if not x.numel or not x.dtype.is_floating_point:
            return False
        lead = x.ndim - len(size)
        long = math.prod(self.longest(x.shape[lead:]))
        return long > (SHORT if math.prod((*x.shape[:lead], *size)) >= MANY else MOST_UNROLLED)


def adaptive(sizes: Ints, places: Ints) -> Windows:
    """Windows that together cover `sizes`."""
    n = len(sizes)
    kernel = tuple(longest_window(i, o) for i, o in zip(sizes, places, strict=True))
    return Windows(kernel, (1,) * n, (0,) * n, (1,) * n, adaptive=True)


def longest_window(size: int, places: int) -> int:
    """Elements of the largest of `places` windows that cover `size`."""
    if size % places == 0:
        return size // places
    # Windows repeat after places / gcd.
    each = range(places // math.gcd(size, places))
    return max(-(-(o + 1) * size // places) - o * size // places for o in each)


@triton.jit
def _window(place, size, places, kernel, stride, padding, dilation, ADAPTIVE: tl.constexpr, PADDED: tl.constexpr):
    """(first element inside the input, elements from there on inside, what the window counts)."""
    if ADAPTIVE:
        first = place * size // places
        many = ((place + 1) * size + places - 1) // places - first
        count = many
    else:
        start = place * stride - padding
        before = tl.maximum((dilation - 1 - start) // dilation, 0)
        first = start + before * dilation
        many = tl.minimum(kernel - before, (size - first + dilation - 1) // dilation)
        end = tl.minimum(start + kernel, size + padding)
        count = end - start if PADDED else tl.minimum(end, size) - tl.maximum(start, 0)
    return first, many, count


@triton.jit
def _over_windows(
    o, places, x, divisor, results, channels, P0, P1, P2, S0, S1, S2, on, oc, o0, o1, o2, xn, xc, x0, x1, x2,
    k0, k1, k2, l0, l1, l2, t0, t1, t2, p0, p1, p2, g0, g1, g2,
    MAX: tl.constexpr, NAMED: tl.constexpr, ADAPTIVE: tl.constexpr, PADDED: tl.constexpr, DIVIDED: tl.constexpr,
    CHANNELS_LAST: tl.constexpr, WIDE: tl.constexpr, BR: tl.constexpr, BH: tl.constexpr, BW: tl.constexpr,
):  # fmt: skip
    r = tl.program_id(0).to(results.dtype) * BR + tl.arange(0, BR)
    lane = tl.arange(0, BH * BW).to(results.dtype)
    if CHANNELS_LAST:
        r, lane = r[None, :], lane[:, None]
    else:
        r, lane = r[:, None], lane[None, :]
    there = r < results
    if CHANNELS_LAST:
        c, rest = r % channels, r // channels
        e2, rest = rest % P2, rest // P2
        e1, rest = rest % P1, rest // P1
        e0, n = rest % P0, rest // P0
    else:
        e2, rest = r % P2, r // P2
        e1, rest = rest % P1, rest // P1
        e0, rest = rest % P0, rest // P0
        c, n = rest % channels, rest // channels
    f0, m0, c0 = _window(e0, S0, P0, k0, t0, p0, g0, ADAPTIVE, PADDED)
    f1, m1, c1 = _window(e1, S1, P1, k1, t1, p1, g1, ADAPTIVE, PADDED)
    f2, m2, c2 = _window(e2, S2, P2, k2, t2, p2, g2, ADAPTIVE, PADDED)
    base = n * xn + c * xc + f0 * x0 + f1 * x1 + f2 * x2
    to = n * on + c * oc + e0 * o0 + e1 * o1 + e2 * o2
    count = c0.to(WIDE) * c1.to(WIDE) * c2.to(WIDE)
    high, wide = lane // BW, lane % BW

    best = (r * 0 + lane * 0).to(WIDE)
    at = r * 0 + lane * 0 - 1
    if MAX:
        best += float("-inf")
    for a in range(l0):
        for h in range(0, l1, BH):
            rows = there & (a < m0) & (h + high < m1)
            line = base + a * (g0 * x0) + (h + high) * (g1 * x1)
            for w in range(0, l2, BW):
                good = rows & (w + wide < m2)
                v = tl.load(x + (line + (w + wide) * (g2 * x2)), mask=good, other=0).to(WIDE)
                if MAX:
                    # Among equals the first counts, among NaN the last.
                    better = good & ((v > best) | (v != v) | (at < 0))
                    best = tl.where(better, v, best)
                    step = ((a * g0) * S1 + (h + high) * g1) * S2 + (w + wide) * g2
                    at = tl.where(better, step if NAMED else 0, at)
                else:
                    best += v

    AXIS: tl.constexpr = 0 if CHANNELS_LAST else 1
    if MAX:
        nan = best != best
        broken = tl.max(nan.to(tl.int32), AXIS, keep_dims=True) > 0
        y = tl.max(tl.where(nan, float("-inf"), best), AXIS, keep_dims=True)
        if NAMED:
            # Counted from the first element of the window, in the order of the input.
            last = tl.max(tl.where(nan, at, -1), AXIS, keep_dims=True)
            far = (at * 0 + S0 * S1) * S2
            first = tl.min(tl.where((best == y) & (at >= 0), at, far), AXIS, keep_dims=True)
            place = (f0 * S1 + f1) * S2 + f2 + tl.where(broken, last, first)
            tl.store(places + to, place.to(tl.int64), mask=there)
        y = tl.where(broken, float("nan"), y)
    else:
        y = tl.sum(best, AXIS, keep_dims=True)
        y = y / divisor if DIVIDED else y / count
    tl.store(o + to, y.to(o.dtype.element_ty), mask=there)


def even_mean(x: Slot, size: Ints, divisor: float | None = None) -> Any:
    """`find(spec of the results)(out, x)`: means of windows of equal sizes side by side, a reduction; None where it has
    no kernel. `divisor`: what sums are divided by instead of counts.
    """
    n = len(size)
    lead = x.ndim - n
    shape, strides, kept, gone = list(x.shape[:lead]), list(x.strides[:lead]), list(range(lead)), []
    for i, o, s in zip(x.shape[lead:], size, x.strides[lead:], strict=True):
        kept.append(len(shape))
        gone.append(len(shape) + 1)
        shape += [o, i // o]
        strides += [i // o * s, s]
    seen = x.spec.like(tuple(shape), strides=tuple(strides))
    wide = dt.float64 if x.dtype is dt.float64 else dt.float32
    count = float(divisor or math.prod(shape[d] for d in gone))

    def build(out: Spec) -> Any:
        to = [0] * len(shape)
        for d, s in zip(kept, out.strides, strict=True):
            to[d] = s
        finish = Formula("finish", ("x",), apply("div", var("x"), const(count)))
        term, roles = Formula("term", ("x",), var("x")), [(x.dtype, wide, None)]
        given = ("mean_windows", "sum", wide, term, ["x"], roles, [seen], seen.shape, tuple(gone))
        return reducer(*given, out.dtype, finish, tuple(to))

    return cached_by_spec(build)


def _threes(given: Ints, fill: int) -> Ints:
    return (*(fill,) * (3 - len(given)), *given)


def over_windows(x: Slot, n: int, size: Ints, windows: Windows, *, largest: bool, named: bool = False) -> Any:
    """`find(spec of the results)(out, places, x)`: means of windows of the last n dimensions, or their largest
    elements and (`named`) where these are.
    """
    lead = x.ndim - n
    spread = lambda v, fill: (*(fill,) * (2 - lead), *v[:lead], *_threes(tuple(v[lead:]), fill))
    sizes, steps = spread(x.shape, 1), spread(x.strides, 0)
    kernel, longest = _threes(windows.kernel, 1), _threes(windows.longest(x.shape[lead:]), 1)
    # Padded dimensions have one window of one element.
    shifts = [_threes(v, f) for v, f in ((windows.stride, 1), (windows.padding, 0), (windows.dilation, 1))]
    results = math.prod((*x.shape[:lead], *size))
    at = zip(sizes[2:], _threes(size, 1), kernel, *shifts, strict=True)
    bounds = [i * (o + 1) if windows.adaptive else i + (o + 1) * t + 2 * p + k * g for i, o, k, t, p, g in at]
    most = max(reach(x), results, math.prod(sizes[2:]), *bounds)

    def build(out: Spec) -> Any:
        places, to = spread(out.shape, 1), spread(out.strides, 0)
        far = max(most, sum((e - 1) * s for e, s in zip(out.shape, out.strides, strict=True)))
        number = "i64" if far >= 2**31 - 2**20 else "i32"
        dense = steps[1] == 1 and sizes[1] > 1 and steps[4] != 1
        lanes = MANY_LANES if math.prod(longest) >= 4 * MANY_LANES else LANES
        br = min(CHANNELS, next_power_of_two(sizes[1])) if dense else 1
        bw = min(next_power_of_two(longest[2]), lanes // br)
        bh = min(next_power_of_two(longest[1]), lanes // br // bw)
        if not dense:
            br = min(lanes // (bw * bh), next_power_of_two(results))
        constants = {
            "MAX": largest,
            "NAMED": named,
            "ADAPTIVE": windows.adaptive,
            "PADDED": windows.padded,
            "DIVIDED": windows.divisor is not None,
            "CHANNELS_LAST": dense,
            "WIDE": tl.float64 if x.dtype is dt.float64 else tl.float32,
            "BR": br,
            "BH": bh,
            "BW": bw,
        }
        numbers = (results, sizes[1], *places[2:], *sizes[2:], *to, *steps, *kernel, *longest)
        numbers += (*shifts[0], *shifts[1], *shifts[2])
        kinds = [pointer(out.dtype), "*i64", pointer(x.dtype), "fp64" if x.dtype is dt.float64 else "fp32"]
        warps = 8 if br * bh * bw > LANES else 4 if br * bh * bw > 256 else 2
        program = Program(_over_windows, [*kinds, *[number] * len(numbers)], constants, warps=warps)
        grid, divisor = (-(-results // br),), float(windows.divisor or 1)
        return lambda o, places, x: program(grid, o, places, x, divisor, *numbers)

    return cached_by_spec(build)
