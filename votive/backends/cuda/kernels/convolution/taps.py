"""Convolution and its transpose over staged inputs: for one tap of the window after the other, rows
of channels that lie dense are multiplied with the tap's weights.

A transpose falls into phases, one for each remainder of a position divided by the stride. Within a
phase it is a convolution of stride 1 by some of the taps, so no work is done for what is not there.

Padding is read as zeros, which tensor cores multiply like anything else. Where such a zero may have
met a NaN or an infinity, a tile is made once more from what is there.
"""

from __future__ import annotations

import triton
import triton.language as tl

from .kernels import has_nan, not_finite, within


@triton.jit
def quotient(m, by):
    """m divided by a size, for 0 <= m < 2^31: a product instead of a division. `by`: see `divider`."""
    u = m.to(tl.uint32)
    return ((tl.umulhi(u, by.to(tl.uint32)) + u) >> (by >> 32).to(tl.uint32)).to(tl.int32)


@triton.jit
def coordinates(m, PD, PH, PW, md, mh, mw):
    """Sample, depth, height and width of positions."""
    rest = quotient(m, mw)
    w = m - rest * PW
    m = rest
    rest = quotient(m, mh)
    h = m - rest * PH
    m = rest
    rest = quotient(m, md)
    return rest, m - rest * PD, h, w


