"""Channels brought together: tensors as (outer, position, group, channel) with channels dense and
filled up with zeros, so that tiles are read in whole vectors. Knows strides, not windows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import triton
import triton.language as tl

from .....core import dtype as dt
from .....core.layout import Layout, Spec
from ....common.slot import Slot
from ...programs.layouts import contiguous, next_power_of_two
from ...programs.lines import shared_program
from ...programs.program import pointer
from ...programs.types import Ints
from ...runtime.views import View, empty


@triton.jit
def _stage(
    o,
    x,
    B,
    S,
    C,
    CP,
    xa,
    xb,
    xc,
    xs,
    oa,
    ob,
    os,
    VEC: tl.constexpr,
    LAST: tl.constexpr,
    BS: tl.constexpr,
    BC: tl.constexpr,
):
    # Grid: (blocks of positions times blocks of channels times all else,).
    at = tl.program_id(0)
    down, across = tl.cdiv(S, BS), tl.cdiv(CP * VEC, BC)
    s = at % down * BS + tl.arange(0, BS)
    c = at // down % across * BC + tl.arange(0, BC)
    rest = at // down // across
    a, b = (rest // B).to(tl.int64), (rest % B).to(tl.int64)
    x += a * xa + b * xb
    o += (a * oa + b * ob) * VEC
    if LAST:
        mask = (s < S)[:, None] & (c < C)[None, :]
        v = tl.load(x + s.to(tl.int64)[:, None] * xs + c[None, :], mask=mask, other=0.0)
    else:  # neighbours in memory are neighbouring positions
        mask = (s < S)[None, :] & (c < C)[:, None]
        v = tl.trans(tl.load(x + s[None, :] + c.to(tl.int64)[:, None] * xc, mask=mask, other=0.0))
    to = s.to(tl.int64)[:, None] * os * VEC + c[None, :]
    tl.store(o + to, v, mask=(s < S)[:, None] & (c < CP * VEC)[None, :])


def vector(dtype: dt.dtype, channels: int) -> int:
    """How many channels are read at once: 16 bytes, or 4 elements of few channels."""
    return 4 if channels <= 4 else 16 // dtype.itemsize


def flat_step(shape: Ints, strides: Ints) -> int | None:
    """The distance between neighbouring places, when all places lie evenly."""
    step, expected = None, 1
    for n, s in zip(reversed(shape), reversed(strides), strict=True):
        if n == 1:
            continue
        if step is None:
            step, expected = s, s * n
        elif s != expected:
            return None
        else:
            expected = s * n
    return 1 if step is None else step


@dataclass(frozen=True)
class Staged:
    """A tensor with dense channels, and how to get there. Strides count vectors of `vec` elements.

    `outer` and `group`: the distances between samples and groups; `place`: between places of each
    dimension; `channels`: of a group, filled up.
    """

    get: Callable[[View], View]
    vec: int
    channels: int
    outer: int
    group: int
    place: Ints


def _copier(
    like: Spec, vec: int, count: Ints, channels: int, given: Ints, step: int, made: Ints, numel: int
) -> Callable[[View], View]:
    """`get(view)`: its values in new memory. `count`: (outer, inner, places); `given`, `made`: the
    distances between outer, inner, channels, and between outer, inner, places.
    """
    a, b, places = count
    last = given[2] == 1 and step != 1
    padded = -(-channels // vec) * vec
    bc = min(64, max(8, next_power_of_two(padded)))
    bs = min(max(8, 4096 // bc), max(8, next_power_of_two(places)))
    kind = pointer(like.dtype)
    numbers = (b, places, channels, padded // vec, given[0], given[1], given[2], step, *made)
    types = [kind, kind, *["i32"] * 4, *["i64"] * 7]
    even = tuple(2 + i for i, v in enumerate(numbers) if v % 16 == 0)
    program = shared_program(_stage, types, {"VEC": vec, "LAST": last, "BS": bs, "BC": bc}, even=even)
    grid = (-(-places // bs) * -(-padded // bc) * a * b,)
    spec = Spec(Layout((numel,)), like.dtype, like.device)

    def get(v: View) -> View:
        to = empty(spec)
        program(grid, to.ptr, v.ptr, *numbers)
        return to

    return get


def staged(x: Slot | Spec, groups: int) -> Staged:
    """(N, channels, *places) with the channels of each group dense."""
    n, channels, *places = x.shape
    per = channels // groups
    vec = vector(x.dtype, per)
    steps = tuple(x.strides[2:])
    if per % vec == 0 and x.strides[1] == 1 and all(s % vec == 0 for s in (x.strides[0], *steps)):
        distances = tuple(s // vec for s in steps)
        return Staged(lambda v: v, vec, per // vec, x.strides[0] // vec, per // vec, distances)
    first = None
    outer, step = x.strides[:2], flat_step(tuple(places), steps)
    if step is None or 1 not in (outer[1], step):
        first, step = contiguous, 1
        outer = (channels * math.prod(places), math.prod(places))
    padded = -(-per // vec)
    size = math.prod(places)
    row = groups * padded
    get = _copier(
        x.spec if isinstance(x, Slot) else x,
        vec,
        (n, groups, size),
        per,
        (outer[0], per * outer[1], outer[1]),
        step,
        (size * row, padded, row),
        n * size * row * vec,
    )
    distances = tuple(row * math.prod(places[d + 1 :]) for d in range(len(places)))
    return Staged(_after(first, get), vec, padded, size * row, padded, distances)


@dataclass(frozen=True)
class Weight:
    """Weights as (columns, taps, terms), with terms dense and filled up, or `columns` dense;
    `outer` and `tap`: the distances between what is not dense, and between taps, in vectors.
    """

    get: Callable[[View], View]
    columns: bool
    outer: int
    tap: int


def staged_weight(weight: Slot, groups: int, transposed: bool) -> Weight:
    """Weights whose terms, the channels of the input, are read in vectors."""
    n, per, *kernel = weight.shape
    outer, taps = n // groups, math.prod(kernel)
    terms = outer if transposed else per
    vec = vector(weight.dtype, terms)
    padded = -(-terms // vec)
    first, second = weight.strides[:2]
    step = flat_step(tuple(kernel), tuple(weight.strides[2:]))
    if second == 1 and step == per and first == taps * per and per % vec == 0:  # channels last
        if not transposed:
            return Weight(lambda v: v, False, first // vec, per // vec)
        # Tensor cores read half types along either side of a matrix.
        if terms % vec == 0 and weight.dtype in dt.HALF:
            return Weight(lambda v: v, True, first // vec, per // vec)
    before = None
    if step is None or (step != 1 and (first if transposed else second) != 1):
        before, step, first, second = contiguous, 1, per * taps, taps
    if transposed:
        count, given = (groups, per, taps), (outer * first, second, first)
        made = (per * taps * padded, taps * padded, padded)
    else:
        count, given = (n, 1, taps), (first, 0, second)
        made = (taps * padded, 0, padded)
    columns = count[0] * count[1]
    get = _copier(weight.spec, vec, count, terms, given, step, made, columns * taps * padded * vec)
    return Weight(_after(before, get), False, taps * padded, padded)


def _after(first: Callable[[View], View] | None, get: Callable[[View], View]) -> Callable[[View], View]:
    return get if first is None else lambda v: get(first(v))
