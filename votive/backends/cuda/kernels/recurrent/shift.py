"""Rows of sequences moved by a step, states before their projection, and sums for biases. Knows addresses and sizes,
not tensors.
"""

from __future__ import annotations

import triton
import triton.language as tl

from .gates import tanh
from .held import step_at


@triton.jit
def shift_rows(
    to, base, source, states, offsets, T, B, N, to_row, base_row, source_row, states_row, WALK,
    PACKED: tl.constexpr, BASE: tl.constexpr, SOURCE: tl.constexpr, STATES: tl.constexpr, ENDS: tl.constexpr,
    WIDE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """`to[row] = base[row] + source[the row one step on]`, or plus the sequence's own row of `states` where there is
    none; WALK is 1 or -1. ENDS: only those go on, to `to[sequence] = source[row]`. Grid: (steps, groups, columns).
    """
    t = tl.program_id(0)
    r = tl.program_id(1) * BM + tl.arange(0, BM)
    n = tl.program_id(2) * BN + tl.arange(0, BN)
    first, count = step_at(offsets, t, B, PACKED)
    on = t + WALK
    inside = (on >= 0) & (on < T)
    other, some = step_at(offsets, tl.where(inside, on, t), B, PACKED)
    active = (r < count)[:, None] & (n < N)[None, :]
    has = active & (r < some)[:, None] & inside
    ends = active & ((r >= some)[:, None] | (on < 0) | (on >= T))
    row = (first + r)[:, None]
    sequence = r[:, None].to(tl.int64)
    if ENDS:
        v = tl.load(source + row * source_row + n[None, :], mask=ends, other=0.0)
        tl.store(to + sequence * to_row + n[None, :], v.to(to.dtype.element_ty), mask=ends)
    else:
        v = tl.zeros((BM, BN), WIDE)
        if BASE:
            v += tl.load(base + row * base_row + n[None, :], mask=active, other=0.0).to(WIDE)
        if SOURCE:
            v += tl.load(source + (other + r)[:, None] * source_row + n[None, :], mask=has, other=0.0).to(WIDE)
        if STATES:
            v += tl.load(states + sequence * states_row + n[None, :], mask=ends, other=0.0).to(WIDE)
        tl.store(to + row * to_row + n[None, :], v.to(to.dtype.element_ty), mask=active)


@triton.jit
def bias_sums(
    b_ih, b_hh, sums, groups, H, b_ih_dir, b_hh_dir, GATES: tl.constexpr, WIDE: tl.constexpr, BN: tl.constexpr
):
    """What the groups of rows summed, as gradients of the biases. Grid: (columns, gates, directions)."""
    d = tl.program_id(2)
    gate = tl.program_id(1)
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    inside = n < H
    total = tl.zeros((BN,), WIDE)
    other = tl.zeros((BN,), WIDE)
    # The recurrent part of a GRU's last gate has a sum of its own.
    apart = tl.where((GATES == 3) & (gate == 2), 3, gate)
    for g in range(groups):
        at = sums + (d * groups + g).to(tl.int64) * 4 * H + n
        total += tl.load(at + gate * H, mask=inside, other=0.0)
        other += tl.load(at + apart * H, mask=inside, other=0.0)
    to = gate * H + n
    tl.store(b_ih + d * b_ih_dir + to, total.to(b_ih.dtype.element_ty), mask=inside)
    tl.store(b_hh + d * b_hh_dir + to, other.to(b_hh.dtype.element_ty), mask=inside)


@triton.jit
def lstm_states(to, a, cells, count, H, BN: tl.constexpr):
    """The states of an LSTM before their projection, from its gates and cells. Grid: (elements,)."""
    at = tl.program_id(0).to(tl.int64) * BN + tl.arange(0, BN)
    inside = at < count
    o = tl.load(a + (at // H) * 4 * H + 3 * H + at % H, mask=inside, other=0.0)
    c = tl.load(cells + at, mask=inside, other=0.0)
    h = o * tanh(c, to.dtype.element_ty.primitive_bitwidth == 16)
    tl.store(to + at, h.to(to.dtype.element_ty), mask=inside)
