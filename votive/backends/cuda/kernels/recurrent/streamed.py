"""Steps whose recurrent product is a matrix product, with weights streamed from the cache in each: for many rows or
many units. Knows addresses and sizes, not tensors.

A program has a tile of the batch's rows and a slice of the units. A launch walks steps `begin` to `end`; where all
programs run at the same time it walks all of them, and programs of the same rows wait for each other behind each step.
Else there is a launch per step.

Grid: (slices, groups of rows, directions).
"""

from __future__ import annotations

import triton
import triton.language as tl

from .gates import gru, gru_backward, lstm, lstm_backward, plain, plain_backward
from .held import _bias, quarters, step_at


@triton.jit
def _wait_for_all(counter, step):
    """Go on when all slices of these rows have come so far."""
    tl.debug_barrier()
    want = tl.num_programs(0) * (step + 1)
    seen = tl.atomic_add(counter, 1, sem="acq_rel") + 1
    while seen < want:
        seen = tl.atomic_add(counter, 0, sem="acquire")
    tl.debug_barrier()


@triton.jit
def streamed_forward(
    a, w, b_ih, b_hh, h0, c0, out, hn, cn, cells, carry, counters, offsets,
    begin, end, T, B, H, a_row, a_dir, w_dir, b_ih_dir, b_hh_dir, out_row, cells_dir, h0_place,
    MODE: tl.constexpr, PACKED: tl.constexpr, BIAS: tl.constexpr, STATES: tl.constexpr, SAVE: tl.constexpr,
    WHOLE: tl.constexpr, WAITS: tl.constexpr, PRECISION: tl.constexpr, WIDE: tl.constexpr,
    BM: tl.constexpr, BH: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    # WHOLE: all steps in one launch; WAITS: with other slices at work.
    # `h0_place`: where h0 lies, in elements behind `out`: rows are read from either.
    FAST: tl.constexpr = out.dtype.element_ty.primitive_bitwidth == 16
    G: tl.constexpr = 1 if MODE < 2 else 4
    d = tl.program_id(2)
    r = tl.program_id(1) * BM + tl.arange(0, BM)
    u = tl.program_id(0) * BH + tl.arange(0, BH)
    # Columns of the product: a unit's gates lie side by side.
    column = tl.arange(0, BH * G)
    unit = tl.program_id(0) * BH + column // G
    gate = column % G
    there = (unit < H) & (gate < 3) if MODE == 3 else unit < H
    weight = w + d * w_dir + (gate * H + unit).to(tl.int64) * H
    mine = (r < B)[:, None] & (u < H)[None, :]
    own = r[:, None] * H + u[None, :]
    state = d.to(tl.int64) * B * H
    a += d * a_dir
    cells += d * cells_dir
    counter = counters + (d * tl.num_programs(1) + tl.program_id(1)) * 8

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

    c = tl.zeros((BM, BH), WIDE)
    if MODE == 2:
        if begin == 0:
            if STATES:
                c = tl.load(c0 + state + own, mask=mine, other=0.0).to(WIDE)
        else:
            c = tl.load(carry + state + own, mask=mine, other=0.0)

    for step in range(begin, end):
        t = step + d * (T - 1 - 2 * step)
        first, count = step_at(offsets, t, B, PACKED)
        active = (r < count)[:, None] & mine
        prior, some = step_at(offsets, tl.where(step == 0, t, t - 1 + 2 * d), B, PACKED)
        had = (r < some) & (step > 0)
        if not STATES:
            readable = had & (r < count)
        else:
            readable = r < count
        place = tl.where(had, (prior + r) * out_row + d * H, h0_place + state + r * H)
        at = (first + r)[:, None] * a_row + u[None, :]
        x0 = tl.load(a + at, mask=active, other=0.0)
        if MODE >= 2:
            x1 = tl.load(a + at + H, mask=active, other=0.0)
            x2 = tl.load(a + at + 2 * H, mask=active, other=0.0)
        if MODE == 2:
            x3 = tl.load(a + at + 3 * H, mask=active, other=0.0)

        # Other programs wrote these rows: the first-level cache knows nothing of that. Two sums, since each product
        # waits for the one that it is added to.
        acc = tl.zeros((BM, BH * G), WIDE)
        other = tl.zeros((BM, BH * G), WIDE)
        rows = out + place[:, None]
        for start in range(0, H, 2 * BK):
            i = start + tl.arange(0, BK)
            j = i + BK
            left = tl.load(
                rows + i[None, :], mask=readable[:, None] & (i < H)[None, :], other=0.0, cache_modifier=".cg"
            )
            right = tl.load(weight[None, :] + i[:, None], mask=(i < H)[:, None] & there[None, :], other=0.0)
            left2 = tl.load(
                rows + j[None, :], mask=readable[:, None] & (j < H)[None, :], other=0.0, cache_modifier=".cg"
            )
            right2 = tl.load(weight[None, :] + j[:, None], mask=(j < H)[:, None] & there[None, :], other=0.0)
            acc = tl.dot(left, right, acc, input_precision=PRECISION, out_dtype=WIDE)
            other = tl.dot(left2, right2, other, input_precision=PRECISION, out_dtype=WIDE)
        acc += other

        if MODE < 2:
            p0 = acc
        else:
            p0, p1, p2, p3 = quarters(acc, BM, BH)
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
            h = tl.load(
                out + place[:, None] + u[None, :],
                mask=readable[:, None] & (u < H)[None, :],
                other=0.0,
                cache_modifier=".cg",
            ).to(WIDE)
            g0, g1, g2, new = gru(x0 + p0, x1 + p1, x2, p2, h, FAST)
            g3 = p2
        y = new.to(out.dtype.element_ty)
        row = (first + r)[:, None]
        tl.store(out + d * H + row * out_row + u[None, :], y, mask=active)
        if WAITS and step + 1 < end:
            _wait_for_all(counter, step)
        elif WHOLE:
            tl.debug_barrier()

        if SAVE and MODE >= 2:
            tl.store(a + at, g0, mask=active)
            tl.store(a + at + H, g1, mask=active)
            tl.store(a + at + 2 * H, g2, mask=active)
            tl.store(a + at + 3 * H, g3, mask=active)
        # The last step of a row: forwards short rows end early, backwards all end at the first.
        _, most = step_at(offsets, tl.where(step == T - 1, t, t + 1 - 2 * d), B, PACKED)
        ends = active & ((step == T - 1) | (r >= most)[:, None])
        tl.store(hn + state + own, y.to(hn.dtype.element_ty), mask=ends)
        if MODE == 2:
            tl.store(cn + state + own, c.to(cn.dtype.element_ty), mask=ends)
            if SAVE:
                tl.store(cells + row * H + u[None, :], cell, mask=active)
    if MODE == 2 and not WHOLE:
        tl.store(carry + state + own, c, mask=mine)


@triton.jit
def streamed_backward(
    by_out, by_hn, by_cn, a, cells, out, w, h0, c0, dx, dh_gates, by_h, by_c, sums, carry, counters, offsets,
    begin, end, T, B, H, by_row, a_dir, out_row, w_dir, d_dir, cells_dir,
    MODE: tl.constexpr, PACKED: tl.constexpr, STATES: tl.constexpr, BY_OUT: tl.constexpr, BY_H: tl.constexpr,
    BY_C: tl.constexpr, WHOLE: tl.constexpr, WAITS: tl.constexpr, PRECISION: tl.constexpr, WIDE: tl.constexpr,
    BM: tl.constexpr, BH: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    # Step T only carries what the others found to the first states.
    FAST: tl.constexpr = out.dtype.element_ty.primitive_bitwidth == 16
    G: tl.constexpr = 1 if MODE < 2 else (4 if MODE == 2 else 3)
    d = tl.program_id(2)
    r = tl.program_id(1) * BM + tl.arange(0, BM)
    u = tl.program_id(0) * BH + tl.arange(0, BH)
    mine = (r < B)[:, None] & (u < H)[None, :]
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
    told = dh_gates if MODE == 3 else dx
    counter = counters + (d * tl.num_programs(1) + tl.program_id(1)) * 8
    # Sums over this group's rows, for the biases: (directions, groups, 4, H).
    sums += (d * tl.num_programs(1) + tl.program_id(1)).to(tl.int64) * 4 * H + u

    held = tl.zeros((BM, BH), WIDE)  # of an LSTM by its cell; of a GRU directly by its state
    s0 = tl.zeros((BH,), WIDE)
    s1 = tl.zeros((BH,), WIDE)
    s2 = tl.zeros((BH,), WIDE)
    s3 = tl.zeros((BH,), WIDE)
    latest = tl.full((BM,), -1, tl.int64)  # the row that each sequence had in the step walked before
    if begin == 0:
        if BY_C:
            held = tl.load(by_cn + state + own, mask=mine, other=0.0).to(WIDE)
    else:
        held = tl.load(carry + state + own, mask=mine, other=0.0)
        s0 = tl.load(sums, mask=u < H, other=0.0)
        if MODE >= 2:
            s1 = tl.load(sums + H, mask=u < H, other=0.0)
            s2 = tl.load(sums + 2 * H, mask=u < H, other=0.0)
            s3 = tl.load(sums + 3 * H, mask=u < H, other=0.0)
        for step in range(0 if PACKED else begin - 1, begin):
            first, count = step_at(offsets, T - 1 - step + d * (2 * step - T + 1), B, PACKED)
            latest = tl.where(r < count, first + r, latest)

    for step in range(begin, end):
        acc = tl.zeros((BM, BH), WIDE)
        other = tl.zeros((BM, BH), WIDE)
        rows = told + latest[:, None] * (G * H)
        known = ((latest >= 0) & (r < B))[:, None]
        units = (u < H)[None, :]
        for start in range(0, tl.where(step > 0, G * H, 0), 2 * BK):
            i = start + tl.arange(0, BK)
            j = i + BK
            left = tl.load(rows + i[None, :], mask=known & (i < G * H)[None, :], other=0.0, cache_modifier=".cg")
            right = tl.load(w + i[:, None].to(tl.int64) * H + u[None, :], mask=(i < G * H)[:, None] & units, other=0.0)
            left2 = tl.load(rows + j[None, :], mask=known & (j < G * H)[None, :], other=0.0, cache_modifier=".cg")
            right2 = tl.load(w + j[:, None].to(tl.int64) * H + u[None, :], mask=(j < G * H)[:, None] & units, other=0.0)
            acc = tl.dot(left, right, acc, input_precision=PRECISION, out_dtype=WIDE)
            other = tl.dot(left2, right2, other, input_precision=PRECISION, out_dtype=WIDE)
        acc += other
        g = acc
        if BY_H:
            g += tl.load(by_hn + state + own, mask=mine & (latest < 0)[:, None], other=0.0).to(WIDE)
        if MODE == 3:
            g += held

        if step == T:
            tl.store(by_h + state + own, g.to(by_h.dtype.element_ty), mask=mine)
            if MODE == 2:
                tl.store(by_c + state + own, held.to(by_c.dtype.element_ty), mask=mine)
        else:
            t = T - 1 - step + d * (2 * step - T + 1)
            first, count = step_at(offsets, t, B, PACKED)
            active = (r < count)[:, None] & mine
            row = (first + r)[:, None]
            at = row * (4 * H) + u[None, :]
            final = step == T - 1
            prior, some = step_at(offsets, tl.where(final, t, t - 1 + 2 * d), B, PACKED)
            had = (r < some)[:, None] & active & (step < T - 1)
            began = active & ((r >= some)[:, None] | final)
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
                d0, d1, d2, d3, cell = lstm_backward(g, held, g0, g1, g2, g3, before, c, FAST)
                held = tl.where(active, cell, held)
            if MODE == 3:
                y = tl.load(out + (prior + r)[:, None] * out_row + u[None, :], mask=had, other=0.0).to(WIDE)
                if STATES:
                    y += tl.load(h0 + state + own, mask=began, other=0.0).to(WIDE)
                d0, d1, d2, d3, direct = gru_backward(g, g0, g1, g2, g3, y)
                held = tl.where(active, direct, held)

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
            if WAITS and step + 1 < end:
                _wait_for_all(counter, step)
            elif WHOLE:
                tl.debug_barrier()
            s0 += tl.sum(tl.where(active, d0, 0.0), 0)
            if MODE >= 2:
                s1 += tl.sum(tl.where(active, d1, 0.0), 0)
                s2 += tl.sum(tl.where(active, d2, 0.0), 0)
                s3 += tl.sum(tl.where(active, d3, 0.0), 0)
            latest = tl.where(r < count, first + r, latest)

    tl.store(sums, s0, mask=u < H)
    if MODE >= 2:
        tl.store(sums + H, s1, mask=u < H)
        tl.store(sums + 2 * H, s2, mask=u < H)
        tl.store(sums + 3 * H, s3, mask=u < H)
    if not WHOLE:
        tl.store(carry + state + own, held, mask=mine)
