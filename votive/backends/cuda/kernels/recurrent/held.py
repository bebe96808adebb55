"""All steps in one launch, with the recurrent weights held in registers: for states that are read faster than a
product is started. Knows addresses and sizes, not tensors.

A program has a few rows of the batch and a slice of the units. With one slice nothing leaves the program between steps.
With several, programs tell each other their units' numbers: each word holds 32 bits and, above them, the step that they
belong to, so that whoever reads a word knows whether it is the one it waits for. Two sets of words take turns: a
program that writes a set again has read numbers that others told only after they had read that set.

Grid: (slices, groups of rows, directions). All programs of several slices must run at the same time.
"""

from __future__ import annotations

import triton
import triton.language as tl

from .gates import gru, gru_backward, lstm, lstm_backward, plain, plain_backward


@triton.jit
def _handed_over(x, M: tl.constexpr, N: tl.constexpr):
    """The same numbers, computed once. The compiler would rather compute them anew in every thread that reads them;
    what is gathered it leaves where it is.
    """
    return tl.gather(x, tl.zeros((M, 1), tl.int32) + tl.arange(0, N)[None, :], 1)


@triton.jit
def step_at(offsets, t, B, PACKED: tl.constexpr):
    """(the first row of a step, how many it has)."""
    if PACKED:
        first = tl.load(offsets + t)
        return first.to(tl.int64), tl.load(offsets + t + 1) - first
    else:
        return t.to(tl.int64) * B, B


@triton.jit
def _tell(words, at, v, step, inside):
    low = v.to(tl.int32, bitcast=True).to(tl.int64) & 0xFFFFFFFF
    tl.store(words + at, low | ((step + 1).to(tl.int64) << 32), mask=inside)


@triton.jit
def _received(words, at, step, inside):
    """The numbers of a step, as soon as all of them are there. No number may be read by two threads: only one of them
    is asked whether it is the one that was waited for.
    """
    want = (step + 1).to(tl.int32)
    none = (step + 1).to(tl.int64) << 32
    v = tl.load(words + at, mask=inside, other=none, volatile=True)
    late = tl.max(tl.max(((v >> 32).to(tl.int32) != want).to(tl.int32), 1), 0)
    while late != 0:
        v = tl.load(words + at, mask=inside, other=none, volatile=True)
        late = tl.max(tl.max(((v >> 32).to(tl.int32) != want).to(tl.int32), 1), 0)
    return v.to(tl.int32).to(tl.float32, bitcast=True)


@triton.jit
def _weights(w, column, k, H, G: tl.constexpr, W: tl.constexpr, BACK: tl.constexpr, WIDE: tl.constexpr):
    """Inputs by outputs. A unit's gates lie side by side, W places of which G are taken: they are the outputs forwards,
    and the inputs backwards.
    """
    if BACK:
        unit, gate, other = k // W, k % W, column
        at = (gate * H + unit)[:, None].to(tl.int64) * H + other[None, :]
        inside = ((unit < H) & (gate < G))[:, None] & (other < H)[None, :]
    else:
        unit, gate, other = column // W, column % W, k
        at = (gate * H + unit)[None, :].to(tl.int64) * H + other[:, None]
        inside = ((unit < H) & (gate < G))[None, :] & (other < H)[:, None]
    return tl.load(w + at, mask=inside, other=0.0).to(WIDE)


@triton.jit
def _product(h, w):
    """Rows by outputs. Outputs lie across the threads of a warp, so that most of a sum is one thread's."""
    return tl.sum(h[:, :, None] * w[None, :, :], 1)


@triton.jit
def quarters(x, BM: tl.constexpr, BH: tl.constexpr):
    """The four gates of units whose numbers lie side by side."""
    even, odd = tl.split(tl.reshape(x, (BM, BH, 2, 2)))
    a, c = tl.split(even)
    b, d = tl.split(odd)
    return a, b, c, d


@triton.jit
def _side_by_side(a, b, c, d, BM: tl.constexpr, BH: tl.constexpr):
    return tl.reshape(tl.join(tl.join(a, c), tl.join(b, d)), (BM, 4 * BH))


@triton.jit
def _bias(b, u, H, gate, WIDE: tl.constexpr):
    return tl.load(b + gate * H + u, mask=u < H, other=0.0).to(WIDE)[None, :]


