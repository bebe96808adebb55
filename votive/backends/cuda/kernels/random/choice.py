"""Random positions by the rule of `common/sampling_choice.py`: permutations, and choice by
weights. A permutation is the order of random keys; choice with replacement searches running sums,
choice without lets exponential numbers race.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from .....core import dtype as dt
from .....core.device import device
from .....core.layout import Layout, Spec
from .....formula import Formula, var
from .....formula.expr import apply
from ....common import sampling_bounds as bounds
from ....common.slot import Slot
from ...device import math as m
from ...programs.checks import required
from ...programs.copy import copy_view
from ...programs.generator_state import philox_state, shift
from ...programs.layouts import contiguous, contiguous_output
from ...programs.lines import Lines, scratch
from ...programs.pointwise import compile_formula
from ...programs.program import TYPE, Program, pointer
from ...programs.reduction import row_reducer
from ...programs.types import FLOATS, Run
from ...rows import cuda
from ...runtime.faults import faults
from ...runtime.views import View, empty
from ..scan.scans import _Scan
from ..scan.tiles import SUM
from ..sort.radix import WORDS, Radix
from ..sort.sorts import Order, by_digits
from .draws import EXACT, _open, _word

BLOCK = 512
_NONE = "invalid multinomial distribution (sum of probabilities <= 0)"
_FEW = "invalid multinomial distribution (with replacement=False, not enough non-negative category to sample)"
_BAD = "probability tensor contains either `inf`, `nan` or element < 0"


@triton.jit
def long_words(key, counter, moved, i):
    """The 64 random bits of each element of a draw: half a counter."""
    key, counter = philox_state(key, counter, moved)
    at = counter + i // 2
    low = (at & 0xFFFFFFFF).to(tl.uint32)
    high = ((at >> 32) & 0xFFFFFFFF).to(tl.uint32)
    zero = low * 0
    a, b, c, d = tl.philox(key, low, high, zero, zero)
    odd = i % 2 != 0
    first, second = tl.where(odd, c, a), tl.where(odd, d, b)
    return first.to(tl.uint64) | (second.to(tl.uint64) << 32)


@triton.jit
def _keys(o, moved, key, counter, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    q = long_words(key, counter, moved, i)
    # Signed integers in the order of unsigned ones.
    tl.store(o + i, (q ^ 0x8000000000000000).to(tl.int64, bitcast=True), mask=i < n)


@triton.jit
def _arrivals(o, x, moved, key, counter, n, BLOCK: tl.constexpr):
    """Logarithms of arrival times: a weight of zero never arrives."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    q = long_words(key, counter, moved, i)
    weight = tl.load(x + i, mask=i < n, other=1.0).to(tl.float64)
    time = tl.maximum(-m.f_log(_open(q, True)), 2.7755575615628914e-17)
    tl.store(o + i, m.f_log(time) - m.f_log(weight), mask=i < n)


@triton.jit
def _searched(o, sums, moved, fault, key, counter, total, samples, n, steps, BLOCK: tl.constexpr):
    """For each sample the first position whose running sum exceeds a random part of the whole."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    there = i < total
    q = long_words(key, counter, moved, i)
    line = sums + i // samples * n
    whole = tl.load(line + n - 1, mask=there, other=1.0)
    none = there & ((whole > 0) == 0)
    tl.store(fault + tl.zeros_like(none.to(tl.int32)), 1, mask=none)
    u = (q >> 11).to(tl.float64) * 1.1102230246251565e-16 * whole

    low = i * 0
    high = low + (n - 1)
    for _ in range(steps):
        middle = (low + high) // 2
        below = tl.load(line + middle, mask=there, other=0.0) <= u
        open_ = low < high
        low = tl.where(open_ & below, middle + 1, low)
        high = tl.where(open_ & (below == 0), middle, high)

    tl.store(o + i, low, mask=there)


@triton.jit
def _arrived(o, arrivals, places, fault, total, samples, n, m_, BLOCK: tl.constexpr):
    """The first arrivals of each line, in order; `m_` places of each are there."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    there = i < total
    row = i // samples
    place = tl.load(places + row * m_ + i % samples, mask=there, other=0).to(tl.int64)
    never = there & (tl.load(arrivals + row * n + place, mask=there, other=0.0) == float("inf"))
    tl.store(fault + tl.zeros_like(never.to(tl.int32)), 1, mask=never)
    tl.store(o + i, place, mask=there)