@triton.jit
def _along(r, size, stride, padding, dilation, common, inverse, TRANSPOSED: tl.constexpr):
    """Of one dimension, for a phase: how many taps there are, the first and the distance to the
    next, the step of the input between positions, its place at position 0, the step between taps.
    """
    if TRANSPOSED:
        # Taps k with (r + padding - k * dilation) a multiple of the stride.
        end = r + padding
        step = stride // common
        first = end // common * inverse % step
        count = tl.where(end % common == 0, (size - first + step - 1) // step, 0)
        return count, first, step, 1, (end - first * dilation) // stride, -(dilation // common)
    else:
        return size, 0, 1, stride, -padding, dilation


@triton.jit
def _weights(w, g, c, col, tap, C, COL, wn, wt, COLUMNS: tl.constexpr, VEC: tl.constexpr):
    """Where the weights of channels `c` and columns `col` lie, one of which is dense."""
    if COLUMNS:
        return w + ((g * C * VEC + c) * wn * VEC + (tap * wt * VEC + col))
    else:
        return w + ((g * COL + col) * wn * VEC + (tap * wt * VEC + c))


@triton.jit
def _store(
    o, bias, acc, m, col, g, M, COL, PD, PH, PW, OD, OH, OW, md, mh, mw, rd, rh, rw, sd, sh, sw, on, oc, od, oh, ow,
    TRANSPOSED: tl.constexpr, BIAS: tl.constexpr, LAST: tl.constexpr, LINEAR: tl.constexpr, CVEC: tl.constexpr,
    WIDE: tl.constexpr,
):  # fmt: skip
    """Add the bias and write a tile (positions, channels) to where it belongs. LINEAR: positions lie
    in the order in which they are counted.
    """
    if BIAS:
        acc += tl.load(bias + g * COL + col, mask=col < COL, other=0.0).to(WIDE)[None, :]
    here = m < M
    if LAST and LINEAR:
        place = m * ow * CVEC
    else:
        n, d, h, w = coordinates(m, PD, PH, PW, md, mh, mw)
        if TRANSPOSED:
            w, h, d = w * sw + rw, h * sh + rh, d * sd + rd
            here = here & (w < OW) & (h < OH) & (d < OD)
        if LAST:
            place = (n * on + d * od + h * oh + w * ow) * CVEC
        elif LINEAR:
            place = n * on + (m - n * (PD * PH * PW))
        else:
            place = n * on + d * od + h * oh + w * ow
    y = acc.to(o.dtype.element_ty)
    if LAST:
        at = place[:, None] + (g * COL + col)[None, :]
    else:
        at = place[:, None] + ((g * COL + col) * oc)[None, :]
    tl.store(o + at, y, mask=here[:, None] & (col < COL)[None, :])


@triton.jit(noinline=True)
def _present(
    o, sums, x, w, bias, M, COL, C, PD, PH, PW, OD, OH, OW, ID, IH, IW, KH, KW, sd, sh, sw, rd, rh, rw, begin, end,
    blocks, nw, w1, ws, wa, wb, wj, nh, h1, hs, ha, hb, hj, d1, ds, da, db, dj, xn, xg, xd, xh, xw, wn, wt, on,
    oc, od, oh, ow, groups, g, slot, TRANSPOSED: tl.constexpr, ROW: tl.constexpr, BIAS: tl.constexpr,
    LAST: tl.constexpr, SPLIT: tl.constexpr, COLUMNS: tl.constexpr, VEC: tl.constexpr, CVEC: tl.constexpr,
    WIDE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """The tile once more, if zeros of the padding met a weight that is NaN or infinite: without
    them, one position at a time, so that it costs the other way neither registers nor much code.
    """
    col = tl.program_id(1) * BN + tl.arange(0, BN)
    few: tl.constexpr = BK // 16  # terms are taken by 16
    odd = M * 0
    for it in range(begin * few, end * few):
        c = it % (blocks * few) * 16 + tl.arange(0, 16)
        t = it // (blocks * few)
        tap = ((d1 + t // nw // nh * ds) * KH + h1 + t // nw % nh * hs) * KW + w1 + t % nw * ws
        at = _weights(w, g, c[:, None], col[None, :], tap, C, COL, wn, wt, COLUMNS, VEC)
        odd = tl.maximum(odd, not_finite(at, (c < C * VEC)[:, None] & (col < COL)[None, :], WIDE))
    if odd > 0:
        tl.debug_barrier()  # other threads write these results than did before
        for m in range(tl.program_id(0) * BM, tl.minimum(tl.program_id(0) * BM + BM, M)):
            w0 = m % PW * wa + wb
            h0 = m // PW % PH * ha + hb
            d0 = m // PW // PH % PD * da + db
            n = m // PW // PH // PD
            base = x + (n * xn + g * xg + d0 * xd + h0 * xh + w0 * xw) * VEC
            row = tl.zeros((BN,), WIDE)
            for it in range(begin * few, end * few):
                c = it % (blocks * few) * 16 + tl.arange(0, 16)
                t = it // (blocks * few)
                iw = w0 + t % nw * wj
                ih = h0 + t // nw % nh * hj
                id = d0 + t // nw // nh * dj
                off = ((id - d0) * xd + (ih - h0) * xh + (iw - w0) * xw) * VEC
                here = (c < C * VEC) & (ih >= 0) & (ih < IH) & (id >= 0) & (id < ID)
                if ROW:
                    here = here & (w0 * xw * VEC + c >= 0) & (w0 * xw * VEC + c < IW * xw * VEC)
                else:
                    here = here & (iw >= 0) & (iw < IW)
                tap = ((d1 + t // nw // nh * ds) * KH + h1 + t // nw % nh * hs) * KW + w1 + t % nw * ws
                at = _weights(w, g, c[:, None], col[None, :], tap, C, COL, wn, wt, COLUMNS, VEC)
                a = tl.load(base + off + c, mask=here, other=0.0).to(WIDE)
                b = tl.load(at, mask=here[:, None] & (col < COL)[None, :], other=0.0).to(WIDE)
                row += tl.sum(tl.where(here[:, None], a[:, None] * b, 0.0), 0)
            if SPLIT:
                to = ((slot * M + m) * groups + g) * COL + col
                tl.store(sums + to, row, mask=col < COL)
            else:
                if BIAS:
                    row += tl.load(bias + g * COL + col, mask=col < COL, other=0.0).to(WIDE)
                ow_, oh_, od_ = m % PW, m // PW % PH, m // PW // PH % PD
                if TRANSPOSED:
                    ow_, oh_, od_ = ow_ * sw + rw, oh_ * sh + rh, od_ * sd + rd
                fits = (ow_ < OW) & (oh_ < OH) & (od_ < OD) & (col < COL)
                if LAST:
                    to = (n * on + od_ * od + oh_ * oh + ow_ * ow) * CVEC + (g * COL + col)
                else:
                    to = n * on + od_ * od + oh_ * oh + ow_ * ow + (g * COL + col) * oc
                tl.store(o + to, row.to(o.dtype.element_ty), mask=fits)


@triton.jit
def convolve_taps(
    o, sums, x, w, bias, M, COLV, C, PD, PH, PW, OD, OH, OW, ID, IH, IW, KD, KH, KW, sd, sh, sw, pd, ph, pw,
    dd, dh, dw, gd, gh, gw, vd, vh, vw, xn, xg, xd, xh, xw, wn, wt, on, oc, od, oh, ow, groups, parts, md, mh, mw,
    TRANSPOSED: tl.constexpr, ROW: tl.constexpr, PADDED: tl.constexpr, BIAS: tl.constexpr,
    LAST: tl.constexpr, LINEAR: tl.constexpr, SPLIT: tl.constexpr, COLUMNS: tl.constexpr, VEC: tl.constexpr,
    CVEC: tl.constexpr, PRECISION: tl.constexpr, WIDE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
    BK: tl.constexpr,
):  # fmt: skip
    """Strides of the input and weight, and C, are counted in vectors of VEC elements; COLV, and
    strides of a result with dense channels, in vectors of CVEC: the compiler must know what they
    are multiples of. ROW: a row of the window is one tap, whose C elements lie dense; KW is 1 then.
    COLUMNS: the weight's columns lie dense, not its terms.
    """
    # Grid: (blocks of positions, blocks of channels, groups times parts times phases).
    z = tl.program_id(2)
    g = z % groups
    part = z // groups % parts
    phase = z // groups // parts
    rw = phase % sw
    rh = phase // sw % sh
    rd = phase // sw // sh
    nw, w1, ws, wa, wb, wj = _along(rw, KW, sw, pw, dw, gw, vw, TRANSPOSED)
    nh, h1, hs, ha, hb, hj = _along(rh, KH, sh, ph, dh, gh, vh, TRANSPOSED)
    nd, d1, ds, da, db, dj = _along(rd, KD, sd, pd, dd, gd, vd, TRANSPOSED)
    COL = COLV * CVEC
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    col = tl.program_id(1) * BN + tl.arange(0, BN)
    blocks = tl.cdiv(C * VEC, BK)
    total = nd * nh * nw * blocks
    each = tl.cdiv(total, parts)
    begin = part * each
    end = tl.minimum(begin + each, total)

    n, d0, h0, w0 = coordinates(m, PD, PH, PW, md, mh, mw)
    w0 = w0 * wa + wb
    h0 = h0 * ha + hb
    d0 = d0 * da + db
    base = (n * xn + g * xg + d0 * xd + h0 * xh + w0 * xw) * VEC
    inside = m < M
    acc = tl.zeros((BM, BN), WIDE)
    # Block of channels and tap are counted up: dividing a number of the step would cost more.
    cb = begin % blocks
    t = begin // blocks
    kw = t % tl.maximum(nw, 1)
    kh = t // tl.maximum(nw, 1) % tl.maximum(nh, 1)
    kd = t // tl.maximum(nw * nh, 1)
    for _ in range(begin, end):
        c = cb * BK + tl.arange(0, BK)
        good = inside & within(h0 + kh * hj, IH) & within(d0 + kd * dj, ID)
        off = (kd * dj * xd + kh * hj * xh + kw * wj * xw) * VEC
        if ROW:
            mask = good[:, None] & within((w0 * xw * VEC)[:, None] + c[None, :], IW * xw * VEC)
        else:
            mask = (good & within(w0 + kw * wj, IW))[:, None]
        a = tl.load(x + (base[:, None] + (off + c)[None, :]), mask=mask & (c < C * VEC)[None, :], other=0.0)
        tap = ((d1 + kd * ds) * KH + h1 + kh * hs) * KW + w1 + kw * ws
        at = _weights(w, g, c[:, None], col[None, :], tap, C, COL, wn, wt, COLUMNS, VEC)
        b = tl.load(at, mask=(c < C * VEC)[:, None] & (col < COL)[None, :], other=0.0)
        acc = tl.dot(a, b, acc, input_precision=PRECISION)
        cb += 1
        kw += (cb == blocks).to(tl.int32)
        cb = tl.where(cb == blocks, 0, cb)
        kh += (kw == nw).to(tl.int32)
        kw = tl.where(kw == nw, 0, kw)
        kd += (kh == nh).to(tl.int32)
        kh = tl.where(kh == nh, 0, kh)

    if SPLIT:
        to = (((phase * parts + part) * M + m) * groups + g)[:, None] * COL + col[None, :]
        tl.store(sums + to, acc, mask=inside[:, None] & (col < COL)[None, :])
    else:
        _store(
            o, bias, acc, m, col, g, M, COL, PD, PH, PW, OD, OH, OW, md, mh, mw, rd, rh, rw, sd, sh, sw, on, oc, od,
            oh, ow, TRANSPOSED, BIAS, LAST, LINEAR, CVEC, WIDE,
        )  # fmt: skip
    if PADDED:
        if has_nan(acc):
            _present(
                o, sums, x, w, bias, M, COL, C, PD, PH, PW, OD, OH, OW, ID, IH, IW, KH, KW, sd, sh, sw, rd, rh,
                rw, begin, end, blocks, nw, w1, ws, wa, wb, wj, nh, h1, hs, ha, hb, hj, d1, ds, da, db, dj,
                xn, xg, xd, xh, xw, wn, wt, on, oc, od, oh, ow, groups, g, phase * parts + part, TRANSPOSED, ROW,
                BIAS, LAST, SPLIT, COLUMNS, VEC, CVEC, WIDE, BM, BN, BK,
            )  # fmt: skip


@triton.jit
def add_parts(
    o, sums, bias, M, COLV, PD, PH, PW, OD, OH, OW, sd, sh, sw, on, oc, od, oh, ow, groups, parts, md, mh, mw,
    TRANSPOSED: tl.constexpr, BIAS: tl.constexpr, LAST: tl.constexpr, LINEAR: tl.constexpr, CVEC: tl.constexpr,
    WIDE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """What the parts of a sum give together. All groups are columns of one here."""
    # Grid: (blocks of positions, blocks of channels, phases).
    phase = tl.program_id(2)
    COL = COLV * CVEC
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    col = tl.program_id(1) * BN + tl.arange(0, BN)
    mask = (m < M)[:, None] & (col < COL)[None, :]
    at = sums + ((phase * parts * M + m)[:, None] * COL + col[None, :])
    acc = tl.zeros((BM, BN), WIDE)
    for _ in range(parts):
        acc += tl.load(at, mask=mask, other=0.0)
        at += M * COL
    _store(
        o, bias, acc, m, col, groups * 0, M, COL, PD, PH, PW, OD, OH, OW, md, mh, mw, phase // sw // sh,
        phase // sw % sh, phase % sw, sd, sh, sw, on, oc, od, oh, ow, TRANSPOSED, BIAS, LAST, LINEAR, CVEC, WIDE,
    )  # fmt: skip
