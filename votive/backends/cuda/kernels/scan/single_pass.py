"""Running sums, products and logarithms of sums of few long lines, read once. A tile tells what it comes to, waits
until those before have told, and begins from them. Sums of tiles are added in an order that their
number fixes, so that results are the same every time. Knows lines, no operators.
"""

from __future__ import annotations

import triton
import triton.language as tl

from .....core import dtype as dt
from ...device import math as m
from ...programs.layouts import next_power_of_two
from ...programs.lines import Lines, scratch, shared_program
from ...programs.program import pointer
from ...runtime import here_count
from ...runtime.views import View, zero
from .rules import _add, _add_exponentials, _multiply
from .tiles import LOGSUMEXP

TILE = 8192  # elements of 32 bits that are held in registers
WARPS = 8
LEAST = 1024  # elements of a tile
LOOK = 1024  # tiles that are looked at together
MOST = 1 << 27  # elements of a line: every tile looks at all tiles before


@triton.jit
def _published(status, at, there, W: tl.constexpr, NONE: tl.constexpr):
    """(whether tiles have told what they come to, and what that is): 32 bits in each word, and a
    one above them once they are there.
    """
    each: tl.constexpr = W.primitive_bitwidth // 32
    low = tl.load(status + at * each, mask=there, other=0x100000000, volatile=True)
    ready = tl.min((low >> 32).to(tl.int32), 0)
    if each == 2:
        high = tl.load(status + at * each + 1, mask=there, other=0x100000000, volatile=True)
        ready = tl.minimum(ready, tl.min((high >> 32).to(tl.int32), 0))
        bits = (high << 32) | (low & 0xFFFFFFFF)
    else:
        bits = low.to(tl.int32)
    return ready, tl.where(there, bits.to(W, bitcast=True), NONE)


@triton.jit
def _tell(status, tile, s, W: tl.constexpr):
    each: tl.constexpr = W.primitive_bitwidth // 32
    if each == 2:
        bits = s.to(tl.int64, bitcast=True)
        high = ((bits >> 32) & 0xFFFFFFFF) | 0x100000000
        tl.atomic_xchg(status + tile * each + 1, high, sem="relaxed")
    else:
        bits = s.to(tl.int32, bitcast=True).to(tl.int64)
    tl.atomic_xchg(status + tile * each, (bits & 0xFFFFFFFF) | 0x100000000, sem="relaxed")


@triton.jit
def _once(
    o,
    x,
    taken,
    status,
    n,
    sx,
    tiles,
    KIND: tl.constexpr,
    W: tl.constexpr,
    NONE: tl.constexpr,
    ONE: tl.constexpr,
    BN: tl.constexpr,
    LOOK: tl.constexpr,
):
    # Grid: tiles of all lines, in the order in which programs begin: those before are at work.
    t = tl.atomic_add(taken, 1, sem="relaxed")
    row = (t // tiles).to(tl.int64)
    tile = (t % tiles).to(tl.int64)
    if not ONE:
        o += row * n
        x += row * sx
        status += row * tiles * (W.primitive_bitwidth // 32)
    i = tile * BN + tl.arange(0, BN)
    v = tl.where(i < n, tl.load(x + i, mask=i < n, other=0).to(W), NONE)

    count = tl.where(i < n, tl.full((BN,), 1, W), 0)  # with KIND 2, of exponentials as large as v's
    if KIND == 0:
        s = tl.sum(v, 0)
    elif KIND == 1:
        s = tl.reduce(v, 0, _multiply)
    else:
        top, count_ = tl.reduce((v, count), 0, _add_exponentials)
        s = top + m.f_log(count_)
    _tell(status, tile, s, W)
    if KIND == 2:
        y, count = tl.associative_scan((v, count), 0, _add_exponentials)
    else:
        y = tl.associative_scan(v, 0, _add if KIND == 0 else _multiply)
    before = tl.full((LOOK,), NONE, W)
    many = tl.full((LOOK,), 0, W)
    first = tile * 0
    while first < tile:
        at = first + tl.arange(0, LOOK)
        ready, published = _published(status, at, at < tile, W, NONE)
        if ready != 0:
            if KIND == 0:
                before = before + published
            elif KIND == 1:
                before = before * published
            else:
                one = tl.where(at < tile, tl.full((LOOK,), 1, W), 0)
                before, many = _add_exponentials(before, many, published, one)
            first += LOOK
    if KIND == 0:
        y = y + tl.sum(before, 0)
    elif KIND == 1:
        y = y * tl.reduce(before, 0, _multiply)
    else:
        top, count_ = tl.reduce((before, many), 0, _add_exponentials)
        y, count = _add_exponentials(tl.zeros_like(y) + top, tl.zeros_like(y) + count_, y, count)
        y = y + m.f_log(count)

    tl.store(o + i, y.to(o.dtype.element_ty), mask=i < n)


class Once:
    """The launch of a scan over few long lines: their sums, products or logarithms of sums (`kind`). `even`: lines
    begin at multiples of 16.
    """

    def __init__(
        self, kind: int, ln: Lines, x: dt.dtype, out: dt.dtype, wide: dt.dtype, w: tl.dtype, even: bool
    ) -> None:
        self.ln, self.words = ln, wide.itemsize // 4
        most = TILE // self.words if kind < LOGSUMEXP else TILE // (4 * self.words)
        # All processors have work.
        tile = min(most, max(LEAST, next_power_of_two(ln.rows * ln.n // (2 * here_count()))))
        self.tiles = -(-ln.n // tile)
        constants = {
            "KIND": kind,
            "W": w,
            "NONE": (0, 1, -float("inf"))[kind],
            "ONE": ln.rows == 1,
            "BN": tile,
            "LOOK": LOOK // self.words,
        }
        types = [pointer(out), pointer(x), "*i32", "*i64", "i64", "i64", "i64"]
        warps = WARPS if tile >= TILE // (2 * self.words) else WARPS // 2
        self._once = shared_program(_once, types, constants, (4, 5) if even else (), warps=warps)

    def __call__(self, o: int, x: View, sx: int) -> None:
        grid = (self.ln.rows * self.tiles,)
        room = scratch(x.spec, 2 + grid[0] * self.words, dt.int64)
        zero(room)
        self._once(grid, o, x.ptr, room.ptr, room.ptr + 16, self.ln.n, sx, self.tiles)
