"""The largest few of a line, and the one of a rank, without sorting: the bits of the wanted element
are found from the top, two at a time, by counting.

One program has a line, or a part of a long one: then what the parts took is looked through again.
Only what was selected is sorted. Knows lines, no operators.
"""

from __future__ import annotations

import triton
import triton.language as tl

from .....core import dtype as dt
from ...programs.layouts import next_power_of_two
from ...programs.lines import Lines, scratch, shared_program
from ...programs.program import Program, pointer
from ...runtime.views import View
from .bitonic import TILE, in_order, most, narrow
from .radix import BITS, bits

WHOLE = 8192  # elements that one program looks through
PART = 4096  # of a longer line
WIDE_PART = 16384  # where many are wanted
FEW = 256  # so many are wanted of a short part
LARGEST = 1024  # results that are selected; more are sorted with all the others
RANKED = 16384  # elements of a line in which a rank is found by one program
SHORT = 128  # elements of lines that are sorted for it, several by one program


@triton.jit
def _numbers(v, there, N: tl.constexpr, FIRST: tl.constexpr):
    """Keys as unsigned numbers, larger ones wanted first; what is not there is zero. FIRST: the
    largest values are.
    """
    if N == 64:
        low = bits(v, tl.zeros((), tl.int64), N, not FIRST)
        u = ((bits(v, tl.zeros((), tl.int64) + 1, N, not FIRST) << 32) | low).to(tl.uint64, bitcast=True)
    else:
        u = bits(v, tl.zeros((), tl.int64), N, not FIRST).to(tl.uint32)
    return tl.where(there, u, 0).to(u.dtype)