@triton.jit
def _settled(o, words, keys, n, SHIFT: tl.constexpr, BLOCK: tl.constexpr):
    """Places in the order of their keys; the words are in the order of the keys' first bits. Few
    have the same: those look at their neighbours' keys. Grid: blocks of places.
    """
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    there = i < n
    word = tl.load(words + i, mask=there, other=0)
    place = word & 0xFFFFFFFF
    mine = word >> SHIFT
    left = there & (tl.load(words + i - 1, mask=there & (i > 0), other=~word) >> SHIFT == mine)
    right = there & (tl.load(words + i + 1, mask=i + 1 < n, other=~word) >> SHIFT == mine)
    key = tl.load(keys + place, mask=left | right, other=0)
    to = i
    away = 1
    while tl.max((left | right).to(tl.int32), 0) > 0:
        a = tl.load(words + i - away, mask=left, other=0)
        b = tl.load(words + i + away, mask=right, other=0)
        to -= tl.where(left & (tl.load(keys + (a & 0xFFFFFFFF), mask=left, other=0) > key), 1, 0)
        to += tl.where(right & (tl.load(keys + (b & 0xFFFFFFFF), mask=right, other=0) < key), 1, 0)
        away += 1
        a = tl.load(words + i - away, mask=left & (i >= away), other=0)
        b = tl.load(words + i + away, mask=right & (i + away < n), other=0)
        left = left & (i >= away) & (a >> SHIFT == mine)
        right = right & (i + away < n) & (b >> SHIFT == mine)

    tl.store(o + to, place.to(o.dtype.element_ty), mask=there)