@triton.jit
def held_forward(
    a, w, b_ih, b_hh, h0, c0, out, hn, cn, cells, words, offsets,
    T, B, H, a_row, a_dir, w_dir, b_ih_dir, b_hh_dir, out_row, cells_dir,
    MODE: tl.constexpr, PACKED: tl.constexpr, BIAS: tl.constexpr, STATES: tl.constexpr, SAVE: tl.constexpr,
    SLICED: tl.constexpr, THREADS: tl.constexpr, WIDE: tl.constexpr,
    BM: tl.constexpr, BH: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    FAST: tl.constexpr = out.dtype.element_ty.primitive_bitwidth == 16
    G: tl.constexpr = 1 if MODE < 2 else (4 if MODE == 2 else 3)
    W: tl.constexpr = 1 if MODE < 2 else 4
    tl.static_assert(not SLICED or BM * BK >= THREADS)
    d = tl.program_id(2)
    r = tl.program_id(1) * BM + tl.arange(0, BM)
    u = tl.program_id(0) * BH + tl.arange(0, BH)
    k = tl.arange(0, BK)
    mine = (r < B)[:, None] & (u < H)[None, :]
    every = (r < B)[:, None] & (k < H)[None, :]
    own = r[:, None] * H + u[None, :]
    whole = r[:, None] * H + k[None, :]
    state = d.to(tl.int64) * B * H
    a += d * a_dir
    w += d * w_dir
    out += d * H
    cells += d * cells_dir

    column = tl.program_id(0) * (BH * W) + tl.arange(0, BH * W)
    weights = _weights(w, column, k, H, G, W, False, WIDE)
    if BIAS:
        b_ih += d * b_ih_dir
        b_hh += d * b_hh_dir
        b0 = _bias(b_ih, u, H, 0, WIDE) + _bias(b_hh, u, H, 0, WIDE)
        if MODE >= 2:
            b1 = _bias(b_ih, u, H, 1, WIDE) + _bias(b_hh, u, H, 1, WIDE)
            b2 = _bias(b_ih, u, H, 2, WIDE)
            b3 = _bias(b_hh, u, H, 2, WIDE)
        if MODE == 2:
            b2 += b3
            b3 = _bias(b_ih, u, H, 3, WIDE) + _bias(b_hh, u, H, 3, WIDE)

    h = tl.zeros((BM, BH), WIDE)
    hk = tl.zeros((BM, BK), WIDE)
    c = tl.zeros((BM, BH), WIDE)
    if STATES:
        h = tl.load(h0 + state + own, mask=mine, other=0.0).to(WIDE)
        hk = tl.load(h0 + state + whole, mask=every, other=0.0).to(WIDE)
        if MODE == 2:
            c = tl.load(c0 + state + own, mask=mine, other=0.0).to(WIDE)

    t = d * (T - 1)
    first, count = step_at(offsets, t, B, PACKED)
    active = (r < count)[:, None] & mine
    at = (first + r)[:, None] * a_row + u[None, :]
    x0 = tl.load(a + at, mask=active, other=0.0)
    if MODE >= 2:
        x1 = tl.load(a + at + H, mask=active, other=0.0)
        x2 = tl.load(a + at + 2 * H, mask=active, other=0.0)
    if MODE == 2:
        x3 = tl.load(a + at + 3 * H, mask=active, other=0.0)

    for step in range(T):
        # Not where it is told: weights would be laid out anew in every step.
        product = _product(hk, weights)
        if MODE < 2:
            p0 = product
        else:
            p0, p1, p2, p3 = quarters(product, BM, BH)
        if BIAS:
            p0 += b0
            if MODE >= 2:
                p1 += b1
            if MODE == 2:
                p2 += b2
                p3 += b3
            if MODE == 3:
                x2 += b2
                p2 += b3
        if MODE < 2:
            new = plain(x0 + p0, MODE, FAST)
        elif MODE == 2:
            g0, g1, g2, g3, cell, new = lstm(x0 + p0, x1 + p1, x2 + p2, x3 + p3, c, FAST)
            c = tl.where(active, cell, c)
        else:
            g0, g1, g2, new = gru(x0 + p0, x1 + p1, x2, p2, h, FAST)
            g3 = p2
        rounded = new.to(out.dtype.element_ty)
        h = tl.where(active, rounded.to(WIDE), h)

        if SLICED:
            slot = words + ((step & 1) * tl.num_programs(2) + d).to(tl.int64) * B * H
            _tell(slot, own, h, step, mine)
        row = (first + r)[:, None]
        tl.store(out + row * out_row + u[None, :], rounded, mask=active)
        if SAVE and MODE >= 2:
            tl.store(a + at, g0, mask=active)
            tl.store(a + at + H, g1, mask=active)
            tl.store(a + at + 2 * H, g2, mask=active)
            tl.store(a + at + 3 * H, g3, mask=active)
        if SAVE and MODE == 2:
            tl.store(cells + row * H + u[None, :], cell, mask=active)

        # What comes from the input is fetched while others are waited for.
        if step + 1 < T:
            t = step + 1 + d * (T - 3 - 2 * step)
            first, count = step_at(offsets, t, B, PACKED)
            active = (r < count)[:, None] & mine
            at = (first + r)[:, None] * a_row + u[None, :]
            x0 = tl.load(a + at, mask=active, other=0.0)
            if MODE >= 2:
                x1 = tl.load(a + at + H, mask=active, other=0.0)
                x2 = tl.load(a + at + 2 * H, mask=active, other=0.0)
            if MODE == 2:
                x3 = tl.load(a + at + 3 * H, mask=active, other=0.0)
            if SLICED:
                hk = _received(slot, whole, step, every)
            else:
                hk = _handed_over(h, BM, BK)

    tl.store(hn + state + own, h.to(hn.dtype.element_ty), mask=mine)
    if MODE == 2:
        tl.store(cn + state + own, c.to(cn.dtype.element_ty), mask=mine)


@triton.jit
def held_backward(
    by_out, by_hn, by_cn, a, cells, out, w, h0, c0, dx, dh_gates, by_h, by_c, sums, words, offsets,
    T, B, H, by_row, a_dir, out_row, w_dir, d_dir, cells_dir,
    MODE: tl.constexpr, PACKED: tl.constexpr, STATES: tl.constexpr, BY_OUT: tl.constexpr, BY_H: tl.constexpr,
    BY_C: tl.constexpr, WANTS: tl.constexpr, SLICED: tl.constexpr, THREADS: tl.constexpr, WIDE: tl.constexpr,
    BM: tl.constexpr, BH: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    FAST: tl.constexpr = out.dtype.element_ty.primitive_bitwidth == 16
    G: tl.constexpr = 1 if MODE < 2 else (4 if MODE == 2 else 3)
    W: tl.constexpr = 1 if MODE < 2 else 4
    tl.static_assert(not SLICED or BM * BK >= THREADS)
    d = tl.program_id(2)
    r = tl.program_id(1) * BM + tl.arange(0, BM)
    u = tl.program_id(0) * BH + tl.arange(0, BH)
    k = tl.arange(0, BK * W)
    mine = (r < B)[:, None] & (u < H)[None, :]
    every = (r < B)[:, None] & (k < H * W)[None, :]
    own = r[:, None] * H + u[None, :]
    state = d.to(tl.int64) * B * H
    kind = dx.dtype.element_ty
    a += d * a_dir
    w += d * w_dir
    out += d * H
    by_out += d * H
    cells += d * cells_dir
    dx += d * d_dir
    dh_gates += d * d_dir

    weights = _weights(w, u, k, H, G, W, True, WIDE)

    # The gradient by the state behind a step is `direct` and the product of all that was told.
    whole = tl.zeros((BM, BK * W), WIDE)
    direct = tl.zeros((BM, BH), WIDE)
    dc = tl.zeros((BM, BH), WIDE)
    if BY_H:
        direct = tl.load(by_hn + state + own, mask=mine, other=0.0).to(WIDE)
    if BY_C:
        dc = tl.load(by_cn + state + own, mask=mine, other=0.0).to(WIDE)
    s0 = tl.zeros((BM, BH), WIDE)
    s1 = tl.zeros((BM, BH), WIDE)
    s2 = tl.zeros((BM, BH), WIDE)
    s3 = tl.zeros((BM, BH), WIDE)

    for step in range(T):
        t = T - 1 - step + d * (2 * step - T + 1)
        first, count = step_at(offsets, t, B, PACKED)
        active = (r < count)[:, None] & mine
        row = (first + r)[:, None]
        at = row * (4 * H) + u[None, :]
        # The step before in the direction's own order; rows that began here have their first state before.
        last = step == T - 1
        earlier = tl.where(last, t, t - 1 + 2 * d)
        prior, some = step_at(offsets, earlier, B, PACKED)
        had = (r < some)[:, None] & active & (step < T - 1)
        began = active & ((r >= some)[:, None] | last)

        dh = _product(whole, weights) + direct
        g = dh
        if BY_OUT:
            g += tl.load(by_out + row * by_row + u[None, :], mask=active, other=0.0).to(WIDE)
        if MODE < 2:
            y = tl.load(out + row * out_row + u[None, :], mask=active, other=0.0).to(WIDE)
            d0 = plain_backward(g, y, MODE)
        else:
            g0 = tl.load(a + at, mask=active, other=0.0)
            g1 = tl.load(a + at + H, mask=active, other=0.0)
            g2 = tl.load(a + at + 2 * H, mask=active, other=0.0)
            g3 = tl.load(a + at + 3 * H, mask=active, other=0.0)
        if MODE == 2:
            c = tl.load(cells + row * H + u[None, :], mask=active, other=0.0)
            before = tl.load(cells + (prior + r)[:, None] * H + u[None, :], mask=had, other=0.0)
            if STATES:
                before += tl.load(c0 + state + own, mask=began, other=0.0).to(WIDE)
            d0, d1, d2, d3, cell = lstm_backward(g, dc, g0, g1, g2, g3, before, c, FAST)
            dc = tl.where(active, cell, dc)
            direct = tl.where(active, 0.0, dh)
        elif MODE == 3:
            y = tl.load(out + (prior + r)[:, None] * out_row + u[None, :], mask=had, other=0.0).to(WIDE)
            if STATES:
                y += tl.load(h0 + state + own, mask=began, other=0.0).to(WIDE)
            d0, d1, d2, d3, by_state = gru_backward(g, g0, g1, g2, g3, y)
            direct = tl.where(active, by_state, dh)
        else:
            direct = tl.where(active, 0.0, dh)

        # Rows that are not at work tell zeros: their product adds nothing to what they have.
        d0 = tl.where(active, d0, 0.0)
        s0 += d0
        if MODE >= 2:
            d1 = tl.where(active, d1, 0.0)
            d2 = tl.where(active, d2, 0.0)
            d3 = tl.where(active, d3, 0.0)
            s1 += d1
            s2 += d2
            s3 += d3
        if MODE == 2:
            told = _side_by_side(d0, d1, d2, d3, BM, BH)
        elif MODE == 3:
            told = _side_by_side(d0, d1, d3, tl.zeros((BM, BH), WIDE), BM, BH)
        else:
            told = d0
        if SLICED:
            slot = words + ((step & 1) * tl.num_programs(2) + d).to(tl.int64) * B * W * H
            n = tl.program_id(0) * (BH * W) + tl.arange(0, BH * W)
            _tell(slot, r[:, None] * (W * H) + n[None, :], told, step, (r < B)[:, None] & (n < H * W)[None, :])
        to = row * (G * H) + u[None, :]
        tl.store(dx + to, d0.to(kind), mask=active)
        if MODE >= 2:
            tl.store(dx + to + H, d1.to(kind), mask=active)
            tl.store(dx + to + 2 * H, d2.to(kind), mask=active)
        if MODE == 2:
            tl.store(dx + to + 3 * H, d3.to(kind), mask=active)
        if MODE == 3:
            tl.store(dh_gates + to, d0.to(kind), mask=active)
            tl.store(dh_gates + to + H, d1.to(kind), mask=active)
            tl.store(dh_gates + to + 2 * H, d3.to(kind), mask=active)

        if WANTS or step + 1 < T:
            if SLICED:
                whole = _received(slot, r[:, None] * (W * H) + k[None, :], step, every)
            else:
                whole = _handed_over(told, BM, BK * W)

    if WANTS:
        dh = _product(whole, weights) + direct
        tl.store(by_h + state + own, dh.to(by_h.dtype.element_ty), mask=mine)
        if MODE == 2:
            tl.store(by_c + state + own, dc.to(by_c.dtype.element_ty), mask=mine)
    # Sums over this group's rows, for the biases: (directions, groups, 4, H).
    sums += (d * tl.num_programs(1) + tl.program_id(1)).to(tl.int64) * 4 * H + u
    tl.store(sums, tl.sum(s0, 0), mask=u < H)
    if MODE >= 2:
        tl.store(sums + H, tl.sum(s1, 0), mask=u < H)
        tl.store(sums + 2 * H, tl.sum(s2, 0), mask=u < H)
        tl.store(sums + 3 * H, tl.sum(s3, 0), mask=u < H)
