"""Tiles of convolutions: a kernel for convolution and its transpose, one for weight gradients.

Padding is read as zeros, which tensor cores multiply like anything else. Where such a zero may have
met a NaN or an infinity, a tile is made once more from what is there.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _product(a, b, acc, PRECISION: tl.constexpr, DOT: tl.constexpr):
    if DOT:
        return tl.dot(a, b, acc, input_precision=PRECISION)
    # float64 has no tensor cores everywhere; tiles are small then.
    return acc + tl.sum(a[:, :, None] * b[None, :, :], 1)


@triton.jit
def within(i, size):
    """0 <= i < size in one comparison."""
    return i.to(tl.uint32, bitcast=True) < size.to(tl.uint32)


@triton.jit
def _back(t, step, size):
    """(coordinate, whether it is there) of an input that windows `step` apart put at `t`."""
    i = t // step
    return i, (t >= 0) & (i * step == t) & (i < size)


@triton.jit
def has_nan(acc):
    return tl.max((acc != acc).to(tl.int32)) > 0


@triton.jit
def not_finite(x, mask, WIDE: tl.constexpr):
    v = tl.load(x, mask=mask, other=0.0).to(WIDE)
    return tl.max((v - v != 0).to(tl.int32))


@triton.jit
def _windows(x, m, g, M, C, OD, OH, OW, td, th, tw, pd, ph, pw, xn, xc, xd, xh, xw, TRANSPOSED: tl.constexpr):
    """Of positions: which are there, the first coordinates of each one's window, or of the first
    tap in a transposed one, the sample, and where it begins.
    """
    w0 = m % OW * tw - pw if not TRANSPOSED else m % OW + pw
    rest = m // OW
    h0 = rest % OH * th - ph if not TRANSPOSED else rest % OH + ph
    rest = rest // OH
    d0 = rest % OD * td - pd if not TRANSPOSED else rest % OD + pd
    n = (rest // OD).to(tl.int64)
    base = x + n * xn + g.to(tl.int64) * C * xc
    if not TRANSPOSED:
        base += d0 * xd + h0 * xh + w0 * xw
    return m < M, w0, h0, d0, n, base


@triton.jit
def _read(
    base, k, there, w0, h0, d0, K, C, ID, IH, IW, KH, KW, td, th, tw, dd, dh, dw, xc, xd, xh, xw,
    DIMS: tl.constexpr, TRANSPOSED: tl.constexpr,
):  # fmt: skip
    """What windows read (positions, k), and whether it is there."""
    c = k % C
    tap = k // C
    kw = tap % KW * dw
    kh = tap // KW % KH * dh
    kd = tap // KW // KH * dd
    good = there[:, None] & (k < K)[None, :]
    if TRANSPOSED:
        i, ok = _back(w0[:, None] - kw[None, :], tw, IW)
        good = good & ok
        at = (c * xc)[None, :] + i * xw
        if DIMS > 1:
            i, ok = _back(h0[:, None] - kh[None, :], th, IH)
            good = good & ok
            at += i * xh
        if DIMS > 2:
            i, ok = _back(d0[:, None] - kd[None, :], td, ID)
            good = good & ok
            at += i * xd
        a = tl.load(base[:, None] + at, mask=good, other=0.0)
    else:
        good = good & within(w0[:, None] + kw[None, :], IW)
        if DIMS > 1:
            good = good & within(h0[:, None] + kh[None, :], IH)
        if DIMS > 2:
            good = good & within(d0[:, None] + kd[None, :], ID)
        at = c * xc + kd * xd + kh * xh + kw * xw
        a = tl.load(base[:, None] + at[None, :], mask=good, other=0.0)
    return a, good


@triton.jit
def _write(o, bias, acc, m, n, g, col, M, COL, OD, OH, OW, on, oc, od, oh, ow, BIAS: tl.constexpr, WIDE: tl.constexpr):
    if BIAS:
        acc += tl.load(bias + g * COL + col, mask=col < COL, other=0.0).to(WIDE)[None, :]
    place = n * on + m // OW // OH % OD * od + m // OW % OH * oh + m % OW * ow
    place = place[:, None] + ((g * COL + col) * oc)[None, :]
    tl.store(o + place, acc.to(o.dtype.element_ty), mask=(m < M)[:, None] & (col < COL)[None, :])


@triton.jit
def convolve(
    o, x, w, bias, M, COL, K, C, OD, OH, OW, ID, IH, IW, KH, KW, td, th, tw, pd, ph, pw, dd, dh, dw,
    xn, xc, xd, xh, xw, on, oc, od, oh, ow, DIMS: tl.constexpr, TRANSPOSED: tl.constexpr,
    PADDED: tl.constexpr, BIAS: tl.constexpr, PRECISION: tl.constexpr, DOT: tl.constexpr,
    WIDE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    # Grid: (blocks of positions, blocks of channels, groups).
    g = tl.program_id(2)
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    col = tl.program_id(1) * BN + tl.arange(0, BN)
    there, w0, h0, d0, n, base = _windows(
        x, m, g, M, C, OD, OH, OW, td, th, tw, pd, ph, pw, xn, xc, xd, xh, xw, TRANSPOSED
    )
    acc = tl.zeros((BM, BN), WIDE)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        a, _ = _read(
            base, k, there, w0, h0, d0, K, C, ID, IH, IW, KH, KW, td, th, tw, dd, dh, dw, xc, xd,
            xh, xw, DIMS, TRANSPOSED,
        )  # fmt: skip
        b = tl.load(
            w + (g * COL + col).to(tl.int64)[None, :] * K + k[:, None],
            mask=(k < K)[:, None] & (col < COL)[None, :],
            other=0.0,
        )
        acc = _product(a, b, acc, PRECISION, DOT)
    _write(o, bias, acc, m, n, g, col, M, COL, OD, OH, OW, on, oc, od, oh, ow, BIAS, WIDE)
    if PADDED:
        if has_nan(acc):
            _convolve_present(
                o, x, w, bias, M, COL, K, C, OD, OH, OW, ID, IH, IW, KH, KW, td, th, tw, pd, ph,
                pw, dd, dh, dw, xn, xc, xd, xh, xw, on, oc, od, oh, ow, DIMS, TRANSPOSED, BIAS,
                WIDE, BM, BN, BK,
            )  # fmt: skip


@triton.jit
def _convolve_present(
    o, x, w, bias, M, COL, K, C, OD, OH, OW, ID, IH, IW, KH, KW, td, th, tw, pd, ph, pw, dd, dh, dw,
    xn, xc, xd, xh, xw, on, oc, od, oh, ow, DIMS: tl.constexpr, TRANSPOSED: tl.constexpr,
    BIAS: tl.constexpr, WIDE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """The tile once more, if zeros of the padding met a weight that is NaN or infinite: term by
    term, without them. Few positions at a time, so that it costs the other way no registers.
    """
    g = tl.program_id(2)
    col = tl.program_id(1) * BN + tl.arange(0, BN)
    row = w + (g * COL + col).to(tl.int64) * K
    odd = K * 0
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        mask = (k < K)[:, None] & (col < COL)[None, :]
        odd = tl.maximum(odd, not_finite(row[None, :] + k[:, None], mask, WIDE))
    if odd > 0:
        tl.debug_barrier()  # other threads write these results than did before
        for part in range(BM // 16):
            m = tl.program_id(0) * BM + part * 16 + tl.arange(0, 16)
            there, w0, h0, d0, n, base = _windows(
                x, m, g, M, C, OD, OH, OW, td, th, tw, pd, ph, pw, xn, xc, xd, xh, xw, TRANSPOSED
            )
            acc = tl.zeros((16, BN), WIDE)
            for term in range(K):
                a, good = _read(
                    base, term + tl.arange(0, 1), there, w0, h0, d0, K, C, ID, IH, IW, KH, KW, td,
                    th, tw, dd, dh, dw, xc, xd, xh, xw, DIMS, TRANSPOSED,
                )  # fmt: skip
                b = tl.load(row + term, mask=col < COL, other=0.0)
                acc += tl.where(good, a.to(WIDE) * b.to(WIDE)[None, :], 0.0)
            _write(o, bias, acc, m, n, g, col, M, COL, OD, OH, OW, on, oc, od, oh, ow, BIAS, WIDE)


@triton.jit
def _seen(
    across, m, end, k, K, kd, kh, kw, OD, OH, OW, ID, IH, IW, td, th, tw, pd, ph, pw, xn, xd, xh, xw, DIMS: tl.constexpr
):
    """What positions see of the input (m, taps), and whether it is there."""
    w_ = m % OW * tw - pw
    h_ = m // OW % OH * th - ph
    d_ = m // OW // OH % OD * td - pd
    n = (m // OW // OH // OD).to(tl.int64)
    good = (m < end)[:, None] & (k < K)[None, :] & within(w_[:, None] + kw[None, :], IW)
    if DIMS > 1:
        good = good & within(h_[:, None] + kh[None, :], IH)
    if DIMS > 2:
        good = good & within(d_[:, None] + kd[None, :], ID)
    down = n * xn + d_ * xd + h_ * xh + w_ * xw
    return tl.load(across[None, :] + down[:, None], mask=good, other=0.0), good


@triton.jit
def _position(m, OD, OH, OW, yn, yd, yh, yw):
    n = (m // OW // OH // OD).to(tl.int64)
    return n * yn + m // OW // OH % OD * yd + m // OW % OH * yh + m % OW * yw


@triton.jit
def weigh(
    o, x, y, M, ROW, K, C, OD, OH, OW, ID, IH, IW, KH, KW, td, th, tw, pd, ph, pw, dd, dh, dw,
    xn, xc, xd, xh, xw, yn, yc, yd, yh, yw, part, groups, DIMS: tl.constexpr,
    PADDED: tl.constexpr, PRECISION: tl.constexpr, DOT: tl.constexpr, WIDE: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    # Grid: (blocks of output channels, blocks of taps and channels, groups times parts). Positions
    # are the terms; each part adds up its own.
    g = tl.program_id(2) % groups
    p = tl.program_id(2) // groups
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    k = tl.program_id(1) * BN + tl.arange(0, BN)
    tap = k // C
    kw = tap % KW * dw
    kh = tap // KW % KH * dh
    kd = tap // KW // KH * dd
    across = x + ((g * C + k % C) * xc + kd * xd + kh * xh + kw * xw)
    lines = y + (g * ROW + row).to(tl.int64) * yc
    end = tl.minimum((p + 1) * part, M)
    acc = tl.zeros((BM, BN), WIDE)
    for start in range(p * part, end, BK):
        m = start + tl.arange(0, BK)
        a = tl.load(
            lines[:, None] + _position(m, OD, OH, OW, yn, yd, yh, yw)[None, :],
            mask=(row < ROW)[:, None] & (m < end)[None, :],
            other=0.0,
        )
        b, _ = _seen(
            across, m, end, k, K, kd, kh, kw, OD, OH, OW, ID, IH, IW, td, th, tw, pd, ph, pw, xn, xd, xh, xw, DIMS
        )
        acc = _product(a, b, acc, PRECISION, DOT)

    place = ((p * groups + g) * ROW + row).to(tl.int64)[:, None] * K + k[None, :]
    tl.store(o + place, acc, mask=(row < ROW)[:, None] & (k < K)[None, :])
    if PADDED:
        if has_nan(acc):
            _weigh_present(
                o, x, y, M, ROW, K, C, OD, OH, OW, ID, IH, IW, KH, KW, td, th, tw, pd, ph, pw, dd,
                dh, dw, xn, xc, xd, xh, xw, yn, yc, yd, yh, yw, part, groups, DIMS, WIDE, BM, BN,
            )  # fmt: skip


@triton.jit
def _weigh_present(
    o, x, y, M, ROW, K, C, OD, OH, OW, ID, IH, IW, KH, KW, td, th, tw, pd, ph, pw, dd, dh, dw,
    xn, xc, xd, xh, xw, yn, yc, yd, yh, yw, part, groups, DIMS: tl.constexpr, WIDE: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """The tile once more, term by term, without what lies in the padding."""
    g = tl.program_id(2) % groups
    p = tl.program_id(2) // groups
    k = tl.program_id(1) * BN + tl.arange(0, BN)
    tap = k // C
    kw = tap % KW * dw
    kh = tap // KW % KH * dh
    kd = tap // KW // KH * dd
    across = x + ((g * C + k % C) * xc + kd * xd + kh * xh + kw * xw)
    end = tl.minimum((p + 1) * part, M)
    tl.debug_barrier()  # other threads write these results than did before
    for block in range(BM // 16):
        row = tl.program_id(0) * BM + block * 16 + tl.arange(0, 16)
        lines = y + (g * ROW + row).to(tl.int64) * yc
        acc = tl.zeros((16, BN), WIDE)
        for at in range(p * part, end):
            m = at + tl.arange(0, 1)
            a = tl.load(
                lines[:, None] + _position(m, OD, OH, OW, yn, yd, yh, yw)[None, :], mask=(row < ROW)[:, None], other=0.0
            )
            b, good = _seen(
                across, m, end, k, K, kd, kh, kw, OD, OH, OW, ID, IH, IW, td, th, tw, pd, ph, pw, xn, xd, xh, xw, DIMS
            )
            acc += tl.where(good, a.to(WIDE) * b.to(WIDE), 0.0)
        place = ((p * groups + g) * ROW + row).to(tl.int64)[:, None] * K + k[None, :]
        tl.store(o + place, acc, mask=(row < ROW)[:, None] & (k < K)[None, :])