def _permutation(n: int, dtype: dt.dtype, device: device) -> Any:
    """draw(to, key, counter): a random order of 0 .. n-1."""
    keys = Program(_keys, ["*i64", "*i64", "i64", "i64", "i64"], {"BLOCK": BLOCK})
    spec = Spec(Layout((n,)), dt.int64, device)
    grid = (-(-n // BLOCK),)
    ln = Lines(1, n)
    if not by_digits(ln, dt.int64, n):
        order = Order(ln, dt.int64, False, n, keys=False)

        def draw(to: View, key: int, counter: int) -> None:
            made = empty(spec)
            keys(grid, made.ptr, shift(), _word(key), _word(counter), n)
            _, places = order(made, n)
            copy_view(to, View(places.ptr, spec.like(dtype=dt.int32), places.storage))

        return draw

    # Sorted are four bits more than places have: one key in sixteen has an equal beside it.
    above = 64 - min(32, (n - 1).bit_length() + 7 & ~3)
    radix = Radix(ln, dt.int64, False, n, WORDS, above)
    types = [pointer(dtype), "*i64", "*i64", "i64"]
    settle = Program(_settled, types, {"SHIFT": above, "BLOCK": BLOCK})

    def draw_sorted(to: View, key: int, counter: int) -> None:
        made = empty(spec)
        keys(grid, made.ptr, shift(), _word(key), _word(counter), n)
        words = radix(made, n)
        with contiguous_output(to) as o:
            settle(grid, o.ptr, words.ptr, made.ptr, n)

    return draw_sorted


@cuda("_randperm")
def randperm(x: Slot, key: Slot, counter: Slot) -> Run:
    n = x.shape[0]
    if x.dtype not in TYPE or n >= 2**31:
        return None
    bounds.check_randperm(n, x.dtype.np)
    draw = _permutation(n, x.dtype, x.spec.device) if n else None
    return lambda outs, x, key, counter: draw and draw(outs[0], key, counter)


@cuda("_new_randperm")
def new_randperm(size: tuple[int, ...], dtype: dt.dtype, device: device, key: Slot, counter: Slot) -> Run:
    (n,) = size
    if dtype not in TYPE or n >= 2**31:
        return None
    bounds.check_randperm(n, dtype.np)
    draw = _permutation(n, dtype, device) if n else None
    return lambda outs, key, counter: draw and draw(outs[0], key, counter)


@cuda("_multinomial", accepts=lambda x: x.dtype in FLOATS and x.numel < 2**31)
def multinomial(x: Slot, key: Slot, counter: Slot, num_samples: int, replacement: bool) -> Run:
    n = x.shape[-1]
    rows = x.shape[0] if x.ndim == 2 else 1
    if not x.numel:
        return None
    check = required(x, "((v >= 0) & (v < float('inf'))) == 0", _BAD)
    ln = Lines(rows, n)
    draw = _inverted if replacement or num_samples == 1 else _raced
    run_ = draw(x, ln, num_samples)

    def run(outs: list[View], x: View, key: int, counter: int) -> None:
        check(x)
        run_(outs[0], contiguous(x), _word(key), _word(counter))

    return run


def _inverted(x: Slot, ln: Lines, samples: int) -> Any:
    kind = x.dtype
    scan = _Scan(SUM, ln, kind, kind, dt.float64, dt.float64)
    types = ["*i64", "*fp64", "*i64", "*i32", "i64", "i64", "i64", "i64", "i64", "i32"]
    search = Program(_searched, types, {"BLOCK": BLOCK}, **EXACT)
    fault = faults.place(RuntimeError, _NONE)
    total, steps = ln.rows * samples, (ln.n - 1).bit_length()
    shrink = _shrunk(x) if kind is dt.float64 else lambda v: v

    def run(to: View, v: View, key: int, counter: int) -> None:
        v = shrink(v)
        sums = scratch(v.spec, ln.rows * ln.n, dt.float64)
        scan(sums.ptr, sums.ptr, v, ln.n, v, ln.n)
        grid = (-(-total // BLOCK),)
        numbers = (key, counter, total, samples, ln.n, steps)
        search(grid, to.ptr, sums.ptr, shift(), fault, *numbers)

    return run


def _shrunk(x: Slot) -> Any:
    """Weights divided by a power of two near the largest of each row: their sum stays finite."""
    row = x.spec.like(x.shape)
    top = row.like((*x.shape[:-1], 1))
    largest = row_reducer(Slot(0, row), (x.ndim - 1,), dt.float64, "max")
    v, t = var("x"), var("top")
    scale = apply("exp2", apply("neg", apply("floor", apply("log2", t))))
    divide, _ = compile_formula(
        Formula("shrink", ("x", "top"), v * scale),
        ["x", "top"],
        [(dt.float64, dt.float64, None)] * 2,
        [row, top],
        row,
        None,
    )

    def run(v: View) -> View:
        made = empty(top)
        largest([made], v)
        return divide(v, made)[1]

    return run


def _raced(x: Slot, ln: Lines, samples: int) -> Any:
    types = ["*fp64", pointer(x.dtype), "*i64", "i64", "i64", "i64"]
    arrive = Program(_arrivals, types, {"BLOCK": BLOCK}, **EXACT)
    order = Order(ln, dt.float64, False, samples, keys=False)
    types = ["*i64", "*fp64", "*i32", "*i32", "i64", "i64", "i64", "i64"]
    collect = Program(_arrived, types, {"BLOCK": BLOCK})
    fault = faults.place(RuntimeError, _FEW)
    count, total = ln.rows * ln.n, ln.rows * samples

    def run(to: View, v: View, key: int, counter: int) -> None:
        arrivals = scratch(v.spec, count, dt.float64)
        arrive((-(-count // BLOCK),), arrivals.ptr, v.ptr, shift(), key, counter, count)
        _, places = order(arrivals, ln.n)
        numbers = (total, samples, ln.n, order.m)
        grid = (-(-total // BLOCK),)
        collect(grid, to.ptr, arrivals.ptr, places.ptr, fault, *numbers)

    return run
