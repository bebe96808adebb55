"""Weight gradients over staged inputs: a tile is some channels of the result by some of the input
at one tap, and its terms are positions. Parts of positions are added up in a second pass.
"""

from __future__ import annotations

import triton
import triton.language as tl

from .kernels import has_nan, within
from .taps import coordinates


@triton.jit
def weigh_taps(
    sums, x, y, M, ROWS, C, OD, OH, OW, ID, IH, IW, KH, KW, sd, sh, sw, pd, ph, pw, dd, dh, dw, xn, xg, xd, xh,
    xw, yg, ym, taps, groups, md, mh, mw, part, ROW: tl.constexpr, PADDED: tl.constexpr, VEC: tl.constexpr,
    YVEC: tl.constexpr, PRECISION: tl.constexpr, WIDE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
    BK: tl.constexpr,
):  # fmt: skip
    """Strides of x and C are counted in vectors of VEC elements, those of y and ROWS in YVEC. ROW: a
    row of the window is one tap, whose C elements lie dense.
    """
    # Grid: (blocks of output channels, taps times blocks of input channels, groups times parts).
    g = tl.program_id(2) % groups
    p = tl.program_id(2) // groups
    blocks = tl.cdiv(C * VEC, BN)
    tap = tl.program_id(1) // blocks
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    c = tl.program_id(1) % blocks * BN + tl.arange(0, BN)
    kw = tap % KW * dw - pw
    kh = tap // KW % KH * dh - ph
    kd = tap // KW // KH * dd - pd
    x += (g * xg + kd * xd + kh * xh + kw * xw) * VEC
    y += g * yg * YVEC
    end = tl.minimum((p + 1) * part, M)
    acc = tl.zeros((BM, BN), WIDE)
    for start in range(p * part, end, BK):
        m = start + tl.arange(0, BK)
        n, d_, h_, w_ = coordinates(m, OD, OH, OW, md, mh, mw)
        w_, h_, d_ = w_ * sw, h_ * sh, d_ * sd
        good = (m < end) & within(h_ + kh, IH) & within(d_ + kd, ID)
        if ROW:
            mask = good[:, None] & within(((w_ + kw) * xw * VEC)[:, None] + c[None, :], IW * xw * VEC)
        else:
            mask = (good & within(w_ + kw, IW))[:, None]
        at = (n * xn + d_ * xd + h_ * xh + w_ * xw) * VEC
        b = tl.load(x + (at[:, None] + c[None, :]), mask=mask & (c < C * VEC)[None, :], other=0.0)
        a = tl.load(
            y + ((m * ym * YVEC)[:, None] + row[None, :]),
            mask=(m < end)[:, None] & (row < ROWS * YVEC)[None, :],
            other=0.0,
        )
        acc = tl.dot(tl.trans(a), b, acc, input_precision=PRECISION)

    to = sums + ((((p * groups + g) * ROWS * YVEC + row)[:, None] * taps + tap) * (C * VEC) + c[None, :])
    tl.store(to, acc, mask=(row < ROWS * YVEC)[:, None] & (c < C * VEC)[None, :])
    if PADDED:
        if has_nan(acc):
            # Zeros of the padding may have met a gradient that is NaN or infinite: once more, term
            # by term, without them.
            tl.debug_barrier()  # other threads write these results than did before
            for block in range(BM // 16):
                few = tl.zeros((16, BN), WIDE)
                some = tl.program_id(0) * BM + block * 16 + tl.arange(0, 16)
                for i in range(p * part, end):
                    wi = i % OW * sw
                    hi = i // OW % OH * sh
                    di = i // OW // OH % OD * sd
                    ni = i // OW // OH // OD
                    fits = (hi + kh >= 0) & (hi + kh < IH) & (di + kd >= 0) & (di + kd < ID)
                    if ROW:
                        u = (wi + kw) * xw * VEC + c
                        here = fits & (u >= 0) & (u < IW * xw * VEC) & (c < C * VEC)
                    else:
                        here = fits & (wi + kw >= 0) & (wi + kw < IW) & (c < C * VEC)
                    one = x + (ni * xn + di * xd + hi * xh + wi * xw) * VEC + c
                    bi = tl.load(one, mask=here, other=0.0).to(WIDE)
                    ai = tl.load(y + ym * YVEC * i + some, mask=some < ROWS * YVEC, other=0.0).to(WIDE)
                    few += tl.where(here[None, :], ai[:, None] * bi[None, :], 0.0)
                line = ((p * groups + g) * ROWS * YVEC + some)[:, None] * taps + tap
                fit = (some < ROWS * YVEC)[:, None] & (c < C * VEC)[None, :]
                tl.store(sums + line * (C * VEC) + c[None, :], few, mask=fit)


@triton.jit
def join_weights(o, sums, N, PER, T, CP, R, RP, oo, oc, ot, distance, parts, WIDE: tl.constexpr, BLOCK: tl.constexpr):
    """Parts of (rows filled up, taps, channels filled up), added up, as weights (rows, channels,
    taps). R and RP: rows of a group, and those filled up.
    """
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < N
    t = i % T
    c = i // T % PER
    r = i // T // PER
    at = sums + ((r // R * RP + r % R).to(tl.int64) * T + t) * CP + c
    acc = tl.zeros((BLOCK,), WIDE)
    for _ in range(parts):
        acc += tl.load(at, mask=mask, other=0.0)
        at += distance
    tl.store(o + r.to(tl.int64) * oo + c * oc + t * ot, acc.to(o.dtype.element_ty), mask=mask)