@triton.jit
def _threshold(u, need, N: tl.constexpr, B: tl.constexpr, EXACT: tl.constexpr):
    """(a number, how many of its equals are wanted): with those above it, as many as are needed.
    EXACT: the number is that of the rank. At most 32,767 numbers, so that sixteen bits count.
    """
    found = tl.zeros((), u.dtype)
    need = need.to(tl.int32)
    shift = tl.full((), (N + 1) // 2 * 2 - 2, tl.int32)
    going = shift >= 0
    while going:
        digit = (u ^ found) >> shift.to(u.dtype)  # below 4 where all bits above agree
        # Sixteen at most are counted in bytes, then all of them in sixteen bits each.
        one = tl.full(u.shape, 1, tl.int32) << ((digit & 3).to(tl.int32) * 8)
        few = tl.sum(tl.reshape(tl.where(digit < 4, one, 0), (B // 16, 16)), 1).to(tl.int64)
        few = (few & 0xFF00) << 8 | (few & 0xFF0000) << 16 | (few & 0xFF000000) << 24
        count = tl.sum(few, 0)
        ones = ((count >> 16) & 0xFFFF).to(tl.int32)
        twos = ((count >> 32) & 0xFFFF).to(tl.int32)
        three = ((count >> 48) & 0xFFFF).to(tl.int32)
        two = three + twos
        one_ = two + ones
        more = (one_ >= need).to(tl.int32) + (two >= need).to(tl.int32) + (three >= need).to(tl.int32)
        above = tl.where(more == 3, 0, tl.where(more == 2, three, tl.where(more == 1, two, one_)))
        here = tl.where(more == 3, three, tl.where(more == 2, twos, tl.where(more == 1, ones, -1)))
        need -= above
        found = found | (more.to(u.dtype) << shift.to(u.dtype))
        # Where all that agree so far are wanted, their other bits do not matter.
        whole = (here == need) & (shift > 0) & (EXACT == 0)
        going = (shift > 0) & (whole == 0)
        shift -= 2
        need = tl.where(whole, 0, need)
        found = tl.where(whole, found - 1, found).to(u.dtype)
    return found, need


@triton.jit
def _select(
    values, out, chosen, x, given, n, sx, each, parts, stride, k,
    N: tl.constexpr, FIRST: tl.constexpr, NARROW: tl.constexpr, INDIRECT: tl.constexpr,
    LAST: tl.constexpr, B: tl.constexpr, K: tl.constexpr, SIZE: tl.constexpr,
):  # fmt: skip
    # Grid: lines times parts. INDIRECT: candidates are named by their places. LAST: the line is
    # whole, and what was selected is sorted.
    row = (tl.program_id(0) // parts).to(tl.int64)
    part = tl.program_id(0) % parts
    lane = tl.arange(0, B)
    i = part * each + lane
    there = (lane < each) & (i < n)
    place = i
    if INDIRECT:
        place = tl.load(given + row * n + i, mask=there, other=0)
    x += row * sx
    v = tl.load(x + place, mask=there, other=0)

    u = _numbers(v, there, N, FIRST)
    wanted = tl.minimum(k, tl.minimum(each, n - part * each))
    least, need = _threshold(u, wanted, N, B, False)
    above = tl.where(u > least, 1, 0)
    equal = tl.where((u == least) & there, 1, 0)
    seen = tl.cumsum(above + (equal << 16), 0)
    before = (seen & 0xFFFF) - above
    ties = (seen >> 16) - equal
    taken = (above != 0) | ((equal != 0) & (ties < need))
    at = before + tl.minimum(ties, need)
    chosen += row * stride + part * k
    tl.store(chosen + at, place, mask=taken)

    if LAST:
        tl.debug_barrier()
        j = tl.arange(0, K)
        there = j < k
        place = tl.load(chosen + j, mask=there, other=0)
        v = tl.load(x + place, mask=there, other=0)
        place = in_order(v, place, there, N, NARROW, FIRST, SIZE, SIZE)
        place = tl.where(there, place, 0)
        tl.store(values + row * k + j, tl.load(x + place, mask=there, other=0), mask=there)
        tl.store(out + row * k + j, place.to(tl.int64), mask=there)


@triton.jit
def _ranked(
    values, out, x, n, sx, k,
    N: tl.constexpr, KIND: tl.constexpr, PLACES: tl.constexpr, B: tl.constexpr,
):  # fmt: skip
    # Grid: lines. KIND 0: the k-th from the smallest; 1: the median, NaN if there is one; 2: the
    # median of what is no NaN.
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, B)
    there = i < n
    v = tl.load(x + row * sx + i, mask=there, other=0)
    if KIND > 0:
        f = v if N == 64 else v.to(tl.float32)
        unknown = tl.sum(tl.where(there & (f != f), 1, 0), 0)
        if KIND == 1:
            # NaN comes after all others: the first of them, where there is one.
            k = tl.where(unknown > 0, n - unknown, (n - 1) // 2)
        else:
            k = tl.maximum(n - unknown - 1, 0) // 2

    # Ranks count from the smallest: what is wanted first are the largest of inverted numbers.
    u = _numbers(v, there, N, False)
    least, need = _threshold(u, k + 1, N, B, True)
    equal = tl.where((u == least) & there, 1, 0)
    hit = (equal != 0) & (tl.cumsum(equal, 0) == need)
    place = tl.sum(tl.where(hit, i, 0), 0)
    tl.store(values + row, tl.load(x + row * sx + place))
    if PLACES:
        tl.store(out + row, place.to(tl.int64))


@triton.jit
def _ranked_short(
    values, out, x, rows, n, sx, k,
    N: tl.constexpr, NARROW: tl.constexpr, KIND: tl.constexpr, PLACES: tl.constexpr,
    R: tl.constexpr, B: tl.constexpr, SIZE: tl.constexpr, DIMS: tl.constexpr,
):  # fmt: skip
    # Grid: short lines, R at a time: sorting them takes fewer steps than their bits do. As above.
    row = tl.program_id(0).to(tl.int64) * R + tl.arange(0, R)
    i = tl.arange(0, B)[None, :] + tl.zeros((R, 1), tl.int32)
    there = (row < rows)[:, None] & (i < n)
    v = tl.load(x + row[:, None] * sx + i, mask=there, other=0)
    at = tl.zeros((R,), tl.int32) + k
    if KIND > 0:
        f = v if N == 64 else v.to(tl.float32)
        unknown = tl.sum(tl.where(there & (f != f), 1, 0), 1)
        if KIND == 1:
            at = tl.where(unknown > 0, n - unknown, (n - 1) // 2)
        else:
            at = tl.maximum(n - unknown - 1, 0) // 2

    place = in_order(v, i, there, N, NARROW, False, SIZE, DIMS)
    place = tl.sum(tl.where(i == at[:, None], place, 0), 1)
    tl.store(values + row, tl.load(x + row * sx + place, mask=row < rows, other=0), mask=row < rows)
    if PLACES:
        tl.store(out + row, place.to(tl.int64), mask=row < rows)


def _warps(block: int) -> int:
    return max(1, min(16, block // 256))


class Select:
    """The launches that write the k largest or smallest of each line, in order."""

    def __init__(self, ln: Lines, dtype: dt.dtype, k: int, largest: bool) -> None:
        self.ln, self.k = ln, k
        self.steps: list[tuple[Program, int, int, int, int]] = []
        kind = pointer(dtype)
        types = [kind, "*i64", "*i32", kind, "*i32", "i32", "i64", "i32", "i32", "i32", "i32"]
        n, indirect, size = ln.n, False, next_power_of_two(max(k, 2))
        while True:
            part = n if n <= WHOLE else PART if k <= FEW else WIDE_PART
            parts = -(-n // part)
            each = -(-n // parts)
            parts = -(-n // each)
            block = next_power_of_two(max(each, 32))
            constants = {
                "N": BITS[dtype],
                "FIRST": largest,
                "NARROW": narrow(dtype, ln.n),
                "INDIRECT": indirect,
                "LAST": parts == 1,
                "B": block,
                "K": size,
                "SIZE": size.bit_length() - 1,
            }
            program = shared_program(_select, types, constants, warps=_warps(block))
            taken = k if parts == 1 else (parts - 1) * k + min(k, n - (parts - 1) * each)
            self.steps.append((program, n, each, parts, taken))
            if parts == 1:
                break
            n, indirect = taken, True

    def __call__(self, x: View, sx: int, values: int, out: int) -> None:
        """`x`: dense lines, `sx` apart. Addresses say where results go."""
        given = x
        for program, n, each, parts, taken in self.steps:
            chosen = scratch(x.spec, self.ln.rows * taken, dt.int32)
            places = (values, out, chosen.ptr, x.ptr, given.ptr)
            program((self.ln.rows * parts,), *places, n, sx, each, parts, taken, self.k)
            given = chosen


class Ranked:
    """The launch that writes the element of a rank of each line, and its place."""

    def __init__(self, ln: Lines, dtype: dt.dtype, kind: int, places: bool) -> None:
        t = pointer(dtype)
        fixed = {"N": BITS[dtype], "KIND": kind, "PLACES": places}
        self.short = ln.n <= SHORT
        if self.short:
            b = next_power_of_two(max(ln.n, 2))
            r = max(1, TILE // b)
            sizes = {"R": r, "B": b, "SIZE": b.bit_length() - 1, "DIMS": (r * b).bit_length() - 1}
            types = [t, "*i64", t, "i64", "i32", "i64", "i32"]
            constants = {**fixed, "NARROW": narrow(dtype, b), **sizes}
            self.program = shared_program(_ranked_short, types, constants, warps=max(1, r * b // 256))
            self.grid = (-(-ln.rows // r),)
            self.sizes: tuple[int, ...] = (ln.rows, ln.n)
            return
        block = next_power_of_two(max(ln.n, 32))
        types = [t, "*i64", t, "i32", "i64", "i32"]
        self.program = shared_program(_ranked, types, {**fixed, "B": block}, warps=_warps(block))
        self.grid, self.sizes = (ln.rows,), (ln.n,)

    def __call__(self, x: int, sx: int, values: int, out: int, k: int) -> None:
        self.program(self.grid, values, out, x, *self.sizes, sx, k)


def selects(ln: Lines, dtype: dt.dtype, k: int) -> bool:
    """Whether the first few of lines are selected rather than sorted with all the others."""
    if k > LARGEST or ln.n <= FEW or 4 * k > ln.n:
        return False
    return ln.n > most(dtype) or 8 * k <= ln.n
